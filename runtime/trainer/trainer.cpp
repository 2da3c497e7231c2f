//===- trainer.cpp - The command line of a compiled model -----------------===//

#include "genrec_rt/trainer.h"

#include "../comm/peer_error.h"
#include "../core/checksum.h"
#include "../core/command_line.h"
#include "../core/launcher.h"
#include "commands.h"
#include "overwriting.h"
#include "same_on_ranks.h"
#include "world.h"

#include <csignal>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <new>

namespace genrec::rt {

namespace {

volatile std::sig_atomic_t noted = 0;

/// A terminal that closes may send SIGHUP more than once. And what reads the output, as `tee` does
/// behind a pipe, may have been ended by the same signal: a line for it must not end this process
/// before it has saved.
extern "C" void noteSignal(int signal) {
  noted = signal;
  std::signal(signal, signal == SIGHUP ? SIG_IGN : SIG_DFL);
  std::signal(SIGPIPE, SIG_IGN);
}

int dispatch(const genrec_model_desc &model, const Flags &flags, Communicator *comm,
             Clock::time_point start) {
  switch (flags.command) {
  case Flags::Command::train:
    return runTrain(model, flags, comm, start);
  case Flags::Command::evaluate:
    return runEvaluate(model, flags, comm);
  case Flags::Command::predict:
    return runPredict(model, flags, comm);
  case Flags::Command::exportTensors:
    return runExport(model, flags, comm);
  case Flags::Command::calibrate:
    return runCalibrate(model, flags);
  default:
    return runInfo(model, flags);
  }
}

void printError(const genrec_model_desc &model, const Flags &flags, const std::string &message,
                const std::string &help) {
  std::fprintf(stderr, "%s: error: %s\n", model.name, message.c_str());
  if (!help.empty())
    std::fprintf(stderr, "  help: %s\n", help.c_str());
  if (flags.progress == "json")
    Progress("json", 0).event("error", {{"message", message}, {"help", help}});
}

std::string checksumOfProgram() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  return toHex(checksumOf(std::string(std::istreambuf_iterator<char>(file), {})));
}

/// A command in all its ranks.
class Command {
public:
  Command(const genrec_model_desc &model, int argc, const char *const *argv)
      : model(model), argc(argc), argv(argv) {}

  int run();

private:
  void connect();
  void requireSameStart();
  /// What parsing printed nothing of, or all.
  int endUnparsed(int status);
  int fail(World::Ending ending, const std::string &message, const std::string &help);

  const genrec_model_desc &model;
  int argc;
  const char *const *argv;
  Clock::time_point start = Clock::now();
  Flags flags;
  World world;
};

/// Ranks run the same program with the same flags, but for --threads: machines differ.
void Command::requireSameStart() {
  std::string arguments;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument == "--threads")
      ++i;
    else if (!argument.starts_with("--threads="))
      arguments += (arguments.empty() ? "" : " ") + argument;
  }
  if (world.ranks() > 1)
    requireSame(world.comm(), "code",
                {std::string(model.name) + ", checksum " + checksumOfProgram()});
  requireSame(world.comm(), "flags", {arguments});
}

void Command::connect() {
  if (flags.command == Flags::Command::info || flags.command == Flags::Command::calibrate)
    return;
  world.connect(flags.comm, flags.portions);
  world.setPatience(std::chrono::seconds(flags.commPatience));
  requireSameStart();
  if (flags.threads == 0 && world.ranks() > 1)
    flags.threads = world.threads();
  if (flags.overlap == "auto")
    flags.overlap = world.isOneMachine() ? "none" : "rows";
  if (world.isFirst())
    refuseOverwriting(model, flags);
  else
    flags = withoutReports(std::move(flags));
}

/// All ranks were given the same. The first one must not be killed before it has told what is
/// wrong.
int Command::endUnparsed(int status) {
  if (status != 0 && currentLaunch().isOneOfSeveral())
    try {
      world.connect("auto", 0);
      world.end(World::Ending::done);
    } catch (const std::exception &) {
      // Then it is told as well as it may be.
    }
  return status;
}

int Command::fail(World::Ending ending, const std::string &message, const std::string &help) {
  bool isOther = ending == World::Ending::failed && !world.isFirst();
  world.end(ending, message, [&] {
    printError(model, flags,
               (isOther ? "rank " + std::to_string(world.rank()) + ": " : "") + message, help);
  });
  return 1;
}

int Command::run() {
  try {
    ParsedFlags parsed = parseFlags(model, argc, argv, /*tells=*/currentLaunch().rank == 0);
    if (parsed.exitStatus)
      return endUnparsed(*parsed.exitStatus);
    flags = parsed.flags;
    connect();
    int status = dispatch(model, flags, world.comm(), start);
    if (flags.command != Flags::Command::train) // what the others print is their result
      requirePrinted();
    return world.end(World::Ending::done) ? status : 1;
  } catch (const CommError &error) {
    return fail(error.isOwn ? World::Ending::noticed : World::Ending::heard, error.what(),
                error.help());
  } catch (const PeerError &error) {
    return fail(World::Ending::heard, error.what(), error.help());
  } catch (const Error &error) {
    return fail(World::Ending::failed, error.what(), error.help());
  } catch (const std::bad_alloc &) {
    return fail(World::Ending::failed, "out of memory",
                "use a smaller --batch or --data-memory, or a larger machine");
  } catch (const std::exception &error) {
    return fail(World::Ending::failed, error.what(), "");
  }
}

} // namespace

void watchSignals() {
  noted = 0;
  struct sigaction action{};
  action.sa_handler = noteSignal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGUSR1, &action, nullptr);
  struct sigaction before{};
  sigaction(SIGHUP, nullptr, &before);
  if (before.sa_handler != SIG_IGN) // as nohup has it
    sigaction(SIGHUP, &action, nullptr);
}

int caughtSignal() { return noted; }

double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

int trainerMain(const genrec_model_desc &model, int argc, const char *const *argv) {
  try {
    return Command(model, argc, argv).run();
  } catch (...) { // too little memory even for an error message
    std::fprintf(stderr, "%s: error: out of memory\n", model.name);
    return 1;
  }
}

} // namespace genrec::rt

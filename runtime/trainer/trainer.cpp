//===- trainer.cpp - The command line of a compiled model -----------------===//

#include "genrec_rt/trainer.h"

#include "../core/launcher.h"
#include "commands.h"
#include "overwriting.h"

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>

namespace genrec::rt {

namespace {

volatile std::sig_atomic_t noted = 0;

extern "C" void noteSignal(int signal) {
  noted = signal;
  std::signal(signal, SIG_DFL);
}

int dispatch(const genrec_model_desc &model, const Flags &flags, Clock::time_point start) {
  switch (flags.command) {
  case Flags::Command::train:
    return runTrain(model, flags, start);
  case Flags::Command::evaluate:
    return runEvaluate(model, flags);
  case Flags::Command::predict:
    return runPredict(model, flags);
  case Flags::Command::exportTensors:
    return runExport(model, flags);
  default:
    return runInfo(model, flags);
  }
}

int reportError(const genrec_model_desc &model, const Flags &flags, const std::string &message,
                const std::string &help) {
  std::fprintf(stderr, "%s: error: %s\n", model.name, message.c_str());
  if (!help.empty())
    std::fprintf(stderr, "  help: %s\n", help.c_str());
  if (flags.progress == "json")
    Progress("json", 0).event("error", {{"message", message}, {"help", help}});
  return 1;
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
}

int caughtSignal() { return noted; }

double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

static int runCommand(const genrec_model_desc &model, int argc, const char *const *argv) {
  Clock::time_point start = Clock::now();
  Flags flags;
  try {
    ParsedFlags parsed = parseFlags(model, argc, argv);
    if (parsed.exitStatus)
      return *parsed.exitStatus;
    flags = parsed.flags;
    if (flags.command != Flags::Command::info)
      requireSingleRank(model.name);
    refuseOverwriting(model, flags);
    return dispatch(model, flags, start);
  } catch (const Error &error) {
    return reportError(model, flags, error.what(), error.help());
  } catch (const std::bad_alloc &) {
    return reportError(model, flags, "out of memory",
                       "use a smaller --batch or --data-memory, or a larger machine");
  } catch (const std::exception &error) {
    return reportError(model, flags, error.what(), "");
  }
}

int trainerMain(const genrec_model_desc &model, int argc, const char *const *argv) {
  try {
    return runCommand(model, argc, argv);
  } catch (...) { // too little memory even for an error message
    std::fprintf(stderr, "%s: error: out of memory\n", model.name);
    return 1;
  }
}

} // namespace genrec::rt

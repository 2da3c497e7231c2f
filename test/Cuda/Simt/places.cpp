//===- places.cpp - Where in the program something was asked for ----------===//

#include "operations.h"

#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <map>
#include <span>
#include <spawn.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace simt {

namespace {

/// Stand-ins, and what wraps calls: never the place that is looked for.
bool isWrapper(const std::string &place) {
  static const char *const kFiles[] = {"simt_host.h:",
                                       "cuda_runtime.h:",
                                       "cuda_runtime_api.h:",
                                       "launch.h:",
                                       "streams.cpp:",
                                       "copies.cpp:",
                                       "graphs.cpp:",
                                       "host_memory.cpp:",
                                       "places.cpp:",
                                       "operations.cpp:",
                                       "nccl.cpp:",
                                       "nccl_groups.cpp:",
                                       "nccl_communicators.cpp:",
                                       "cublaslt.cpp:"};
  for (const char *file : kFiles)
    if (place.starts_with(file))
      return true;
  return place.empty() || place[0] == '?';
}

struct Frame {
  std::string function, place;
};

/// An addr2line that reads a file once and is asked often, until this process ends.
class Reader {
public:
  explicit Reader(const std::string &file) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      return;
    const char *command[] = {GENREC_ADDR2LINE, "-a",   "-i", "-s", "-f", "-C", "-e",
                             file.c_str(),     nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    for (int to : {STDIN_FILENO, STDOUT_FILENO})
      posix_spawn_file_actions_adddup2(&actions, ends[1], to);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t process;
    if (posix_spawn(&process, command[0], &actions, nullptr, const_cast<char **>(command),
                    environ) == 0)
      from = fdopen(ends[0], "r");
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (!from)
      close(ends[0]);
  }

  /// The functions at an address, the innermost of inlined ones first.
  std::vector<Frame> framesAt(size_t offset) {
    // What is said of the last address there is ends what is said of this one.
    char text[4096];
    const int bytes = std::snprintf(text, sizeof(text), "0x%zx\n0x%zx\n", offset, ~size_t(0));
    if (!from || send(fileno(from), text, static_cast<size_t>(bytes), MSG_NOSIGNAL) != bytes)
      return {};
    std::vector<std::string> lines;
    int addresses = 0;
    for (size_t left = 3; left > 0 && std::fgets(text, sizeof(text), from);) {
      lines.push_back(std::string(text, std::strcspn(text, "\n")));
      addresses += lines.back().starts_with("0x");
      left -= addresses == 2;
    }
    std::vector<Frame> frames;
    for (size_t i = 1; i + 4 < lines.size(); i += 2)
      frames.push_back({lines[i], lines[i + 1].substr(0, lines[i + 1].find(' '))});
    return frames;
  }

private:
  FILE *from = nullptr;
};

/// The file that an address was loaded from, and where in it; empty without one, and where
/// GENREC_SIMT_PLACES is 0: whoever asks only whether there is an accusation need not wait for it.
std::pair<std::string, size_t> fileOf(const void *address) {
  Dl_info info = {};
  if (!numberOf("GENREC_SIMT_PLACES", 1) || !dladdr(address, &info) || !info.dli_fname)
    return {};
  std::string file = info.dli_fname[0] == '/' ? info.dli_fname : "/proc/self/exe";
  if (file == "/proc/self/exe")
    file = "/proc/" + std::to_string(getpid()) + "/exe";
  return {file, static_cast<size_t>(static_cast<const char *>(address) -
                                    static_cast<const char *>(info.dli_fbase))};
}

/// A function's name without its arguments; anonymous namespaces are left out, too.
std::string withoutArguments(std::string function) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  for (size_t at; (at = function.find(kAnonymous)) != std::string::npos;)
    function.erase(at, kAnonymous.size());
  return function.substr(0, function.find('('));
}

/// What lies `before` an address: 1 of one that is returned to, whose call is asked for.
const std::vector<Frame> &framesAt(const void *address, size_t before) {
  // Never destroyed: reports are written while the program ends.
  static auto &known = *new std::array<std::map<const void *, std::vector<Frame>>, 2>;
  auto [found, isNew] = known[before].try_emplace(address);
  if (!isNew)
    return found->second;
  static auto &readers = *new std::map<std::string, Reader>;
  if (auto [file, offset] = fileOf(address); !file.empty())
    found->second = readers.try_emplace(file, file).first->second.framesAt(offset - before);
  return found->second;
}

/// Frames from the first on that is not loadWhole or storeWhole (device.h).
std::span<const Frame> withoutWholes(std::span<const Frame> frames) {
  while (frames.size() > 1 && (frames[0].function.find("loadWhole<") != std::string::npos ||
                               frames[0].function.find("storeWhole<") != std::string::npos))
    frames = frames.subspan(1);
  return frames;
}

} // namespace

Callers callers() {
  Callers result = {};
  void *frames[16];
  int count = backtrace(frames, 16);
  // The innermost ones are the engine's.
  for (int i = 2; i < count && static_cast<size_t>(i - 2) < result.size(); ++i)
    result[static_cast<size_t>(i - 2)] = frames[i];
  return result;
}

std::string placesOf(const Callers &callers) {
  constexpr size_t kMostShown = 3;
  std::string text;
  size_t shown = 0;
  for (const void *address : callers)
    if (address)
      for (const Frame &frame : framesAt(address, 1))
        if (!isWrapper(frame.place) && shown < kMostShown)
          text += (shown++ ? ", " : "") + frame.place;
  return text;
}

std::string accessPlace() {
  if (!machine.accessedFrom)
    return {};
  const std::span<const Frame> frames = withoutWholes(framesAt(machine.accessedFrom, 1));
  return frames.empty() || frames[0].place[0] == '?' ? "" : " at " + frames[0].place;
}

std::string describeAccess(const void *place) {
  const std::span<const Frame> frames = withoutWholes(framesAt(place, 1));
  if (frames.empty())
    return "?";
  std::string text = withoutArguments(frames.back().function);
  for (const Frame &frame : frames)
    text += (&frame == &frames.front() ? " at " : ", called at ") + frame.place;
  return text;
}

std::string functionAt(const void *address) {
  const std::vector<Frame> &frames = framesAt(address, 0);
  return frames.empty() || frames.back().function[0] == '?'
             ? "?"
             : withoutArguments(frames.back().function);
}

std::string describe(const OperationInfo &info) {
  std::string text = info.what;
  if (info.kernel)
    text += " " + functionAt(info.kernel);
  if (info.stream >= 0)
    text +=
        info.stream == 0 ? " in the default stream" : " in stream " + std::to_string(info.stream);
  std::string places = placesOf(info.callers);
  return places.empty() ? text : text + ", enqueued at " + places;
}

} // namespace simt

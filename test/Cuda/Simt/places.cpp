//===- places.cpp - Where in the program something was asked for ----------===//

#include "operations.h"

#include <cstdio>
#include <dlfcn.h>
#include <execinfo.h>
#include <map>
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

/// What addr2line says of addresses of one file, line by line.
std::vector<std::string> linesOf(const std::string &file, const std::vector<size_t> &offsets,
                                 const char *flags) {
  std::string command = std::string(GENREC_ADDR2LINE " ") + flags + " -e '" + file + "'";
  char text[4096];
  for (size_t offset : offsets) {
    std::snprintf(text, sizeof(text), " 0x%zx", offset);
    command += text;
  }
  std::vector<std::string> lines;
  if (FILE *pipe = popen((command + " 2>/dev/null").c_str(), "r")) {
    while (std::fgets(text, sizeof(text), pipe)) {
      lines.push_back(text);
      lines.back().resize(lines.back().find_last_not_of('\n') + 1);
    }
    pclose(pipe);
  }
  return lines;
}

/// The file that an address was loaded from, and where in it; empty without one.
std::pair<std::string, size_t> fileOf(const void *address) {
  Dl_info info = {};
  if (!dladdr(address, &info) || !info.dli_fname)
    return {};
  std::string file = info.dli_fname[0] == '/' ? info.dli_fname : "/proc/self/exe";
  if (file == "/proc/self/exe")
    file = "/proc/" + std::to_string(getpid()) + "/exe";
  if (file.find('\'') != std::string::npos)
    return {};
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

/// Places at an address, the innermost of inlined functions first; those of one file are asked for
/// together, as that takes most of the time.
std::map<const void *, std::vector<std::string>> &placesByAddress() {
  static std::map<const void *, std::vector<std::string>> places;
  return places;
}
void findPlaces(const Callers &callers) {
  std::map<std::string, std::vector<std::pair<size_t, const void *>>> byFile;
  for (const void *address : callers) {
    if (!address || placesByAddress().contains(address))
      continue;
    placesByAddress()[address] = {};
    if (auto [file, offset] = fileOf(address); !file.empty())
      byFile[file].push_back({offset - 1, address});
  }
  for (const auto &[file, addresses] : byFile) {
    std::vector<size_t> offsets;
    for (const auto &[offset, address] : addresses)
      offsets.push_back(offset);
    size_t at = 0;
    for (const std::string &line : linesOf(file, offsets, "-a -i -s"))
      if (line.starts_with("0x"))
        ++at;
      else if (at > 0 && at <= addresses.size())
        placesByAddress()[addresses[at - 1].second].push_back(line.substr(0, line.find(' ')));
  }
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
  findPlaces(callers);
  std::string text;
  size_t shown = 0;
  for (const void *address : callers)
    for (const std::string &place : placesByAddress()[address])
      if (!isWrapper(place) && shown < kMostShown)
        text += (shown++ ? ", " : "") + place;
  return text;
}

std::string accessPlace() {
  if (!machine.accessedFrom)
    return {};
  auto [file, offset] = fileOf(machine.accessedFrom);
  if (file.empty())
    return {};
  const std::vector<std::string> lines = linesOf(file, {offset - 1}, "-s");
  if (lines.empty() || lines[0].empty() || lines[0][0] == '?')
    return {};
  return " at " + lines[0].substr(0, lines[0].find(' '));
}

std::string functionAt(const void *address) {
  static std::map<const void *, std::string> names;
  std::string &name = names[address];
  if (!name.empty())
    return name;
  name = "?";
  if (auto [file, offset] = fileOf(address); !file.empty())
    if (auto lines = linesOf(file, {offset}, "-f -C -s"); !lines.empty() && lines[0][0] != '?')
      name = withoutArguments(lines[0]);
  return name;
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

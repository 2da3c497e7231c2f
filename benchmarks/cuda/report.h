//===- report.h - Arguments and results of a device's benchmarks -*- C++ -*-===//
//
// What needs no device, so that tests cover it where there is none: the command line
// of a benchmark program, and the figures it found, printed as they come (the most
// important first) and written as JSON with the device they were found on.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_BENCHMARKS_CUDA_REPORT_H
#define GENREC_BENCHMARKS_CUDA_REPORT_H

#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace genrec::bench {

/// <program> [--dry-run] [--only <group>] [<file.json>]
struct Arguments {
  bool isDryRun = false;
  std::string only; ///< the one group to measure; empty: all
  std::string file; ///< where to write results; empty: nowhere
};

/// Throws std::invalid_argument for what is no argument; `groups` are the names for --only.
inline Arguments parseArguments(const std::vector<std::string> &given,
                                const std::vector<std::string> &groups) {
  Arguments result;
  for (size_t i = 0; i < given.size(); ++i) {
    const std::string &word = given[i];
    if (word == "--dry-run") {
      result.isDryRun = true;
    } else if (word == "--only") {
      std::string names;
      for (const std::string &group : groups) {
        names += (names.empty() ? "" : ", ") + group;
        if (i + 1 < given.size() && given[i + 1] == group)
          result.only = group;
      }
      if (result.only.empty())
        throw std::invalid_argument(
            "--only takes one of " + names +
            (i + 1 < given.size() ? ", found '" + given[i + 1] + "'" : ", found nothing"));
      ++i;
    } else if (!word.empty() && word[0] == '-') {
      throw std::invalid_argument("unknown option '" + word +
                                  "': there are --dry-run, --only <group> and a file");
    } else if (!result.file.empty()) {
      throw std::invalid_argument("one file at most, found '" + result.file + "' and '" + word +
                                  "'");
    } else {
      result.file = word;
    }
  }
  return result;
}

inline std::string quoted(const std::string &text) {
  std::string result = "\"";
  for (char c : text) {
    char escape[8];
    std::snprintf(escape, sizeof(escape), "\\u%04x", static_cast<unsigned>(c));
    result += c == '"' || c == '\\'                  ? std::string{'\\', c}
              : static_cast<unsigned char>(c) < 0x20 ? std::string(escape)
                                                     : std::string{c};
  }
  return result + '"';
}

class Report {
public:
  explicit Report(std::string program) : program(std::move(program)) {}

  /// Says where the figures are from: a field of "device"; `value` is JSON.
  void describe(const std::string &field, const std::string &value) {
    device.push_back({field, value});
  }
  /// Prints the figure and keeps it.
  void add(const std::string &what, double value, const std::string &unit) {
    std::printf("%-62s %12.3f %s\n", what.c_str(), value, unit.c_str());
    std::fflush(stdout);
    // JSON has no infinities and no NaN.
    const std::string number = std::isfinite(value) ? std::to_string(value) : "null";
    figures.push_back("{\"what\": " + quoted(what) + ", \"value\": " + number +
                      ", \"unit\": " + quoted(unit) + "}");
  }
  /// Says loudly what was not measured and why.
  void skip(const std::string &what, const std::string &why) {
    std::printf("SKIPPED: %s: %s\n", what.c_str(), why.c_str());
    std::fflush(stdout);
    skipped.push_back("{\"what\": " + quoted(what) + ", \"why\": " + quoted(why) + "}");
  }

  std::string json() const {
    std::string text = "{\"program\": " + quoted(program) + ",\n \"device\": {";
    for (size_t i = 0; i < device.size(); ++i)
      text += (i ? ", " : "") + quoted(device[i].first) + ": " + device[i].second;
    return text + "},\n \"figures\": " + listOf(figures) + ",\n \"skipped\": " + listOf(skipped) +
           "}\n";
  }
  /// Throws std::runtime_error where the file cannot be written.
  void write(const std::string &path) const {
    std::FILE *file = std::fopen(path.c_str(), "w");
    const std::string text = json();
    const bool isWritten = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
    if ((file && std::fclose(file) != 0) || !isWritten)
      throw std::runtime_error("cannot write '" + path + "'");
  }

private:
  static std::string listOf(const std::vector<std::string> &entries) {
    std::string text = "[";
    for (size_t i = 0; i < entries.size(); ++i)
      text += (i ? ",\n  " : "\n  ") + entries[i];
    return text + "]";
  }

  std::string program;
  std::vector<std::pair<std::string, std::string>> device;
  std::vector<std::string> figures, skipped;
};

} // namespace genrec::bench

#endif // GENREC_BENCHMARKS_CUDA_REPORT_H

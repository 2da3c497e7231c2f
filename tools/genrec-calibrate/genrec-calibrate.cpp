//===- genrec-calibrate.cpp - Measures this machine's limits --------------===//

#include "../../runtime/core/command_line.h"
#include "../../runtime/session/calibrate.h"
#include "genrec/Version.h"

#include <cstdio>

using namespace genrec::rt;

int main(int argc, char **argv) {
  CLI::App app(
      "Measures what this machine can do at most, for about two seconds, and writes it to a file "
      "that\n`genrec-compile --explain` and `train --profile` predict times from. Best on an idle "
      "machine.");
  int32_t threads = 0;
  std::string path;
  app.set_version_flag("--version",
                       "genrec-calibrate " GENREC_VERSION ", built with " GENREC_BUILT_WITH);
  app.add_option("--threads", threads, "threads to measure with (default: all cores)")
      ->check(aboveZero());
  app.add_option("--out", path,
                 "the file; default: $GENREC_MACHINE, else machine.json in genrec's folder of "
                 "$XDG_CACHE_HOME or ~/.cache");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return reportParseError("genrec-calibrate", app, error);
  }
  try {
    calibrateInto(path, /*ofDevice=*/false, processorName(), [&] { return calibrate(threads); });
  } catch (const std::exception &error) {
    std::fprintf(stderr, "genrec-calibrate: error: %s\n", error.what());
    return 1;
  }
  return 0;
}

//===- genrec-calibrate.cpp - Measures this machine's limits --------------===//

#include "../../runtime/core/command_line.h"
#include "../../runtime/session/calibrate.h"
#include "genrec/Version.h"

#include <cstdio>

using namespace genrec::rt;

namespace {

void print(const Roofline &roofline, const std::string &path) {
  std::printf("%s, %d threads\n", roofline.processor.c_str(), roofline.threads);
  std::printf("  matrix products     %8.1f GFLOP/s\n", roofline.productFlops * 1e-9);
  std::printf("  elementwise         %8.1f GFLOP/s\n", roofline.flops * 1e-9);
  std::printf("  starting a kernel   %8.2f us\n", roofline.launchSeconds * 1e6);
  for (size_t i = 0; i < roofline.copies.size(); ++i)
    std::printf("  of %6.2f MB        %8.1f GB/s read and written, %.1f GB/s in rows of 256 bytes "
                "at random\n",
                roofline.copies[i].bytes / (1 << 20), roofline.copies[i].bytesPerSecond * 1e-9,
                roofline.gathers[i].bytesPerSecond * 1e-9);
  std::printf("written to %s\n", path.c_str());
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app(
      "Measures what this machine can do at most, for about two seconds, and writes it to a file "
      "that\n`genrec-compile --explain` and `train --profile` predict times from. Best on an idle "
      "machine.");
  int32_t threads = 0;
  std::string path = rooflinePath();
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
    Roofline roofline = calibrate(threads);
    saveRoofline(roofline, path);
    print(roofline, path);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "genrec-calibrate: error: %s\n", error.what());
    return 1;
  }
  return 0;
}

//===- roofline.h - The least time that work takes ---------------*- C++ -*-===//
//
// A machine's measured limits, and the time that work takes at least by them: the
// slower of its arithmetic and its memory traffic (Williams, Waterman and
// Patterson, "Roofline", CACM 52(4), 2009), and the time to start it. Shared by
// the compiler's predictions and the profiles of binaries.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_ROOFLINE_H
#define GENREC_RT_ROOFLINE_H

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <vector>

namespace genrec::rt {

/// What has to be done.
struct Work {
  double bytes = 0;         ///< read and written one after another
  double gatheredBytes = 0; ///< in rows picked by an index
  double flops = 0;         ///< outside of matrix products
  double productFlops = 0;  ///< in matrix products of float factors
  double bf16Flops = 0;     ///< in matrix products of bfloat16 factors
  double sourceBytes = 0;   ///< all of what rows are picked from; 0: not known

  double allFlops() const { return flops + productFlops + bf16Flops; }

  void add(const Work &other) {
    bytes += other.bytes;
    gatheredBytes += other.gatheredBytes;
    flops += other.flops;
    productFlops += other.productFlops;
    bf16Flops += other.bf16Flops;
    sourceBytes += other.sourceBytes;
  }
};

/// Bytes per second where that many bytes are worked on, again and again.
struct Bandwidth {
  double bytes, bytesPerSecond;
};

/// What all cores of a machine reach together, or a device.
struct Roofline {
  std::string processor;          ///< or the device: "NVIDIA H200"
  int threads = 0;                ///< 0: of a device
  double flops = 0;               ///< per second, elementwise on rows in cache
  double productFlops = 0;        ///< per second, in matrix products
  double launchSeconds = 0;       ///< to run nothing on all threads
  std::vector<Bandwidth> copies;  ///< by rising bytes: caches, then memory
  std::vector<Bandwidth> gathers; ///< rows of 256 bytes in random order
  double bf16Flops = 0;           ///< per second, in products of bfloat16; 0: as productFlops

  bool isMeasured() const { return flops > 0 && productFlops > 0 && !copies.empty(); }

  /// The most that a working set of `bytes` reaches: the best rate among sizes measured that are no
  /// smaller, and that of the next smaller one. Between two sizes lies the edge of a cache, and
  /// nobody knows on which side of it `bytes` are.
  static double rateFor(const std::vector<Bandwidth> &rates, double bytes) {
    double most = 0, below = 0;
    for (const Bandwidth &rate : rates)
      (rate.bytes < bytes ? below : most) =
          rate.bytes < bytes ? rate.bytesPerSecond : std::max(most, rate.bytesPerSecond);
    return std::max(most, below);
  }

  /// Seconds that `work` takes at least. Rows in order, picked rows and arithmetic may all be under
  /// way at once, so the slowest of them counts, not their sum.
  double seconds(const Work &work) const {
    if (!isMeasured())
      return 0;
    double all = work.bytes + work.gatheredBytes;
    double memory = work.bytes / rateFor(copies, work.bytes);
    double pickedFrom = work.sourceBytes > 0 ? std::min(work.sourceBytes, all) : all;
    if (work.gatheredBytes > 0 && !gathers.empty())
      memory = std::max(memory, work.gatheredBytes / rateFor(gathers, pickedFrom));
    return launchSeconds + std::max(memory, arithmeticSeconds(work));
  }

  /// "memory", "arithmetic" or "launch": what bounds `work`.
  const char *bound(const Work &work) const {
    double arithmetic = arithmeticSeconds(work);
    double rest = seconds(work) - launchSeconds;
    return rest < launchSeconds ? "launch" : rest > arithmetic ? "memory" : "arithmetic";
  }

private:
  double arithmeticSeconds(const Work &work) const {
    double bf16Rate = bf16Flops > 0 ? bf16Flops : productFlops;
    return work.flops / flops + work.productFlops / productFlops + work.bf16Flops / bf16Rate;
  }
};

/// Where the limits of this machine are kept, or of its device: $GENREC_MACHINE, else machine.json
/// or device.json in genrec's folder of $XDG_CACHE_HOME or ~/.cache.
inline std::string rooflinePath(bool ofDevice) {
  auto variable = [](const char *name) {
    const char *value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (std::string path = variable("GENREC_MACHINE"); !path.empty())
    return path;
  std::string cache = variable("XDG_CACHE_HOME");
  if (cache.empty())
    cache = variable("HOME") + "/.cache";
  return cache + "/genrec/" + (ofDevice ? "device.json" : "machine.json");
}

} // namespace genrec::rt

#endif // GENREC_RT_ROOFLINE_H

//===- library_plans.h - What cuBLASLt is asked once per shape --*- C++ -*-===//

#ifndef GENREC_RT_KERNELS_CUDA_LIBRARY_PLANS_H
#define GENREC_RT_KERNELS_CUDA_LIBRARY_PLANS_H

#include "cublaslt_library.h"

#include <compare>
#include <cstdint>
#include <map>
#include <mutex>

namespace genrec::rt::cuda {

/// d [m, n] = op(a) op(b) + bias + c, matrices by columns as the library has them, `batches` of
/// them.
struct LibraryShape {
  int device = 0;
  bool isBf16 = false; ///< a and b; d is float
  bool transposesA = false, transposesB = false, hasBias = false, addsC = false;
  int64_t m = 0, n = 0, k = 0;
  int64_t ldA = 0, ldB = 0, ldC = 0, ldD = 0;
  int64_t batches = 1, strideA = 0, strideB = 0, strideD = 0;
  uint32_t alignA = 256, alignB = 256, alignC = 256, alignD = 256; ///< of the pointers, in bytes

  auto operator<=>(const LibraryShape &) const = default;
};

struct LibraryOperands {
  const void *a, *b;
  float *d;
  const float *bias = nullptr, *c = nullptr;
};

/// Descriptors, layouts and algorithms of a process, kept until it ends: there are as many as
/// products times buckets of capacities. Thread-safe.
class LibraryPlans {
public:
  /// Null where cuBLASLt is not there.
  static LibraryPlans *get();

  /// Whether the library takes products of `shape`, with the algorithm that it chose for `planned`,
  /// which differs in its number of rows or batches at most.
  bool has(const LibraryShape &shape, const LibraryShape &planned);
  /// Of a shape that `has` found.
  int64_t workspaceBytes(const LibraryShape &shape);
  void multiply(const LibraryShape &shape, const LibraryOperands &operands, void *workspace,
                cudaStream_t stream);

private:
  using Library = CublasLtLibrary;
  struct Plan {
    bool isThere = false;
    Library::Desc desc = nullptr;
    Library::Layout a = nullptr, b = nullptr, c = nullptr, d = nullptr; ///< c is d, or its own
    Library::Algorithm algorithm = {};
    size_t workspaceBytes = 0;
  };

  explicit LibraryPlans(const Library &library) : library(library) {}
  Plan make(const LibraryShape &shape);
  Library::Layout makeLayout(const LibraryShape &shape, int type, int64_t rows, int64_t columns,
                             int64_t ld, int64_t stride);
  /// The plan with the algorithm that is chosen for it.
  const Plan &plannedFor(const LibraryShape &shape);
  Library::Handle handleOf(int device);

  const Library &library;
  std::mutex mutex;
  std::map<int, Library::Handle> handles;
  std::map<LibraryShape, Plan> chosen, plans;
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_LIBRARY_PLANS_H

//===- cublaslt_library.h - cuBLASLt, loaded where there is one -*- C++ -*-===//
//
// The few calls of cuBLASLt that products need, with the values of its header (12 and 13 have the
// same): nothing of it is needed to build, and a machine without it runs our tiles.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_CUBLASLT_LIBRARY_H
#define GENREC_RT_KERNELS_CUDA_CUBLASLT_LIBRARY_H

#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>

namespace genrec::rt::cuda {

struct CublasLtLibrary {
  using Handle = void *;
  using Layout = void *;
  using Desc = void *;
  using Preference = void *;
  struct Algorithm {
    uint64_t data[8];
  };
  /// cublasLtMatmulHeuristicResult_t.
  struct Heuristic {
    Algorithm algorithm;
    size_t workspaceBytes;
    int status;
    float waves;
    int reserved[4];
  };
  static constexpr int kSuccess = 0;
  /// cudaDataType_t, cublasComputeType_t (fp32 sums; never TF32), cublasOperation_t.
  enum Type { kFloat = 0, kBf16 = 14 };
  enum Compute { kCompute32F = 68 };
  enum Operation { kAsIs = 0, kTransposed = 1 };
  enum LayoutAttribute { kBatchCount = 5, kBatchStride = 6 };
  enum DescAttribute { kTransposeA = 3, kTransposeB = 4, kEpilogue = 7, kBiasPointer = 8 };
  enum Epilogue { kNoEpilogue = 1, kBias = 4 };
  enum PreferenceAttribute {
    kMostWorkspaceBytes = 1,
    kReductionSchemes = 3,
    kAlignmentA = 5,
    kAlignmentB = 6,
    kAlignmentC = 7,
    kAlignmentD = 8
  };

  const char *(*getStatusString)(int status);
  size_t (*getVersion)();
  int (*create)(Handle *handle);
  int (*layoutCreate)(Layout *layout, int type, uint64_t rows, uint64_t columns, int64_t ld);
  int (*layoutSet)(Layout layout, int attribute, const void *value, size_t bytes);
  int (*descCreate)(Desc *desc, int compute, int scale);
  int (*descSet)(Desc desc, int attribute, const void *value, size_t bytes);
  int (*preferenceCreate)(Preference *preference);
  int (*preferenceDestroy)(Preference preference);
  int (*preferenceSet)(Preference preference, int attribute, const void *value, size_t bytes);
  int (*getHeuristic)(Handle handle, Desc desc, Layout a, Layout b, Layout c, Layout d,
                      Preference preference, int wanted, Heuristic *results, int *found);
  int (*checkAlgorithm)(Handle handle, Desc desc, Layout a, Layout b, Layout c, Layout d,
                        const Algorithm *algorithm, Heuristic *result);
  int (*multiply)(Handle handle, Desc desc, const void *alpha, const void *a, Layout aLayout,
                  const void *b, Layout bLayout, const void *beta, const void *c, Layout cLayout,
                  void *d, Layout dLayout, const Algorithm *algorithm, void *workspace,
                  size_t workspaceBytes, cudaStream_t stream);

  /// GENREC_CUBLASLT_LIBRARY names the file, or `none`; else libcublasLt.so.13 or .12 where the
  /// loader looks. Null where there is none; throws Error where a file was named and cannot be
  /// loaded. Of the emulated device, its own unless it is `none`.
  static const CublasLtLibrary *get();

  /// Throws Error unless `status` is success; `call` names what failed.
  void check(int status, const char *call) const;
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_CUBLASLT_LIBRARY_H

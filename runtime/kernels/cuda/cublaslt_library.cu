//===- cublaslt_library.cu - cuBLASLt, loaded where there is one ----------===//

#include "cublaslt_library.h"

#include "genrec_rt/error.h"

#include <cstdlib>
#include <string_view>
#include <type_traits>

#if defined(GENREC_SIMT)
#include <cublasLt.h>
#else
#include <dlfcn.h>
#endif

namespace genrec::rt::cuda {

namespace {

constexpr const char *kVariable = "GENREC_CUBLASLT_LIBRARY";

#if defined(GENREC_SIMT)

CublasLtLibrary load(const char *) {
  using Library = CublasLtLibrary;
  static_assert(int(Library::kFloat) == CUDA_R_32F && int(Library::kBf16) == CUDA_R_16BF &&
                int(Library::kCompute32F) == CUBLAS_COMPUTE_32F &&
                int(Library::kTransposed) == CUBLAS_OP_T &&
                int(Library::kBatchCount) == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT &&
                int(Library::kBatchStride) == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET &&
                int(Library::kTransposeA) == CUBLASLT_MATMUL_DESC_TRANSA &&
                int(Library::kTransposeB) == CUBLASLT_MATMUL_DESC_TRANSB &&
                int(Library::kEpilogue) == CUBLASLT_MATMUL_DESC_EPILOGUE &&
                int(Library::kBiasPointer) == CUBLASLT_MATMUL_DESC_BIAS_POINTER &&
                int(Library::kNoEpilogue) == CUBLASLT_EPILOGUE_DEFAULT &&
                int(Library::kBias) == CUBLASLT_EPILOGUE_BIAS &&
                int(Library::kMostWorkspaceBytes) == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES &&
                int(Library::kReductionSchemes) == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK &&
                int(Library::kAlignmentA) == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES &&
                int(Library::kAlignmentD) == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES &&
                sizeof(Library::Algorithm) == sizeof(cublasLtMatmulAlgo_t) &&
                sizeof(Library::Heuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
  Library library{};
  // Of the same parameters but for enumerations and pointers to structs.
  auto take = [](auto &to, auto *function) {
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(function);
  };
  take(library.getStatusString, &cublasLtGetStatusString);
  take(library.getVersion, &cublasLtGetVersion);
  take(library.create, &cublasLtCreate);
  take(library.layoutCreate, &cublasLtMatrixLayoutCreate);
  take(library.layoutSet, &cublasLtMatrixLayoutSetAttribute);
  take(library.descCreate, &cublasLtMatmulDescCreate);
  take(library.descSet, &cublasLtMatmulDescSetAttribute);
  take(library.preferenceCreate, &cublasLtMatmulPreferenceCreate);
  take(library.preferenceDestroy, &cublasLtMatmulPreferenceDestroy);
  take(library.preferenceSet, &cublasLtMatmulPreferenceSetAttribute);
  take(library.getHeuristic, &cublasLtMatmulAlgoGetHeuristic);
  take(library.checkAlgorithm, &cublasLtMatmulAlgoCheck);
  take(library.multiply, &cublasLtMatmul);
  return library;
}

#else

void *open(const char *given) {
  if (!given) {
    void *handle = dlopen("libcublasLt.so.13", RTLD_NOW | RTLD_LOCAL);
    return handle ? handle : dlopen("libcublasLt.so.12", RTLD_NOW | RTLD_LOCAL);
  }
  void *handle = dlopen(given, RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    throw Error(std::string("cannot load cuBLASLt, which ") + kVariable + " names: " + dlerror(),
                "name the file (<folder>/libcublasLt.so.13 of the toolkit or of the wheel "
                "nvidia-cublas), or none: products run as our own tiles then");
  return handle;
}

/// All pointers null where there is no library.
CublasLtLibrary load(const char *given) {
  CublasLtLibrary library{};
  void *handle = open(given);
  if (!handle)
    return library;
  auto find = [&](auto &function, const char *symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, symbol));
    if (!function)
      throw Error(std::string("cuBLASLt has no ") + symbol,
                  std::string("install cuBLAS 12 or 13, or set ") + kVariable + "=none");
  };
  find(library.getStatusString, "cublasLtGetStatusString");
  find(library.getVersion, "cublasLtGetVersion");
  find(library.create, "cublasLtCreate");
  find(library.layoutCreate, "cublasLtMatrixLayoutCreate");
  find(library.layoutSet, "cublasLtMatrixLayoutSetAttribute");
  find(library.descCreate, "cublasLtMatmulDescCreate");
  find(library.descSet, "cublasLtMatmulDescSetAttribute");
  find(library.preferenceCreate, "cublasLtMatmulPreferenceCreate");
  find(library.preferenceDestroy, "cublasLtMatmulPreferenceDestroy");
  find(library.preferenceSet, "cublasLtMatmulPreferenceSetAttribute");
  find(library.getHeuristic, "cublasLtMatmulAlgoGetHeuristic");
  find(library.checkAlgorithm, "cublasLtMatmulAlgoCheck");
  find(library.multiply, "cublasLtMatmul");
  return library;
}

#endif

CublasLtLibrary loadUnlessOff() {
  const char *given = std::getenv(kVariable);
  if (given && std::string_view(given) == "none")
    return {};
  return load(given && *given ? given : nullptr);
}

} // namespace

const CublasLtLibrary *CublasLtLibrary::get() {
  static const CublasLtLibrary library = loadUnlessOff();
  return library.multiply ? &library : nullptr;
}

void CublasLtLibrary::check(int status, const char *call) const {
  if (status != kSuccess)
    throw Error(std::string(call) + " failed: " + getStatusString(status),
                std::string("report it with the model; ") + kVariable +
                    "=none computes products without cuBLASLt");
}

} // namespace genrec::rt::cuda

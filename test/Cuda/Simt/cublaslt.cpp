//===- cublaslt.cpp - cuBLASLt's calls, and what they refuse --------------===//

#include "arena.h"
#include "matmul.h"

#include <cstring>

using namespace simt;

struct cublasLtContext {
  int device;
};
struct simtMatmulPreference {
  uint64_t workspaceBytes = 0;
  uint32_t reductionSchemes = ~0u;               ///< any
  uint32_t alignments[4] = {256, 256, 256, 256}; ///< of a, b, c, d in bytes
};

namespace {

constexpr size_t kWorkspaceBytes = 64 << 10, kWorkspaceAlignment = 16;
/// No preference says how a bias is aligned: algorithms may load 16 bytes of it at once.
constexpr uint64_t kBiasAlignment = 16;
constexpr uint64_t kAlgorithm = 0x51317;

thread_local std::string lastText;

cublasStatus_t refuse(cublasStatus_t status, const std::string &text) {
  lastText = text;
  return status;
}
cublasStatus_t invalid(const std::string &text) {
  return refuse(CUBLAS_STATUS_INVALID_VALUE, text);
}
cublasStatus_t unsupported(const std::string &text) {
  return refuse(CUBLAS_STATUS_NOT_SUPPORTED, text);
}

template <class T> cublasStatus_t set(T &to, const void *value, size_t bytes) {
  if (!value || bytes != sizeof(T))
    return invalid("an attribute of " + std::to_string(sizeof(T)) + " bytes is set with " +
                   std::to_string(bytes));
  std::memcpy(&to, value, sizeof(T));
  return CUBLAS_STATUS_SUCCESS;
}

std::string sizeText(const simtMatrixLayout &layout) {
  return "[" + std::to_string(layout.rows) + ", " + std::to_string(layout.cols) + "]";
}

cublasStatus_t checkLayout(const char *name, const simtMatrixLayout &layout, int32_t batches) {
  const int64_t least = layout.order == CUBLASLT_ORDER_COL ? layout.rows : layout.cols;
  if (layout.rows < 1 || layout.cols < 1)
    return invalid(std::string("matrix ") + name + " is " + sizeText(layout));
  if (layout.ld < least)
    return invalid(std::string("the leading dimension ") + std::to_string(layout.ld) + " of " +
                   name + " is less than " + std::to_string(least));
  if (layout.type != CUDA_R_32F && layout.type != CUDA_R_16BF)
    return unsupported(std::string("the type of ") + name + " is not emulated");
  if (layout.batches != batches)
    return invalid(std::string("batches of ") + name + " and d differ");
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t checkSizes(const simtMatmulDesc &desc, const simtMatrixLayout &a,
                          const simtMatrixLayout &b, const simtMatrixLayout &c,
                          const simtMatrixLayout &d) {
  const bool tA = desc.transA != CUBLAS_OP_N, tB = desc.transB != CUBLAS_OP_N;
  if ((tA ? a.cols : a.rows) != d.rows || (tB ? b.rows : b.cols) != d.cols ||
      (tA ? a.rows : a.cols) != (tB ? b.cols : b.rows))
    return invalid("a is " + sizeText(a) + (tA ? " transposed" : "") + ", b " + sizeText(b) +
                   (tB ? " transposed" : "") + ", d " + sizeText(d));
  if (c.rows != d.rows || c.cols != d.cols || c.order != d.order)
    return invalid("c is " + sizeText(c) + ", d " + sizeText(d));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t checkEpilogue(const simtMatmulDesc &desc, const simtMatrixLayout &d) {
  const Epilogue epilogue(desc.epilogue);
  if (desc.epilogue == CUBLASLT_EPILOGUE_DEFAULT)
    return CUBLAS_STATUS_SUCCESS;
  if (d.order != CUBLASLT_ORDER_COL)
    return unsupported("an epilogue of a matrix by rows");
  if (epilogue.usesBias() && desc.biasType >= 0 && desc.biasType != d.type &&
      !(d.type == CUDA_R_16BF && desc.biasType == CUDA_R_32F))
    return unsupported("a bias of that type");
  if (!epilogue.aux)
    return CUBLAS_STATUS_SUCCESS;
  const bool isBits = epilogue.relu || epilogue.drelu;
  if (desc.auxLd < d.rows || desc.auxLd % (isBits ? 128 : 8) != 0)
    return invalid("the leading dimension " + std::to_string(desc.auxLd) +
                   " of the auxiliary matrix: at least " + std::to_string(d.rows) +
                   ", a multiple of " + (isBits ? "128" : "8"));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t check(const simtMatmulDesc &desc, const simtMatrixLayout &a,
                     const simtMatrixLayout &b, const simtMatrixLayout &c,
                     const simtMatrixLayout &d) {
  if (desc.compute != CUBLAS_COMPUTE_32F && desc.compute != CUBLAS_COMPUTE_32F_PEDANTIC)
    return unsupported("sums of that type are not emulated");
  if (desc.scale != CUDA_R_32F)
    return invalid("alpha and beta of fp32 sums are floats");
  for (auto [name, layout] : {std::pair("a", &a), {"b", &b}, {"c", &c}, {"d", &d}})
    if (cublasStatus_t status = checkLayout(name, *layout, d.batches);
        status != CUBLAS_STATUS_SUCCESS)
      return status;
  if (a.type != b.type || c.type != d.type || (a.type == CUDA_R_32F && d.type != CUDA_R_32F))
    return unsupported("these types together");
  if (cublasStatus_t status = checkSizes(desc, a, b, c, d); status != CUBLAS_STATUS_SUCCESS)
    return status;
  return checkEpilogue(desc, d);
}

cublasStatus_t checkPointer(const char *name, const void *pointer, uint64_t alignment) {
  if (!pointer)
    return invalid(std::string(name) + " is null");
  if (reinterpret_cast<uintptr_t>(pointer) % alignment != 0)
    return invalid(std::string(name) + " is not aligned to " + std::to_string(alignment) +
                   " bytes");
  if (!arena().holds(pointer))
    return invalid(std::string(name) + " is not memory of a device");
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t checkPointers(const Matmul &product, const cublasLtMatmulAlgo_t *algo) {
  const Epilogue epilogue(product.desc.epilogue);
  struct Pointer {
    const char *name;
    const void *at;
    uint64_t alignment;
    bool isUsed;
  };
  auto alignmentOf = [&](int which, cudaDataType type) {
    return algo ? algo->data[1 + which] : bytesOf(type);
  };
  const bool readsC = product.beta || product.betaValue != 0;
  for (const Pointer &pointer :
       {Pointer{"a", product.a, alignmentOf(0, product.aLayout.type), true},
        Pointer{"b", product.b, alignmentOf(1, product.bLayout.type), true},
        Pointer{"c", product.c, alignmentOf(2, product.cLayout.type), readsC},
        Pointer{"d", product.d, alignmentOf(3, product.dLayout.type), true},
        Pointer{"the bias", product.desc.bias, kBiasAlignment, epilogue.usesBias()},
        Pointer{"the auxiliary matrix", product.desc.aux, 16, epilogue.aux},
        Pointer{"the workspace", product.workspace, kWorkspaceAlignment,
                product.workspaceBytes > 0}})
    if (pointer.isUsed)
      if (cublasStatus_t status = checkPointer(pointer.name, pointer.at, pointer.alignment);
          status != CUBLAS_STATUS_SUCCESS)
        return status;
  if (readsC && product.c == product.d && product.cLayout.ld != product.dLayout.ld)
    return invalid("c and d are one matrix with two leading dimensions");
  return CUBLAS_STATUS_SUCCESS;
}

} // namespace

const char *cublasLtGetStatusString(cublasStatus_t) { return lastText.c_str(); }
const char *cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
  case CUBLAS_STATUS_SUCCESS:
    return "CUBLAS_STATUS_SUCCESS";
  case CUBLAS_STATUS_INVALID_VALUE:
    return "CUBLAS_STATUS_INVALID_VALUE";
  case CUBLAS_STATUS_NOT_SUPPORTED:
    return "CUBLAS_STATUS_NOT_SUPPORTED";
  case CUBLAS_STATUS_EXECUTION_FAILED:
    return "CUBLAS_STATUS_EXECUTION_FAILED";
  default:
    return "CUBLAS_STATUS_INTERNAL_ERROR";
  }
}
size_t cublasLtGetVersion() { return 130000; }

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  *handle = new cublasLtContext{currentDevice()};
  hold(*handle, "a handle of cuBLAS", /*isKept=*/true);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  if (!giveBack(handle))
    return invalid("a handle of cuBLAS that is none, or was destroyed");
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
                                          uint64_t rows, uint64_t cols, int64_t ld) {
  *layout = new simtMatrixLayout{type, static_cast<int64_t>(rows), static_cast<int64_t>(cols), ld};
  hold(*layout, "a layout of cuBLAS", /*isKept=*/true);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  if (!giveBack(layout))
    return invalid("a layout of cuBLAS that is none, or was destroyed");
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *value, size_t bytes) {
  switch (attribute) {
  case CUBLASLT_MATRIX_LAYOUT_TYPE:
    return set(layout->type, value, bytes);
  case CUBLASLT_MATRIX_LAYOUT_ORDER:
    return set(layout->order, value, bytes);
  case CUBLASLT_MATRIX_LAYOUT_ROWS:
    return set(layout->rows, value, bytes);
  case CUBLASLT_MATRIX_LAYOUT_COLS:
    return set(layout->cols, value, bytes);
  case CUBLASLT_MATRIX_LAYOUT_LD:
    return set(layout->ld, value, bytes);
  case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
    return set(layout->batches, value, bytes);
  case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
    return set(layout->batchStride, value, bytes);
  }
  return invalid("an attribute of a layout that is not emulated");
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  *desc = new simtMatmulDesc{compute, scale};
  hold(*desc, "a descriptor of cuBLAS", /*isKept=*/true);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  if (!giveBack(desc))
    return invalid("a descriptor of cuBLAS that is none, or was destroyed");
  delete desc;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes) {
  switch (attribute) {
  case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE:
    return set(desc->compute, value, bytes);
  case CUBLASLT_MATMUL_DESC_SCALE_TYPE:
    return set(desc->scale, value, bytes);
  case CUBLASLT_MATMUL_DESC_POINTER_MODE:
    return set(desc->pointers, value, bytes);
  case CUBLASLT_MATMUL_DESC_TRANSA:
    return set(desc->transA, value, bytes);
  case CUBLASLT_MATMUL_DESC_TRANSB:
    return set(desc->transB, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE:
    return set(desc->epilogue, value, bytes);
  case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
    return set(desc->bias, value, bytes);
  case CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE:
    return set(desc->biasStride, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
    return set(desc->aux, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
    return set(desc->auxLd, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE:
    return set(desc->auxStride, value, bytes);
  case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
    return set(desc->biasType, value, bytes);
  }
  return invalid("an attribute of a product that is not emulated");
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) {
  *preference = new simtMatmulPreference;
  hold(*preference, "a preference of cuBLAS");
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  if (!giveBack(preference))
    return invalid("a preference of cuBLAS that is none, or was destroyed");
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t bytes) {
  uint32_t ignored;
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
    return set(preference->workspaceBytes, value, bytes);
  if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
    return set(preference->reductionSchemes, value, bytes);
  if (attribute >= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES &&
      attribute <= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES)
    return set(preference->alignments[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES],
               value, bytes);
  return set(ignored, value, bytes);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t *results,
                                              int *found) {
  *found = 0;
  if (wanted < 1)
    return invalid("no algorithm is asked for");
  if (preference->reductionSchemes != 0)
    return unsupported("sums that several blocks add up are not emulated");
  if (cublasStatus_t status = check(*desc, *a, *b, *c, *d); status != CUBLAS_STATUS_SUCCESS)
    return status;
  *results = {};
  results->workspaceSize = std::min<size_t>(kWorkspaceBytes, preference->workspaceBytes);
  results->algo.data[0] = kAlgorithm;
  for (int i = 0; i < 4; ++i)
    results->algo.data[1 + i] = preference->alignments[i];
  results->algo.data[5] = results->workspaceSize;
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t *algo,
                                       cublasLtMatmulHeuristicResult_t *result) {
  if (!algo || !result || algo->data[0] != kAlgorithm)
    return invalid("the algorithm is not from cublasLtMatmulAlgoGetHeuristic");
  if (cublasStatus_t status = check(*desc, *a, *b, *c, *d); status != CUBLAS_STATUS_SUCCESS)
    return status;
  *result = {};
  result->algo = *algo;
  result->workspaceSize = algo->data[5];
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t aLayout, const void *b,
                              cublasLtMatrixLayout_t bLayout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t cLayout, void *d,
                              cublasLtMatrixLayout_t dLayout, const cublasLtMatmulAlgo_t *algo,
                              void *workspace, size_t workspaceBytes, cudaStream_t stream) {
  Lock lock;
  if (!handle || !desc || !alpha || !beta || !aLayout || !bLayout || !cLayout || !dLayout)
    return invalid("an argument is null");
  if (handle->device != currentDevice())
    return invalid("the handle is of device " + std::to_string(handle->device) + ", and device " +
                   std::to_string(currentDevice()) + " is current");
  if (cublasStatus_t status = check(*desc, *aLayout, *bLayout, *cLayout, *dLayout);
      status != CUBLAS_STATUS_SUCCESS)
    return status;
  if (algo && algo->data[0] != kAlgorithm)
    return invalid("the algorithm is not from cublasLtMatmulAlgoGetHeuristic");
  if (algo && algo->data[5] > workspaceBytes)
    return invalid("the algorithm wants " + std::to_string(algo->data[5]) +
                   " bytes of workspace, there are " + std::to_string(workspaceBytes));
  const bool isOnDevice = desc->pointers == CUBLASLT_POINTER_MODE_DEVICE;
  Matmul product{
      *desc,
      *aLayout,
      *bLayout,
      *cLayout,
      *dLayout,
      a,
      b,
      c,
      d,
      isOnDevice ? alpha : nullptr,
      isOnDevice ? beta : nullptr,
      isOnDevice ? 0 : *static_cast<const float *>(alpha),
      isOnDevice ? 0 : *static_cast<const float *>(beta),
      workspace,
      std::min(workspaceBytes, algo ? static_cast<size_t>(algo->data[5]) : kWorkspaceBytes)};
  if (cublasStatus_t status = checkPointers(product, algo); status != CUBLAS_STATUS_SUCCESS)
    return status;
  if (enqueue(stream, {"matmul", [product] { runMatmul(product); }}) != cudaSuccess)
    return refuse(CUBLAS_STATUS_EXECUTION_FAILED, cudaGetErrorString(cudaGetLastError()));
  return CUBLAS_STATUS_SUCCESS;
}

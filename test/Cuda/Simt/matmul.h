//===- matmul.h - A plain matrix product with its epilogue -------*- C++ -*-===//

#ifndef GENREC_TEST_CUDA_SIMT_MATMUL_H
#define GENREC_TEST_CUDA_SIMT_MATMUL_H

#include "cublasLt.h"

struct simtMatrixLayout {
  cudaDataType type;
  int64_t rows, cols, ld;
  cublasLtOrder_t order = CUBLASLT_ORDER_COL;
  int32_t batches = 1;
  int64_t batchStride = 0;
};

struct simtMatmulDesc {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  cublasLtPointerMode_t pointers = CUBLASLT_POINTER_MODE_HOST;
  cublasOperation_t transA = CUBLAS_OP_N, transB = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void *bias = nullptr;
  int64_t biasStride = 0;
  int32_t biasType = -1; ///< -1: that of d
  void *aux = nullptr;
  int64_t auxLd = 0, auxStride = 0;
};

namespace simt {

/// What the bits of an epilogue ask for.
struct Epilogue {
  explicit Epilogue(int bits)
      : relu(bits & 2), bias(bits & 4), drelu(bits & 8), rowSums(bits & 16), gelu(bits & 32),
        dgelu(bits & 64), aux(bits & 128), sumsA(bits & 256), sumsB(bits & 512) {}
  bool relu, bias, drelu, rowSums, gelu, dgelu, aux, sumsA, sumsB;
  bool usesBias() const { return bias || rowSums || sumsA || sumsB; }
};

/// A product as it was asked for; pointers are read when it runs.
struct Matmul {
  simtMatmulDesc desc;
  simtMatrixLayout aLayout, bLayout, cLayout, dLayout;
  const void *a, *b, *c;
  void *d;
  const void *alpha, *beta; ///< on the device, or null
  float alphaValue, betaValue;
  void *workspace;
  size_t workspaceBytes;

  int64_t rows() const { return dLayout.rows; }
  int64_t cols() const { return dLayout.cols; }
  int64_t inner() const { return desc.transA == CUBLAS_OP_N ? aLayout.cols : aLayout.rows; }
  cudaDataType biasType() const {
    return desc.biasType < 0 ? dLayout.type : static_cast<cudaDataType>(desc.biasType);
  }
};

inline size_t bytesOf(cudaDataType type) { return type == CUDA_R_32F ? 4 : 2; }
/// As the running operation.
void runMatmul(const Matmul &product);

} // namespace simt

#endif // GENREC_TEST_CUDA_SIMT_MATMUL_H

//===- matmul.cpp - A plain matrix product with its epilogue --------------===//

#include "matmul.h"

#include "arena.h"
#include "bf16_value.h"
#include "operations.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace simt {

namespace {

constexpr int64_t kInnerBlock = 32; ///< terms of a partial sum

int64_t offsetIn(const simtMatrixLayout &layout, int64_t row, int64_t col) {
  return layout.order == CUBLASLT_ORDER_COL ? row + col * layout.ld : row * layout.ld + col;
}

void accessMatrix(const simtMatrixLayout &layout, const void *values, bool isWrite) {
  const bool isColumns = layout.order == CUBLASLT_ORDER_COL;
  const auto element = static_cast<int64_t>(bytesOf(layout.type));
  for (int64_t batch = 0; batch < layout.batches; ++batch) {
    accessRows(static_cast<const char *>(values) + batch * layout.batchStride * element,
               static_cast<size_t>((isColumns ? layout.rows : layout.cols) * element),
               isColumns ? layout.cols : layout.rows, layout.ld * element, isWrite);
    if (layout.batchStride == 0)
      return;
  }
}

/// Reads a matrix by columns, and adds those with uninitialised memory to `undefined`.
void accessColumns(const simtMatrixLayout &layout, const void *values,
                   std::set<int64_t> &undefined) {
  const size_t bytes = static_cast<size_t>(layout.rows) * bytesOf(layout.type);
  for (int64_t column = 0; column < layout.cols; ++column) {
    const char *at = static_cast<const char *>(values) +
                     column * layout.ld * static_cast<int64_t>(bytesOf(layout.type));
    if (arena().holds(at) && std::memchr(arena().shadowOf(at), fresh, bytes))
      undefined.insert(column);
    accessRange(at, bytes, false);
  }
}

/// Reads b and, where `readsC`, c. The columns of d that are made of uninitialised memory, where
/// each is made of a column of its own of b and c: a product may run over more rows than there are.
/// They stay uninitialised, so that it is their reader who is accused. Anything else must be
/// initialised.
std::set<int64_t> accessColumns(const Matmul &product, bool readsC) {
  const simtMatrixLayout &b = product.bLayout, &c = product.cLayout;
  const Epilogue epilogue(product.desc.epilogue);
  auto isByColumns = [](const simtMatrixLayout &layout) {
    return layout.order == CUBLASLT_ORDER_COL && layout.batches == 1;
  };
  std::set<int64_t> undefined;
  if (!isByColumns(b) || !isByColumns(product.dLayout) || (readsC && !isByColumns(c)) ||
      product.desc.transB != CUBLAS_OP_N || epilogue.rowSums || epilogue.sumsB) {
    accessMatrix(b, product.b, false);
    if (readsC)
      accessMatrix(c, product.c, false);
    return undefined;
  }
  accessColumns(b, product.b, undefined);
  if (readsC)
    accessColumns(c, product.c, undefined);
  return undefined;
}

float valueAt(cudaDataType type, const void *values, int64_t index) {
  if (type == CUDA_R_32F)
    return static_cast<const float *>(values)[index];
  return bf16At(static_cast<const char *>(values) + 2 * index);
}
void setValue(cudaDataType type, void *values, int64_t index, float value) {
  if (type == CUDA_R_32F)
    static_cast<float *>(values)[index] = value;
  else
    storeBf16(static_cast<char *>(values) + 2 * index, value);
}

const void *batchOf(const simtMatrixLayout &layout, const void *values, int64_t batch) {
  return static_cast<const char *>(values) +
         batch * layout.batchStride * static_cast<int64_t>(bytesOf(layout.type));
}

/// op(matrix), rows of floats one after another.
std::vector<float> unpacked(const simtMatrixLayout &layout, const void *values, bool isTransposed) {
  const int64_t rows = isTransposed ? layout.cols : layout.rows;
  const int64_t cols = isTransposed ? layout.rows : layout.cols;
  std::vector<float> result(static_cast<size_t>(rows * cols));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c)
      result[static_cast<size_t>(r * cols + c)] = valueAt(
          layout.type, values, isTransposed ? offsetIn(layout, c, r) : offsetIn(layout, r, c));
  return result;
}

/// left [m, k] right [k, n], partial sums of kInnerBlock terms.
std::vector<float> multiplied(const std::vector<float> &left, const std::vector<float> &right,
                              int64_t m, int64_t n, int64_t k) {
  std::vector<float> result(static_cast<size_t>(m * n)), partial(static_cast<size_t>(n));
  for (int64_t row = 0; row < m; ++row)
    for (int64_t from = 0; from < k; from += kInnerBlock) {
      std::fill(partial.begin(), partial.end(), 0.0f);
      for (int64_t i = from; i < std::min(k, from + kInnerBlock); ++i) {
        const float scale = left[static_cast<size_t>(row * k + i)];
        const float *terms = right.data() + i * n;
        for (int64_t col = 0; col < n; ++col)
          partial[static_cast<size_t>(col)] += scale * terms[col];
      }
      for (int64_t col = 0; col < n; ++col)
        result[static_cast<size_t>(row * n + col)] += partial[static_cast<size_t>(col)];
    }
  return result;
}

// The approximation with tanh, which is the library's.
constexpr float kGeluScale = 0.7978845608f, kGeluCube = 0.044715f;
float gelu(float x) { return 0.5f * x * (1 + std::tanh(kGeluScale * (x + kGeluCube * x * x * x))); }
float geluSlope(float x) {
  const float t = std::tanh(kGeluScale * (x + kGeluCube * x * x * x));
  return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * kGeluScale * (1 + 3 * kGeluCube * x * x);
}

/// The matrix beside d: a bit for each value that ReLU kept, or what GELU was given.
class Aux {
public:
  Aux(const Matmul &product, int64_t batch)
      : isBits(Epilogue(product.desc.epilogue).relu || Epilogue(product.desc.epilogue).drelu),
        type(product.dLayout.type), ld(product.desc.auxLd),
        values(static_cast<char *>(product.desc.aux) +
               batch * (isBits ? product.desc.auxStride / 8
                               : product.desc.auxStride * static_cast<int64_t>(bytesOf(type)))) {}
  void access(int64_t rows, int64_t cols, bool isWrite) const {
    const auto element = static_cast<int64_t>(bytesOf(type));
    accessRows(values, static_cast<size_t>(isBits ? (rows + 7) / 8 : rows * element), cols,
               isBits ? ld / 8 : ld * element, isWrite);
  }
  bool bit(int64_t row, int64_t col) const { return byte(row, col) >> row % 8 & 1; }
  void setBit(int64_t row, int64_t col, bool value) const {
    char &at = byte(row, col);
    at = static_cast<char>(value ? at | 1 << row % 8 : at & ~(1 << row % 8));
  }
  float value(int64_t row, int64_t col) const { return valueAt(type, values, row + col * ld); }
  void setValueAt(int64_t row, int64_t col, float value) const {
    setValue(type, values, row + col * ld, value);
  }

private:
  char &byte(int64_t row, int64_t col) const { return values[(row + col * ld) / 8]; }
  bool isBits;
  cudaDataType type;
  int64_t ld;
  char *values;
};

float finished(const Epilogue &epilogue, const Aux &aux, float value, int64_t row, int64_t col) {
  if (epilogue.relu) {
    if (epilogue.aux)
      aux.setBit(row, col, value > 0);
    return std::max(value, 0.0f);
  }
  if (epilogue.drelu)
    return aux.bit(row, col) ? value : 0;
  if (epilogue.gelu) {
    if (epilogue.aux)
      aux.setValueAt(row, col, value);
    return gelu(value);
  }
  if (epilogue.dgelu)
    return value * geluSlope(aux.value(row, col));
  return value;
}

char *biasOf(const Matmul &product, int64_t batch) {
  return static_cast<char *>(product.desc.bias) +
         batch * product.desc.biasStride * static_cast<int64_t>(bytesOf(product.biasType()));
}

/// Gradients of the bias: sums of an operand over the inner dimension, or of d over columns.
void writeSums(const Matmul &product, int64_t batch, const std::vector<float> &values, int64_t rows,
               int64_t cols, bool overRows) {
  char *bias = biasOf(product, batch);
  const int64_t count = overRows ? cols : rows;
  accessRows(bias, static_cast<size_t>(count) * bytesOf(product.biasType()), 1, 0, true);
  for (int64_t i = 0; i < count; ++i) {
    float sum = 0;
    for (int64_t j = 0; j < (overRows ? rows : cols); ++j)
      sum += values[static_cast<size_t>(overRows ? j * cols + i : i * cols + j)];
    setValue(product.biasType(), bias, i, sum);
  }
}

void runBatch(const Matmul &product, int64_t batch, float alpha, float beta) {
  const int64_t m = product.rows(), n = product.cols(), k = product.inner();
  const Epilogue epilogue(product.desc.epilogue);
  const std::vector<float> left =
      unpacked(product.aLayout, batchOf(product.aLayout, product.a, batch),
               product.desc.transA != CUBLAS_OP_N);
  const std::vector<float> right =
      unpacked(product.bLayout, batchOf(product.bLayout, product.b, batch),
               product.desc.transB != CUBLAS_OP_N);
  std::vector<float> result = multiplied(left, right, m, n, k);
  const void *c = beta != 0 ? batchOf(product.cLayout, product.c, batch) : nullptr;
  void *d = const_cast<void *>(batchOf(product.dLayout, product.d, batch));
  const Aux aux(product, batch);
  if (epilogue.aux)
    aux.access(m, n, epilogue.relu || epilogue.gelu);
  const char *bias = epilogue.bias ? biasOf(product, batch) : nullptr;
  if (bias)
    accessRows(bias, static_cast<size_t>(m) * bytesOf(product.biasType()), 1, 0, false);
  for (int64_t row = 0; row < m; ++row)
    for (int64_t col = 0; col < n; ++col) {
      float &value = result[static_cast<size_t>(row * n + col)];
      value *= alpha;
      if (c)
        value += beta * valueAt(product.cLayout.type, c, offsetIn(product.cLayout, row, col));
      if (bias)
        value += valueAt(product.biasType(), bias, row);
      value = finished(epilogue, aux, value, row, col);
      setValue(product.dLayout.type, d, offsetIn(product.dLayout, row, col), value);
    }
  if (epilogue.rowSums)
    writeSums(product, batch, result, m, n, false);
  if (epilogue.sumsA)
    writeSums(product, batch, left, m, k, false);
  if (epilogue.sumsB)
    writeSums(product, batch, right, k, n, true);
}

} // namespace

void runMatmul(const Matmul &product) {
  openMemory();
  auto scalar = [](const void *at, float value) {
    if (!at)
      return value;
    accessRows(at, sizeof(float), 1, 0, false);
    return *static_cast<const float *>(at);
  };
  const float alpha = scalar(product.alpha, product.alphaValue);
  const float beta = scalar(product.beta, product.betaValue);
  accessMatrix(product.aLayout, product.a, false);
  const std::set<int64_t> undefined = accessColumns(product, beta != 0);
  // Whose workspace it is must not be another's at the same time.
  accessRange(product.workspace, product.workspaceBytes, true);
  if (product.workspaceBytes)
    std::memset(product.workspace, 0xFF, product.workspaceBytes);
  for (int64_t batch = 0; batch < product.dLayout.batches; ++batch)
    runBatch(product, batch, alpha, beta);
  accessMatrix(product.dLayout, product.d, true);
  const auto element = static_cast<int64_t>(bytesOf(product.dLayout.type));
  for (int64_t column : undefined)
    std::memset(
        arena().shadowOf(static_cast<char *>(product.d) + column * product.dLayout.ld * element),
        fresh, static_cast<size_t>(product.dLayout.rows * element));
}

} // namespace simt

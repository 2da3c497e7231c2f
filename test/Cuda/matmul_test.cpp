//===- matmul_test.cpp - The stand-in for cuBLASLt ------------------------===//

#include "device_copy.h"
#include "streams_testing.h"

#include <cublasLt.h>

#include <cmath>
#include <random>

namespace genrec::rt::cuda::test {
namespace {

using testing::HasSubstr;

std::vector<float> random(size_t count, uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::uniform_real_distribution<float> draw(-1, 1);
  std::vector<float> values(count);
  for (float &value : values)
    value = draw(generator);
  return values;
}

/// A product d = epilogue(a b) with cuBLASLt's calls, by columns.
class Product : public Streams {
protected:
  void SetUp() override {
    Streams::SetUp();
    ASSERT_EQ(cublasLtCreate(&handle), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F),
              CUBLAS_STATUS_SUCCESS);
  }
  void TearDown() override {
    for (cublasLtMatrixLayout_t layout : layouts)
      cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulDescDestroy(desc);
    cublasLtDestroy(handle);
    Streams::TearDown();
  }
  cublasLtMatrixLayout_t layout(int64_t rows, int64_t cols, int64_t ld,
                                cudaDataType type = CUDA_R_32F, int32_t batches = 1,
                                int64_t stride = 0, cublasLtOrder_t order = CUBLASLT_ORDER_COL) {
    cublasLtMatrixLayout_t made;
    EXPECT_EQ(cublasLtMatrixLayoutCreate(&made, type, rows, cols, ld), CUBLAS_STATUS_SUCCESS);
    cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batches, 4);
    cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, 8);
    cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_ORDER, &order, sizeof(order));
    layouts.push_back(made);
    return made;
  }
  template <class T> void set(cublasLtMatmulDescAttributes_t attribute, T value) {
    ASSERT_EQ(cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof(value)),
              CUBLAS_STATUS_SUCCESS);
  }
  cublasStatus_t run(const void *a, cublasLtMatrixLayout_t la, const void *b,
                     cublasLtMatrixLayout_t lb, void *d, cublasLtMatrixLayout_t ld,
                     cudaStream_t stream) {
    return cublasLtMatmul(handle, desc, &alpha, a, la, b, lb, &beta, d, ld, d, ld, nullptr,
                          workspace, workspaceBytes, stream);
  }

  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t desc = nullptr;
  std::vector<cublasLtMatrixLayout_t> layouts;
  float alpha = 1, beta = 0;
  void *workspace = nullptr;
  size_t workspaceBytes = 0;
};
INSTANTIATE_TEST_SUITE_P(Seeds, Product, testing::Range<uint64_t>(1, 4));

constexpr int kRows = 7, kCols = 5, kInner = 70;

TEST_P(Product, OfTransposedMatricesInBatches) {
  constexpr int kBatches = 2;
  // a is [inner, rows] and used transposed; b by rows with a longer leading dimension.
  const std::vector<float> a = random(kBatches * kInner * kRows, 1);
  const std::vector<float> b = random(kBatches * kInner * (kCols + 3), 2);
  Copy<float> aHere(a), bHere(b), d(std::vector<float>(kBatches * kRows * kCols, 1.0f));
  GENREC_CUDA_CHECK(cudaDeviceSynchronize());
  set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  alpha = 2;
  beta = 3;
  ASSERT_EQ(run(aHere.data(), layout(kInner, kRows, kInner, CUDA_R_32F, kBatches, kInner * kRows),
                bHere.data(),
                layout(kInner, kCols, kCols + 3, CUDA_R_32F, kBatches, kInner * (kCols + 3),
                       CUBLASLT_ORDER_ROW),
                d.data(), layout(kRows, kCols, kRows, CUDA_R_32F, kBatches, kRows * kCols), first),
            CUBLAS_STATUS_SUCCESS);
  const std::vector<float> got = d.fetch();
  for (int batch = 0; batch < kBatches; ++batch)
    for (int r = 0; r < kRows; ++r)
      for (int c = 0; c < kCols; ++c) {
        double sum = 0;
        for (int i = 0; i < kInner; ++i)
          sum += double(a[batch * kInner * kRows + r * kInner + i]) *
                 b[batch * kInner * (kCols + 3) + i * (kCols + 3) + c];
        EXPECT_NEAR(got[batch * kRows * kCols + c * kRows + r], 2 * sum + 3, 1e-4);
      }
}

TEST_P(Product, WithEpilogues) {
  const std::vector<float> a = random(kRows * kInner, 1), b = random(kInner * kCols, 2);
  const std::vector<float> bias = random(kRows, 3);
  Copy<float> aHere(a), bHere(b), biasHere(bias), d(std::vector<float>(kRows * kCols));
  Copy<uint8_t> mask(std::vector<uint8_t>(16 * kCols));
  Copy<float> given(std::vector<float>(8 * kCols)), sums{std::vector<float>(kRows)};
  GENREC_CUDA_CHECK(cudaDeviceSynchronize());
  auto la = layout(kRows, kInner, kRows), lb = layout(kInner, kCols, kInner);
  auto ld = layout(kRows, kCols, kRows);
  auto runWith = [&](cublasLtEpilogue_t epilogue, void *biasAt, void *aux, int64_t auxLd) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, biasAt);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, auxLd);
    EXPECT_EQ(run(aHere.data(), la, bHere.data(), lb, d.data(), ld, first), CUBLAS_STATUS_SUCCESS)
        << cublasLtGetStatusString(CUBLAS_STATUS_INVALID_VALUE);
    return d.fetch();
  };
  std::vector<double> plain(kRows * kCols);
  for (int r = 0; r < kRows; ++r)
    for (int c = 0; c < kCols; ++c)
      for (int i = 0; i < kInner; ++i)
        plain[c * kRows + r] += double(a[i * kRows + r]) * b[c * kInner + i];
  auto expect = [&](const std::vector<float> &got, auto of) {
    for (int at = 0; at < kRows * kCols; ++at)
      EXPECT_NEAR(got[at], of(plain[at], at % kRows), 1e-4) << at;
  };
  auto gelu = [](double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  };
  expect(runWith(CUBLASLT_EPILOGUE_RELU_AUX_BIAS, biasHere.data(), mask.data(), 128),
         [&](double x, int r) { return std::max(0.0, x + bias[r]); });
  const auto kept = mask.fetch();
  for (int c = 0; c < kCols; ++c)
    for (int r = 0; r < kRows; ++r)
      EXPECT_EQ(kept[c * 16] >> r & 1, plain[c * kRows + r] + bias[r] > 0);
  expect(runWith(CUBLASLT_EPILOGUE_GELU_AUX_BIAS, biasHere.data(), given.data(), 8),
         [&](double x, int r) { return gelu(x + bias[r]); });
  const auto before = given.fetch();
  EXPECT_NEAR(before[8 + 2], plain[kRows + 2] + bias[2], 1e-4);
  // Gradients: of ReLU by the mask, of the bias as sums over columns, of GELU by differences.
  const auto drelu = runWith(CUBLASLT_EPILOGUE_DRELU_BGRAD, sums.data(), mask.data(), 128);
  const auto gradient = sums.fetch();
  for (int r = 0; r < kRows; ++r) {
    float sum = 0;
    for (int c = 0; c < kCols; ++c) {
      EXPECT_EQ(drelu[c * kRows + r] == 0, !(kept[c * 16] >> r & 1));
      sum += drelu[c * kRows + r];
    }
    EXPECT_NEAR(gradient[r], sum, 1e-4);
  }
  const auto dgelu = runWith(CUBLASLT_EPILOGUE_DGELU, nullptr, given.data(), 8);
  const double x = before[8 + 2], slope = (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5;
  EXPECT_NEAR(dgelu[kRows + 2], plain[kRows + 2] * slope, 1e-3);
}

TEST_P(Product, OfBf16WithFloatSums) {
  // Ones: sums beyond 256 would not be there in bfloat16.
  constexpr int kLong = 301;
  Copy<uint16_t> a(std::vector<uint16_t>(kLong, 0x3F80)), b(std::vector<uint16_t>(kLong, 0x3F80));
  Copy<float> d(std::vector<float>(1));
  GENREC_CUDA_CHECK(cudaDeviceSynchronize());
  ASSERT_EQ(run(a.data(), layout(1, kLong, 1, CUDA_R_16BF), b.data(),
                layout(kLong, 1, kLong, CUDA_R_16BF), d.data(), layout(1, 1, 1), first),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(d.fetch()[0], kLong);
}

TEST_P(Product, RefusesWhatTheLibraryDoes) {
  Copy<float> a(std::vector<float>(64)), d(std::vector<float>(64));
  GENREC_CUDA_CHECK(cudaDeviceSynchronize());
  auto square = layout(4, 4, 4);
  auto text = [] { return std::string(cublasLtGetStatusString(CUBLAS_STATUS_INVALID_VALUE)); };
  EXPECT_EQ(run(a.data(), layout(4, 4, 3), a.data(), square, d.data(), square, first),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_THAT(text(), HasSubstr("the leading dimension 3 of a is less than 4"));
  EXPECT_EQ(run(a.data(), layout(4, 5, 4), a.data(), square, d.data(), square, first),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_THAT(text(), HasSubstr("a is [4, 5], b [4, 4], d [4, 4]"));
  EXPECT_EQ(run(reinterpret_cast<char *>(a.data()) + 2, square, a.data(), square, d.data(), square,
                first),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_THAT(text(), HasSubstr("a is not aligned to 4 bytes"));
  std::vector<float> onHost(16);
  EXPECT_EQ(run(onHost.data(), square, a.data(), square, d.data(), square, first),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_THAT(text(), HasSubstr("a is not memory of a device"));
  EXPECT_EQ(run(a.data(), layout(4, 4, 4, CUDA_R_16F), a.data(), square, d.data(), square, first),
            CUBLAS_STATUS_NOT_SUPPORTED);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  EXPECT_EQ(run(a.data(), square, a.data(), square, d.data(), square, first),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_THAT(text(), HasSubstr("the bias is null"));
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<void *>(a.data() + 2));
  EXPECT_EQ(run(a.data(), square, a.data(), square, d.data(), square, first),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_THAT(text(), HasSubstr("the bias is not aligned to 16 bytes"));
}

TEST_P(Product, AnAlgorithmHoldsToWhatItWasAskedFor) {
  Copy<float> a(std::vector<float>(64)), d(std::vector<float>(64));
  GENREC_CUDA_CHECK(cudaDeviceSynchronize());
  auto square = layout(4, 4, 4);
  cublasLtMatmulPreference_t preference;
  ASSERT_EQ(cublasLtMatmulPreferenceCreate(&preference), CUBLAS_STATUS_SUCCESS);
  const uint64_t bytes = 1 << 20;
  cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes,
                                       sizeof(bytes));
  cublasLtMatmulHeuristicResult_t result;
  int found = 0;
  auto ask = [&] {
    return cublasLtMatmulAlgoGetHeuristic(handle, desc, square, square, square, square, preference,
                                          1, &result, &found);
  };
  EXPECT_EQ(ask(), CUBLAS_STATUS_NOT_SUPPORTED); // of sums in an order of the moment
  const uint32_t none = 0;
  cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                       &none, sizeof(none));
  ASSERT_EQ(ask(), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(found, 1);
  cublasLtMatmulPreferenceDestroy(preference);
  auto runWith = [&](const float *from, size_t workspaceBytes) {
    return cublasLtMatmul(handle, desc, &alpha, from, square, a.data(), square, &beta, d.data(),
                          square, d.data(), square, &result.algo, d.data(), workspaceBytes, first);
  };
  EXPECT_EQ(runWith(a.data(), result.workspaceSize - 1), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(runWith(a.data() + 4, result.workspaceSize), CUBLAS_STATUS_INVALID_VALUE);
}

TEST_P(Product, AHandleIsOfItsDevice) {
  Copy<float> a(std::vector<float>(16)), d(std::vector<float>(16));
  GENREC_CUDA_CHECK(cudaDeviceSynchronize());
  auto square = layout(4, 4, 4);
  simt::options().devices = 2;
  GENREC_CUDA_CHECK(cudaSetDevice(1));
  EXPECT_EQ(run(a.data(), square, a.data(), square, d.data(), square, first),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_STREQ(cublasLtGetStatusString(CUBLAS_STATUS_INVALID_VALUE),
               "the handle is of device 0, and device 1 is current");
  GENREC_CUDA_CHECK(cudaSetDevice(0));
}

TEST_P(Product, IsAnOperationOfItsStream) {
  Copy<float> a(std::vector<float>(16, 1.0f)), d(std::vector<float>(16));
  GENREC_CUDA_CHECK(cudaDeviceSynchronize());
  auto square = layout(4, 4, 4);
  EXPECT_THAT(accusation([&] {
                GENREC_CUDA_CHECK(cudaMemsetAsync(a.data(), 0, 64, second));
                // The call fails where the product has run within it.
                EXPECT_THAT(run(a.data(), square, a.data(), square, d.data(), square, first),
                            testing::AnyOf(CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_EXECUTION_FAILED));
              }),
              testing::AllOf(HasSubstr("race between operations"), HasSubstr("matmul in stream"),
                             HasSubstr("fill in stream")));
  // Two products with one workspace.
  Copy<float> other(std::vector<float>(16));
  Copy<float> space(std::vector<float>(64));
  GENREC_CUDA_CHECK(cudaDeviceSynchronize());
  workspace = space.data();
  workspaceBytes = 256;
  EXPECT_THAT(accusation([&] {
                run(a.data(), square, a.data(), square, d.data(), square, first);
                run(a.data(), square, a.data(), square, other.data(), square, second);
              }),
              HasSubstr("race between operations: matmul"));
}

TEST_P(Product, ColumnsOntoUninitialisedMemoryStaySo) {
  Copy<float> a(std::vector<float>(16, 1.0f)), d(std::vector<float>(16)),
      more(std::vector<float>(16));
  float *c = nullptr;
  GENREC_CUDA_CHECK(cudaMalloc(&c, 64));
  GENREC_CUDA_CHECK(cudaMemset(c, 0, 32)); // two columns of four
  GENREC_CUDA_CHECK(cudaDeviceSynchronize());
  auto square = layout(4, 4, 4), half = layout(4, 2, 4);
  auto add = [&](float scale, cublasLtMatrixLayout_t right, cublasLtMatrixLayout_t to) {
    EXPECT_EQ(cublasLtMatmul(handle, desc, &alpha, a.data(), square, a.data(), right, &scale, c, to,
                             d.data(), to, nullptr, nullptr, 0, first),
              CUBLAS_STATUS_SUCCESS);
  };
  auto multiply = [&](cublasLtMatrixLayout_t left, cublasLtMatrixLayout_t right) {
    run(d.data(), left, a.data(), right, more.data(), square, first);
  };
  EXPECT_EQ(accusation([&] { add(1, square, square); }), "none");
  // Two columns are known, as the sums' left side is, by which all of them are made.
  EXPECT_EQ(accusation([&] { multiply(half, layout(2, 4, 4)); }), "none");
  EXPECT_THAT(accusation([&] { multiply(square, square); }),
              HasSubstr("uninitialised device memory: row 2"));
  EXPECT_EQ(accusation([&] { add(0, square, square); }), "none"); // does not read c
  EXPECT_EQ(accusation([&] { multiply(square, square); }), "none");
  EXPECT_EQ(accusation([&] { add(1, half, half); }), "none");
  EXPECT_EQ(accusation([&] { multiply(square, square); }), "none");
  GENREC_CUDA_CHECK(cudaFree(c));
}

TEST_P(Product, ColumnsOfUninitialisedMemoryStaySo) {
  Copy<float> a(std::vector<float>(16, 1.0f)), d(std::vector<float>(16));
  float *b = nullptr;
  GENREC_CUDA_CHECK(cudaMalloc(&b, 64));
  GENREC_CUDA_CHECK(cudaMemset(b, 0, 32)); // two columns of four
  GENREC_CUDA_CHECK(cudaDeviceSynchronize());
  auto square = layout(4, 4, 4), half = layout(4, 2, 4);
  EXPECT_EQ(accusation([&] { run(a.data(), square, b, square, d.data(), square, first); }), "none");
  // What was made of them is known, the rest may be a product's operand once more but not a sum's.
  Copy<float> more(std::vector<float>(16));
  EXPECT_EQ(accusation([&] { run(d.data(), half, b, layout(2, 2, 4), more.data(), half, first); }),
            "none");
  EXPECT_EQ(
      accusation([&] { run(a.data(), square, d.data(), square, more.data(), square, first); }),
      "none");
  EXPECT_THAT(
      accusation([&] { run(d.data(), square, a.data(), square, more.data(), square, first); }),
      HasSubstr("uninitialised device memory: row 2"));
  set(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_T);
  EXPECT_THAT(accusation([&] { run(a.data(), square, b, square, more.data(), square, first); }),
              HasSubstr("uninitialised device memory"));
  GENREC_CUDA_CHECK(cudaFree(b));
}

} // namespace
} // namespace genrec::rt::cuda::test

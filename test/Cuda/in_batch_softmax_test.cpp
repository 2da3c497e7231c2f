//===- in_batch_softmax_test.cpp - In-batch softmax on the device ---------===//
//
// Against the CPU's, which its own test holds to double precision.
//
//===----------------------------------------------------------------------===//

#include "cpu_reference.h"
#include "domain_copies.h"

#include "genrec_rt/kernels/cuda/in_batch_softmax.h"

#include <gtest/gtest.h>

#include <cmath>

namespace genrec::rt::cuda::test::in_batch {
namespace {

/// Rows that the domain has room for and has not.
constexpr int64_t kSpareRows = 6;

struct Batch {
  std::mt19937_64 random{11};
  int64_t rows, size, ldQuery, ldItem;
  std::vector<float> query, item, logQ, dLoss;
  std::vector<int64_t> id;
  std::vector<uint8_t> valid;
  bool hasLogQ, hasNulls;

  /// With nulls, what a row without an id has is NaN.
  Batch(int64_t rows, int64_t size, bool hasLogQ, bool hasNulls)
      : rows(rows), size(size), ldQuery(size + 3), ldItem(size + 1), query(reals(rows * ldQuery)),
        item(reals(rows * ldItem)), logQ(reals(rows)), dLoss(reals(rows)), hasLogQ(hasLogQ),
        hasNulls(hasNulls) {
    for (int64_t row = 0; row < rows; ++row) {
      id.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(rows)));
      valid.push_back(!hasNulls || random() % 4 > 0);
      if (!valid.back())
        query[static_cast<size_t>(row * ldQuery)] = item[static_cast<size_t>(row * ldItem)] =
            __builtin_nanf("");
    }
  }

  std::vector<float> reals(int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float &value : values)
      value = static_cast<float>(static_cast<int64_t>(random())) * 0x1p-63f;
    return values;
  }
};

struct Results {
  std::vector<float> loss, kept, dQuery, dItem;
};

std::vector<float> room(int64_t rows, int64_t width, float value) {
  return std::vector<float>(static_cast<size_t>((rows + kSpareRows) * width), value);
}

Results onCpu(const Batch &b) {
  Results to{room(b.rows, 1, 0), room(b.rows, 2, 0), room(b.rows, b.size, 0),
             room(b.rows, b.size, 0)};
  inBatchOnCpu({b.rows, b.size, b.query.data(), b.ldQuery, b.item.data(), b.ldItem, b.id.data(),
                b.hasLogQ ? b.logQ.data() : nullptr, b.hasNulls ? b.valid.data() : nullptr, 0.3f,
                b.dLoss.data()},
               {to.loss.data(), to.kept.data(), to.dQuery.data(), to.dItem.data()});
  return to;
}

Results onDevice(Batch &b) {
  auto root = makeRoot(b.rows, b.random);
  DeviceDomain domain(*root);
  Copy<float> query(b.query), item(b.item), logQ(b.logQ), dLoss(b.dLoss);
  Copy<int64_t> id(b.id);
  Copy<uint8_t> valid(b.valid);
  Copy<float> loss(room(b.rows, 1, 9)), kept(room(b.rows, 2, 9)), dQuery(room(b.rows, b.size, 9)),
      dItem(room(b.rows, b.size, 9));
  InBatch a;
  a.rows = domain.get(), a.capacity = b.rows + kSpareRows, a.size = b.size;
  a.query = query.data(), a.ldQuery = b.ldQuery, a.item = item.data(), a.ldItem = b.ldItem;
  a.id = id.data(), a.perTemperature = 1 / 0.3f;
  a.logQ = b.hasLogQ ? logQ.data() : nullptr;
  a.valid = b.hasNulls ? valid.data() : nullptr;
  inBatchForward(a, loss.data(), kept.data(), testStream());
  inBatchBackward(a, kept.data(), dLoss.data(), dQuery.data(), dItem.data(), testStream());
  return {loss.fetch(), kept.fetch(), dQuery.fetch(), dItem.fetch()};
}

void expectNear(const std::vector<float> &got, const std::vector<float> &expected,
                const char *what) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], expected[i], 2e-5f * (1 + std::abs(expected[i]))) << what << " " << i;
}

void expectSame(int64_t rows, int64_t size, bool hasLogQ, bool hasNulls) {
  SCOPED_TRACE(::testing::Message() << rows << " rows of " << size);
  Batch batch(rows, size, hasLogQ, hasNulls);
  const Results expected = onCpu(batch), got = onDevice(batch);
  expectNear(got.loss, expected.loss, "loss");
  expectNear(got.kept, expected.kept, "kept");
  expectNear(got.dQuery, expected.dQuery, "dQuery");
  expectNear(got.dItem, expected.dItem, "dItem");
}

// Tiles are of 64 rows and 64 columns; in the emulator there are four blocks.
TEST(InBatchSoftmax, AgreesWithTheCpu) {
  expectSame(0, 4, false, false);
  expectSame(1, 4, true, false);
  expectSame(3, 5, true, true);
  expectSame(64, 16, false, false);
  expectSame(130, 20, true, true);
}

TEST(InBatchSoftmax, WideVectorsAndManyTiles) {
  expectSame(20, 130, true, false);
  expectSame(330, 3, false, true);
}

/// As exact as a small number is, where 1 and it are 1.
TEST(InBatchSoftmax, ARowFarAboveOthersHasASmallLoss) {
  Batch batch(2, 2, false, false);
  batch.id = {1, 2};
  for (size_t row : {0, 1})
    for (size_t column : {0, 1}) {
      batch.query[row * 5 + column] = row == column;
      batch.item[row * 3 + column] = row == column ? 6 : 0;
    }
  const Results expected = onCpu(batch), got = onDevice(batch);
  for (size_t row : {0, 1}) {
    EXPECT_NEAR(expected.loss[row], std::exp(-20.0), 1e-12);
    EXPECT_NEAR(got.loss[row], expected.loss[row], 1e-12);
  }
}

TEST(InBatchSoftmax, ARowThatIsAloneHasNoLoss) {
  Batch batch(70, 4, true, false);
  std::fill(batch.id.begin(), batch.id.end(), 5);
  const Results got = onDevice(batch);
  for (const auto *values : {&got.loss, &got.dQuery, &got.dItem})
    for (float value : *values)
      ASSERT_EQ(value, 0.0f);
}

} // namespace
} // namespace genrec::rt::cuda::test::in_batch

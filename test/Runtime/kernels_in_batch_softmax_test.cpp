// In-batch softmax and its gradient against naive loops in double.

#include "genrec_rt/kernels/cpu/in_batch_softmax.h"
#include "kernels_testing.h"

#include <gtest/gtest.h>

namespace genrec::rt::kernels {
namespace {

using test::Random;

/// Rows with ids of which some are the same.
struct Batch {
  genrec_domain domain{};
  InBatchArgs args;
  std::vector<float> query, item, logQ, dLoss;
  std::vector<int64_t> id;
  std::vector<uint8_t> valid;

  Batch(int64_t rows, int64_t size, bool hasLogQ, bool hasNulls, double scale = 1) {
    Random random(3 + rows + size);
    domain.count = rows;
    args.rows = &domain, args.size = size, args.temperature = 0.4f;
    args.ldQuery = size + 3, args.ldItem = size + 1;
    query = random.reals(rows * args.ldQuery, scale),
    item = random.reals(rows * args.ldItem, scale);
    logQ = random.reals(rows, 2), dLoss = random.reals(rows);
    for (int64_t row = 0; row < rows; ++row) {
      id.push_back(random.below(rows + 1) - 2);
      valid.push_back(!hasNulls || random.below(4) > 0);
      if (!valid.back()) // what a null row has is nobody's business
        query[row * args.ldQuery] = item[row * args.ldItem] = logQ[row] = __builtin_nanf("");
    }
    args.query = query.data(), args.item = item.data(), args.id = id.data();
    args.logQ = hasLogQ ? logQ.data() : nullptr;
    args.valid = hasNulls ? valid.data() : nullptr;
  }
};

struct Results {
  std::vector<float> loss, kept, dQuery, dItem;

  Results(const Batch &batch, int threads) {
    const int64_t rows = batch.domain.count, size = batch.args.size;
    loss.assign(rows + 1, 7.5f), kept.assign(rows * 2 + 1, 7.5f);
    dQuery.assign(rows * size + 1, 7.5f), dItem.assign(rows * size + 1, 7.5f);
    test::Pool pool(threads);
    const int64_t bytes = inBatchScratchBytes(rows, size, threads);
    test::Scratch forward(bytes), backward(bytes);
    inBatchForward(pool, batch.args, loss.data(), kept.data(), forward.data());
    inBatchBackward(pool, batch.args, kept.data(), batch.dLoss.data(), dQuery.data(), dItem.data(),
                    backward.data());
    EXPECT_TRUE(forward.guardIsWhole());
    EXPECT_TRUE(backward.guardIsWhole());
    for (auto *values : {&loss, &kept, &dQuery, &dItem})
      EXPECT_EQ(values->back(), 7.5f);
  }
};

/// The same in double, by the definition.
struct Expected {
  std::vector<double> loss, dQuery, dItem;

  explicit Expected(const Batch &batch) {
    const InBatchArgs &a = batch.args;
    const int64_t rows = batch.domain.count, size = a.size;
    loss.resize(rows), dQuery.resize(rows * size), dItem.resize(rows * size);
    for (int64_t i = 0; i < rows; ++i) {
      std::vector<int64_t> others;
      std::vector<double> logits;
      for (int64_t j = 0; j < rows && batch.valid[i]; ++j)
        if (i == j || (batch.valid[j] && batch.id[i] != batch.id[j])) {
          double dot = 0;
          for (int64_t c = 0; c < size; ++c)
            dot += double(a.query[i * a.ldQuery + c]) * a.item[j * a.ldItem + c];
          others.push_back(j);
          logits.push_back(dot / a.temperature - (a.logQ ? a.logQ[j] : 0.0f));
        }
      double own = 0, ofOthers = 0;
      for (size_t k = 0; k < others.size(); ++k)
        own = others[k] == i ? logits[k] : own;
      for (size_t k = 0; k < others.size(); ++k)
        ofOthers += others[k] == i ? 0 : std::exp(logits[k] - own);
      loss[i] = std::log1p(ofOthers);
      for (size_t k = 0; k < others.size(); ++k) {
        const double share =
                         (others[k] == i ? -ofOthers : std::exp(logits[k] - own)) / (1 + ofOthers),
                     d = share * batch.dLoss[i] / a.temperature;
        for (int64_t c = 0; c < size; ++c) {
          dQuery[i * size + c] += d * a.item[others[k] * a.ldItem + c];
          dItem[others[k] * size + c] += d * a.query[i * a.ldQuery + c];
        }
      }
    }
  }
};

void expectNear(const char *what, const std::vector<float> &got, const std::vector<double> &wanted,
                double allowed) {
  for (size_t i = 0; i < wanted.size(); ++i)
    ASSERT_NEAR(got[i], wanted[i], allowed * (1 + std::fabs(wanted[i]))) << what << " " << i;
}

void check(const Batch &batch, int threads) {
  SCOPED_TRACE(::testing::Message() << batch.domain.count << " rows of " << batch.args.size);
  const Results got(batch, threads);
  const Expected wanted(batch);
  // The rounding of a logit, which grows with the vectors, is one of exp.
  const double allowed = 1e-5 * (1 + batch.args.size / 50.0);
  expectNear("loss", got.loss, wanted.loss, allowed);
  expectNear("dQuery", got.dQuery, wanted.dQuery, allowed);
  expectNear("dItem", got.dItem, wanted.dItem, allowed);
}

KERNEL_TEST(KernelsInBatchSoftmax, AgreesWithNaiveLoops) {
  for (bool hasLogQ : {false, true})
    for (bool hasNulls : {false, true}) {
      for (int64_t rows : {0, 1, 2, 5, 17, 63, 64, 65})
        check(Batch(rows, 8, hasLogQ, hasNulls), 1);
      check(Batch(40, 1, hasLogQ, hasNulls), 2);
      check(Batch(300, 33, hasLogQ, hasNulls), 2); // two blocks of others
      check(Batch(530, 16, hasLogQ, hasNulls), 1);
      check(Batch(70, 300, hasLogQ, hasNulls), 2);
    }
}

KERNEL_TEST(KernelsInBatchSoftmax, ARowThatIsAloneHasNoLoss) {
  Batch alone(1, 4, true, false), nulls(6, 4, true, true), same(70, 4, false, false);
  std::fill(nulls.valid.begin(), nulls.valid.end(), uint8_t(0));
  nulls.valid[3] = 1;
  nulls.query[3 * nulls.args.ldQuery] = nulls.item[3 * nulls.args.ldItem] = nulls.logQ[3] = 1;
  std::fill(same.id.begin(), same.id.end(), 5);
  for (const Batch *batch : {&alone, &nulls, &same}) {
    const Results got(*batch, 1);
    for (const auto *values : {&got.loss, &got.dQuery, &got.dItem})
      for (size_t i = 0; i + 1 < values->size(); ++i)
        EXPECT_EQ((*values)[i], 0.0f) << i;
  }
}

// exp of most scores is an infinity or 0.
KERNEL_TEST(KernelsInBatchSoftmax, LargeScores) {
  const Batch batch(100, 16, true, false, 30);
  const Results got(batch, 1);
  const Expected wanted(batch);
  for (size_t i = 0; i < wanted.loss.size(); ++i) {
    ASSERT_TRUE(std::isfinite(got.loss[i])) << i;
    if (std::isfinite(wanted.loss[i])) {
      ASSERT_NEAR(got.loss[i], wanted.loss[i], 1e-3 * (1 + wanted.loss[i])) << i;
    }
  }
  for (float value : got.dQuery)
    ASSERT_TRUE(std::isfinite(value));
}

// A share of the others far below the rounding of 1 still has a gradient.
KERNEL_TEST(KernelsInBatchSoftmax, ConfidentRows) {
  Batch batch(2, 1, false, false);
  batch.id = {1, 2};
  batch.args.temperature = 1;
  batch.query = std::vector<float>(2 * batch.args.ldQuery), batch.item = batch.query;
  batch.query[0] = 5, batch.query[batch.args.ldQuery] = -5;
  batch.item.resize(2 * batch.args.ldItem);
  batch.item[0] = 2, batch.item[batch.args.ldItem] = -2;
  batch.args.query = batch.query.data(), batch.args.item = batch.item.data();
  const Results got(batch, 1);
  const double share = std::exp(-20.0);
  EXPECT_NEAR(got.loss[0] / share, 1, 1e-5);
  EXPECT_NEAR(got.dQuery[0] / (-4 * share * batch.dLoss[0]), 1, 1e-5);
}

KERNEL_TEST(KernelsInBatchSoftmax, AnItemThatIsNaNIsSeen) {
  Batch batch(5, 4, false, false);
  batch.id = {1, 2, 3, 4, 5};
  batch.item[2 * batch.args.ldItem] = __builtin_nanf("");
  const Results got(batch, 1);
  for (int row = 0; row < 5; ++row)
    EXPECT_TRUE(std::isnan(got.loss[row])) << row;
}

KERNEL_TEST(KernelsInBatchSoftmax, SameBitsAtAnyNumberOfThreads) {
  const Batch batch(700, 24, true, true);
  const Results one(batch, 1), three(batch, 3);
  EXPECT_EQ(one.loss, three.loss);
  EXPECT_EQ(one.kept, three.kept);
  EXPECT_EQ(one.dQuery, three.dQuery);
  EXPECT_EQ(one.dItem, three.dItem);
}

} // namespace
} // namespace genrec::rt::kernels

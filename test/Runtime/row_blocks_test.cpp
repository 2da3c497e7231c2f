// Calls that run block by block against the same calls over all rows at once, for lists of all
// shapes; the same bits at any number of threads.

#include "TinyModel.h"
#include "kernels_testing.h"

#include "genrec_rt/kernels/cpu/row_blocks.h"
#include "genrec_rt/kernels/cpu/step_attention.h"
#include "genrec_rt/kernels/cpu/step_linear.h"

#include <gtest/gtest.h>

#include <numeric>

namespace genrec::rt::test {
namespace {

namespace k = genrec::rt::kernels;

constexpr int kIn = 6, kOut = 5, kBuckets = 9, kItems = 7;

/// What the calls read and write.
struct Work {
  std::vector<int64_t> offsets, parents;
  std::vector<uint64_t> identity;
  std::vector<float> x, w, bias, positionBias;
  std::vector<float> out, dw, sums, items, dPositionBias, kept;
  int64_t longest = 0;
  genrec_domain domains[2] = {};

  explicit Work(const std::vector<int64_t> &lengths) : offsets(1, 0) {
    for (int64_t length : lengths) {
      for (int64_t row = 0; row < length; ++row)
        parents.push_back(static_cast<int64_t>(offsets.size()) - 1);
      offsets.push_back(offsets.back() + length);
      longest = std::max(longest, length);
    }
    int64_t rows = offsets.back();
    identity.resize(static_cast<size_t>(rows));
    std::iota(identity.begin(), identity.end(), uint64_t(1000));
    k::test::Random random(static_cast<uint64_t>(rows) + 3);
    x = random.reals(rows * kIn), w = random.reals(kIn * kOut), bias = random.reals(kOut);
    positionBias = random.reals(kBuckets);
    domains[0].count = static_cast<int64_t>(lengths.size());
    domains[1] = {rows, rows, offsets.data(), parents.data(), identity.data(), domains, longest};
    for (auto [values, size] : {std::pair(&out, rows * kOut),
                                {&dw, int64_t(kIn * kOut)},
                                {&sums, int64_t(kOut)},
                                {&items, int64_t(kItems * kOut)},
                                {&dPositionBias, int64_t(kBuckets)},
                                {&kept, rows}})
      values->assign(static_cast<size_t>(size), NAN);
  }

  std::vector<std::vector<float>> results() const {
    return {out, dw, sums, items, dPositionBias, kept};
  }
} *work = nullptr;

/// y = 2 x, and what a random draw of the row says.
void doubleRows(void *args, int64_t begin, int64_t end, int64_t) {
  const auto *step = k::argument<genrec_step>(args, 0);
  const float *x = k::argument<float>(args, 1);
  float *y = k::argument<float>(args, 2), *kept = k::argument<float>(args, 3);
  for (int64_t row = begin; row < end; ++row) {
    for (int64_t i = 0; i < kIn; ++i)
      y[row * kIn + i] = 2 * x[row * kIn + i];
    kept[row] = k::uniformFromBits(k::philoxWord({7, 1, 2}, step->domains[1].identity[row], 0));
  }
}

/// The sum of all rows, and of rows by item.
void addUp(void *args, int64_t begin, int64_t end, int64_t chunk) {
  const auto *step = k::argument<genrec_step>(args, 0);
  const float *out = k::argument<float>(args, 1);
  int64_t first = k::sumFloats(kOut), all = first + k::sumFloats(kItems * kOut);
  float *sums = k::chunkSums(k::argument<float>(args, 2), chunk, all);
  for (int64_t row = begin; row < end; ++row) {
    auto item = static_cast<int64_t>(step->domains[1].identity[row] % kItems);
    for (int64_t i = 0; i < kOut; ++i)
      sums[i] += out[row * kOut + i];
    k::addRow<kOut>(sums + first, kOut, item, out + row * kOut);
  }
}

void calls(k::RowBlock *step) {
  const genrec_domain *rows = &step->domains[1];
  float *x = k::blockRows(step, work->x.data(), kIn * 4);
  float *y = k::localRows<float>(step, 0), *z = k::localRows<float>(step, kIn * 4);
  float *dq = k::localRows<float>(step, (kIn + kOut) * 4),
        *dk = k::localRows<float>(step, (kIn + 2 * kOut) * 4);
  float *dv = k::localRows<float>(step, (kIn + 3 * kOut) * 4);
  float *out = k::blockRows(step, work->out.data(), kOut * 4),
        *kept = k::blockRows(step, work->kept.data(), 4);
  k::launch(step, rows, 16, doubleRows, x, y, kept);
  k::linear<kIn, kOut, false, true>(step, rows->count, y, kIn, work->w.data(), work->bias.data(), z,
                                    kOut);
  k::AttentionArgs args;
  args.parents = rows->parent_domain->count;
  args.offsets = rows->offsets;
  args.maxLength = rows->max_length;
  args.q = args.k = args.v = z;
  args.ldQ = args.ldK = args.ldV = args.ldOut = kOut;
  args.out = out;
  args.fixedLength = 20;
  args.positionBias = work->positionBias.data();
  args.positionBuckets = kBuckets;
  k::attention<1, kOut, kOut, k::ScoreKind::silu, true, false, true, false, false, false>(step,
                                                                                          &args);
  k::AttentionGradients gradients;
  gradients.dOut = out;
  gradients.dQ = dq, gradients.dK = dk, gradients.dV = dv;
  gradients.ldDOut = gradients.ldDQ = gradients.ldDK = gradients.ldDV = kOut;
  gradients.dPositionBias = work->dPositionBias.data();
  k::attentionGradient<1, kOut, kOut, k::ScoreKind::silu, true, false, true, false, false, false>(
      step, &args, &gradients);
  k::launchSums<2>(step, rows, 16, addUp, work->sums.data(), kOut, work->items.data(),
                   kItems * kOut, out);
  k::weightGradient<kIn, kOut>(step, rows->count, y, kIn, dq, kOut, work->dw.data());
}

/// Runs the calls within a step of a session, as stages do.
std::vector<std::vector<float>> run(const std::vector<int64_t> &lengths, int32_t threads,
                                    bool whole) {
  static bool isWhole;
  isWhole = whole;
  Work own(lengths);
  work = &own;
  tinyHooks.compute = [](genrec_step *step) {
    genrec_domain *domains = step->domains;
    int32_t checks = step->check_finite;
    step->domains = work->domains;
    step->check_finite = isWhole;
    k::runRowBlocks(step, /*domains=*/2, /*domain=*/1, /*localBytes=*/(kIn + 4 * kOut) * 4, 0, 0,
                    calls);
    step->domains = domains;
    step->check_finite = checks;
  };
  SessionOptions options;
  options.threads = threads;
  Session session(tinyModel(), options);
  Batch batch = tinyBatch(1, 4, 50);
  session.train(batch);
  tinyHooks = {};
  work = nullptr;
  return own.results();
}

std::vector<std::vector<int64_t>> shapes() {
  std::vector<int64_t> many(900), empties(700, 0);
  for (size_t list = 0; list < many.size(); ++list)
    many[list] = static_cast<int64_t>(list * 7 % 31) * (list % 3 != 0);
  empties[699] = 3;
  return {{}, {0}, {1}, {3, 0, 0, 17, 2}, std::vector<int64_t>(40, 5), {900, 3}, many, empties};
}

TEST(RowBlocks, AgreeWithAllRowsAtOnce) {
  for (const std::vector<int64_t> &lengths : shapes()) {
    SCOPED_TRACE(::testing::Message() << lengths.size() << " lists");
    auto blocks = run(lengths, 2, /*whole=*/false), whole = run(lengths, 2, /*whole=*/true);
    for (size_t result = 0; result < whole.size(); ++result) {
      ASSERT_EQ(blocks[result].size(), whole[result].size());
      for (size_t i = 0; i < whole[result].size(); ++i)
        ASSERT_NEAR(blocks[result][i], whole[result][i], 1e-4 * (1 + std::fabs(whole[result][i])))
            << "result " << result << ", element " << i;
    }
  }
}

TEST(RowBlocks, SameBitsAtAnyNumberOfThreads) {
  for (const std::vector<int64_t> &lengths : shapes()) {
    auto one = run(lengths, 1, false);
    EXPECT_EQ(run(lengths, 2, false), one) << lengths.size() << " lists";
    EXPECT_EQ(run(lengths, 5, false), one) << lengths.size() << " lists";
  }
}

TEST(RowBlocks, SizesSuitTheBatch) {
  EXPECT_EQ(sizeRowBlocks(14000, 150).rows, 192);
  EXPECT_EQ(sizeRowBlocks(14000, 200).capacity, 200);
  EXPECT_EQ(sizeRowBlocks(100, 5).rows, 16);
  EXPECT_EQ(sizeRowBlocks(100000, 961).rows, 0) << "a list that attention may cut";
  EXPECT_EQ(sizeRowBlocks(900, 800).rows, 0) << "a list that is most of the batch";
  EXPECT_EQ(sizeRowBlocks(3000, 200).rows, 188) << "the last batch of an epoch, of short lists";
  EXPECT_EQ(mostUncutRows(100000, 256), 0);
  EXPECT_EQ(mostUncutRows(100000, 257), 257 * 16 - 1);
  EXPECT_EQ(sizeRowBlocks(257 * 16 - 1, 257).rows, 0);
  EXPECT_EQ(sizeRowBlocks(257 * 16, 257).rows, 192);
  EXPECT_EQ(mostUncutRows(3000, 257), 3000);
  EXPECT_EQ(mostUncutRows(100000, 961), 100000);
  EXPECT_EQ(countBlockChunks(14000, {192, 200}, int64_t(1) << 20), 8);
  EXPECT_EQ(countBlockChunks(10, {16, 16}, 64), 1);
}

} // namespace
} // namespace genrec::rt::test

// The transforms of the compiled model of model.py, on request, so that they alternate with the
// peers'.
//
//   ours <threads> <rows> < requests
//
// Every line of the input asks for one more evaluation; the answer is a line of JSON with the
// seconds of the launch that computes all columns' keys. The first line of the output holds
// the bytes that it reads and writes, and the bytes per second of a copy of that size.

#include "../common/machine.h"

#include "../../runtime/session/profile.h"
#include "genrec_rt/session.h"

#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>

namespace {

using namespace genrec::rt;

/// Values a transform's ids can be, at most; every table gets all of them as rows.
constexpr int64_t kIds = 1024;

double copyBytesPerSecond(genrec_rt_pool *pool, int threads, int64_t bytes) {
  GrowBuffer<char> from, to;
  char *source = from.ensure(bytes / 2), *target = to.ensure(bytes / 2);
  std::fill(source, source + bytes / 2, 1);
  double least = 1e9;
  for (int run = 0; run < 7; ++run)
    least =
        std::min(least, bench::secondsOf(threads, [&] {
                   parallelFor(pool, bytes / 2, 1 << 16, [&](int64_t begin, int64_t end, int64_t) {
                     std::copy(source + begin, source + end, target + begin);
                   });
                 }));
  return static_cast<double>(bytes) / least;
}

Batch randomBatch(int64_t rows) {
  const genrec_model_desc &model = *genrec_model();
  bench::Random random;
  BatchBuilder builder(model);
  builder.rows(model.domains[0].name, rows);
  std::vector<int64_t> integers(static_cast<size_t>(rows));
  std::vector<float> floats(integers.size());
  for (int32_t feature = 0; feature < model.feature_count; ++feature) {
    for (size_t i = 0; i < integers.size(); ++i) {
      integers[i] = random.below(int64_t(1) << 40);
      floats[i] = static_cast<float>(integers[i]) * 0x1p-40f;
    }
    if (model.features[feature].type == GENREC_F32)
      builder.column(model.features[feature].column, floats);
    else
      builder.column(model.features[feature].column, integers);
  }
  return builder.take();
}

double secondsOfLaunch(Profile &profile) {
  double seconds = 0;
  for (int32_t op = 0; op < genrec_model()->op_count; ++op)
    if (std::string(genrec_model()->ops[op].name) == "launch_columns")
      seconds += profile.opTimes()[static_cast<size_t>(op)].seconds;
  profile.clear();
  return seconds;
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: ours <threads> <rows>\n");
    return 2;
  }
  const int threads = std::atoi(argv[1]);
  const int64_t rows = std::atoll(argv[2]);
  const genrec_model_desc &model = *genrec_model();
  genrec_rt_pool *pool = genrec_rt_pool_create(threads);
  double bytes = 0; // read: 4 or 8 a value; written: a key of 8
  for (int32_t feature = 0; feature + 1 < model.feature_count; ++feature)
    bytes += static_cast<double>(rows) * (model.features[feature].type == GENREC_F32 ? 12 : 16);
  std::printf("{\"bytes\": %.0f, \"copy_bytes_per_second\": %.4g}\n", bytes,
              copyBytesPerSecond(pool, threads, static_cast<int64_t>(bytes)));
  Session session(model, {.seed = 1, .threads = threads, .profile = true});
  std::vector<int64_t> ids(kIds);
  std::iota(ids.begin(), ids.end(), 0);
  for (int32_t table = 0; table < model.table_count; ++table)
    session.table(table).findOrInsert(ids.data(), kIds);
  Batch batch = randomBatch(rows);
  std::fflush(stdout);
  for (int c = std::getchar(); c != EOF; c = std::getchar()) {
    if (c != '\n')
      continue;
    session.evaluate(batch);
    std::printf("%.6g\n", secondsOfLaunch(*session.profile()));
    std::fflush(stdout);
  }
  genrec_rt_pool_destroy(pool);
  return 0;
}

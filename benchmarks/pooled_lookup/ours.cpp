// Steps of the compiled model of model.py, on request, so that they alternate with the peer's.
//
//   ours <threads> <rows of a table> <batch> <ids of a list> < requests
//
// Every line of the input asks for one more step; the answer is a line of JSON: the seconds
// of finding rows, of pooling them, and of the gradients' distinct rows, sums and update. The
// first line of the output holds the machine's limits.

#include "../common/machine.h"

#include "../../runtime/session/profile.h"
#include "genrec_rt/session.h"

#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>

namespace {

using namespace genrec::rt;

constexpr int64_t kTables = 8, kWidth = 64;
/// A row in memory: its value, and Adagrad's state.
constexpr int64_t kRowFloats = 2 * kWidth;

struct Sizes {
  int threads;
  int64_t rows, batch, ids;
};

/// Seconds to reach a row picked at random: to add its value to a sum, or to read and write
/// value and state. The best of several distances of prefetching.
double secondsPerRow(genrec_rt_pool *pool, int threads, int64_t rows, bool isWrite) {
  constexpr int64_t kPicks = 1 << 17;
  GrowBuffer<float> memory;
  float *values = memory.ensure(rows * kRowFloats);
  std::fill(values, values + rows * kRowFloats, 1.0f);
  bench::Random random;
  std::vector<int64_t> picks(kPicks + 64);
  for (int64_t &pick : picks)
    pick = random.below(rows) * kRowFloats;
  double least = 1e9;
  for (int64_t ahead : {0, 4, 8, 16, 4, 8, 16})
    least = std::min(least, bench::secondsOf(threads, [&] {
                       parallelFor(pool, kPicks, 1 << 11, [&](int64_t begin, int64_t end, int64_t) {
                         alignas(64) float sum[kWidth] = {};
                         for (int64_t i = begin; i < end; ++i) {
                           float *row = values + picks[static_cast<size_t>(i)];
                           const char *next = reinterpret_cast<const char *>(
                               values + picks[static_cast<size_t>(i + ahead)]);
                           for (int64_t line = 0; ahead && line < (isWrite ? 8 : 4); ++line)
                             __builtin_prefetch(next + 64 * line);
                           if (isWrite)
                             for (int64_t k = 0; k < kRowFloats; ++k)
                               row[k] += 1.0f;
                           else
                             for (int64_t k = 0; k < kWidth; ++k)
                               sum[k] += row[k];
                         }
                         asm volatile("" ::"r"(sum) : "memory"); // the sums count as used
                       });
                     }));
  return least / kPicks;
}

/// Gives every table its rows, in an order of its own.
void fill(Session &session, int64_t rows) {
  constexpr int64_t kBatch = 1 << 18;
  for (int32_t table = 0; table < kTables; ++table) {
    TableView view = session.table(table);
    for (int64_t first = 0; first < rows; first += kBatch) {
      std::vector<int64_t> ids(static_cast<size_t>(std::min(kBatch, rows - first)));
      std::iota(ids.begin(), ids.end(), first);
      view.findOrInsert(ids.data(), static_cast<int64_t>(ids.size()));
    }
  }
}

Batch randomBatch(const Sizes &sizes, bench::Random &random) {
  BatchBuilder builder(*genrec_model());
  std::vector<int64_t> offsets(static_cast<size_t>(sizes.batch + 1)),
      ids(static_cast<size_t>(sizes.batch * sizes.ids));
  for (int64_t i = 0; i <= sizes.batch; ++i)
    offsets[static_cast<size_t>(i)] = i * sizes.ids;
  builder.rows("request", sizes.batch);
  for (int64_t table = 0; table < kTables; ++table) {
    std::string name = "f" + std::to_string(table);
    for (int64_t &id : ids)
      id = random.below(sizes.rows);
    builder.offsets(name, offsets).column(name, ids);
  }
  builder.column("weight", std::vector<float>(static_cast<size_t>(sizes.batch), 1.0f));
  return builder.take();
}

struct Part {
  double find = 0, pool = 0, backward = 0;
};

/// What the ops of one step took, by what they are for.
Part timesOf(Profile &profile) {
  Part part;
  const genrec_model_desc &model = *genrec_model();
  bool isBackward = false;
  for (int32_t op = 0; op < model.op_count; ++op) {
    const OpTime &time = profile.opTimes()[static_cast<size_t>(op)];
    if (time.mode != static_cast<int32_t>(Mode::train))
      continue;
    std::string name = model.ops[op].name;
    isBackward |= name.find("unique_rows") != std::string::npos;
    bool isPool = name.find("pool") != std::string::npos;
    bool isFind = model.ops[op].stage < 2 || name == "table_rows";
    part.backward += isBackward ? time.seconds : 0;
    part.pool += isPool ? time.seconds : 0;
    part.find += isFind && !isBackward ? time.seconds : 0;
  }
  profile.clear();
  return part;
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: ours <threads> <rows> <batch> <ids>\n");
    return 2;
  }
  Sizes sizes{std::atoi(argv[1]), std::atoll(argv[2]), std::atoll(argv[3]), std::atoll(argv[4])};
  genrec_rt_pool *pool = genrec_rt_pool_create(sizes.threads);
  int64_t allRows = kTables * sizes.rows;
  double read = secondsPerRow(pool, sizes.threads, allRows, false);
  double write = secondsPerRow(pool, sizes.threads, allRows, true);
  Session session(*genrec_model(), {.seed = 1, .threads = sizes.threads, .profile = true});
  fill(session, sizes.rows);
  std::printf("{\"seconds_per_row_read\": %.4g, \"seconds_per_row_written\": %.4g, "
              "\"row_bytes\": %lld}\n",
              read, write,
              static_cast<long long>(session.table(0).configuration().rowFloats() * 4));
  std::fflush(stdout);
  bench::Random random(7);
  for (int c = std::getchar(); c != EOF; c = std::getchar()) {
    if (c != '\n')
      continue;
    Batch batch = randomBatch(sizes, random);
    session.train(batch);
    Part part = timesOf(*session.profile());
    std::printf("{\"find\": %.6g, \"pool\": %.6g, \"backward\": %.6g}\n", part.find, part.pool,
                part.backward);
    std::fflush(stdout);
  }
  genrec_rt_pool_destroy(pool);
  return 0;
}

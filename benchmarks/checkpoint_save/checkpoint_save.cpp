// Saves of a large table, and the part of their time that goes into checksums.
//
//   checkpoint_save <threads> <rows> <dim> <rounds> <folder>
//
// Prints one JSON object: seconds of every save, by the time of day and of the processor; seconds
// of the processor in its checksums; the bytes and rows of one.
//
// The linker sends the runtime's calls of checksumOf here (--wrap), which measures them.

#include "../common/clock.h"

#include "genrec_rt/checkpoint.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <vector>

namespace {

double checksumSeconds = 0;

} // namespace

// genrec::rt::checksumOf(const void *, int64_t)
extern "C" uint64_t __real__ZN6genrec2rt10checksumOfEPKvl(const void *data, int64_t bytes);
extern "C" uint64_t __wrap__ZN6genrec2rt10checksumOfEPKvl(const void *data, int64_t bytes) {
  double begin = bench::seconds(/*threads=*/1);
  uint64_t checksum = __real__ZN6genrec2rt10checksumOfEPKvl(data, bytes);
  checksumSeconds += bench::seconds(1) - begin;
  return checksum;
}

namespace {

using namespace genrec::rt;

/// A model of one table with Adagrad: what is saved is ids, values and as many states.
class TableModel {
public:
  explicit TableModel(int64_t dim) {
    table.name = "item";
    table.dim = dim;
    table.id_bits = 40;
    table.init = {4, 0.1};
    table.optimizer = {1, 1, 0.1, 0.1, 0};
    model.abi_version = GENREC_ABI_VERSION;
    model.name = "one_table";
    model.tables = &table;
    model.table_count = 1;
  }
  const genrec_model_desc &description() const { return model; }

private:
  genrec_table_desc table{};
  genrec_model_desc model{};
};

void fill(Session &session, int64_t rows) {
  constexpr int64_t kBatch = 1 << 20;
  std::vector<int64_t> ids;
  for (int64_t first = 0; first < rows; first += kBatch) {
    ids.resize(static_cast<size_t>(std::min(kBatch, rows - first)));
    std::iota(ids.begin(), ids.end(), first);
    session.table(0).findOrInsert(ids.data(), static_cast<int64_t>(ids.size()));
  }
}

/// Seconds of every save.
struct Times {
  std::vector<double> wall, processor, checksums;
};

void save(CheckpointWriter &writer, Session &session, uint64_t step, Times &times) {
  TrainingState state;
  state.step = step;
  checksumSeconds = 0;
  double wall = bench::seconds(/*threads=*/2), processor = bench::seconds(/*threads=*/1);
  writer.save(session, state);
  times.wall.push_back(bench::seconds(2) - wall);
  times.processor.push_back(bench::seconds(1) - processor);
  times.checksums.push_back(checksumSeconds);
}

void print(const char *name, const std::vector<double> &seconds) {
  std::printf(" \"%s\": [", name);
  for (size_t i = 0; i < seconds.size(); ++i)
    std::printf("%s%.6f", i ? ", " : "", seconds[i]);
  std::printf("]");
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: checkpoint_save <threads> <rows> <dim> <rounds> <folder>\n");
    return 2;
  }
  int threads = std::atoi(argv[1]), rounds = std::atoi(argv[4]);
  int64_t rows = std::atoll(argv[2]), dim = std::atoll(argv[3]);
  TableModel model(dim);
  SessionOptions options;
  options.threads = threads;
  Session session(model.description(), options);
  fill(session, rows);

  std::string folder = argv[5];
  Times times, unused;
  {
    CheckpointWriter writer(folder, {});
    save(writer, session, 1, unused); // files, pages and the processor are warm
    for (int round = 0; round < rounds; ++round)
      save(writer, session, static_cast<uint64_t>(round) + 2, times);
  }
  std::filesystem::remove_all(folder);
  std::printf("{\"rows\": %lld, \"bytes\": %lld,\n", static_cast<long long>(rows),
              static_cast<long long>(rows * (8 + 8 * dim)));
  print("save", times.wall);
  std::printf(",\n");
  print("save_processor", times.processor);
  std::printf(",\n");
  print("checksums_processor", times.checksums);
  std::printf("}\n");
  return 0;
}

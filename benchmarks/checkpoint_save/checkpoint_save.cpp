// Saves and loads of a large table, and the part of a save's time that goes into checksums.
//
//   checkpoint_save <threads> <rows> <dim> <rounds> <folder> <ranks>
//
// Prints one JSON object: seconds of every save and load, and of every incremental save, before which a
// hundredth of the rows changed, by the time of day; of a save, on rank 0, also of
// the processor, and of the processor in its checksums; the bytes and rows of one. Ranks are threads of this
// process, each with the rows that it owns.
//
// The linker sends the runtime's calls of checksumOf here (--wrap), which measures them.

#include "../common/clock.h"

#include "genrec_rt/checkpoint.h"
#include "genrec_rt/owner.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <vector>

namespace {

thread_local double checksumSeconds = 0;

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

/// Gives a session the rows that it owns.
void fill(Session &session, int64_t rows) {
  constexpr int64_t kBatch = 1 << 20;
  const Communicator *comm = session.comm();
  const uint64_t name = hashTableName("item");
  std::vector<int64_t> ids;
  for (int64_t first = 0; first < rows; first += kBatch) {
    ids.clear();
    for (int64_t id = first; id < std::min(rows, first + kBatch); ++id)
      if (!comm || getOwner(getSlice(name, id), comm->getSize()) == comm->getRank())
        ids.push_back(id);
    session.table(0).findOrInsert(ids.data(), static_cast<int64_t>(ids.size()));
  }
}

/// Seconds of every save and load.
struct Times {
  std::vector<double> save, processor, checksums, load, incremental;
};

struct Arguments {
  int threads, rounds;
  int64_t rows, dim;
  std::string folder;
};

SessionOptions optionsOf(const Arguments &arguments, Communicator *comm) {
  SessionOptions options;
  options.threads = arguments.threads;
  options.comm = comm;
  return options;
}

void save(CheckpointWriter &writer, Session &session, uint64_t step, Times &times) {
  TrainingState state;
  state.step = step;
  state.batch = 1;
  if (session.comm())
    session.comm()->barrier();
  checksumSeconds = 0;
  double wall = bench::seconds(/*threads=*/2), processor = bench::seconds(/*threads=*/1);
  writer.save(session, state);
  times.save.push_back(bench::seconds(2) - wall);
  times.processor.push_back(bench::seconds(1) - processor);
  times.checksums.push_back(checksumSeconds);
}

void load(const TableModel &model, const Arguments &arguments, Communicator *comm, Times &times) {
  Session session(model.description(), optionsOf(arguments, comm));
  if (comm)
    comm->barrier();
  double wall = bench::seconds(2);
  loadCheckpoint(arguments.folder, session);
  times.load.push_back(bench::seconds(2) - wall);
}

/// Saves of what changed, after a full one.
void saveChanges(Session &session, const Arguments &arguments, Times &times) {
  Communicator *comm = session.comm();
  CheckpointWriter writer(arguments.folder + ".changes",
                          {.keep = 1, .fullEvery = arguments.rounds + 1, .comm = comm});
  TableView table = session.table(0);
  Times all;
  float value = 0;
  for (int round = 0; round <= arguments.rounds; ++round) {
    value += 1;
    for (int64_t row = round; row < table.size(); row += 100)
      table.rows(row, 1).write(0, 1, &value);
    save(writer, session, static_cast<uint64_t>(round) + 1, all);
  }
  times.incremental.assign(all.save.begin() + 1, all.save.end());
}

/// What one rank does; null: alone.
Times measure(const Arguments &arguments, Communicator *comm) {
  TableModel model(arguments.dim);
  Times times, unused;
  {
    Session session(model.description(), optionsOf(arguments, comm));
    fill(session, arguments.rows);
    CheckpointWriter writer(arguments.folder, {.comm = comm});
    save(writer, session, 1, unused); // files, pages and the processor are warm
    for (int round = 0; round < arguments.rounds; ++round)
      save(writer, session, static_cast<uint64_t>(round) + 2, times);
    saveChanges(session, arguments, times);
  }
  for (int round = 0; round < arguments.rounds; ++round)
    load(model, arguments, comm, times);
  return times;
}

void print(const char *name, const std::vector<double> &seconds) {
  std::printf(" \"%s\": [", name);
  for (size_t i = 0; i < seconds.size(); ++i)
    std::printf("%s%.6f", i ? ", " : "", seconds[i]);
  std::printf("]");
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 7) {
    std::fprintf(stderr, "usage: checkpoint_save <threads> <rows> <dim> <rounds> <folder> <ranks>\n");
    return 2;
  }
  Arguments arguments{std::atoi(argv[1]), std::atoi(argv[4]), std::atoll(argv[2]), std::atoll(argv[3]),
                      argv[5]};
  int ranks = std::atoi(argv[6]);
  Times times;
  if (ranks == 1)
    times = measure(arguments, nullptr);
  else
    runThreadRanks(ranks, [&](Communicator &comm) {
      Times mine = measure(arguments, &comm);
      if (comm.getRank() == 0)
        times = mine;
    });
  for (const char *ending : {"", ".changes"})
    std::filesystem::remove_all(arguments.folder + ending);
  std::printf("{\"rows\": %lld, \"bytes\": %lld,\n", static_cast<long long>(arguments.rows),
              static_cast<long long>(arguments.rows * (8 + 8 * arguments.dim)));
  print("save", times.save);
  std::printf(",\n");
  print("save_processor", times.processor);
  std::printf(",\n");
  print("checksums_processor", times.checksums);
  std::printf(",\n");
  print("load", times.load);
  std::printf(",\n");
  print("incremental", times.incremental);
  std::printf("}\n");
  return 0;
}

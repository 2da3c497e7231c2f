// Exchanges of table rows between ranks: the runtime's, and what MPI does with the same.
//
//   mpirun -n <ranks> rank_exchange <libgenrec-comm-mpi.so> features <batch> <turns> <steps>
//   mpirun -n <ranks> rank_exchange <libgenrec-comm-mpi.so> rate <batch> <turns> <steps>
//   mpirun -n <ranks> rank_exchange <libgenrec-comm-mpi.so> zipf <batch> <turns> <steps>
//
// features: a step of 60 features, dimensions 4 to 128, every id three times: one fused exchange of
// ids, rows and gradients, beside one MPI_Alltoallv of each per feature. rate: what carrying the
// bytes of the fused exchange takes, beside one MPI_Alltoallv of as many. zipf: a step of 8
// features of dimension 64, ids by Zipf's law, with each deduplication and without. Rank 0 prints a
// JSON object; seconds of a step are those of the slowest rank, by the time of day.

#include "fused.h"
#include "measured_comm.h"
#include "per_feature.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

using namespace bench;
using genrec::rt::Communicator;
using genrec::rt::Error;

constexpr int kBatches = 8;
constexpr int64_t kDuplication = 3;

Shape mixedDimensions(int64_t batch) {
  Shape shape;
  shape.batch = batch;
  for (int64_t feature = 0; feature < 60; ++feature)
    shape.dims.push_back(int64_t(4) << feature % 6);
  return shape;
}

Shape skewedIds(int64_t batch) {
  Shape shape;
  shape.batch = batch;
  shape.ids = 100'000;
  shape.dims.assign(8, 64);
  return shape;
}

double slowest(double mine) {
  double all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return all;
}

template <class Body> double secondsTogether(const Body &body) {
  MPI_Barrier(MPI_COMM_WORLD);
  return slowest(secondsOf(/*threads=*/2, body));
}

/// The seconds of every step of a side.
struct Times {
  std::vector<double> fetch, giveBack, step;
};

template <class Side>
void takeStep(Side &side, const Ids &ids, const std::vector<std::vector<float>> &gradients,
              Times &times) {
  side.prepare(ids);
  double fetch = secondsTogether([&] { side.fetch(); });
  double giveBack = secondsTogether([&] { side.giveBack(gradients); });
  times.fetch.push_back(fetch);
  times.giveBack.push_back(giveBack);
  times.step.push_back(fetch + giveBack);
}

Outcome addUp(Outcome mine) {
  Outcome all;
  MPI_Allreduce(&mine, &all, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

void print(const char *name, const std::vector<double> &seconds) {
  std::printf(", \"%s\": [", name);
  for (size_t i = 0; i < seconds.size(); ++i)
    std::printf("%s%.7f", i ? ", " : "", seconds[i]);
  std::printf("]");
}

void print(const char *name, int64_t value) {
  std::printf(", \"%s\": %lld", name, static_cast<long long>(value));
}

std::vector<Ids> drawBatches(const Shape &shape, int rank) {
  std::vector<Ids> batches;
  for (int i = 0; i < kBatches; ++i)
    batches.push_back(drawRepeated(shape, kDuplication, static_cast<uint32_t>(rank * 1000 + i)));
  return batches;
}

/// Bytes to other ranks that cannot be less: each distinct key, its row and its gradient once.
int64_t countLeastBytes(const Shape &shape, const Ids &ids, int32_t rank, int32_t ranks) {
  int64_t bytes = 0;
  for (int64_t feature = 0; feature < shape.features(); ++feature) {
    std::vector<int64_t> distinct = ids[feature];
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    uint64_t table = genrec::rt::hashTableName("table" + std::to_string(feature));
    for (int64_t id : distinct)
      if (genrec::rt::getOwner(genrec::rt::getSlice(table, id), ranks) != rank)
        bytes += 8 + 2 * 4 * shape.dims[feature];
  }
  return bytes;
}

int64_t addUp(int64_t mine) {
  int64_t all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

/// One fused exchange beside one exchange per feature.
void compareFeatures(Communicator &comm, const Shape &shape, int turns, int steps) {
  Tables tables(shape);
  MeasuredComm measured(comm);
  Fused fused(measured, shape, tables);
  PerFeature perFeature(shape, tables);
  std::vector<Ids> batches = drawBatches(shape, comm.getRank());
  std::vector<std::vector<float>> gradients = makeGradients(shape, comm.getRank());
  Times ours, theirs, warmUp;
  for (const Ids &ids : batches) {
    takeStep(fused, ids, gradients, warmUp);
    takeStep(perFeature, ids, gradients, warmUp);
    if (addUp(fused.outcome()) != addUp(perFeature.outcome()))
      throw Error("the sides differ");
  }
  for (int turn = 0; turn < turns; ++turn) {
    for (int step = 0; step < steps; ++step)
      takeStep(fused, batches[step % kBatches], gradients, ours);
    for (int step = 0; step < steps; ++step)
      takeStep(perFeature, batches[step % kBatches], gradients, theirs);
  }
  measured.begin();
  takeStep(fused, batches[0], gradients, warmUp);
  takeStep(perFeature, batches[0], gradients, warmUp);
  int64_t sent = 0;
  for (int64_t bytes : measured.sent)
    sent += bytes;
  int64_t bytes = addUp(sent), theirBytes = addUp(perFeature.sentBytes);
  int64_t least = addUp(countLeastBytes(shape, batches[0], comm.getRank(), comm.getSize()));
  if (comm.getRank() == 0) {
    std::printf("{\"ranks\": %d", comm.getSize());
    print("rounds", measured.rounds);
    print("peer_rounds", perFeature.rounds);
    print("bytes", bytes);
    print("peer_bytes", theirBytes);
    print("deduplicated_bytes", least);
    print("fetch", ours.fetch);
    print("give_back", ours.giveBack);
    print("step", ours.step);
    print("peer_fetch", theirs.fetch);
    print("peer_give_back", theirs.giveBack);
    print("peer_step", theirs.step);
    std::printf("}\n");
  }
}

/// What carrying takes: the exchanges of a step, each begun by all ranks together, and one
/// MPI_Alltoallv of as many bytes from memory that was written just before, as theirs is.
void compareRate(Communicator &comm, const Shape &shape, int turns, int steps) {
  Tables tables(shape);
  MeasuredComm measured(comm);
  Fused fused(measured, shape, tables);
  std::vector<Ids> batches = drawBatches(shape, comm.getRank());
  std::vector<std::vector<float>> gradients = makeGradients(shape, comm.getRank());
  Times whole;
  for (const Ids &ids : batches)
    takeStep(fused, ids, gradients, whole);
  measured.begin();
  takeStep(fused, batches[0], gradients, whole);
  std::vector<int> sizes(measured.sent.begin(), measured.sent.end()), received(sizes.size());
  MPI_Alltoall(sizes.data(), 1, MPI_INT, received.data(), 1, MPI_INT, MPI_COMM_WORLD);
  std::vector<int> starts(sizes.size()), receivedStarts(sizes.size());
  std::exclusive_scan(sizes.begin(), sizes.end(), starts.begin(), 0);
  std::exclusive_scan(received.begin(), received.end(), receivedStarts.begin(), 0);
  int sent = starts.back() + sizes.back(), got = receivedStarts.back() + received.back();
  genrec::rt::GrowBuffer<char> from, to;
  from.ensure(sent);
  to.ensure(got);
  whole = {};
  std::vector<double> ours, theirs;
  for (int turn = 0; turn < turns; ++turn) {
    for (int step = 0; step < steps; ++step) {
      takeStep(fused, batches[0], gradients, whole);
      measured.isAlone = true;
      measured.begin();
      Times unused;
      takeStep(fused, batches[0], gradients, unused);
      measured.isAlone = false;
      ours.push_back(slowest(measured.carrying));
      std::memset(from.data(), step, sent);
      theirs.push_back(secondsTogether([&] {
        MPI_Alltoallv(from.data(), sizes.data(), starts.data(), MPI_BYTE, to.data(),
                      received.data(), receivedStarts.data(), MPI_BYTE, MPI_COMM_WORLD);
      }));
    }
  }
  int64_t bytes = addUp(sent);
  if (comm.getRank() == 0) {
    std::printf("{\"ranks\": %d", comm.getSize());
    print("rounds", measured.rounds);
    print("bytes", bytes);
    print("carrying", ours);
    print("step", whole.step);
    print("peer_carrying", theirs);
    std::printf("}\n");
  }
}

/// What deduplication saves of a step.
void compareDeduplication(Communicator &comm, const Shape &shape, int turns, int steps) {
  Tables tables(shape);
  Zipf zipf(shape.ids, 1.05);
  std::vector<Ids> batches;
  for (int i = 0; i < kBatches; ++i)
    batches.push_back(zipf.draw(shape, static_cast<uint32_t>(comm.getRank() * 1000 + i)));
  std::vector<std::vector<float>> gradients = makeGradients(shape, comm.getRank());
  struct Way {
    const char *name;
    genrec::rt::RowTravel travel;
    std::unique_ptr<Fused> side;
    Times times, warmUp;
  };
  Way ways[] = {
      {"both", {}, nullptr, {}, {}},
      {"requester", {.ownersDeduplicate = false}, nullptr, {}, {}},
      {"owner", {.requestersDeduplicate = false}, nullptr, {}, {}},
      {"none", {.requestersDeduplicate = false, .ownersDeduplicate = false}, nullptr, {}, {}}};
  for (Way &way : ways)
    way.side = std::make_unique<Fused>(comm, shape, tables, way.travel);
  for (const Ids &ids : batches) {
    for (Way &way : ways) {
      takeStep(*way.side, ids, gradients, way.warmUp);
      if (addUp(way.side->outcome()) != addUp(ways[0].side->outcome()))
        throw Error(std::string("deduplication by ") + way.name + " changes results");
    }
  }
  for (int turn = 0; turn < turns; ++turn)
    for (Way &way : ways)
      for (int step = 0; step < steps; ++step)
        takeStep(*way.side, batches[step % kBatches], gradients, way.times);
  if (comm.getRank() == 0) {
    std::printf("{\"ranks\": %d", comm.getSize());
    for (Way &way : ways)
      print(way.name, way.times.step);
    std::printf("}\n");
  }
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 6) {
    std::fprintf(stderr,
                 "usage: rank_exchange <library> features|rate|zipf <batch> <turns> <steps>\n");
    return 2;
  }
  try {
    std::unique_ptr<Communicator> comm = genrec::rt::loadMpiComm(argv[1]);
    std::string what = argv[2];
    int64_t batch = std::atoll(argv[3]);
    int turns = std::atoi(argv[4]), steps = std::atoi(argv[5]);
    if (what == "features")
      compareFeatures(*comm, mixedDimensions(batch), turns, steps);
    else if (what == "rate")
      compareRate(*comm, mixedDimensions(batch), turns, steps);
    else
      compareDeduplication(*comm, skewedIds(batch), turns, steps);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "rank_exchange: %s\n", error.what());
    return 1;
  }
  return 0;
}

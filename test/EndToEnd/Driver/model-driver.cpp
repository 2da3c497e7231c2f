//===- model-driver.cpp - runs a compiled model on batches in JSON --------===//
//
// The compiled counterpart of genrec-run: loads a shared object made by
// genrec-compile, runs one batch per step, and prints one JSON object per step in the
// form of `genrec-run --json`.
//
//   model-driver model.so batches.json modes [seed] [threads] [ranks | mpi] [portions] [replicated]
//
// batches.json holds a list of batches in the form of `genrec-run --print-batch`; modes are
// train, evaluate, predict or items, one per batch with commas between, or one for all.
// "allocations" of a step counts what all threads allocated while it ran, on one rank. Several
// ranks are threads of this process; `mpi`: the processes that mpirun started. Each batch is cut
// into as many portions, one per rank unless told. What ranks have is printed as one: rows of all,
// outputs in the order of portions. Ranks that differ are an error. Of the tables in `replicated`,
// with commas between, every rank has all rows.
//
//===----------------------------------------------------------------------===//

#include "JsonBatch.h"
#include "StepJson.h"

#include "genrec_rt/error.h"
#include "genrec_rt/kernels/cpu/gemm.h"
#include "genrec_rt/kernels/cpu/rank.h"
#include "genrec_rt/kernels/cpu/time_buckets.h"
#include "genrec_rt/kernels/shared/hash.h"
#include "genrec_rt/session.h"
#ifdef GENREC_EMULATED_DEVICES
#include "simt.h"
#endif

#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <new>

static std::atomic<int64_t> newCalls{0};

void *operator new(size_t bytes) {
  newCalls.fetch_add(1, std::memory_order_relaxed);
  if (void *memory = std::malloc(bytes ? bytes : 1))
    return memory;
  std::abort();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }

using namespace genrec::rt;
namespace json = llvm::json;

/// What a shared object takes from the program that loads it: one function of
/// each part of the runtime, so that the linker keeps the part.
extern const void *const kKept[];
const void *const kKept[] = {
    reinterpret_cast<const void *>(&genrec_rt_table_rows),
    reinterpret_cast<const void *>(&genrec_rt_report_loss),
    reinterpret_cast<const void *>(&genrec_rt_parallel_for),
    reinterpret_cast<const void *>(&kernels::matmulDynamic),
    reinterpret_cast<const void *>(&kernels::topK),
    reinterpret_cast<const void *>(
        static_cast<int64_t (*)(genrec_string, int64_t, int64_t)>(&kernels::hashXxh3)),
    reinterpret_cast<const void *>(&kernels::fillTimeBuckets),
};

/// The mode of batch `index`: one mode is for every batch.
static Mode parseMode(llvm::StringRef modes, size_t index) {
  llvm::SmallVector<llvm::StringRef> list;
  modes.split(list, ',');
  llvm::StringRef mode = list[std::min(index, list.size() - 1)];
  if (mode == "train")
    return Mode::train;
  if (mode == "items")
    return Mode::items;
  return mode == "evaluate" ? Mode::evaluate : Mode::predict;
}

static int32_t findRoot(const genrec_model_desc &model, int32_t kind, const std::string &name) {
  for (int32_t i = 0; i < model.domain_count; ++i)
    if (model.domains[i].kind == kind && model.domains[i].parent < 0 &&
        (name.empty() || name == model.domains[i].name))
      return i;
  throw Error("the model has no root domain '" + name + "'", "check the batch");
}

namespace {
/// What the command line says.
struct Options {
  json::Array batches;
  llvm::StringRef modes;
  uint64_t seed = 0;
  int32_t threads = 2, ranks = 1, portions = 0;
  bool isMpi = false; ///< ranks are processes
  std::vector<std::string> replicated; ///< tables
};
} // namespace

/// The text of every rank, in order, on rank 0; on others nothing.
static std::vector<std::string> gatherTexts(Communicator &comm, const std::string &mine) {
  std::vector<int64_t> sizes(comm.getSize());
  auto size = static_cast<int64_t>(mine.size());
  comm.allGather(&size, sizes.data(), sizeof size);
  std::vector<std::string> texts(isFirstRank(&comm) ? comm.getSize() : 0);
  std::vector<SendPart> send(comm.getSize());
  std::vector<ReceivePart> receive(comm.getSize());
  send[0] = {mine.data(), size};
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    texts[rank].resize(sizes[rank]);
    receive[rank] = {texts[rank].data(), sizes[rank]};
  }
  comm.exchange(send, receive);
  return texts;
}

/// Prints what all ranks have of a step. Collective; null: one process.
static void print(Communicator *comm, json::Object step,
                  const std::vector<std::string> &replicated) {
  if (comm) {
    std::string text;
    llvm::raw_string_ostream(text) << json::Value(std::move(step));
    std::vector<json::Object> ofRanks;
    for (const std::string &each : gatherTexts(*comm, text))
      ofRanks.push_back(std::move(*llvm::cantFail(json::parse(each)).getAsObject()));
    if (!isFirstRank(comm))
      return;
    step = driver::joinRanks(std::move(ofRanks), replicated);
  }
  llvm::outs() << json::Value(std::move(step)) << "\n";
}

static Options readOptions(int argc, char **argv) {
  Options options;
  auto file = llvm::MemoryBuffer::getFile(argv[2]);
  if (!file)
    throw Error(std::string("cannot read ") + argv[2], "give a file");
  llvm::Expected<json::Value> batches = json::parse((*file)->getBuffer());
  if (!batches)
    throw Error(llvm::toString(batches.takeError()), "give a list of batches");
  options.batches = std::move(*batches->getAsArray());
  options.modes = argv[3];
  options.seed = argc > 4 ? std::stoull(argv[4]) : 0;
  options.threads = argc > 5 ? std::stoi(argv[5]) : 2;
  options.isMpi = argc > 6 && argv[6] == std::string("mpi");
  if (argc > 6 && !options.isMpi)
    options.ranks = std::stoi(argv[6]);
  options.portions = argc > 7 ? std::stoi(argv[7]) : 0;
  llvm::SmallVector<llvm::StringRef> names;
  llvm::StringRef(argc > 8 ? argv[8] : "").split(names, ',', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef name : names)
    options.replicated.push_back(name.str());
  return options;
}

/// The batches of this rank's portions: each has some consecutive root rows.
static std::vector<Batch> readPortions(const Session &session, const json::Object &object) {
  const genrec_model_desc &model = session.model();
  const json::Array &rows = *object.getArray("rows"), *positions = object.getArray("positions");
  int32_t count = session.portions();
  Communicator *comm = session.comm();
  PortionRange own =
      comm ? getPortions(count, comm->getRank(), comm->getSize()) : PortionRange{0, 1};
  auto total = static_cast<int64_t>(rows.size());
  std::vector<Batch> portions;
  for (int32_t portion = own.first; portion < own.first + own.count; ++portion) {
    json::Array ofPortion, itsPositions;
    for (int64_t row = total * portion / count; row < total * (portion + 1) / count; ++row) {
      ofPortion.push_back(rows[row]);
      itsPositions.push_back(positions ? (*positions)[row] : json::Value(row));
    }
    portions.push_back(
        driver::readRows(model, findRoot(model, GENREC_DOMAIN_DATA, ""), ofPortion, &itsPositions));
  }
  return portions;
}

static void giveCatalogues(Session &session, const json::Object &batch) {
  const json::Object *catalogues = batch.getObject("catalogues");
  if (!catalogues)
    return;
  for (const auto &[name, rows] : *catalogues) {
    int32_t root = findRoot(session.model(), GENREC_DOMAIN_CATALOGUE, name.str());
    session.setCatalogue(root,
                         driver::readRows(session.model(), root, *rows.getAsArray(), nullptr));
  }
}

/// All steps, on one of the ranks.
static void run(const genrec_model_desc &model, const Options &given, Communicator *comm) {
  SessionOptions options;
  options.seed = given.seed;
  options.threads = given.threads;
  options.comm = comm;
  options.portions = given.portions;
  options.replicate = given.replicated;
  // As the interpreter.
  options.clock = [](uint64_t step) { return static_cast<int64_t>(step); };
  Session session(model, options);
  size_t index = 0;
  for (const json::Value &value : given.batches) {
    const json::Object &object = *value.getAsObject();
    if (index == 0)
      giveCatalogues(session, object);
    session.metrics().reset();
    Mode mode = parseMode(given.modes, index++);
    std::vector<Batch> batches;
    if (mode != Mode::items)
      batches = readPortions(session, object);
    int64_t before = newCalls + alignedAllocations();
    StepReport report =
        mode == Mode::items ? session.stepWithoutRows(mode) : session.step(mode, batches);
    int64_t allocations = newCalls + alignedAllocations() - before;
    if (session.comm())
      session.metrics().gather(*session.comm());
    json::Object state = driver::stepToJson(session, report);
    if (!comm)
      state["allocations"] = allocations;
    print(comm, std::move(state), given.replicated);
  }
}

static void run(int argc, char **argv) {
  LoadedModel loaded(argv[1]);
  Options options = readOptions(argc, argv);
  if (options.isMpi) {
    llvm::SmallString<128> library(llvm::sys::path::parent_path(argv[0]));
    llvm::sys::path::append(library, "..", "lib", "libgenrec-comm-mpi.so");
    std::unique_ptr<Communicator> comm = loadMpiComm(std::string(library));
    return run(loaded.model(), options, comm.get());
  }
#ifdef GENREC_EMULATED_DEVICES
  simt::options().devices = options.ranks; // one for each thread
#endif
  if (options.ranks == 1)
    return run(loaded.model(), options, nullptr);
  runThreadRanks(options.ranks, [&](Communicator &comm) { run(loaded.model(), options, &comm); });
}

int main(int argc, char **argv) {
  if (argc < 4) {
    llvm::errs()
        << "usage: model-driver model.so batches.json modes [seed] [threads] [ranks | mpi] "
           "[portions] [replicated]\n";
    return 2;
  }
  try {
    run(argc, argv);
  } catch (const std::exception &error) {
    llvm::errs() << "model-driver: " << error.what() << "\n";
    return 1;
  }
  return 0;
}

//===- Batches.cpp - batches for random models ----------------------------===//

#include "genrec/Fuzz/Observations.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::fuzz;
using interpreter::Batch;
using interpreter::RandomBatchOptions;

/// Gives all batches the catalogues of the first, as a catalogue is loaded once.
static void shareCatalogues(ModelOp model, const Batch &first, Batch &batch) {
  for (auto &[name, rows] : first.domains)
    if (isOfCatalogue(model, FlatSymbolRefAttr::get(model.getContext(), name)))
      batch.domains[name] = rows;
}

std::set<std::string, std::less<>> fuzz::chooseReplicated(ModelOp model, uint64_t seed) {
  std::set<std::string, std::less<>> chosen;
  for (auto [number, table] : llvm::enumerate(model.getOps<TableOp>()))
    if (!table.hasRowRules() && (seed / 5 + number) % 3 == 0)
      chosen.insert(table.getSymName().str());
  return chosen;
}

BatchSeries fuzz::makeBatches(ModelOp model, uint64_t seed, int64_t count, bool positive) {
  ProgramOp program = *model.getOps<ProgramOp>().begin();
  BatchSeries series{"random batches", {}};
  for (int64_t i = 0; i < count; ++i) {
    RandomBatchOptions options;
    options.rows = 2 + static_cast<int64_t>((seed + 3 * i) % 7);
    options.firstPosition = 100 * i;
    options.positive = positive;
    series.batches.push_back(randomBatch(program, seed * 1000 + i, options));
    shareCatalogues(model, series.batches.front(), series.batches.back());
  }
  return series;
}

std::vector<BatchSeries> fuzz::makeAdversarialBatches(ModelOp model, uint64_t seed, bool positive) {
  ProgramOp program = *model.getOps<ProgramOp>().begin();
  std::vector<BatchSeries> all{makeBatches(model, seed, 2, positive)};
  auto add = [&](StringRef name, int64_t count, function_ref<void(RandomBatchOptions &)> change) {
    BatchSeries series{(count == 1 ? "a batch of " : "batches of ") + name.str(), {}};
    for (int64_t i = 0; i < count; ++i) {
      RandomBatchOptions options;
      options.firstPosition = 1000 * static_cast<int64_t>(all.size()) + 100 * i;
      options.positive = positive;
      change(options);
      series.batches.push_back(randomBatch(program, seed * 1000 + 10 * all.size() + i, options));
      shareCatalogues(model, series.batches.front(), series.batches.back());
    }
    all.push_back(std::move(series));
  };
  add("many rows", 2,
      [](RandomBatchOptions &o) { o.rows = 12, o.longestList = 7, o.emptyRate = 0.1; });
  add("no rows", 1, [](RandomBatchOptions &o) { o.rows = 0; });
  add("empty lists", 1, [](RandomBatchOptions &o) { o.emptyRate = 1; });
  // Some domains without rows, others with one.
  add("mostly empty lists", 12, [](RandomBatchOptions &o) { o.rows = 2, o.emptyRate = 0.6; });
  // Code may treat a single valid row specially: with one row per list there often is one.
  add("one row", 4, [](RandomBatchOptions &o) { o.rows = o.longestList = 1, o.emptyRate = 0; });
  add("equal ids", 2, [](RandomBatchOptions &o) { o.vocabulary = 1, o.rareRate = 0; });
  add("distinct ids", 1, [](RandomBatchOptions &o) { o.distinctIds = true; });
  add("nulls", 2, [](RandomBatchOptions &o) { o.nullRate = 1, o.rows = 8; });
  return all;
}

void fuzz::addUnevenBatches(ModelOp model, uint64_t seed, int64_t count,
                            std::vector<Batch> &before) {
  ProgramOp program = *model.getOps<ProgramOp>().begin();
  using Change = void (*)(RandomBatchOptions &);
  static constexpr Change changes[] = {
      [](RandomBatchOptions &o) { o.rows = 0; },
      [](RandomBatchOptions &o) { o.rows = 1; },
      [](RandomBatchOptions &o) { o.emptyRate = 1, o.nullRate = 1; },
      [](RandomBatchOptions &o) { o.vocabulary = 1, o.rareRate = 0; },
      [](RandomBatchOptions &o) { o.rows = 1, o.longestList = 8, o.emptyRate = 0; },
  };
  for (int64_t i = 0; i < count; ++i) {
    RandomBatchOptions options;
    options.firstPosition = 5000 + 100 * i;
    changes[(seed + i) % std::size(changes)](options);
    Batch batch = randomBatch(program, seed * 1000 + 500 + i, options);
    shareCatalogues(model, before.front(), batch);
    before.push_back(std::move(batch));
  }
}

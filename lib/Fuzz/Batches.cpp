//===- Batches.cpp - what models are tried on -----------------------------===//

#include "genrec/Fuzz/Observations.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::fuzz;
using interpreter::Batch;
using interpreter::RandomBatchOptions;

/// A catalogue is loaded once, with its lists: every batch has the first one's.
static void shareCatalogues(ModelOp model, const Batch &first, Batch &batch) {
  for (auto &[name, rows] : first.domains)
    if (isOfCatalogue(model, FlatSymbolRefAttr::get(model.getContext(), name)))
      batch.domains[name] = rows;
}

BatchSeries fuzz::makeBatches(ModelOp model, uint64_t seed, int64_t count, bool positive) {
  ProgramOp program = *model.getOps<ProgramOp>().begin();
  BatchSeries series{"random batches", {}};
  for (int64_t i = 0; i < count; ++i) {
    RandomBatchOptions options;
    options.rows = 1 + static_cast<int64_t>((seed + i) % 5);
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
  auto add = [&](StringRef name, function_ref<void(RandomBatchOptions &)> change) {
    RandomBatchOptions options;
    options.firstPosition = 1000 * static_cast<int64_t>(all.size());
    options.positive = positive;
    change(options);
    BatchSeries series{("a batch of " + name).str(),
                       {randomBatch(program, seed * 1000 + all.size(), options)}};
    all.push_back(std::move(series));
  };
  add("no rows", [](RandomBatchOptions &o) { o.rows = 0; });
  add("empty lists", [](RandomBatchOptions &o) { o.emptyRate = 1; });
  add("one row", [](RandomBatchOptions &o) { o.rows = o.longestList = 1, o.emptyRate = 0; });
  add("equal ids", [](RandomBatchOptions &o) { o.vocabulary = 1, o.rareRate = 0; });
  add("distinct ids", [](RandomBatchOptions &o) { o.distinctIds = true; });
  add("nulls", [](RandomBatchOptions &o) { o.nullRate = 1; });
  return all;
}

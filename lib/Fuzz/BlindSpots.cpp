//===- BlindSpots.cpp - ops whose faults are invisible --------------------===//

#include "genrec/Fuzz/BlindSpots.h"

#include "genrec/Fuzz/PassJudge.h"
#include "genrec/Fuzz/RandomModel.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::fuzz;

static bool makesValue(Operation &op) {
  return llvm::any_of(op.getResultTypes(), [](Type type) { return isa<RankedTensorType>(type); });
}

BlindSpots fuzz::findBlindSpots(ModelOp model, uint64_t seed) {
  BlindSpots spots;
  // The same batches as for the comparison of levels and binaries.
  PassJudge judge(model, {makeBatches(model, seed, /*count=*/2)}, seed);
  if (judge.look(model))
    return spots; // the interpreter cannot run the model, which the comparison reports
  for (ProgramOp program : model.getOps<ProgramOp>())
    for (Operation &op : program.getBody().front()) {
      if (!makesValue(op))
        continue;
      ++spots.ops;
      if (!judge.showsFault(model, &op))
        spots.blind.push_back(&op);
    }
  return spots;
}

ObservableModel fuzz::makeObservableModel(MLIRContext *context, uint64_t seed,
                                          const ModelChoice &choice) {
  constexpr uint64_t kMostLooked = 4, kMostAttempts = 16;
  RandomModelOptions options = RandomModelOptions::ofSeed(seed);
  options.forDevice = choice.forDevice;
  ObservableModel best;
  for (uint64_t attempt = 0, looked = 0; looked < kMostLooked && attempt < kMostAttempts;
       ++attempt) {
    ObservableModel model;
    model.module = makeRandomModel(context, seed, options, attempt);
    if (choice.accepts && !choice.accepts(*model.module))
      continue;
    ++looked;
    model.spots = findBlindSpots(*model.module->getOps<ModelOp>().begin(), seed);
    bool isBetter = !best.module || model.spots.blind.size() < best.spots.blind.size();
    if (isBetter)
      best = std::move(model);
    if (best.spots.blind.empty())
      break;
  }
  return best;
}

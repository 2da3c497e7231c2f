//===- StepOpModelsSink.cpp - scoring, losses, metrics, outputs -----------===//

#include "StepOpModels.h"

#include "genrec_rt/scratch_sizes.h"

#include <algorithm>

using namespace mlir;
using namespace genrec;

namespace {

int64_t getItemRows(Value items, const StepSizes &sizes) {
  return sizes.getRows(getRowDomain(items.getType()));
}

/// Scores queries against all items of a catalogue; takes the strides of both.
template <typename ModelT, typename OpT> struct ScoringModel : StepModel<ModelT, OpT> {
  bool takesPaddedRows(Operation *, unsigned number) const { return number < 2; }
};

template <typename OpT> struct RankingStep : ScoringModel<RankingStep<OpT>, OpT> {};

struct ScoresStep : ScoringModel<ScoresStep, ScoresOp> {
  void addCosts(Operation *op, StepCosts &costs) const {
    auto scores = cast<ScoresOp>(op);
    costs.addOperandsAndResults(op);
    costs.getOwn().productFlops +=
        2 * getRowWidth(scores.getQuery()) * getRowWidth(scores.getResult());
  }
  int64_t getScratchBytes(Operation *op, const StepSizes &sizes) const {
    auto scores = cast<ScoresOp>(op);
    return rt::matmulScratchBound(getRowSize(scores.getQuery().getType()),
                                  getItemRows(scores.getItems(), sizes));
  }
};

struct ScoresGradStep : StepModel<ScoresGradStep, ScoresGradOp> {
  void addCosts(Operation *op, StepCosts &costs) const {
    auto scores = cast<ScoresGradOp>(op);
    costs.addOperandsAndResults(op);
    costs.getOwn().productFlops +=
        4 * getRowWidth(scores.getQuery()) * getRowWidth(scores.getGradient());
  }
  int64_t getScratchBytes(Operation *op, const StepSizes &sizes) const {
    auto scores = cast<ScoresGradOp>(op);
    return rt::matmulRowsScratchBound(std::max<int64_t>(1, getItemRows(scores.getItems(), sizes)),
                                      getRowSize(scores.getQuery().getType()));
  }
};

/// Rows of a portion compared with each other. What this takes grows with the square of the
/// portion's rows, which costs, being per row, do not know: they are those of the operands and
/// results.
template <typename OpT> struct InBatchStep : StepModel<InBatchStep<OpT>, OpT> {
  bool takesPaddedRows(Operation *, unsigned number) const { return number < 2; }
  int64_t getScratchBytes(Operation *op, const StepSizes &sizes) const {
    Type query = cast<OpT>(op).getQuery().getType();
    return rt::inBatchScratchBytes(sizes.getRows(getRowDomain(query)), getRowSize(query),
                                   sizes.getThreads());
  }
};

} // namespace

void genrec::attachSinkModels(MLIRContext *context) {
  attachModels<RankingStep, TopKOp, RankOp>(context);
  attachModels<PlainCall, MetricOp, OutputOp, RequireRangeOp, RankInListOp>(context);
  attachModels<Setup, LossOp, ReportLossOp>(context);
  attachModels<InBatchStep, InBatchSoftmaxOp, InBatchSoftmaxGradOp>(context);
  ScoresOp::attachInterface<ScoresStep>(*context);
  ScoresGradOp::attachInterface<ScoresGradStep>(*context);
}

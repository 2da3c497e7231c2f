//===- Step.cpp - what a step knows of the op, and how it is called -------===//

#include "Own.h"

#include "genrec/Conversion/Callees.h"
#include "genrec/Dialect/GenRec/Step/StepOpInterface.h"

using namespace mlir;
using namespace genrec;

namespace {

struct GatedCrossStep : StepOpInterface::ExternalModel<GatedCrossStep, own::GatedCrossOp> {
  /// The kernel is told the strides of x0 and x.
  bool takesPaddedRows(Operation *, unsigned number) const { return number < 2; }
  /// Two products per row.
  void addCosts(Operation *op, StepCosts &costs) const {
    costs.addOperandsAndResults(op);
    auto size = static_cast<double>(getRowSize(op->getResult(0).getType()));
    costs.getOwn().productFlops += 4 * size * size;
  }
};

struct Kernels : KernelDialectInterface {
  using KernelDialectInterface::KernelDialectInterface;
  ArrayRef<Callee> getCallees() const override {
    static constexpr Callee callees[] = {{"own::gatedCross", "own/gated_cross.h"}};
    return callees;
  }
  std::string getIncludeFolder() const override { return OWN_INCLUDE_DIR; }
};

} // namespace

void own::addStep(OwnDialect &dialect) {
  dialect.addInterfaces<Kernels>();
  GatedCrossOp::attachInterface<GatedCrossStep>(*dialect.getContext());
}

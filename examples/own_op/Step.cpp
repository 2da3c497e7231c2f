//===- Step.cpp - what a step knows of the op, and how it is called -------===//

#include "Own.h"

#include "genrec/Dialect/GenRec/Step/StageBuilder.h"
#include "genrec/Dialect/GenRec/Step/StepOpInterface.h"
#include "genrec/Target/EmitC/Callees.h"

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
  LogicalResult lower(Operation *op, StageBuilder &stage) const {
    auto cross = cast<own::GatedCrossOp>(op);
    Value x0 = cross.getX0(), x = cross.getX();
    SmallVector<Value> operands = {stage.getStep(),
                                   stage.getRowsArgument(x), // on a device the domain
                                   stage.getPointer(x0),
                                   stage.getStride(x0),
                                   stage.getPointer(x),
                                   stage.getStride(x),
                                   stage.getPointer(cross.getWeight()),
                                   stage.getPointer(cross.getBias()),
                                   stage.getPointer(cross.getGate()),
                                   stage.getPointer(cross.getResult())};
    EmitCBuilder b = stage.at(op);
    b.callVoid("own::gatedCross", operands, {b.templateInteger(getRowSize(x.getType()))});
    return success();
  }
};

struct Kernels : KernelDialectInterface {
  using KernelDialectInterface::KernelDialectInterface;
  ArrayRef<Callee> getCallees() const override {
    static constexpr Callee callees[] = {
        {"own::gatedCross", "own/gated_cross.h", "own/gated_cross_cuda.h"}};
    return callees;
  }
  std::string getIncludeFolder() const override { return OWN_INCLUDE_DIR; }
};

} // namespace

void own::addStep(OwnDialect &dialect) {
  dialect.addInterfaces<Kernels>();
  GatedCrossOp::attachInterface<GatedCrossStep>(*dialect.getContext());
}

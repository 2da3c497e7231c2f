//===- StepOpInterface.cpp - planning and lowering of an op ---------------===//

#include "genrec/Dialect/GenRec/Step/StepOpInterface.h"

#include "StepOpModels.h"

using namespace mlir;
using namespace genrec;

#include "genrec/Dialect/GenRec/Step/StepOpInterface.cpp.inc"

StepKind genrec::getStepKind(Operation *op) {
  auto step = dyn_cast<StepOpInterface>(op);
  return step ? step.getStepKind() : StepKind::call;
}

SizeTerm SizeBuilder::addRowsOf(ValueRange values) {
  std::optional<SizeTerm> total;
  for (Value value : values) {
    auto domain = dyn_cast<DomainType>(value.getType());
    SizeTerm rows = rowsOf(domain ? domain.getDomain() : getRowDomain(value.getType()));
    total = total ? add(*total, rows) : rows;
  }
  return total.value_or(SizeTerm());
}

void genrec::registerStepOpModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, GenRecDialect *) {
    attachDomainModels(context);
    attachTableModels(context);
    attachDenseModels(context);
    attachKernelModels(context);
    attachSinkModels(context);
    attachPickModels(context);
    attachRankModels(context);
  });
}

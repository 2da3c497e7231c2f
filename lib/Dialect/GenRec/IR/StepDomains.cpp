//===- StepDomains.cpp - domains that exist within a step -----------------===//

#include "genrec/Dialect/GenRec/IR/StepDomains.h"

#include "genrec/Dialect/GenRec/IR/NumberedNames.h"

using namespace mlir;
using namespace genrec;

/// Declares `name`, which no other symbol of the model has, after all other domains.
static FlatSymbolRefAttr declareDomain(ModelOp model, StringRef name, DomainKind kind,
                                       FlatSymbolRefAttr parent) {
  Block &body = model.getBody().front();
  OpBuilder builder = OpBuilder::atBlockBegin(&body);
  for (auto domain : body.getOps<DomainOp>())
    builder.setInsertionPointAfter(domain);
  auto domain = DomainOp::create(builder, model.getLoc(), builder.getStringAttr(name), parent,
                                 DomainKindAttr::get(model.getContext(), kind), StringAttr(),
                                 StringAttr(), IntegerAttr());
  return FlatSymbolRefAttr::get(domain.getSymNameAttr());
}

/// The first of name, name_2, name_3, ... that no declaration of `model` has. One pass over them
/// tells: a model whose tables are not merged declares thousands of domains of one name.
static std::string findFreeName(ModelOp model, StringRef name) {
  llvm::DenseSet<uint64_t> taken;
  for (auto symbol : model.getBody().getOps<SymbolOpInterface>()) {
    StringRef own = symbol.getName(), rest = own;
    uint64_t number = 1;
    if (rest.consume_front(name) &&
        (rest.empty() || (rest.consume_front("_") && !rest.getAsInteger(10, number))) &&
        own == nameWithNumber(name, number)) // not name_1, nor name_02
      taken.insert(number);
  }
  uint64_t number = 1;
  while (taken.contains(number))
    ++number;
  return nameWithNumber(name, number);
}

FlatSymbolRefAttr genrec::declareStepDomain(ModelOp model, StringRef name, bool reuse) {
  for (uint64_t number = 1; reuse; ++number) {
    Operation *taken = SymbolTable::lookupSymbolIn(model, nameWithNumber(name, number));
    if (!taken)
      break;
    auto domain = dyn_cast<DomainOp>(taken);
    if (domain && domain.getKind() == DomainKind::step)
      return FlatSymbolRefAttr::get(domain.getSymNameAttr());
  }
  return declareDomain(model, findFreeName(model, name), DomainKind::step, FlatSymbolRefAttr());
}

FlatSymbolRefAttr genrec::declareDerivedDomain(ModelOp model, StringRef name,
                                               FlatSymbolRefAttr parent) {
  return declareDomain(model, findFreeName(model, name), DomainKind::derived, parent);
}

Value genrec::getFixedRows(ProgramOp program, int64_t count) {
  Block &body = program.getBody().front();
  for (auto rows : body.getOps<FixedRowsOp>())
    if (static_cast<int64_t>(rows.getCount()) == count)
      return rows.getDomain();
  FlatSymbolRefAttr domain = declareStepDomain(getModel(program), "rows_" + std::to_string(count),
                                               /*reuse=*/true);
  OpBuilder builder = OpBuilder::atBlockBegin(&body);
  return FixedRowsOp::create(builder, program.getLoc(),
                             DomainType::get(program.getContext(), domain), count)
      .getDomain();
}

int64_t genrec::getSharedRowCount(Type shared) {
  auto tensor = cast<RankedTensorType>(shared);
  return tensor.getRank() == 2 ? tensor.getDimSize(0) : 1;
}

Value genrec::viewSharedAsRows(OpBuilder &builder, Location loc, Value x, Value domain) {
  auto tensor = cast<RankedTensorType>(x.getType());
  ArrayRef<int64_t> shape = tensor.getShape();
  if (shape.size() == 2)
    shape = shape.drop_front();
  FlatSymbolRefAttr symbol = cast<DomainType>(domain.getType()).getDomain();
  return SharedRowsOp::create(builder, loc, getRowsType(symbol, shape, tensor.getElementType()), x,
                              domain);
}

//===- StepCallsDistinct.cpp - work per distinct looked-up row as calls ---===//
//
// Lowers to genrec_rt_distinct_rows and genrec_rt/kernels/cpu/step_distinct.h.
//
//===----------------------------------------------------------------------===//

#include "StepCalls.h"

#include "genrec/Dialect/GenRec/Step/StageBuilder.h"

using namespace mlir;
using namespace genrec;

/// For each row of each lookup the number of its distinct row.
static Value getPlaces(DistinctRowsOp op, StageBuilder &stage) {
  return stage.getBuffer(getOwnBuffer(op, kPlacesSlot), stage.at(op).opaque("void"),
                         getPlacesName(op));
}

LogicalResult genrec::lowerCall(DistinctRowsOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op);
  std::string name = makeIdentifier(domainOf(op.getDomains().front()).getValue());
  auto array = [&](StringRef what, Type element, ArrayRef<Value> values) {
    return stage.makeArray(b.named(name + what.str()), element, values);
  };
  SmallVector<Value> handles, lookups, domains, rows;
  for (Value of : op.getAllRows())
    handles.push_back(stage.getPointer(of));
  for (auto [count, domain, own] :
       llvm::zip_equal(op.getLookups(), op.getDomains(), op.getHandles())) {
    lookups.push_back(b.integer(count, b.i32()));
    domains.push_back(stage.getDomain(domain));
    rows.push_back(stage.getPointer(own));
  }
  b.callVoid("genrec_rt_distinct_rows",
             {stage.getStep(), stage.getDomainOf(op.getAllRows().front()),
              b.integer(lookups.size(), b.i32()), array("_lookups", b.i32(), lookups),
              array("_handles", b.pointer(b.opaque("float *const")), handles),
              array("_domains", b.pointer(b.opaque("genrec_domain")), domains),
              array("_rows", b.pointer(b.pointer(b.opaque("float"))), rows), getPlaces(op, stage)});
  return success();
}

static Value makeIntegers(StageBuilder &stage, const EmitCBuilder &b, auto &&numbers) {
  SmallVector<Value> values;
  for (int64_t number : numbers)
    values.push_back(b.integer(number));
  return stage.makeArray(b, b.i64(), values);
}

/// The first arguments of distinct_linear and its gradient: on a device the domain of the lookups,
/// which the memory there does not tell the host; for each row of each lookup the number of its
/// distinct row; of each group its lookups, values and stride; the weight, and the rows of it that
/// belong to each lookup.
template <typename OpT>
static SmallVector<Value> getFactors(OpT op, Value wide, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op);
  DistinctRowsOp distinct = op.getDistinctRows();
  std::string name = makeIdentifier(domainOf(op.getDomains().front()).getValue());
  auto named = [&](StringRef what) { return b.named(name + what.str()); };
  SmallVector<Value> values, strides;
  for (Value of : op.getValues()) {
    values.push_back(stage.getPointer(of));
    strides.push_back(stage.getStride(of));
  }
  SmallVector<Value> operands = {stage.getStep()};
  if (stage.target.hasDevice)
    operands.push_back(stage.getDomainOf(wide));
  operands.append(
      {getPlaces(distinct, stage), makeIntegers(stage, named("_lookups"), distinct.getLookups()),
       stage.makeArray(named("_values"), b.pointer(b.opaque("const float")), values),
       stage.makeArray(named("_strides"), b.i64(), strides), stage.getPointer(op.getWeight()),
       makeIntegers(stage, named("_columns"), op.getColumns())});
  return operands;
}

/// Template arguments: the size of the rows of `wide`, the layer's result, the precision, and the
/// sizes of the distinct rows of each group.
template <typename OpT>
static SmallVector<Attribute> getFactorTemplate(OpT op, Value wide, const EmitCBuilder &b) {
  SmallVector<Attribute> arguments = {b.templateInteger(getRowSize(wide.getType())),
                                      b.templateBool(op.getBf16())};
  for (Value values : op.getValues())
    arguments.push_back(b.templateInteger(getRowSize(values.getType())));
  return arguments;
}

LogicalResult genrec::lowerCall(DistinctLinearOp op, StageBuilder &stage) {
  Value result = op.getResult();
  SmallVector<Value> operands = getFactors(op, result, stage);
  operands.append({stage.getPointer(result), stage.getStride(result)});
  EmitCBuilder b = stage.at(op);
  b.callVoid("kernels::distinctLinear", operands, getFactorTemplate(op, result, b));
  return success();
}

LogicalResult genrec::lowerCall(DistinctLinearGradOp op, StageBuilder &stage) {
  Value gradient = op.getGradient();
  SmallVector<Value> operands = getFactors(op, gradient, stage);
  EmitCBuilder b = stage.at(op);
  SmallVector<Value> dvalues;
  for (Value of : op.getDvalues())
    dvalues.push_back(stage.getPointer(of));
  operands.append({stage.getPointer(gradient), stage.getStride(gradient),
                   stage.makeArray(b, b.pointer(b.f32()), dvalues),
                   stage.getPointer(op.getDweight())});
  b.callVoid("kernels::distinctLinearGradient", operands, getFactorTemplate(op, gradient, b));
  return success();
}

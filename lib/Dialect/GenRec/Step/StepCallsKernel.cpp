//===- StepCallsKernel.cpp - launches of generated kernels ----------------===//
//
// Lowers to genrec_rt/kernels/cpu/launch.h.
//
//===----------------------------------------------------------------------===//

#include "StepCalls.h"

#include "genrec/Dialect/GenRec/Step/StageBuilder.h"

using namespace mlir;
using namespace genrec;

/// A pointer to each input; of rows of a parameter to its values, and one to its states.
static SmallVector<Value> getInputPointers(ValueRange inputs, StageBuilder &stage) {
  SmallVector<Value> pointers;
  for (Value input : inputs) {
    if (ParameterOp parameter = getRowsParameter(input)) {
      int64_t number = stage.index.getParameter(FlatSymbolRefAttr::get(parameter.getSymNameAttr()));
      pointers.push_back(stage.getParameterMember(number, "own"));
      pointers.push_back(stage.getParameterMember(number, "states"));
    } else {
      pointers.push_back(stage.getPointer(input));
    }
  }
  return pointers;
}

// launch(step, domain, grain, kernel, pointers...), or, for a kernel with accumulated results,
// launchSums<n>(step, domain, grain, kernel, out, size, ..., pointers...). On a device the mapping
// stands for the grain, launchSums takes the shapes of the sums before the kernel, and launchPools,
// for a kernel that splits lists, how their pieces are pooled.
LogicalResult genrec::lowerCall(LaunchOp launch, StageBuilder &stage) {
  SmallVector<Value> inputs = getInputPointers(launch.getInputs(), stage), sums, outputs;
  EmitCBuilder b = stage.at(launch);
  ArrayRef<int64_t> accumulators = launch.getAccumulators();
  for (auto [number, result] : llvm::enumerate(launch.getResults())) {
    Value pointer = stage.getPointer(result);
    if (!llvm::is_contained(accumulators, static_cast<int64_t>(number))) {
      outputs.push_back(pointer);
      continue;
    }
    sums.push_back(pointer);
    sums.push_back(getAccumulatorSize(b, stage.getStep(), stage.index, result));
  }
  Value domain = stage.getDomain(launch.getDomain());
  // On the CPU a launch takes the smallest number of rows per chunk, on a device the mapping.
  Value mapping = stage.target.hasDevice ? b.literal((launch.getKernel() + "_mapping").str(),
                                                     b.opaque("kernels::RowMapping"))
                                         : b.integer(static_cast<int64_t>(launch.getGrain()));
  SmallVector<Value> operands = {stage.getStep(), domain, mapping};
  if (stage.target.hasDevice && !accumulators.empty())
    operands.push_back(
        b.literal((launch.getKernel() + "_sums").str(), b.opaque("kernels::SumShape")));
  if (launch.getSplitsLists())
    operands.push_back(
        b.literal((launch.getKernel() + "_pools").str(), b.opaque("kernels::PoolShape")));
  operands.push_back(b.literal(launch.getKernel(), b.opaque("genrec_rt_chunk_fn")));
  operands.append(sums);
  operands.append(inputs);
  operands.append(outputs);
  if (accumulators.empty())
    b.callVoid(launch.getSplitsLists() ? "kernels::launchPools" : "kernels::launch", operands);
  else
    b.callVoid("kernels::launchSums", operands,
               {b.templateInteger(static_cast<int64_t>(accumulators.size()))});
  return success();
}

namespace {
/// A column of a launch: its kernel, the domain of its rows, and its pointers: of its inputs, then
/// of its part of a result, or of rows, or of its results; then where parts of its lists go, which
/// the launch fills in, and the domains that it is passed.
struct LaunchedColumn {
  StringRef kernel;
  Value domain;
  SmallVector<Value> pointers;
};
} // namespace

static SmallVector<LaunchedColumn> getColumns(LaunchColumnsOp launch, StageBuilder &stage) {
  SmallVector<LaunchedColumn> columns;
  EmitCBuilder b = stage.at(launch);
  const size_t count = launch.getColumns().size() / 4;
  const size_t resultCount = launch.getNumResults() / count,
               domainCount = launch.getPassedDomains().size() / count;
  unsigned next = 0;
  for (ArrayRef<int64_t> rest = launch.getColumns(); !rest.empty(); rest = rest.drop_front(4)) {
    const int64_t kernel = rest[0], inputs = rest[1], number = rest[2], part = rest[3];
    LaunchedColumn column{cast<FlatSymbolRefAttr>(launch.getKernels()[kernel]).getValue(),
                          launch.getDomains()[number],
                          getInputPointers(launch.getInputs().slice(next, inputs), stage)};
    next += inputs;
    if (part != LaunchColumnsOp::kNoPart) {
      auto stack = column.domain.getDefiningOp<StackDomainsOp>();
      column.domain = stack.getParts()[part];
      column.pointers.push_back(
          stage.getPartPointer(launch.getResult(number), stack.getResult(), part));
    } else if (ArrayRef<int64_t> places = launch.getPlaces(); !places.empty()) {
      ArrayRef<int64_t> place = places.slice(2 * columns.size(), 2);
      Value result = stage.getPointer(launch.getResult(place[0]));
      column.pointers.push_back(place[1] ? b.add(result, b.integer(place[1])) : result);
    } else {
      for (Value result : launch.getResults().slice(columns.size() * resultCount, resultCount))
        column.pointers.push_back(stage.getPointer(result));
    }
    if (launch.getPools())
      column.pointers.push_back(b.literal("nullptr", b.voidPointer()));
    for (int64_t domain :
         launch.getPassedDomains().slice(columns.size() * domainCount, domainCount))
      column.pointers.push_back(
          b.named("domain").call("kernels::domainNumber", b.voidPointer(), {b.integer(domain)}));
    columns.push_back(std::move(column));
  }
  return columns;
}

/// On a device: fills the buffers of keys with -1, then launches all columns. Parts of a buffer
/// have the room of their capacities, and nobody looks up what lies between (stackDomains).
static LogicalResult lowerDeviceColumns(LaunchColumnsOp launch, StageBuilder &stage) {
  EmitCBuilder b = stage.at(launch);
  const bool makesKeys = launch.getColumns().back() != LaunchColumnsOp::kNoPart;
  for (Value result : launch.getResults())
    if (makesKeys)
      b.callVoid("kernels::fillKeys",
                 {stage.getStep(), stage.getDomainOf(result), stage.getPointer(result)});
  SmallVector<Value> pointers;
  for (const LaunchedColumn &column : getColumns(launch, stage))
    llvm::append_range(pointers, column.pointers);
  // The last kernel runs all columns.
  StringRef name = cast<FlatSymbolRefAttr>(launch.getKernels().getValue().back()).getValue();
  SmallVector<Value> operands = {
      stage.getStep(), b.literal(*launch.getShapes(), b.opaque("kernels::ColumnShape")),
      b.literal(name, b.opaque("kernels::ColumnsKernel")),
      stage.makeArray(b.named("pointers_of"), b.voidPointer(), pointers)};
  if (std::optional<StringRef> pools = launch.getPools())
    operands.push_back(b.literal((*pools + "_pools").str(), b.opaque("kernels::PoolShape")));
  if (launch.getSharedBytes() > 0)
    operands.push_back(b.integer(static_cast<int64_t>(launch.getSharedBytes())));
  b.callVoid(launch.getPools() ? "kernels::launchPoolColumns" : "kernels::launchColumns", operands);
  return success();
}

LogicalResult genrec::lowerCall(LaunchedKernelOp kernel, StageBuilder &stage) {
  for (Value value : kernel.getValues())
    stage.checkFinite(kernel, value);
  return success();
}

// launchColumns(step, count, kernels, domains, arguments): three arrays with an entry per column.
LogicalResult genrec::lowerCall(LaunchColumnsOp launch, StageBuilder &stage) {
  if (stage.target.hasDevice)
    return lowerDeviceColumns(launch, stage);
  EmitCBuilder b = stage.at(launch);
  Type function = b.opaque("genrec_rt_chunk_fn"),
       domain = b.pointer(b.opaque("const genrec_domain"));
  SmallVector<Value> functions, domains, arguments;
  for (LaunchedColumn &column : getColumns(launch, stage)) {
    functions.push_back(b.literal(column.kernel, function));
    domains.push_back(stage.getDomain(column.domain));
    column.pointers.insert(column.pointers.begin(), stage.getStep());
    arguments.push_back(stage.makeArray(b.named("column"), b.voidPointer(), column.pointers));
  }
  b.callVoid("kernels::launchColumns",
             {stage.getStep(), b.integer(functions.size()),
              stage.makeArray(b.named("kernels_of"), function, functions),
              stage.makeArray(b.named("domains_of"), domain, domains),
              stage.makeArray(b.named("arguments_of"), b.pointer(b.voidPointer()), arguments)});
  return success();
}

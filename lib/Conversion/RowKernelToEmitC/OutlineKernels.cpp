//===- OutlineKernels.cpp - turns row kernels into functions --------------===//

#include "ColumnJoin.h"
#include "ColumnsKernel.h"
#include "CudaKernelTarget.h"
#include "KernelOutliner.h"

#include "genrec/Analysis/Names.h"
#include "genrec/Conversion/Passes.h"
#include "genrec/Dialect/GenRec/Step/Costs.h"
#include "genrec/Dialect/GenRec/Step/MemoryPlan.h"
#include "genrec_rt/device_limits.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

namespace genrec {
#define GEN_PASS_DEF_OUTLINEKERNELS
#include "genrec/Conversion/Passes.h.inc"
} // namespace genrec

using namespace mlir;
using namespace genrec;

/// The comment above the function of a kernel.
static std::string getComment(RowKernelOp kernel) {
  std::string origin = describeOrigin(kernel);
  StringRef joint = origin.empty()                                                ? ""
                    : origin.front() == '('                                       ? " "
                    : kernel->hasAttr(GenRecDialect::OpsAttrHelper::getNameStr()) ? ": "
                                                                                  : "; ";
  return ("Over @" + kernel.getDomain().getType().getDomain().getValue() + joint + origin).str();
}

namespace {
/// The function of a kernel, and what its launch takes.
struct OutlinedFunction {
  FlatSymbolRefAttr name, domain;
  int64_t grain;
  SmallVector<int64_t> accumulators;
  bool splitsLists;
  int64_t columnBytes; ///< of shared memory, of a block that has rows of a column
  FlatSymbolRefAttr leaves;
  SmallVector<int64_t> domains; ///< numbers of those that it is passed
};

struct OutlineKernelsPass : genrec::impl::OutlineKernelsBase<OutlineKernelsPass> {
  using OutlineKernelsBase::OutlineKernelsBase;

  void runOnOperation() override;

private:
  LogicalResult outlineModel(ModelOp model, const Target &target);
  LogicalResult outlineKernel(RowKernelOp kernel, ArrayRef<OpCost> costs, const ModelIndex &index,
                              const Target &target);
  FailureOr<OutlinedFunction> outlineFunction(RowKernelOp kernel, const ModelIndex &index,
                                              const Target &target, KernelForm form);
  FlatSymbolRefAttr addColumnsKernel(StringRef name, Location loc, ArrayRef<ColumnShape> columns,
                                     SmallVector<Attribute> &bodies);
  LogicalResult outlineColumns(TransformColumnsOp op, const ModelIndex &index,
                               const Target &target);
  LogicalResult outlineJointLaunch(const JointLaunch &joint, const ModelIndex &index,
                                   const Target &target);
  LogicalResult outlineColumnJoin(RowKernelOp kernel, ArrayRef<ColumnPart> parts,
                                  ArrayRef<OpCost> costs, const ModelIndex &index,
                                  const Target &target);

  llvm::StringMap<std::string> functions; ///< names, by code
  llvm::StringSet<> names;
};
} // namespace

/// Copies the decisions of earlier passes about an op to its replacement, which gets an origin and
/// costs, too. Costs are passed in, as they must be computed while the op is still the only reader
/// of its operands.
static void copyAttributes(Operation *from, const std::string &origin, ArrayRef<OpCost> costs,
                           Operation *to) {
  OpBuilder builder(from->getContext());
  auto dialect = cast<GenRecDialect>(to->getDialect());
  SmallVector<Attribute> entries = llvm::map_to_vector(
      costs, [&](const OpCost &cost) -> Attribute { return cost.toAttribute(from->getContext()); });
  dialect->getOriginAttrHelper().setAttr(to, builder.getStringAttr(origin));
  dialect->getCostsAttrHelper().setAttr(to, builder.getArrayAttr(entries));
  for (StringAttr name :
       {dialect->getBufferIdsAttrHelper().getName(), dialect->getRowBlockAttrHelper().getName(),
        dialect->getStageAttrHelper().getName()})
    if (Attribute attribute = from->getAttr(name))
      to->setAttr(name, attribute);
}

/// The text of a function without name and locations, to compare functions.
static std::string getCode(emitc::FuncOp function) {
  std::string name = function.getSymName().str(), code;
  function.setSymName("kernel");
  llvm::raw_string_ostream stream(code);
  function->print(stream, OpPrintingFlags().enableDebugInfo(false).useLocalScope());
  function.setSymName(name);
  return code;
}

/// Outlines `kernel`. Kernels over a domain with the same code share a function, and so do updates
/// and reductions of parameters, each of which has a domain of its own, and bodies that are passed
/// their domains. (A device's other kernels read how many rows their domain has. Functions are the
/// same on all targets.)
FailureOr<OutlinedFunction> OutlineKernelsPass::outlineFunction(RowKernelOp kernel,
                                                                const ModelIndex &index,
                                                                const Target &target,
                                                                KernelForm form) {
  OpBuilder builder(&getContext());
  builder.setInsertionPointToEnd(getOperation().getBody());
  std::unique_ptr<KernelTarget> kernelTarget = createKernelTarget(target, kernel, form);
  KernelOutliner outliner(kernel, index, *kernelTarget, builder);
  EmitCBuilder b(builder, kernel.getLoc());
  emitc::VerbatimOp comment = b.comment(getComment(kernel));
  FailureOr<emitc::FuncOp> function = outliner.outline(getStepOpName(kernel));
  if (failed(function))
    return failure();
  std::string code = getCode(*function);
  if (!kernelTarget->takesDomains() && !isParameterUpdate(kernel) && !getReductionReader(kernel))
    code += kernel.getDomain().getType().getDomain().getValue();
  auto [known, isNew] = functions.try_emplace(code);
  if (isNew) {
    known->second = makeUnique(function->getSymName().str(), names);
    function->setSymName(known->second);
    kernelTarget->describe(b, known->second);
    outliner.describePools(known->second);
    ++kernels;
    loops += outliner.loopCount;
    arrays += outliner.arrayCount;
  } else {
    comment->erase();
    function->erase();
  }
  return OutlinedFunction{FlatSymbolRefAttr::get(&getContext(), known->second),
                          outliner.getLaunchDomain(),
                          outliner.getGrain(),
                          outliner.getAccumulatedResults(),
                          outliner.splitsLists(),
                          kernelTarget->getColumnBytes(),
                          outliner.getLeafDomain(),
                          llvm::to_vector(outliner.getPassedDomains())};
}

LogicalResult OutlineKernelsPass::outlineKernel(RowKernelOp kernel, ArrayRef<OpCost> costs,
                                                const ModelIndex &index, const Target &target) {
  FailureOr<OutlinedFunction> function =
      outlineFunction(kernel, index, target, KernelForm::launched);
  if (failed(function))
    return failure();
  std::string own = getStepOpName(kernel);
  const bool isOfAnother = !function->name.getValue().starts_with(own);
  OpBuilder builder(kernel);
  Value domain = lookupDomainValue(kernel->getParentOfType<ProgramOp>(), function->domain);
  auto launch = LaunchOp::create(builder, getLocOfLines(kernel), kernel.getResultTypes(),
                                 function->name.getValue(), domain, kernel.getInputs(),
                                 function->grain, function->accumulators, function->splitsLists,
                                 isOfAnother ? builder.getStringAttr(own) : StringAttr());
  copyAttributes(kernel, describeOrigin(kernel), costs, launch);
  kernel->replaceAllUsesWith(launch);
  kernel->erase();
  ++launches;
  return success();
}

//===----------------------------------------------------------------------===//
// Columns
//===----------------------------------------------------------------------===//

/// Adds, on a device, the function that runs all columns to `bodies`, those of their programs. As
/// many columns of the same bodies share it. Returns the description of these columns.
FlatSymbolRefAttr OutlineKernelsPass::addColumnsKernel(StringRef name, Location loc,
                                                       ArrayRef<ColumnShape> columns,
                                                       SmallVector<Attribute> &bodies) {
  OpBuilder builder(&getContext());
  builder.setInsertionPointToEnd(getOperation().getBody());
  EmitCBuilder b(builder, loc);
  emitc::FuncOp function = emitColumnsKernel(b, "run_" + name.str(), bodies, columns);
  auto [known, isNew] = functions.try_emplace(getCode(function));
  if (isNew) {
    known->second = makeUnique(function.getSymName().str(), names);
    function.setSymName(known->second);
  } else {
    function.erase();
  }
  bodies.push_back(FlatSymbolRefAttr::get(&getContext(), known->second));
  std::string shapes = makeUnique(known->second + "_columns", names);
  emitColumnShapes(b, shapes, columns);
  return FlatSymbolRefAttr::get(&getContext(), shapes);
}

/// Creates a row kernel for one column, before `op`.
static RowKernelOp makeColumnKernel(TransformColumnsOp op,
                                    const TransformColumnsOp::Column &column) {
  OpBuilder builder(op);
  MLIRContext *context = op.getContext();
  Value domain = op.getColumnDomain(column);
  FlatSymbolRefAttr own = domainOf(domain);
  SmallVector<Attribute> roles;
  for (unsigned index = 0; index < column.inputs.size(); ++index)
    roles.push_back(OperandRoleAttr::get(context, op.getInputRole(column, index)));
  Attribute result = ResultRoleAttr::get(context, ResultRole::aligned);
  auto kernel =
      RowKernelOp::create(builder, op.getLoc(), getRowsType(own, {}, builder.getI64Type()), domain,
                          column.inputs, builder.getArrayAttr(roles), builder.getArrayAttr(result),
                          /*pool_kinds=*/ArrayAttr(), op.getNameAttr());
  IRMapping mapping;
  op.getBodies()[column.program].cloneInto(&kernel.getBody(), mapping);
  return kernel;
}

/// Creates one function per column program and one launch for all columns. On a device the last
/// kernel of the launch is the one that runs them all.
LogicalResult OutlineKernelsPass::outlineColumns(TransformColumnsOp op, const ModelIndex &index,
                                                 const Target &target) {
  SmallVector<Attribute> functions(op.getBodies().size());
  SmallVector<int64_t> columns;
  SmallVector<ColumnShape> shapes;
  for (const TransformColumnsOp::Column &column : op.getColumns()) {
    Attribute &name = functions[column.program];
    if (!name) {
      RowKernelOp kernel = makeColumnKernel(op, column);
      FailureOr<OutlinedFunction> function =
          outlineFunction(kernel, index, target, KernelForm::column);
      if (failed(function))
        return failure();
      name = function->name;
      kernel->erase();
    }
    const auto inputs = static_cast<int64_t>(column.inputs.size());
    columns.append({column.program, inputs, column.result, column.part});
    auto domain = domainOf(op.getColumnDomain(column));
    // Keys are scalars: a row has one thread.
    shapes.push_back({column.program, rt::kColumnRows, inputs + 1, index.getDomain(domain)});
  }
  FlatSymbolRefAttr described;
  if (target.hasDevice)
    described = addColumnsKernel(getStepOpName(op), op.getLoc(), shapes, functions);
  OpBuilder builder(op);
  auto launch = LaunchColumnsOp::create(
      builder, op.getLoc(), op.getResultTypes(), op.getInputs(), op.getDomains(),
      builder.getArrayAttr(functions), columns, StringAttr(), /*shared_bytes=*/0,
      /*passed_domains=*/{}, /*pools=*/FlatSymbolRefAttr(), described);
  copyAttributes(op, describeOrigin(op), getCosts(op), launch);
  op->replaceAllUsesWith(launch);
  op->erase();
  ++launches;
  return success();
}

/// The numbers of the buffers that the results of `joint` are in.
static DenseI64ArrayAttr joinBufferIds(ArrayRef<RowKernelOp> joint) {
  SmallVector<int64_t> ids;
  for (RowKernelOp kernel : joint)
    if (auto own = kernel->getAttrOfType<DenseI64ArrayAttr>(
            GenRecDialect::BufferIdsAttrHelper::getNameStr()))
      llvm::append_range(ids, own.asArrayRef());
  return DenseI64ArrayAttr::get(joint.front()->getContext(), ids);
}

namespace {
/// The columns of a joint launch.
struct JointColumns {
  SmallVector<Attribute> functions;
  SmallVector<int64_t> columns, passedDomains;
  SmallVector<ColumnShape> shapes;
  SmallVector<Value> inputs, domains, results;
  SmallVector<OpCost> costs;
  SmallVector<Location> locs;
  int64_t sharedBytes = 0;
  FlatSymbolRefAttr pools;

  void add(RowKernelOp kernel, const OutlinedFunction &function, const ModelIndex &index);
  /// The launch of all columns. `described`: their shapes; `places`: those of parts of results.
  LaunchColumnsOp createLaunch(OpBuilder &builder, Location loc, TypeRange types, StringRef name,
                               FlatSymbolRefAttr described, ArrayRef<int64_t> places = {}) const;
};
} // namespace

void JointColumns::add(RowKernelOp kernel, const OutlinedFunction &function,
                      const ModelIndex &index) {
  const int64_t program = llvm::find(functions, function.name) - functions.begin();
  if (program == static_cast<int64_t>(functions.size()))
    functions.push_back(function.name);
  const auto count = static_cast<int64_t>(kernel.getInputs().size());
  columns.append({program, count, static_cast<int64_t>(domains.size()), LaunchColumnsOp::kNoPart});
  // Rows of a parameter are two pointers: its values, and its states.
  const int64_t own = count + llvm::count_if(kernel.getInputs(), getRowsParameter) +
                      static_cast<int64_t>(kernel.getNumResults());
  // The lists of a block are long enough to take one for each row that it has room for.
  const int64_t rows = function.splitsLists ? rt::kColumnThreads : rt::kColumnRows;
  ColumnShape shape{program, rows / getRowMapping(kernel).lanes,
                    own + static_cast<int64_t>(function.domains.size()),
                    index.getDomain(function.domain)};
  if (function.splitsLists) {
    shape.leaves = index.getDomain(function.leaves);
    shape.parts = own;
    ++shape.pointers;
    pools = function.name;
  }
  shapes.push_back(shape);
  sharedBytes = std::max(sharedBytes, function.columnBytes);
  assert(sharedBytes <= (48 << 10) && "a launch of columns asks for no more shared memory");
  llvm::append_range(inputs, kernel.getInputs());
  llvm::append_range(results, kernel.getResults());
  llvm::append_range(passedDomains, function.domains);
  domains.push_back(kernel.getDomain());
  llvm::append_range(costs, getCosts(kernel));
  locs.push_back(kernel.getLoc());
}

LaunchColumnsOp JointColumns::createLaunch(OpBuilder &builder, Location loc, TypeRange types,
                                           StringRef name, FlatSymbolRefAttr described,
                                           ArrayRef<int64_t> places) const {
  return LaunchColumnsOp::create(builder, loc, types, inputs, domains,
                                 builder.getArrayAttr(functions), columns,
                                 builder.getStringAttr(name), static_cast<uint64_t>(sharedBytes),
                                 passedDomains, pools, described, places);
}

static std::string getLaunchName(const JointLaunch &joint) {
  switch (joint.kind) {
  case JointLaunch::Kind::updates:
    return "update_parameters";
  case JointLaunch::Kind::reductions:
    return "reduce_parameters";
  case JointLaunch::Kind::lists:
    return llvm::formatv("{0}_and_{1}_more", getStepOpName(joint.getPlace()),
                         joint.kernels.size() - 1);
  }
  llvm_unreachable("every kind of launch has a name");
}

/// Moves what has no code and is read by `op` to before `place`, which is before `op`.
static void hoistOperands(Operation *op, Operation *place) {
  for (Value operand : op->getOperands()) {
    Operation *maker = operand.getDefiningOp();
    if (!maker || maker->isBeforeInBlock(place))
      continue;
    assert((isDeclaration(maker) || isView(maker)) && "other operands are there");
    hoistOperands(maker, place);
    maker->moveBefore(place);
  }
}

/// Where each of `joint` was, an op that has its name and origin, for what `launch` makes of it.
static void leaveKernels(ArrayRef<RowKernelOp> joint, LaunchColumnsOp launch) {
  size_t next = 0;
  for (RowKernelOp kernel : joint) {
    OpBuilder builder(kernel);
    ValueRange made = launch.getResults().slice(next, kernel.getNumResults());
    next += kernel.getNumResults();
    auto left =
        LaunchedKernelOp::create(builder, getLocOfLines(kernel), getStepOpName(kernel), made);
    copyAttributes(kernel, describeOrigin(kernel), /*costs=*/{}, left);
    left->removeAttr(GenRecDialect::BufferIdsAttrHelper::getNameStr());
  }
}

/// One launch of kernels over rows of parameters, or over lists: a column each. Those of one width
/// and optimizer share a program, and so do those over lists.
LogicalResult OutlineKernelsPass::outlineJointLaunch(const JointLaunch &joint,
                                                     const ModelIndex &index,
                                                     const Target &target) {
  JointColumns made;
  for (RowKernelOp kernel : joint.kernels) {
    FailureOr<OutlinedFunction> function =
        outlineFunction(kernel, index, target, KernelForm::joint);
    if (failed(function))
      return failure();
    // A launch says which domains columns are passed, not how many each.
    if (made.passedDomains.size() != made.domains.size() * function->domains.size())
      return kernel.emitOpError("reads more or fewer domains than the kernels of its launch");
    made.add(kernel, *function, index);
  }
  const bool isOfLists = joint.kind == JointLaunch::Kind::lists;
  const std::string name = getLaunchName(joint);
  RowKernelOp place = joint.getPlace();
  for (RowKernelOp kernel : joint.kernels)
    if (isOfLists && kernel != place)
      hoistOperands(kernel, place);
  Location loc = FusedLoc::get(&getContext(), made.locs);
  FlatSymbolRefAttr described = addColumnsKernel(name, loc, made.shapes, made.functions);
  OpBuilder builder(place);
  LaunchColumnsOp launch =
      made.createLaunch(builder, loc, ValueRange(made.results).getTypes(), name, described);
  copyAttributes(place, describeOrigin(isOfLists ? place.getOperation() : launch.getOperation()),
                 made.costs, launch);
  cast<GenRecDialect>(launch->getDialect())
      ->getBufferIdsAttrHelper()
      .setAttr(launch, joinBufferIds(joint.kernels));
  if (isOfLists)
    leaveKernels(joint.kernels, launch);
  for (auto [result, column] : llvm::zip_equal(made.results, launch.getResults()))
    result.replaceAllUsesWith(column);
  for (RowKernelOp kernel : joint.kernels)
    kernel->erase();
  ++launches;
  return success();
}

/// On a device: one launch of `parts`, a column each, in place of the kernel that joins them.
LogicalResult OutlineKernelsPass::outlineColumnJoin(RowKernelOp kernel, ArrayRef<ColumnPart> parts,
                                                    ArrayRef<OpCost> costs, const ModelIndex &index,
                                                    const Target &target) {
  JointColumns made;
  SmallVector<int64_t> places;
  for (ColumnPart part : parts) {
    FailureOr<OutlinedFunction> function =
        outlineFunction(part.kernel, index, target, KernelForm::column);
    if (failed(function))
      return failure();
    made.add(part.kernel, *function, index);
    places.append({part.result, part.offset});
    part.kernel->erase();
  }
  const std::string name = getStepOpName(kernel);
  FlatSymbolRefAttr described =
      addColumnsKernel(name, kernel.getLoc(), made.shapes, made.functions);
  OpBuilder builder(kernel);
  LaunchColumnsOp launch = made.createLaunch(builder, getLocOfLines(kernel),
                                             kernel.getResultTypes(), name, described, places);
  copyAttributes(kernel, describeOrigin(kernel), costs, launch);
  kernel->replaceAllUsesWith(launch);
  kernel->erase();
  ++launches;
  return success();
}

/// Records at each feature the table that its ids are looked up in, as this cannot be found any
/// more once the bodies of columns are functions.
static void noteTables(const ModelIndex &index) {
  for (ProgramOp program : index.programs)
    for (auto feature : program.getBody().front().getOps<FeatureOp>()) {
      auto domain = domainOf(feature.getDomain());
      const FeatureEntry &entry = index.features[index.getFeature(domain, feature.getColumnAttr())];
      if (entry.table)
        feature->setAttr(GenRecDialect::TableAttrHelper::getNameStr(), entry.table);
    }
}

LogicalResult OutlineKernelsPass::outlineModel(ModelOp model, const Target &target) {
  ModelIndex index(model);
  noteTables(index);
  for (ProgramOp program : index.programs)
    for (auto op :
         llvm::make_early_inc_range(program.getBody().front().getOps<TransformColumnsOp>()))
      if (failed(outlineColumns(op, index, target)))
        return failure();
  for (ProgramOp program : index.programs) {
    SmallVector<JointLaunch> launches = getJointLaunches(program);
    llvm::DenseSet<Operation *> areJoint;
    for (const JointLaunch &joint : launches)
      areJoint.insert_range(joint.kernels);
    for (auto kernel :
         llvm::make_early_inc_range(program.getBody().front().getOps<RowKernelOp>())) {
      if (areJoint.contains(kernel))
        continue;
      const SmallVector<OpCost> costs = getCosts(kernel);
      SmallVector<ColumnPart> parts;
      if (target.hasDevice)
        parts = splitJoin(kernel);
      if (failed(parts.empty() ? outlineKernel(kernel, costs, index, target)
                               : outlineColumnJoin(kernel, parts, costs, index, target)))
        return failure();
    }
    for (const JointLaunch &joint : launches)
      if (failed(outlineJointLaunch(joint, index, target)))
        return failure();
  }
  return success();
}

void OutlineKernelsPass::runOnOperation() {
  const Target &target = Target::of(getOperation());
  functions.clear();
  names.clear();
  for (auto model : llvm::make_early_inc_range(getOperation().getOps<ModelOp>()))
    if (failed(outlineModel(model, target)))
      return signalPassFailure();
  if (target.hasDevice)
    moveTablesToDevice(getOperation());
}

//===- FactorLookups.cpp - linear layers per distinct table row -----------===//

#include "Decisions.h"
#include "RowKernelBuilder.h"
#include "genrec/Dialect/GenRec/IR/RowBodyBuilder.h"
#include "genrec/Dialect/GenRec/IR/StepDomains.h"
#include "genrec/Dialect/GenRec/Transforms/Passes.h"
#include "genrec/Dialect/GenRec/Transforms/RewriteCounter.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/MapVector.h"

namespace genrec {
#define GEN_PASS_DEF_FACTORLOOKUPS
#include "genrec/Dialect/GenRec/Transforms/Passes.h.inc"
} // namespace genrec

using namespace mlir;
using namespace genrec;

/// For a narrower result, adding up products costs more than computing them.
static constexpr int64_t kLeastResult = 4;

namespace {
/// One operand of the concatenation: columns [offset, offset + width) of the layer's input.
struct Part {
  Value value;
  int64_t offset, width;
  /// The row handles of the lookup if the part can be factored, otherwise null.
  Value handles;
  /// The part's gradient and the update that reads it, or null.
  Value gradient;
  UniqueRowsOp update;

  void stay() {
    handles = gradient = {};
    update = {};
  }
};

/// The factored parts of one width and one update.
using Group = SmallVector<Part *>;

/// A linear layer over concatenated columns, with its gradients.
class Layer {
public:
  Layer(LinearOp linear, ProgramOp program) : linear(linear), program(program) {}

  /// Whether some lookups, with at least `leastWidth` columns together, can be factored.
  bool match(int64_t leastWidth);
  void rewrite();

  unsigned countLookups() const;
  unsigned countGroups() const { return groups.size(); }
  int64_t getFactoredWidth() const;

private:
  bool matchGradients();
  void matchPart(Part &part);
  bool hasOnlyUpdate(Part &part, SliceColumnsOp slice);

  void findRows(OpBuilder &builder);
  Value loadRows(OpBuilder &builder, Value domain, Value handles);
  Value buildForward(OpBuilder &builder);
  void buildGradients();
  Value joinWeightGradients(OpBuilder &builder, Value ofLookups);
  void moveSlices();
  void replaceUpdates(ValueRange gradients);
  SmallVector<Value> splitRest(OpBuilder &builder, Value whole);

  LinearOp linear;
  ProgramOp program;
  ConcatColumnsOp concat;
  WeightGradientOp weightGradient;
  LinearOp inputGradient;
  SmallVector<Part> parts;
  /// By type of the rows and by their update.
  llvm::MapVector<std::pair<Type, Operation *>, Group> groups;
  /// The distinct rows of all groups, the values of each group's, and where the rows of each lookup
  /// begin in the weight.
  DistinctRowsOp distinct;
  SmallVector<Value> values;
  SmallVector<int64_t> columns;
  /// The concatenation of the other columns, and the rows of the weight for them.
  Value rest, restWeight;
};
} // namespace

//===----------------------------------------------------------------------===//
// What can be factored
//===----------------------------------------------------------------------===//

/// The handles of a kernel that does nothing but load the values of table rows, or null.
static Value getLoadedRows(Value value) {
  auto kernel = value.getDefiningOp<RowKernelOp>();
  if (!kernel || kernel.getInputs().size() != 1 || kernel->getNumResults() != 1)
    return {};
  Block &body = kernel.getBody().front();
  auto load = dyn_cast<RowLoadOp>(body.front());
  Type element = getElementTypeOrSelf(kernel.getInputs()[0].getType());
  auto row = dyn_cast<RowType>(element);
  if (!load || !row || load.getSlot() != 0 || load.getRow() != body.getArgument(0) ||
      load->getNextNode() != body.getTerminator() || body.getTerminator()->getNumOperands() != 1 ||
      body.getTerminator()->getOperand(0) != load.getResult() ||
      getRowSize(value.getType()) != row.getWidth())
    return {};
  bool isTable = !kernel.getInputs()[0].getDefiningOp<ParameterRowsOp>();
  return isTable ? kernel.getInputs()[0] : Value();
}

/// Whether the only reader of `slice` is one update of the part's rows.
bool Layer::hasOnlyUpdate(Part &part, SliceColumnsOp slice) {
  UniqueRowsOp unique;
  unsigned uses = 0;
  for (OpOperand &use : slice->getUses()) {
    ++uses;
    if (auto op = dyn_cast<UniqueRowsOp>(use.getOwner())) {
      unsigned count = op.getRows().size();
      if (use.getOperandNumber() < count ||
          op.getRows()[use.getOperandNumber() - count] != part.handles)
        return false;
      unique = op;
    } else if (!isa<SegmentSumOp>(use.getOwner())) {
      return false;
    }
  }
  if (!unique || uses != 2)
    return false;
  // The segment_sum must read the gradients that unique_rows reads.
  for (Operation *user : unique.getDomain().getUsers())
    if (auto sum = dyn_cast<SegmentSumOp>(user);
        sum && !llvm::equal(sum.getGradients(), unique.getGradients()))
      return false;
  part.gradient = slice.getResult();
  part.update = unique;
  return true;
}

void Layer::matchPart(Part &part) {
  part.handles = part.value.hasOneUse() ? getLoadedRows(part.value) : Value();
  if (!part.handles || !inputGradient)
    return;
  for (Operation *user : inputGradient.getResult().getUsers()) {
    auto slice = cast<SliceColumnsOp>(user);
    int64_t begin = slice.getOffset(), end = begin + getRowSize(slice.getType());
    if (end <= part.offset || begin >= part.offset + part.width)
      continue;
    bool isWhole = begin == part.offset && end == part.offset + part.width;
    if (!isWhole || part.gradient || !hasOnlyUpdate(part, slice)) {
      part.stay();
      return;
    }
  }
}

/// Finds the gradients of weight and input. False if they have readers that the rewrite cannot
/// handle.
bool Layer::matchGradients() {
  for (Operation *user : concat->getUsers()) {
    if (user == linear)
      continue;
    auto gradient = dyn_cast<WeightGradientOp>(user);
    if (!gradient || weightGradient || gradient.getY() == concat.getResult())
      return false;
    weightGradient = gradient;
  }
  if (!weightGradient)
    return true;
  for (Operation *user : linear.getWeight().getUsers()) {
    auto back = dyn_cast<LinearOp>(user);
    if (!back || !back.getTransposed() || back.getX() != weightGradient.getY() ||
        back.getWeight() != linear.getWeight())
      continue;
    if (inputGradient || back.getBias())
      return false;
    inputGradient = back;
  }
  return !inputGradient || llvm::all_of(inputGradient->getUsers(),
                                        [](Operation *user) { return isa<SliceColumnsOp>(user); });
}

bool Layer::match(int64_t leastWidth) {
  concat = linear.getX().getDefiningOp<ConcatColumnsOp>();
  if (linear.getTransposed() || !concat || getRowSize(linear.getType()) < kLeastResult ||
      !getElementTypeOrSelf(linear.getType()).isF32() || !matchGradients())
    return false;
  int64_t offset = 0;
  for (Value value : concat.getParts()) {
    int64_t width = getRowSize(value.getType());
    parts.push_back({value, offset, width, {}, {}, {}});
    matchPart(parts.back());
    offset += width;
  }
  for (Part &part : parts)
    if (part.handles)
      groups[{getElementTypeOrSelf(part.handles.getType()), part.update.getOperation()}].push_back(
          &part);
  // Their sum is stored and added: they must save enough products to be worth that.
  return !groups.empty() && getFactoredWidth() >= leastWidth;
}

unsigned Layer::countLookups() const {
  return llvm::count_if(parts, [](const Part &part) { return static_cast<bool>(part.handles); });
}

int64_t Layer::getFactoredWidth() const {
  int64_t width = 0;
  for (const Part &part : parts)
    width += part.handles ? part.width : 0;
  return width;
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

/// The values of the rows `handles`.
Value Layer::loadRows(OpBuilder &builder, Value domain, Value handles) {
  Location loc = linear.getLoc();
  auto row = cast<RowType>(getElementTypeOrSelf(handles.getType()));
  Type type = getRowsType(getRowDomain(handles.getType()), {row.getWidth()}, builder.getF32Type());
  RowKernelOp kernel = createRowKernel(builder, loc, domain, {{handles, OperandRole::aligned}},
                                       {{type, ResultRole::aligned}}, "lookup");
  Block &body = kernel.getBody().front();
  OpBuilder inner = OpBuilder::atBlockEnd(&body);
  RowBodyBuilder b(inner, loc);
  RowYieldOp::create(inner, loc,
                     b.make<RowLoadOp>(getBodyType(type), body.getArgument(0), 0, /*whole=*/false));
  return kernel.getResult(0);
}

/// Finds the distinct rows of the lookups and loads them.
void Layer::findRows(OpBuilder &builder) {
  std::string prefix = "distinct_" + getRowDomain(linear.getType()).getValue().str() + "_";
  SmallVector<SmallVector<Value>> rows;
  SmallVector<Type> domains, handles;
  for (auto &[key, group] : groups) {
    SmallVector<Value> &own = rows.emplace_back();
    for (Part *part : group) {
      own.push_back(part->handles);
      columns.push_back(part->offset);
    }
    FlatSymbolRefAttr domain =
        declareStepDomain(getModel(program), prefix + std::to_string(group.front()->width));
    domains.push_back(DomainType::get(builder.getContext(), domain));
    handles.push_back(getRowsType(domain, {}, key.first));
  }
  SmallVector<ValueRange> ranges(rows.begin(), rows.end());
  distinct = DistinctRowsOp::create(builder, linear.getLoc(), domains, handles, ranges);
  for (auto [domain, own] : llvm::zip_equal(distinct.getDomains(), distinct.getHandles()))
    values.push_back(loadRows(builder, domain, own));
}

/// Splits the rows of a matrix at the boundaries between factored and other columns, and returns
/// the blocks of the other columns.
SmallVector<Value> Layer::splitRest(OpBuilder &builder, Value whole) {
  auto matrix = cast<RankedTensorType>(whole.getType());
  SmallVector<Type> types;
  SmallVector<bool> stays;
  for (const Part &part : parts) {
    bool isRest = !part.handles;
    int64_t rows = part.width;
    if (!stays.empty() && stays.back() == isRest) {
      rows += cast<RankedTensorType>(types.back()).getDimSize(0);
      types.pop_back();
      stays.pop_back();
    }
    types.push_back(RankedTensorType::get({rows, matrix.getDimSize(1)}, matrix.getElementType()));
    stays.push_back(isRest);
  }
  SmallVector<Value> kept;
  auto split = SplitSharedOp::create(builder, linear.getLoc(), types, whole);
  for (auto [run, isRest] : llvm::zip_equal(split.getParts(), stays))
    if (isRest)
      kept.push_back(run);
  return kept;
}

/// Concatenates `pieces` along their rows.
static Value joinShared(OpBuilder &builder, Location loc, ArrayRef<Value> pieces) {
  if (pieces.size() == 1)
    return pieces.front();
  int64_t rows = 0;
  for (Value piece : pieces)
    rows += cast<RankedTensorType>(piece.getType()).getDimSize(0);
  auto first = cast<RankedTensorType>(pieces.front().getType());
  return ConcatSharedOp::create(builder, loc, first.clone({rows, first.getDimSize(1)}), pieces);
}

Value Layer::buildForward(OpBuilder &builder) {
  Location loc = linear.getLoc();
  Type type = linear.getType();
  SmallVector<Value> others;
  int64_t width = 0;
  for (const Part &part : parts)
    if (!part.handles) {
      others.push_back(part.value);
      width += part.width;
    }
  Value sum;
  if (!others.empty()) {
    rest = others.front();
    if (others.size() > 1 || getRowShape(rest.getType()).empty())
      rest = ConcatColumnsOp::create(builder, concat.getLoc(),
                                     getRowsType(getRowDomain(type), {width}, builder.getF32Type()),
                                     others);
    restWeight = joinShared(builder, loc, splitRest(builder, linear.getWeight()));
    sum = LinearOp::create(builder, loc, type, rest, restWeight, linear.getBias(),
                           /*transposed=*/false, linear.getBf16());
  }
  findRows(builder);
  Value ofLookups = DistinctLinearOp::create(builder, loc, type, distinct.getDomains(), values,
                                             linear.getWeight(), columns, linear.getBf16());
  sum = sum ? AddOp::create(builder, loc, type, sum, ofLookups) : ofLookups;
  if (others.empty() && linear.getBias())
    sum = AddOp::create(builder, loc, type, sum, linear.getBias());
  return sum;
}

//===----------------------------------------------------------------------===//
// Backward
//===----------------------------------------------------------------------===//

/// The gradient of the whole weight, assembled from those of its blocks.
Value Layer::joinWeightGradients(OpBuilder &builder, Value ofLookups) {
  Location loc = weightGradient.getLoc();
  auto whole = cast<RankedTensorType>(weightGradient.getType());
  DenseMap<const Part *, Value> pieces;
  auto split = [&](ArrayRef<Part *> owners, Value gradient) {
    SmallVector<Type> types;
    for (const Part *part : owners)
      types.push_back(whole.clone({part->width, whole.getDimSize(1)}));
    if (owners.size() == 1)
      pieces[owners.front()] = gradient;
    else
      for (auto [part, piece] :
           llvm::zip_equal(owners, SplitSharedOp::create(builder, loc, types, gradient).getParts()))
        pieces[part] = piece;
  };
  SmallVector<Part *> factored;
  for (auto &[key, group] : groups)
    llvm::append_range(factored, group);
  split(factored, ofLookups);
  if (rest) {
    // The gradient for the other columns is contiguous: splits it into its blocks.
    Value gradient = WeightGradientOp::create(
        builder, loc, whole.clone({getRowSize(rest.getType()), whole.getDimSize(1)}), rest,
        weightGradient.getY(), weightGradient.getBf16());
    SmallVector<Part *> kept;
    for (Part &part : parts)
      if (!part.handles)
        kept.push_back(&part);
    split(kept, gradient);
  }
  SmallVector<Value> ordered;
  for (const Part &part : parts)
    ordered.push_back(pieces.lookup(&part));
  return joinShared(builder, loc, ordered);
}

/// Makes slices of other columns read from a gradient of these columns only.
void Layer::moveSlices() {
  OpBuilder builder(inputGradient);
  Value narrow;
  for (Operation *user : llvm::make_early_inc_range(inputGradient.getResult().getUsers())) {
    auto slice = cast<SliceColumnsOp>(user);
    int64_t offset = slice.getOffset(), removed = 0;
    bool isFactored = false;
    for (const Part &part : parts) {
      if (part.handles && part.offset + part.width <= offset)
        removed += part.width;
      isFactored |= part.gradient == slice.getResult();
    }
    if (isFactored)
      continue;
    if (!narrow) {
      Type type = getRowsType(getRowDomain(rest.getType()), {getRowSize(rest.getType())},
                              builder.getF32Type());
      narrow = LinearOp::create(builder, inputGradient.getLoc(), type, inputGradient.getX(),
                                restWeight, Value(), true, inputGradient.getBf16());
    }
    slice.getXMutable().assign(narrow);
    slice.setOffset(offset - removed);
  }
}

/// The updates get each distinct row once, in the position of the group's first lookup.
void Layer::replaceUpdates(ValueRange gradients) {
  for (auto [entry, handles, gradient] :
       llvm::zip_equal(groups, distinct.getHandles(), gradients)) {
    auto update = cast_if_present<UniqueRowsOp>(entry.first.second);
    if (!update)
      continue;
    llvm::SmallPtrSet<Value, 8> replaced;
    for (Part *part : entry.second)
      replaced.insert(part->gradient);
    SmallVector<Value> rows, by;
    bool isIn = false;
    for (auto [row, own] : llvm::zip_equal(update.getRows(), update.getGradients())) {
      bool isReplaced = replaced.contains(own);
      if (isReplaced && isIn)
        continue;
      rows.push_back(isReplaced ? handles : row);
      by.push_back(isReplaced ? gradient : own);
      isIn |= isReplaced;
    }
    for (Operation *user : update.getDomain().getUsers())
      if (auto sum = dyn_cast<SegmentSumOp>(user))
        sum.getGradientsMutable().assign(by);
    rows.append(by);
    update->setOperands(rows);
  }
}

void Layer::buildGradients() {
  Operation *place = weightGradient;
  if (inputGradient && inputGradient->isBeforeInBlock(place))
    place = inputGradient;
  OpBuilder builder(place);
  auto whole = cast<RankedTensorType>(linear.getWeight().getType());
  auto gradient = DistinctLinearGradOp::create(
      builder, weightGradient.getLoc(), ValueRange(values).getTypes(),
      whole.clone({getFactoredWidth(), whole.getDimSize(1)}), distinct.getDomains(), values,
      linear.getWeight(), weightGradient.getY(), columns, weightGradient.getBf16());
  builder.setInsertionPoint(weightGradient);
  weightGradient.getResult().replaceAllUsesWith(
      joinWeightGradients(builder, gradient.getDweight()));
  weightGradient.erase();
  if (!inputGradient)
    return;
  moveSlices();
  replaceUpdates(gradient.getDvalues());
  for (Part &part : parts)
    if (part.gradient)
      part.gradient.getDefiningOp()->erase();
  inputGradient.erase();
}

void Layer::rewrite() {
  OpBuilder builder(linear);
  linear.getResult().replaceAllUsesWith(buildForward(builder));
  if (weightGradient)
    buildGradients();
  linear.erase();
  concat.erase();
  for (Part &part : parts)
    if (part.handles)
      part.value.getDefiningOp()->erase();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct FactorLookups : genrec::impl::FactorLookupsBase<FactorLookups> {
  using FactorLookupsBase::FactorLookupsBase;

  void runOnOperation() override {
    Decisions decisions("factor-lookups");
    for (auto program : getOperation().getBody().front().getOps<ProgramOp>())
      run(program, decisions);
    decisions.attachTo(getOperation());
  }

  void run(ProgramOp program, Decisions &decisions) {
    SmallVector<LinearOp> linears; // gradients are erased together with their layers
    for (auto linear : program.getBody().front().getOps<LinearOp>())
      if (!linear.getTransposed())
        linears.push_back(linear);
    for (LinearOp linear : linears) {
      Layer layer(linear, program);
      if (!layer.match(leastWidth))
        continue;
      decisions.add("@" + program.getSymName() + ": layer " + nameForUser(linear) +
                    placeForUser(linear) + ": " + Twine(layer.getFactoredWidth()) + " columns of " +
                    Twine(layer.countLookups()) +
                    " lookups are multiplied once per distinct row: nothing else reads them");
      countStatistic(*this, layers, "layers", 1);
      countStatistic(*this, lookups, "lookups", layer.countLookups());
      countStatistic(*this, groups, "groups", layer.countGroups());
      RewriteCounter::count("factor-lookup", layer.countLookups());
      layer.rewrite();
    }
  }
};
} // namespace

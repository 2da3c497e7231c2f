//===- KernelPools.cpp - results of a row kernel that pool lists ----------===//
//
// Floats are added in the order of pool_pieces.h. A kernel either adds up the pieces of a list one
// after the other, or (on a device) it has units: a list that is one piece, or a piece of a longer
// one, whose value goes to memory of parts and is pooled behind the kernel.
//
//===----------------------------------------------------------------------===//

#include "KernelOutliner.h"

#include "genrec/Target/EmitC/Fields.h"
#include "genrec_rt/pool_pieces.h"

using namespace mlir;
using namespace genrec;
using rt::kernels::kPoolPiece;

static bool isChoice(PoolKind kind) { return kind == PoolKind::first || kind == PoolKind::last; }

//===----------------------------------------------------------------------===//
// The nest
//===----------------------------------------------------------------------===//

// The outermost loop is over the uppermost domain that a result is pooled into.
void KernelOutliner::collectPooled() {
  size_t top = 0, kinds = 0;
  auto getHeight = [&](unsigned result) {
    return genrec::getHeight(path, getRowDomain(kernel.getResult(result).getType()));
  };
  for (unsigned result = 0; result < kernel.getNumResults(); ++result)
    if (getRole(result) == ResultRole::pooled)
      top = std::max(top, getHeight(result));
  for (size_t height = top + 1; height-- > 0;)
    nest.push_back({path[height], {}, {}, {}, {}, nullptr});
  for (unsigned result = 0; result < kernel.getNumResults(); ++result) {
    if (getRole(result) != ResultRole::pooled)
      continue;
    auto kind = cast<PoolKindAttr>((*kernel.getPoolKinds())[kinds++]).getValue();
    pooled.push_back({result, kind, top - getHeight(result), {}, {}});
  }
  isSplit = canSplit();
  if (!isSplit)
    return;
  listDepth = static_cast<int64_t>(top);
  nest.erase(nest.begin() + 1, nest.end() - 1);
  for (Pooled &pool : pooled) {
    if (isChoice(pool.kind))
      continue;
    auto type = cast<RankedTensorType>(kernel.getResult(pool.result).getType());
    int64_t bytes = getRowSize(type) * type.getElementType().getIntOrFloatBitWidth() / 8;
    pool.word = partWords;
    partWords += (bytes + 15) / 16 * 4; // in whole packs
  }
}

bool KernelOutliner::canSplit() const {
  constexpr size_t kMostPools = 16; // PoolShape::kMost
  return target.splitsLists() && !pooled.empty() && pooled.size() <= kMostPools &&
         getAccumulatedResults().empty() &&
         llvm::all_of(pooled, [](const Pooled &pool) { return pool.nest == 0; });
}

bool KernelOutliner::isAdded(const Pooled &pool) const {
  auto type = cast<RankedTensorType>(RowKernelOp(kernel).getResult(pool.result).getType());
  return type.getElementType().isF32() &&
         (pool.kind == PoolKind::sum || pool.kind == PoolKind::mean);
}

void KernelOutliner::createPooled() {
  for (Pooled &pool : pooled) {
    auto type = cast<RankedTensorType>(kernel.getResult(pool.result).getType());
    if (getRowShape(type).empty())
      continue;
    auto create = [&](StringRef name) {
      return target.createArray(b.named(name), type.getElementType(), getRowSize(type),
                                /*isShared=*/false);
    };
    pool.place = create("pooled");
    if (!isSplit && isAdded(pool))
      pool.pieces = create("pieces");
  }
}

// for (unit…) { of = poolUnit(unit…); if (of.row >= 0) for (row = of.begin; row < of.end…
void KernelOutliner::enterUnits() {
  Value leaves = EmitCBuilder::kept(getDomain(b.named("leaves"), getLeafDomain()));
  Value count = EmitCBuilder::kept(getRowCount());
  auto countUnits = [&] {
    return b.named("units").call("kernels::poolUnits", b.i64(), {count, leaves, parts});
  };
  Value place = target.enterRows(b, function, countUnits, "unit");
  unit = b.named("of").variable(b.opaque("kernels::PoolUnit"));
  b.assign(unit, b.call("kernels::poolUnit", b.opaque("kernels::PoolUnit"),
                        {place, count, leaves, parts}, {b.templateInteger(listDepth)}));
  NestLoop &lists = nest.front(), &rows = nest.back();
  auto getMember = [&](StringRef name, const Twine &as) {
    return b.named(as).load(b.member(unit, name, b.i64()));
  };
  std::string leaf = DomainOp(rows.domain).getSymName().str();
  lists.row = EmitCBuilder::kept(getMember("row", getRowName(lists)));
  lists.loop = b.enterIf(b.compare(emitc::CmpPredicate::ge, lists.row, b.integer(0)));
  rows.begin = getMember("begin", leaf + "_begin");
  rows.end = getMember("end", leaf + "_end");
  bool asksForFirst = llvm::any_of(pooled, [](const Pooled &pool) {
    return pool.kind == PoolKind::max || pool.kind == PoolKind::first;
  });
  rows.first = asksForFirst ? getMember("first", leaf + "_first") : rows.begin;
  enterLists(0);
  emitc::ForOp loop = b.enterFor(rows.begin, rows.end, b.integer(1), getRowName(rows));
  rows.row = loop.getInductionVar();
  rows.loop = loop;
}

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

void KernelOutliner::enterLists(size_t level) {
  bool isCut = false;
  for (Pooled &pool : pooled)
    if (pool.nest == level) {
      clearPooled(pool);
      isCut |= !isSplit && isAdded(pool);
    }
  if (!isCut)
    return;
  Value first = nest[level + 1].begin, last = nest[level + 1].end;
  for (size_t below = level + 2; below < nest.size(); ++below) {
    first = b.loadElement(offsets[nest[below].domain], first);
    last = b.loadElement(offsets[nest[below].domain], last);
  }
  Value piece = b.integer(kPoolPiece);
  ListCut &cut = cuts[level];
  cut.isLong = EmitCBuilder::kept(
      b.named("is_long").compare(emitc::CmpPredicate::gt, b.sub(last, first), piece));
  cut.next = b.named("cut").variable(b.i64());
  b.assign(cut.next, b.add(first, piece));
  Operation *guard = b.enterIf(cut.isLong);
  for (Pooled &pool : pooled)
    if (pool.nest == level && isAdded(pool))
      clear(pool, pool.pieces);
  b.leave(guard);
}

void KernelOutliner::cutLists() {
  for (size_t level = 0; level < nest.size(); ++level) {
    auto cut = cuts.find(level);
    if (cut == cuts.end())
      continue;
    Value next = cut->second.next, row = nest.back().row;
    Operation *guard = b.enterIf(b.compare(emitc::CmpPredicate::eq, row, b.load(next)));
    for (const Pooled &pool : pooled)
      if (pool.nest == level && isAdded(pool)) {
        addPieces(pool, pool.pieces);
        clear(pool, pool.place);
      }
    b.assign(next, b.add(row, b.integer(kPoolPiece)));
    b.leave(guard);
  }
}

void KernelOutliner::leaveLists(size_t level) {
  if (auto cut = cuts.find(level); cut != cuts.end()) {
    Operation *guard = b.enterIf(cut->second.isLong);
    for (const Pooled &pool : pooled)
      if (pool.nest == level && isAdded(pool))
        addPieces(pool, pool.place);
    b.leave(guard);
  }
  for (const Pooled &pool : pooled)
    if (pool.nest == level)
      isSplit ? finishUnit(pool) : finishPooled(pool);
  if (isSplit)
    b.leave(nest.front().loop);
}

void KernelOutliner::addPieces(const Pooled &pool, Value to) {
  auto type = cast<RankedTensorType>(kernel.getResult(pool.result).getType());
  if (getRowShape(type).empty()) {
    b.assign(to, b.add(b.load(pool.pieces), b.load(pool.place)));
    return;
  }
  ElementLoops loops = target.enterElements(b, getRowSize(type));
  target.storeElement(
      b, to, 0, loops,
      b.add(target.loadElement(b, pool.pieces, loops), target.loadElement(b, pool.place, loops)));
  target.leaveElements(b, loops);
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

void KernelOutliner::clearPooled(Pooled &pool) {
  auto type = cast<RankedTensorType>(kernel.getResult(pool.result).getType());
  if (getRowShape(type).empty()) {
    Attribute zero = b.builder.getZeroAttr(type.getElementType());
    pool.place = b.named("pooled").variable(type.getElementType(), zero);
    if (!isSplit && isAdded(pool))
      pool.pieces = b.named("pieces").variable(type.getElementType(), zero);
    if (!isSplit || pool.kind != PoolKind::max)
      return;
  }
  clear(pool, pool.place);
}

void KernelOutliner::clear(const Pooled &pool, Value place) {
  auto type = cast<RankedTensorType>(kernel.getResult(pool.result).getType());
  Type element = type.getElementType();
  auto getStart = [&]() -> Value {
    if (isSplit && pool.kind == PoolKind::max)
      return b.call("kernels::poolStart", element, {b.load(unit)}, {b.templateType(element)});
    return emitc::ConstantOp::create(builder, b.loc, element, b.builder.getZeroAttr(element));
  };
  if (getRowShape(type).empty()) {
    b.assign(place, getStart());
    return;
  }
  ElementLoops loops = target.enterElements(b, getRowSize(type));
  target.storeElement(b, place, 0, loops, getStart());
  target.leaveElements(b, loops);
}

void KernelOutliner::finishPooled(const Pooled &pool) {
  const NestLoop &children = nest[pool.nest + 1];
  auto type = cast<RankedTensorType>(kernel.getResult(pool.result).getType());
  int64_t size = getRowSize(type);
  Value row = nest[pool.nest].row, to = resultPointers[pool.result];
  Value length = pool.kind == PoolKind::mean ? b.sub(children.end, children.begin) : Value();
  writePooled(pool, length, to, size == 1 ? row : b.mul(row, b.integer(size)));
}

void KernelOutliner::writePooled(const Pooled &pool, Value length, Value to, Value first) {
  auto type = cast<RankedTensorType>(kernel.getResult(pool.result).getType());
  Type element = type.getElementType();
  Value divisor = length ? b.named("size").call("kernels::meanDivisor", element, {length},
                                                {b.templateType(element)})
                         : Value();
  auto finish = [&](Value value) {
    return divisor
               ? emitc::DivOp::create(builder, b.loc, value.getType(), value, divisor).getResult()
               : value;
  };
  if (getRowShape(type).empty()) {
    Operation *guard = target.enterScalarWrite(b);
    b.storeElement(to, first ? first : b.integer(0), finish(b.load(pool.place)));
    if (guard)
      b.leave(guard);
    return;
  }
  if (first)
    to = EmitCBuilder::kept(b.named("to").add(to, first));
  ElementLoops loops = target.enterElements(b, getRowSize(type));
  target.storeElement(b, to, 0, loops, finish(target.loadElement(b, pool.place, loops)));
  target.leaveElements(b, loops);
}

// A choice is made by the unit that has the row; others leave their part.
void KernelOutliner::finishUnit(const Pooled &pool) {
  auto type = cast<RankedTensorType>(kernel.getResult(pool.result).getType());
  Value to = resultPointers[pool.result], length;
  if (isChoice(pool.kind)) {
    StringRef callee =
        pool.kind == PoolKind::first ? "kernels::hasFirstRow" : "kernels::hasLastRow";
    Operation *guard = b.enterIf(b.call(callee, b.i1(), {b.load(unit)}));
    Value row = nest.front().row;
    int64_t size = getRowSize(type);
    writePooled(pool, {}, to, size == 1 ? row : b.mul(row, b.integer(size)));
    b.leave(guard);
    return;
  }
  to = EmitCBuilder::kept(
      b.named("to").call("kernels::pooledPlace", to.getType(), {to, parts, b.load(unit)},
                         {b.templateInteger(getRowSize(type)), b.templateInteger(partWords),
                          b.templateInteger(pool.word)}));
  if (pool.kind == PoolKind::mean)
    length = b.call("kernels::pooledLength", b.i64(), {b.load(unit)});
  writePooled(pool, length, to, {});
}

//===----------------------------------------------------------------------===//
// What a launch needs to know
//===----------------------------------------------------------------------===//

void KernelOutliner::describePools(StringRef name) const {
  if (!isSplit)
    return;
  RowKernelOp op = kernel;
  // Among the pointers behind the step.
  int64_t inputs = 0;
  for (Value input : op.getInputs())
    inputs += getRowsParameter(input) ? 2 : 1;
  SmallVector<Attribute> results;
  for (const Pooled &pool : pooled) {
    if (isChoice(pool.kind))
      continue;
    auto type = cast<RankedTensorType>(op.getResult(pool.result).getType());
    Fields result(b.getContext());
    result.integer("pointer", inputs + pool.result).integer("width", getRowSize(type));
    result.integer("word", pool.word);
    result.name("of", "kernels::PoolOf::" + stringifyPoolKind(pool.kind));
    results.push_back(result.boolean("isInteger", !type.getElementType().isF32()).get());
  }
  Fields shape(b.getContext());
  // A column says which domain its leaves are of.
  if (!target.takesDomains())
    shape.integer("domain", index.getDomain(getLeafDomain()));
  shape.integer("depth", listDepth).integer("words", partWords);
  shape.integer("count", results.size()).add("results", b.builder.getArrayAttr(results));
  b.constexprGlobal(name + "_pools", b.opaque("kernels::PoolShape"), shape.get());
}

//===- KernelSums.cpp - results that a row kernel adds up -----------------===//

#include "KernelOutliner.h"

using namespace mlir;
using namespace genrec;

//===----------------------------------------------------------------------===//
// Sums over all rows
//===----------------------------------------------------------------------===//

SmallVector<int64_t> KernelOutliner::getAccumulatedResults() const {
  SmallVector<int64_t> results;
  for (unsigned result = 0; result < RowKernelOp(kernel).getNumResults(); ++result)
    if (isAccumulated(getRole(result)))
      results.push_back(result);
  return results;
}

TensorAddress KernelOutliner::prepareTerms(unsigned result, const RowTerms &terms, Value memory,
                                           Value rows) {
  auto type = cast<RankedTensorType>(kernel.getResult(result).getType());
  int64_t domain = index.getDomain(getLeafDomain());
  int64_t stride = getAccumulatorStride(result);
  return {target.enterTerms(b, terms, memory, rows, domain, stride),
          stride,
          getSourceRows(type),
          terms,
          {}};
}

Value KernelOutliner::getRoom() {
  int64_t domain = index.getDomain(getLeafDomain());
  return EmitCBuilder::kept(
      b.named("room").load(b.memberOf(getDomainPointer(b, step, domain), "capacity", b.i64())));
}

int64_t KernelOutliner::getAccumulatorStride(unsigned result) {
  auto type = cast<RankedTensorType>(kernel.getResult(result).getType());
  return getRowDomain(type)    ? getRowAddress(kernel.getResult(result)).stride
         : type.getRank() == 2 ? type.getDimSize(1)
                               : 1;
}

void KernelOutliner::prepareAccumulators() {
  SmallVector<int64_t> results = getAccumulatedResults(), chunked;
  accumulators.resize(results.size());
  if (results.empty())
    return;
  Value total, memory = function.arguments.back(), room;
  std::optional<RowTerms> before; // in memory
  SmallVector<Value> sizes;
  for (auto [number, result] : llvm::enumerate(results)) {
    if (std::optional<RowTerms> terms = target.getTerms(result)) {
      room = before ? room : getRoom();
      memory = before ? target.skipTerms(b, *before, memory, room) : memory;
      accumulators[number] = prepareTerms(result, *terms, memory, room);
      before = terms;
      continue;
    }
    Value size = getAccumulatorSize(b, step, index, kernel.getResult(result));
    // The partial sums of each result start at a cache line, as in launchSums.
    sizes.push_back(b.call("kernels::sumFloats", b.i64(), {size}));
    total = total ? b.add(total, sizes.back()) : sizes.back();
    chunked.push_back(number);
  }
  if (chunked.empty())
    return;
  memory = before ? target.skipTerms(b, *before, memory, room) : memory;
  Value chunk = target.enterChunk(b, function, getRowCount(), total);
  Value pointer =
      b.named("sums").call("kernels::chunkSums", b.pointer(b.f32()), {memory, chunk, total});
  for (auto [number, size] : llvm::zip(chunked, sizes)) {
    int64_t result = results[number];
    auto type = cast<RankedTensorType>(kernel.getResult(result).getType());
    const bool isKept = target.keepsSums() && getRole(result) == ResultRole::reduced;
    if (!isKept)
      target.clearSums(b, pointer, size);
    accumulators[number] = {isKept ? keepSums(result, pointer) : pointer,
                            getAccumulatorStride(result),
                            getRowDomain(type) || type.getRank() ? getSourceRows(type) : Value(),
                            std::nullopt,
                            {},
                            isKept && target.spreadsRows()};
    if (number != chunked.back())
      pointer = b.named("sums").add(pointer, size);
  }
}

Value KernelOutliner::keepSums(unsigned result, Value to) {
  auto type = cast<RankedTensorType>(kernel.getResult(result).getType());
  int64_t size = std::max<int64_t>(type.getNumElements(), 1);
  Value array = target.spreadsRows()
                    ? target.createAddends(b.named("addends"), size)
                    : target.createArray(b.named("kept"), b.f32(), size, /*isShared=*/false);
  keptSums.push_back({result, array, to});
  return array;
}

void KernelOutliner::clearKeptSums() {
  for (const KeptSum &sums : keptSums) {
    auto type = cast<RankedTensorType>(kernel.getResult(sums.result).getType());
    Value zero = b.floating(0);
    if (type.getRank() == 0) {
      b.storeElement(sums.array, b.integer(0), zero);
      continue;
    }
    ElementLoops loops = target.enterElements(b, type.getNumElements());
    target.storeElement(b, sums.array, 0, loops, zero);
    target.leaveElements(b, loops);
  }
}

void KernelOutliner::writeKeptSums() {
  for (const KeptSum &sums : keptSums) {
    auto type = cast<RankedTensorType>(kernel.getResult(sums.result).getType());
    if (type.getRank() == 0) {
      Operation *guard = target.enterScalarWrite(b);
      b.storeElement(sums.to, b.integer(0), b.loadElement(sums.array, b.integer(0)));
      if (guard)
        b.leave(guard);
      continue;
    }
    ElementLoops loops = target.enterElements(b, type.getNumElements());
    target.storeElement(b, sums.to, 0, loops, target.loadElement(b, sums.array, loops));
    target.leaveElements(b, loops);
  }
}

void KernelOutliner::addRowsSums() {
  target.leaveRow(b);
  for (const KeptSum &sums : keptSums) {
    auto type = cast<RankedTensorType>(kernel.getResult(sums.result).getType());
    target.addRows(b, sums.to, sums.array, std::max<int64_t>(type.getNumElements(), 1));
  }
  target.leaveRows(b);
}

//===- barriers.cpp - Barriers and warp intrinsics ------------------------===//

#include "machine.h"

#include <algorithm>
#include <bit>

namespace simt {

namespace {

Thread &current() { return *machine.thread; }
int warpOf(const Thread &thread) { return thread.number / kWarp; }
int laneOf(const Thread &thread) { return thread.number % kWarp; }

void arriveAtBarrier(bool vote, const Place &place) {
  Block &block = *machine.block;
  Thread &self = current();
  if (block.done > 0)
    fail("divergent barrier: " + whoIs(block, self) + " waits at " + placeText(place) + " after " +
         std::to_string(block.done) + " threads of the block ended");
  if (block.waiting > 0 &&
      (place.line() != block.barrierPlace.line() || place.column() != block.barrierPlace.column()))
    fail("divergent barrier: " + whoIs(block, self) + " waits at " + placeText(place) +
         ", other threads wait at " + placeText(block.barrierPlace));
  block.barrierPlace = place;
  block.votes += vote;
  if (++block.waiting < machine.threadsPerBlock) {
    waitAs(State::atBarrier, place);
    return;
  }
  block.waiting = 0;
  block.voteResult = block.votes;
  block.votes = 0;
  meetAll(block);
  for (Thread &thread : block.threads)
    if (thread.state == State::atBarrier)
      makeReady(block, thread);
  giveWay();
}

int64_t signExtended(uint64_t value) { return static_cast<int32_t>(static_cast<uint32_t>(value)); }

uint64_t combine(WarpOp op, uint64_t a, uint64_t b) {
  switch (op) {
  case WarpOp::add:
    return static_cast<uint32_t>(a + b);
  case WarpOp::least:
    return std::min(a, b);
  case WarpOp::most:
    return std::max(a, b);
  case WarpOp::leastSigned:
    return signExtended(a) < signExtended(b) ? a : b;
  case WarpOp::mostSigned:
    return signExtended(a) > signExtended(b) ? a : b;
  case WarpOp::bitAnd:
    return a & b;
  case WarpOp::bitOr:
    return a | b;
  default:
    return a ^ b;
  }
}

template <class Body> void forLanes(uint32_t mask, Body body) {
  for (uint32_t rest = mask; rest; rest &= rest - 1)
    body(std::countr_zero(rest));
}

uint64_t shuffled(uint32_t mask, const Thread *lanes, int lane) {
  if (!(mask >> lanes[lane].source & 1))
    fail("shuffle in " + whoIs(*machine.block, lanes[lane]) + " at " +
         placeText(lanes[lane].place) + " reads lane " + std::to_string(lanes[lane].source) +
         ", which the mask does not name");
  return lanes[lanes[lane].source].value;
}

/// What all lanes get of an operation that gives the same to each.
uint64_t commonResult(WarpOp op, uint32_t mask, const Thread *lanes) {
  const int first = std::countr_zero(mask);
  uint64_t result = 0;
  switch (op) {
  case WarpOp::sync:
  case WarpOp::meet:
    return 0;
  case WarpOp::ballot:
    forLanes(mask, [&](int lane) { result |= uint64_t(lanes[lane].value != 0) << lane; });
    return result;
  case WarpOp::matchAll:
    result = mask;
    forLanes(mask,
             [&](int lane) { result = lanes[lane].value == lanes[first].value ? result : 0; });
    return result;
  default:
    result = lanes[first].value;
    forLanes(mask & (mask - 1), [&](int lane) { result = combine(op, result, lanes[lane].value); });
    return result;
  }
}

/// What every lane of the mask gets; `lanes` are the threads of the warp.
void setResults(WarpOp op, uint32_t mask, Thread *lanes) {
  if (op == WarpOp::shuffle) {
    forLanes(mask, [&](int lane) { lanes[lane].result = shuffled(mask, lanes, lane); });
  } else if (op == WarpOp::matchAny) {
    for (uint32_t left = mask; left;) {
      const uint64_t value = lanes[std::countr_zero(left)].value;
      uint32_t equal = 0;
      forLanes(left, [&](int lane) { equal |= uint32_t(lanes[lane].value == value) << lane; });
      forLanes(equal, [&](int lane) { lanes[lane].result = equal; });
      left &= ~equal;
    }
  } else {
    const uint64_t result = commonResult(op, mask, lanes);
    forLanes(mask, [&](int lane) { lanes[lane].result = result; });
  }
}

/// Fails where another lane of the mask cannot come, or is in another operation.
void checkOthers(WarpOp op, uint32_t others, uint32_t mask, const Thread *lanes, int count,
                 const Place &place) {
  const Block &block = *machine.block;
  forLanes(others, [&](int other) {
    if (other >= count || lanes[other].state == State::done)
      fail("warp intrinsic at " + placeText(place) + " in " + whoIs(block, current()) +
           " names lane " + std::to_string(other) + ", which " +
           (other >= count ? "does not exist" : "has ended"));
    if (lanes[other].state == State::atWarpOp &&
        (lanes[other].op != op || lanes[other].mask != mask))
      fail("warp intrinsic at " + placeText(place) + " in " + whoIs(block, current()) +
           " names lane " + std::to_string(other) +
           ", which executes another one, or with another mask, at " +
           placeText(lanes[other].place));
  });
}

} // namespace

void blockBarrier(const Place &place) {
  Inside inside;
  arriveAtBarrier(false, place);
}

int blockVote(bool vote, const Place &place) {
  Inside inside;
  arriveAtBarrier(vote, place);
  return machine.block->voteResult;
}

void namedBarrier(int id, int threads, bool wait, const Place &place) {
  Inside inside;
  Block &block = *machine.block;
  if (id < 0 || id >= kNamedBarriers || threads <= 0 || threads % kWarp != 0)
    fail("named barrier " + std::to_string(id) + " of " + std::to_string(threads) + " threads at " +
         placeText(place) + ": ids are 0 to 15, threads a multiple of 32");
  NamedBarrier &barrier = block.named[id];
  if (barrier.arrived > 0 && barrier.expected != threads)
    fail("named barrier " + std::to_string(id) + " at " + placeText(place) + " expects " +
         std::to_string(threads) + " threads, others arrived at it expecting " +
         std::to_string(barrier.expected));
  barrier.expected = threads;
  handTo(barrier.gathered, current());
  if (++barrier.arrived < threads) {
    if (wait) {
      current().source = id;
      waitAs(State::atNamedBarrier, place);
    }
    return;
  }
  barrier.arrived = 0;
  Handed gathered = std::move(barrier.gathered);
  barrier.gathered = {};
  if (wait)
    learnFrom(current(), gathered);
  for (Thread &thread : block.threads)
    if (thread.state == State::atNamedBarrier && thread.source == id) {
      learnFrom(thread, gathered);
      makeReady(block, thread);
    }
}

uint64_t warpExchange(WarpOp op, uint32_t mask, uint64_t value, int source, const Place &place) {
  Inside inside;
  Block &block = *machine.block;
  Thread &self = current();
  const int number = warpOf(self), lane = laneOf(self);
  if (!(mask >> lane & 1))
    fail("warp intrinsic at " + placeText(place) + ": " + whoIs(block, self) +
         " calls it with a mask that does not name its own lane");
  self.op = op;
  self.mask = mask;
  self.value = value;
  self.source = source;
  self.place = place;
  Warp &warp = block.warps[number];
  Thread *lanes = block.threads.data() + number * kWarp;
  const int count = std::min(kWarp, machine.threadsPerBlock - number * kWarp);
  const uint32_t bit = 1u << lane, others = mask & ~bit, absent = ~(~0u >> (kWarp - count));
  const bool isSame = warp.op == op && warp.mask == mask;
  if (others & (warp.ended | absent | (warp.waiting & ~(isSame ? warp.same : 0))))
    checkOthers(op, others, mask, lanes, count, place);
  if (others & ~warp.waiting) {
    warp.waiting |= bit;
    warp.same = (isSame ? warp.same : 0) | bit;
    warp.op = op;
    warp.mask = mask;
    waitAs(State::atWarpOp, place);
    return self.result;
  }
  warp.waiting &= ~mask;
  warp.same &= ~mask;
  setResults(op, mask, lanes);
  forLanes(others, [&](int other) { makeReady(block, lanes[other]); });
  if (op == WarpOp::sync) { // the others order no accesses
    std::vector<Thread *> group;
    forLanes(mask, [&](int other) { group.push_back(&lanes[other]); });
    meet(block, group);
  }
  return self.result;
}

uint32_t activeMask(const Place &place) {
  Inside inside;
  waitAs(State::atActiveMask, place);
  return static_cast<uint32_t>(current().result);
}

// Lanes that ask at one place are active together or in two groups, as the seed has it: a program
// may only rely on every lane finding itself among the active ones.
bool releaseActiveMask(Block &block) {
  for (size_t begin = 0; begin < block.threads.size(); begin += kWarp) {
    size_t end = std::min(block.threads.size(), begin + kWarp);
    const Thread *first = nullptr;
    uint32_t together = 0;
    for (size_t i = begin; i < end; ++i) {
      const Thread &thread = block.threads[i];
      if (thread.state != State::atActiveMask)
        continue;
      first = first ? first : &thread;
      if (thread.place.line() == first->place.line())
        together |= 1u << (i - begin);
    }
    if (!together)
      continue;
    uint32_t split = machine.draw() % 4 == 0 ? static_cast<uint32_t>(machine.draw()) : ~0u;
    for (size_t i = begin; i < end; ++i) {
      uint32_t bit = 1u << (i - begin);
      if (!(together & bit))
        continue;
      block.threads[i].result = together & (split & bit ? split : ~split);
      makeReady(block, block.threads[i]);
    }
    return true;
  }
  return false;
}

int laneIndex() { return laneOf(current()); }

} // namespace simt

//===- clocks.h - Who knows of what, by vector clocks ------------*- C++ -*-===//
//
// Two accesses race unless one happened before the other. Every thread counts steps, and knows up
// to which step of every other thread what happened lies before now (Flanagan and Freund,
// "FastTrack", PLDI 2009). Barriers, fences with atomics, and mbarriers hand that knowledge on;
// shuffles and votes do not.
//
// What hardware does beside a thread (copies and products that are waited for later) is an actor of
// its own: it knows what its thread knew when it started, and nobody knows of it before a wait.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TEST_CUDA_SIMT_CLOCKS_H
#define GENREC_TEST_CUDA_SIMT_CLOCKS_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace simt {

using Clock = uint32_t;

/// The engine's own: what is instantiated of a vector with the standard one is the same in tests,
/// and the linker would take theirs, which is instrumented and not optimised.
template <typename T> struct EngineAllocator : std::allocator<T> {
  template <typename U> struct rebind {
    using other = EngineAllocator<U>;
  };
  EngineAllocator() = default;
  template <typename U> EngineAllocator(const EngineAllocator<U> &) {}
};
using Clocks = std::vector<Clock, EngineAllocator<Clock>>;

/// What is known of one block: of each of its threads everything up to `floor`, of actors what
/// their clocks say.
struct BlockClocks {
  Clock floor = 0;
  size_t threads = 0; ///< actors that `floor` is of
  Clocks clocks;      ///< by actor, as far as anything beyond `floor` is known

  bool knows(size_t actor, Clock clock) const {
    return (actor < threads && clock <= floor) || (actor < clocks.size() && clock <= clocks[actor]);
  }
  void learn(size_t actor, Clock clock) {
    if (clocks.size() <= actor)
      clocks.resize(actor + 1);
    clocks[actor] = std::max(clocks[actor], clock);
  }
  void learn(const BlockClocks &other) {
    floor = std::max(floor, other.floor);
    threads = std::max(threads, other.threads);
    if (clocks.size() < other.clocks.size())
      clocks.resize(other.clocks.size());
    for (size_t i = 0; i < other.clocks.size(); ++i)
      clocks[i] = std::max(clocks[i], other.clocks[i]);
  }
  void reset(size_t ofThreads) {
    floor = 0;
    threads = ofThreads;
    clocks.clear();
  }
  /// Whether `other` adds nothing.
  bool covers(const BlockClocks &other) const {
    if (other.floor > floor || other.threads > threads || other.clocks.size() > clocks.size())
      return false;
    bool isBehind = false;
    for (size_t i = 0; i < other.clocks.size(); ++i)
      isBehind |= other.clocks[i] > clocks[i];
    return !isBehind;
  }
};

/// What is known of blocks, by their number in the launch. Shared once made.
using Blocks = std::map<uint32_t, std::shared_ptr<const BlockClocks>>;
using BlocksPointer = std::shared_ptr<const Blocks>;

/// Whether `b` adds nothing to `a`.
inline bool covers(const Blocks &a, const Blocks &b) {
  if (b.size() > a.size())
    return false;
  auto at = a.begin();
  for (const auto &[number, clocks] : b) {
    while (at != a.end() && at->first < number)
      ++at;
    if (at == a.end() || at->first != number ||
        (at->second != clocks && !at->second->covers(*clocks)))
      return false;
  }
  return true;
}

/// Both together; either may be null. Who waits in a loop learns the same over and over: nothing is
/// made then.
inline BlocksPointer join(const BlocksPointer &a, const BlocksPointer &b) {
  if (!a || a == b)
    return b;
  if (!b || covers(*a, *b))
    return a;
  if (covers(*b, *a))
    return b;
  auto result = std::make_shared<Blocks>(*a);
  for (const auto &[number, clocks] : *b) {
    auto &to = (*result)[number];
    if (!to || to == clocks || clocks->covers(*to)) {
      to = clocks;
      continue;
    }
    if (to->covers(*clocks))
      continue;
    auto both = std::make_shared<BlockClocks>(*to);
    both->learn(*clocks);
    to = std::move(both);
  }
  return result;
}

/// What an actor knows: of its own block, and of others.
struct Known {
  BlockClocks here;
  BlocksPointer elsewhere;

  void learn(const Known &other) {
    here.learn(other.here);
    elsewhere = join(elsewhere, other.elsewhere);
  }
  void reset(size_t threads) {
    here.reset(threads);
    elsewhere.reset();
  }
};

/// What one hands to another: knowledge, and what of it lies before a fence between the generic and
/// the asynchronous proxy (PTX ISA, "Memory Consistency Model", proxies).
struct Handed {
  Known known;
  BlockClocks fenced;

  void learn(const Handed &other) {
    known.learn(other.known);
    if (!other.fenced.clocks.empty() || other.fenced.floor)
      fenced.learn(other.fenced);
  }
  void reset(size_t threads) {
    known.reset(threads);
    fenced.reset(0);
  }
};

} // namespace simt

#endif // GENREC_TEST_CUDA_SIMT_CLOCKS_H

//===- portions.h - Sums whose bits no number of ranks changes --*- C++ -*-===//
//
// A global batch is S portions; every rank runs a run of consecutive ones, each as a micro-batch. What
// portions give (gradients, losses, weights) is added in one fixed binary tree over portions: node
// (level, i) covers portions i * 2^level to (i + 1) * 2^level - 1 of those that there are, and is the sum
// of its two children, or its left child where the right one covers none. A node is added by one rank or
// between two, always in this order, so the sum has the same bits on any number of ranks.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_PORTIONS_H
#define GENREC_RT_PORTIONS_H

#include "genrec_rt/comm.h"

#include <cstdint>
#include <span>
#include <vector>

namespace genrec::rt {

/// The portions of one rank: `count` of them from `first` on.
struct PortionRange {
  int32_t first = 0, count = 0;
};

/// The portions of `rank` of `ranks`: as many as of any other rank, or one more on the first ones.
/// Throws Error where a rank would have none.
PortionRange getPortions(int32_t portions, int32_t rank, int32_t ranks);

/// A node of the tree: that of `level` whose first portion is `first`.
struct PortionNode {
  int32_t first = 0, level = 0;
};

/// Whether two nodes, of which `right` begins where `left` ends, are the children of one.
inline bool areSiblings(PortionNode left, PortionNode right) {
  return left.level == right.level && (left.first >> left.level) % 2 == 0;
}

/// The nodes, from left to right, whose sums a rank can form alone from the portions `range`.
std::vector<PortionNode> getNodes(PortionRange range);

/// Adds vectors of floats over the portions of a global batch: `commit` once for each portion of this
/// rank, then `reduce`. What `reduce` does may be done in parts, by callers who send other things in the
/// same messages: every rank sends countFloats floats to every other, those of `write`, and gives what
/// came to `add`; where vectors are cut into slices, it has its own one then.
class PortionSums {
public:
  /// For vectors of `length` floats, of which this rank has those of getPortions(portions, rank, ranks).
  PortionSums(int64_t length, int32_t portions, int32_t rank, int32_t ranks);
  /// The same in slices that the caller chooses: rank r adds floats sliceBegins[r] to
  /// sliceBegins[r + 1] - 1.
  PortionSums(std::vector<int64_t> sliceBegins, int32_t portions, int32_t rank, int32_t ranks);

  /// The vector of the next portion: the caller writes all of it, then calls `commit`.
  float *begin();
  /// Ends the portion: sums of the tree that are complete are formed. At most
  /// 2 * log2(portions) + 1 vectors are held at a time.
  void commit();
  /// Forgets what a batch that was given up has committed.
  void restart();
  /// Whether all portions of this rank are committed.
  bool isComplete() const { return committed == own.count; }

  /// The sum over all portions of all ranks, into `total`, on every rank. Collective, once all
  /// portions are committed; a new global batch may begin afterwards. Throws CommError, and Error
  /// where portions are missing.
  void reduce(Communicator &comm, float *total);

  /// Whether each rank adds one slice of the vectors, which are then gathered. Short vectors, and those
  /// of two ranks, are sent whole: every rank adds them, and one exchange is saved.
  bool hasSlices() const { return !sliceBegins.empty(); }
  int64_t sliceBegin(int32_t rank) const { return sliceBegins[rank]; }
  int64_t sliceSize(int32_t rank) const { return sliceBegins[rank + 1] - sliceBegins[rank]; }
  /// 0 to a rank itself.
  int64_t countFloats(int32_t from, int32_t to) const;
  void write(int32_t to, float *message) const;
  /// messages[r]: what rank r wrote to this one; they are added to. Returns the sum, or this rank's
  /// slice of it, which stays until the next `begin` and as long as the messages. A new global batch
  /// may begin afterwards.
  const float *add(std::span<float *const> messages);
  /// The messages alone, and `add`. Collective. The sum also stays until the next call.
  const float *exchange(Communicator &comm);

private:
  struct Sum : PortionNode {
    std::vector<float> values;
  };
  static constexpr int64_t kMostWhole = 16384;

  std::vector<float> takeBuffer();
  void requireAll() const;
  float *addTree(std::span<float *const> messages, int32_t first, int32_t level);

  int64_t length;
  int32_t portions, rank, ranks;
  PortionRange own;
  std::vector<int64_t> sliceBegins;            ///< by rank, and the end; empty without slices
  std::vector<std::vector<PortionNode>> nodes; ///< by rank: those that it sends
  int32_t committed = 0;
  std::vector<float> current;
  std::vector<Sum> sums; ///< of the committed portions, from left to right
  std::vector<std::vector<float>> free; ///< buffers that sums no longer need
  std::vector<std::vector<float>> out, in; ///< by rank: of `exchange`
};

} // namespace genrec::rt

#endif // GENREC_RT_PORTIONS_H

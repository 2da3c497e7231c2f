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

/// Adds vectors of floats over the portions of a global batch.
class PortionSums {
public:
  /// For vectors of `length` floats, of which this rank has those of `own` among `portions`.
  PortionSums(int64_t length, int32_t portions, PortionRange own);

  /// The vector of the next portion, all zero: the caller adds to it, then calls `commit`.
  float *begin();
  /// Ends the portion: sums of the tree that are complete are formed. At most
  /// 2 * log2(portions) + 1 vectors are held at a time.
  void commit();

  /// The sum over all portions of all ranks, into `total`, on every rank: each rank adds one slice
  /// of the vectors, then slices are gathered. Collective, once all portions are committed; a new
  /// global batch may begin afterwards. Throws CommError, and Error where portions are missing.
  void reduce(Communicator &comm, float *total);

private:
  struct Sum : PortionNode {
    std::vector<float> values;
  };

  std::vector<float> takeBuffer();

  int64_t length;
  int32_t portions;
  PortionRange own;
  int32_t committed = 0;
  std::vector<float> current;
  std::vector<Sum> sums; ///< of the committed portions, from left to right
  std::vector<std::vector<float>> free; ///< buffers that sums no longer need
};

} // namespace genrec::rt

#endif // GENREC_RT_PORTIONS_H

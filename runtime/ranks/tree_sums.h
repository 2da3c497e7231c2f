//===- tree_sums.h - Sums of rows over the tree of portions -----*- C++ -*-===//

#ifndef GENREC_RT_RANKS_TREE_SUMS_H
#define GENREC_RT_RANKS_TREE_SUMS_H

#include "genrec_rt/buffer.h"
#include "genrec_rt/portions.h"

#include <cstdint>
#include <span>
#include <vector>

namespace genrec::rt {

/// Adds sums of rows over the tree of portions.h, where a portion touches a few rows of many: a
/// node has entries for the rows that its portions touch. What only one child has goes up as it is.
/// Rows are numbers from 0 on.
class TreeSums {
public:
  struct Entry {
    int32_t row;
    float *sum;
  };
  struct Node : PortionNode {
    std::vector<Entry> entries; ///< each row once
  };

  explicit TreeSums(int64_t dim) : dim(dim) {}

  /// Forgets all nodes and sums.
  void begin();
  /// The next node in the order of portions, without entries: the caller adds them, then calls
  /// `merge`. Their sums are added to.
  std::vector<Entry> &addNode(PortionNode where);
  /// Adds the last node to its sibling where that is there, and so on upwards. Rows are below
  /// `rows`.
  void merge(int64_t rows);
  /// Adds all that there is into one node, in the order of the tree: right children that are cut
  /// short by the number of portions first.
  void mergeAll(int64_t rows);
  std::span<const Node> getNodes() const { return {nodes.data(), count}; }

  /// Memory for a sum, until `begin`.
  float *takeSum();

private:
  /// Adds the last node to the one before it.
  void mergeLast(int64_t rows);

  int64_t dim;
  std::vector<Node> nodes; ///< the first `count`; the others keep their memory
  size_t count = 0;
  std::vector<int32_t> leftIndex; ///< by row: where its entry is in the left node, or -1
  std::vector<GrowBuffer<float>> chunks;
  int64_t taken = 0;          ///< sums of chunks
  std::vector<float *> spare; ///< sums that were added to others
};

} // namespace genrec::rt

#endif // GENREC_RT_RANKS_TREE_SUMS_H

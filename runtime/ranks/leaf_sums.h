//===- leaf_sums.h - The sums of rows that all ranks give -------*- C++ -*-===//

#ifndef GENREC_RT_RANKS_LEAF_SUMS_H
#define GENREC_RT_RANKS_LEAF_SUMS_H

#include "genrec_rt/buffer.h"
#include "genrec_rt/parallel.h"
#include "genrec_rt/portions.h"

#include <cstdint>
#include <span>
#include <vector>

namespace genrec::rt {

/// Adds sums of rows over the rest of the tree of portions.h, from nodes that ranks have: its
/// leaves here. Sums stay where they are until each row's are added, in one pass over the rows.
class LeafSums {
public:
  explicit LeafSums(int64_t dim) : dim(dim) {}

  /// Forgets all sums.
  void begin();
  /// Makes room for rows 0 to rows - 1.
  void setRows(int64_t rows) { first.resize(rows, -1), last.resize(rows, -1); }
  /// The sum of a row in one leaf, where it stays until `write`. Leaves are added in the order of
  /// portions; several sums of a row in one are added from left to right.
  void add(int32_t row, int32_t leaf, const float *sum) {
    auto number = static_cast<int32_t>(members.size());
    members.push_back({sum, leaf, -1});
    if (first[row] < 0)
      first[row] = number;
    else
      members[last[row]].next = number;
    last[row] = number;
  }
  /// The rows that have sums, ascending.
  std::span<const int32_t> findRows();
  /// The sum of each of those rows, `dim` floats one behind another: `leaves` says where in the
  /// tree each leaf is. What only one child of a node has goes up as it is. Any number of threads
  /// adds in the same order.
  void write(genrec_rt_pool *pool, std::span<const PortionNode> leaves, float *sums);

private:
  struct Member {
    const float *sum;
    int32_t leaf;
    int32_t next; ///< of the same row, or -1
  };

  template <int64_t Dim> void writeRow(int32_t row, std::span<const PortionNode> leaves, float *to);
  template <int64_t Dim>
  void addTree(const Member *member, std::span<const PortionNode> leaves, float *to);

  int64_t dim;
  std::vector<int32_t> first, last; ///< by row: its members, or -1
  std::vector<Member> members;
  std::vector<int32_t> rows;
  std::vector<GrowBuffer<float>> scratch; ///< by worker: partial sums
};

} // namespace genrec::rt

#endif // GENREC_RT_RANKS_LEAF_SUMS_H

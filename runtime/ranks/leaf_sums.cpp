//===- leaf_sums.cpp - The sums of rows that all ranks give ---------------===//

#include "leaf_sums.h"

#include "row_copies.h"

#include <bit>

using namespace genrec::rt;

/// Partial sums of a row that wait for others: one per level of the tree, which has 31 at most.
static constexpr int64_t kMostPending = 32;
static constexpr int64_t kRowGrain = 256;

void LeafSums::begin() {
  first.clear();
  last.clear();
  members.clear();
  rows.clear();
}

std::span<const int32_t> LeafSums::findRows() {
  rows.clear();
  for (size_t row = 0; row < first.size(); ++row)
    if (first[row] >= 0)
      rows.push_back(static_cast<int32_t>(row));
  return rows;
}

void LeafSums::write(genrec_rt_pool *pool, std::span<const PortionNode> leaves, float *sums) {
  scratch.resize(genrec_rt_pool_threads(pool));
  for (GrowBuffer<float> &each : scratch)
    each.ensure(kMostPending * dim);
  withRowSize(dim, [&](auto size) {
    parallelFor(pool, static_cast<int64_t>(rows.size()), kRowGrain,
                [&](int64_t begin, int64_t end, int64_t) {
                  for (int64_t i = begin; i < end; ++i)
                    writeRow<size()>(rows[i], leaves, sums + i * dim);
                });
  });
}

template <int64_t Dim>
void LeafSums::writeRow(int32_t row, std::span<const PortionNode> leaves, float *to) {
  const Member &left = members[first[row]];
  if (left.next < 0)
    return copyRow<Dim>(to, left.sum, dim);
  const Member &right = members[left.next];
  if (right.next < 0)
    return addRows<Dim>(to, left.sum, right.sum, dim);
  addTree<Dim>(&left, leaves, to);
}

/// The level of the node that two leaves meet in.
static int getMeeting(PortionNode left, PortionNode right) {
  return std::bit_width(static_cast<uint32_t>(left.first) ^ static_cast<uint32_t>(right.first));
}

/// Adds from left to right: before a leaf joins, partial sums are added that meet below the node
/// where it meets the one before.
template <int64_t Dim>
void LeafSums::addTree(const Member *member, std::span<const PortionNode> leaves, float *to) {
  float *partial = scratch[genrec_rt_worker_index()].data();
  const float *pending[kMostPending];
  int meets[kMostPending]; // the one before
  int64_t count = 0;
  auto addLast = [&] {
    --count;
    float *sum = count == 1 ? to : partial + count * dim;
    addRows<Dim>(sum, pending[count - 1], pending[count], dim);
    pending[count - 1] = sum;
  };
  PortionNode before;
  for (; member; member = member->next < 0 ? nullptr : &members[member->next]) {
    PortionNode leaf = leaves[member->leaf];
    int level = count ? getMeeting(before, leaf) : 0;
    while (count > 1 && meets[count - 1] <= level) // equal: two sums of one leaf
      addLast();
    pending[count] = member->sum;
    meets[count++] = level;
    before = leaf;
  }
  while (count > 1)
    addLast();
}

//===- portions.cpp - sums whose bits no number of ranks changes ----------===//

#include "genrec_rt/portions.h"

#include <algorithm>
#include <functional>

using namespace genrec::rt;

PortionRange genrec::rt::getPortions(int32_t portions, int32_t rank, int32_t ranks) {
  if (portions < ranks)
    throw Error(std::to_string(portions) + " portions are too few for " + std::to_string(ranks) +
                    " ranks",
                "ask for at least one portion per rank: --portions " + std::to_string(ranks));
  int32_t each = portions / ranks, more = portions % ranks;
  return {rank * each + std::min(rank, more), each + (rank < more ? 1 : 0)};
}

/// Adds `from` to `to`.
static void add(std::span<float> to, std::span<const float> from) {
  for (size_t i = 0; i < to.size(); ++i)
    to[i] += from[i];
}

PortionSums::PortionSums(int64_t length, int32_t portions, PortionRange own)
    : length(length), portions(portions), own(own) {
  if (own.first < 0 || own.count < 1 || own.first + own.count > portions)
    throw Error("portions " + std::to_string(own.first) + " to " +
                std::to_string(own.first + own.count - 1) + " are not among " +
                std::to_string(portions));
}

std::vector<float> PortionSums::takeBuffer() {
  if (free.empty())
    return std::vector<float>(length);
  std::vector<float> buffer = std::move(free.back());
  free.pop_back();
  std::fill(buffer.begin(), buffer.end(), 0.0F);
  return buffer;
}

float *PortionSums::begin() {
  if (committed == own.count)
    throw Error("all " + std::to_string(own.count) + " portions of this rank are there");
  if (current.empty())
    current = takeBuffer();
  return current.data();
}

// Appends a leaf to the nodes of the portions before it. While the last two nodes are the children
// of one node, they become that node: `merge` gets both, the left one is kept.
template <class Node, class Merge>
static void appendLeaf(std::vector<Node> &nodes, Node leaf, const Merge &merge) {
  nodes.push_back(std::move(leaf));
  while (nodes.size() > 1 && areSiblings(nodes[nodes.size() - 2], nodes.back())) {
    Node &left = nodes[nodes.size() - 2], &right = nodes.back();
    merge(left, right);
    ++left.level;
    nodes.pop_back();
  }
}

void PortionSums::commit() {
  Sum leaf{{own.first + committed++, 0}, std::move(current)};
  current = {};
  appendLeaf(sums, std::move(leaf), [&](Sum &left, Sum &right) {
    add(left.values, right.values);
    free.push_back(std::move(right.values));
  });
}

std::vector<PortionNode> genrec::rt::getNodes(PortionRange range) {
  std::vector<PortionNode> nodes;
  for (int32_t portion = range.first; portion < range.first + range.count; ++portion)
    appendLeaf(nodes, {portion, 0}, [](PortionNode, PortionNode) {});
  return nodes;
}

namespace {
/// One rank's part of each vector: slices are whole cache lines, the last may be shorter.
struct Slices {
  Slices(int64_t length, int32_t ranks)
      : length(length), each((length + ranks - 1) / ranks + 15 & ~int64_t(15)) {}
  int64_t begin(int32_t rank) const { return std::min(length, rank * each); }
  int64_t size(int32_t rank) const { return begin(rank + 1) - begin(rank); }
  int64_t length, each;
};
} // namespace

void PortionSums::reduce(Communicator &comm, float *total) {
  if (committed != own.count)
    throw Error(std::to_string(own.count - committed) + " of " + std::to_string(own.count) +
                " portions of this rank are missing");
  int32_t ranks = comm.getSize(), rank = comm.getRank();
  Slices slices(length, ranks);
  int64_t mine = slices.size(rank);

  // What every rank has of my slice, and what I have of everybody's.
  std::vector<std::vector<PortionNode>> nodes; // by rank
  std::vector<std::vector<float>> out(ranks), in(ranks);
  std::vector<SendPart> send(ranks);
  std::vector<ReceivePart> receive(ranks);
  for (int32_t other = 0; other < ranks; ++other) {
    nodes.push_back(getNodes(getPortions(portions, other, ranks)));
    for (const Sum &sum : sums)
      out[other].insert(out[other].end(), sum.values.begin() + slices.begin(other),
                        sum.values.begin() + slices.begin(other) + slices.size(other));
    in[other].resize(nodes.back().size() * mine);
    send[other] = {out[other].data(), static_cast<int64_t>(out[other].size() * sizeof(float))};
    receive[other] = {in[other].data(), static_cast<int64_t>(in[other].size() * sizeof(float))};
  }
  comm.exchange(send, receive);

  // The rest of the tree, from the nodes that ranks have.
  auto find = [&](int32_t first, int32_t level) -> float * {
    for (int32_t other = 0; other < ranks; ++other)
      for (size_t i = 0; i < nodes[other].size(); ++i)
        if (nodes[other][i].first == first && nodes[other][i].level == level)
          return in[other].data() + i * mine;
    return nullptr;
  };
  std::function<float *(int32_t, int32_t)> evaluate = [&](int32_t first, int32_t level) -> float * {
    if (float *known = find(first, level))
      return known;
    int32_t middle = first + (int32_t(1) << (level - 1));
    float *left = evaluate(first, level - 1);
    if (middle < portions)
      add({left, static_cast<size_t>(mine)}, {evaluate(middle, level - 1), static_cast<size_t>(mine)});
    return left;
  };
  int32_t root = 0;
  while ((int32_t(1) << root) < portions)
    ++root;
  float *slice = mine ? evaluate(0, root) : nullptr;

  std::vector<SendPart> gather(ranks, {slice, mine * static_cast<int64_t>(sizeof(float))});
  for (int32_t other = 0; other < ranks; ++other)
    receive[other] = {total + slices.begin(other),
                      slices.size(other) * static_cast<int64_t>(sizeof(float))};
  comm.exchange(gather, receive);
  for (Sum &sum : sums)
    free.push_back(std::move(sum.values));
  sums.clear();
  committed = 0;
}

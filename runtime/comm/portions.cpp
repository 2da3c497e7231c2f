//===- portions.cpp - sums whose bits no number of ranks changes ----------===//

#include "genrec_rt/portions.h"

#include <algorithm>

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
static void addTo(std::span<float> to, std::span<const float> from) {
  for (size_t i = 0; i < to.size(); ++i)
    to[i] += from[i];
}

/// Slices are whole cache lines, the last may be shorter.
static std::vector<int64_t> cutEvenly(int64_t length, int32_t ranks) {
  int64_t each = ((length + ranks - 1) / ranks + 15) & ~int64_t(15);
  std::vector<int64_t> begins;
  for (int32_t rank = 0; rank <= ranks; ++rank)
    begins.push_back(std::min(length, rank * each));
  return begins;
}

PortionSums::PortionSums(int64_t length, int32_t portions, int32_t rank, int32_t ranks)
    : length(length), portions(portions), rank(rank), ranks(ranks),
      own(getPortions(portions, rank, ranks)) {
  if (ranks > 2 && length > kMostWhole)
    sliceBegins = cutEvenly(length, ranks);
  for (int32_t other = 0; other < ranks; ++other)
    nodes.push_back(getNodes(getPortions(portions, other, ranks)));
}

PortionSums::PortionSums(std::vector<int64_t> begins, int32_t portions, int32_t rank, int32_t ranks)
    : PortionSums(begins.back(), portions, rank, ranks) {
  sliceBegins = std::move(begins);
}

std::vector<float> PortionSums::takeBuffer() {
  if (free.empty())
    return std::vector<float>(length);
  std::vector<float> buffer = std::move(free.back());
  free.pop_back();
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
    addTo(left.values, right.values);
    free.push_back(std::move(right.values));
  });
}

std::vector<PortionNode> genrec::rt::getNodes(PortionRange range) {
  std::vector<PortionNode> nodes;
  for (int32_t portion = range.first; portion < range.first + range.count; ++portion)
    appendLeaf(nodes, {portion, 0}, [](PortionNode, PortionNode) {});
  return nodes;
}

void PortionSums::restart() {
  for (Sum &sum : sums)
    free.push_back(std::move(sum.values));
  sums.clear();
  committed = 0;
}

void PortionSums::requireAll() const {
  if (!isComplete())
    throw Error(std::to_string(own.count - committed) + " of " + std::to_string(own.count) +
                " portions of this rank are missing");
}

int64_t PortionSums::countFloats(int32_t from, int32_t to) const {
  if (from == to)
    return 0;
  return static_cast<int64_t>(nodes[from].size()) * (hasSlices() ? sliceSize(to) : length);
}

void PortionSums::write(int32_t to, float *message) const {
  requireAll();
  for (size_t i = 0; to != rank && i < sums.size(); ++i) {
    const float *from = sums[i].values.data();
    message = hasSlices() ? std::copy_n(from + sliceBegin(to), sliceSize(to), message)
                          : std::copy_n(from, length, message);
  }
}

/// The sum of a node, in the memory of its first one that is there.
float *PortionSums::addTree(std::span<float *const> messages, int32_t first, int32_t level) {
  int64_t begin = hasSlices() ? sliceBegin(rank) : 0;
  int64_t size = hasSlices() ? sliceSize(rank) : length;
  for (int32_t from = 0; from < ranks; ++from)
    for (size_t i = 0; i < nodes[from].size(); ++i)
      if (nodes[from][i].first == first && nodes[from][i].level == level)
        return from == rank ? sums[i].values.data() + begin : messages[from] + i * size;
  int32_t middle = first + (int32_t(1) << (level - 1));
  float *left = addTree(messages, first, level - 1);
  if (middle < portions)
    addTo({left, static_cast<size_t>(size)},
          {addTree(messages, middle, level - 1), static_cast<size_t>(size)});
  return left;
}

const float *PortionSums::add(std::span<float *const> messages) {
  requireAll();
  int32_t root = 0;
  while ((int32_t(1) << root) < portions)
    ++root;
  const float *sum = addTree(messages, 0, root);
  restart(); // buffers are kept as they are
  return sum;
}

const float *PortionSums::exchange(Communicator &comm) {
  requireAll();
  out.resize(ranks);
  in.resize(ranks);
  std::vector<SendPart> send(ranks);
  std::vector<ReceivePart> receive(ranks);
  std::vector<float *> messages;
  for (int32_t other = 0; other < ranks; ++other) {
    out[other].resize(countFloats(rank, other));
    in[other].resize(countFloats(other, rank));
    write(other, out[other].data());
    send[other] = {out[other].data(), static_cast<int64_t>(out[other].size() * sizeof(float))};
    receive[other] = {in[other].data(), static_cast<int64_t>(in[other].size() * sizeof(float))};
    messages.push_back(in[other].data());
  }
  comm.exchange(send, receive);
  return add(messages);
}

void PortionSums::reduce(Communicator &comm, float *total) {
  const float *sum = exchange(comm);
  if (!hasSlices()) {
    std::copy_n(sum, length, total);
    return;
  }
  auto bytes = [&](int32_t of) { return sliceSize(of) * static_cast<int64_t>(sizeof(float)); };
  std::vector<SendPart> send(ranks, {sum, bytes(rank)});
  std::vector<ReceivePart> receive(ranks);
  for (int32_t other = 0; other < ranks; ++other)
    receive[other] = {total + sliceBegin(other), bytes(other)};
  comm.exchange(send, receive);
}

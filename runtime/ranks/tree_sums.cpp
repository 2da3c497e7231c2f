//===- tree_sums.cpp - sums of rows over the tree of portions -------------===//

#include "tree_sums.h"

using namespace genrec::rt;

void TreeSums::begin() {
  count = 0;
  taken = 0;
  spare.clear();
}

std::vector<TreeSums::Entry> &TreeSums::addNode(PortionNode where) {
  if (count == nodes.size())
    nodes.emplace_back();
  Node &node = nodes[count++];
  static_cast<PortionNode &>(node) = where;
  node.entries.clear();
  return node.entries;
}

void TreeSums::merge(int64_t rows) {
  while (count > 1 && areSiblings(nodes[count - 2], nodes[count - 1]))
    mergeLast(rows);
}

void TreeSums::mergeLast(int64_t rows) {
  Node &left = nodes[count - 2], &right = nodes[count - 1];
  if (static_cast<int64_t>(leftIndex.size()) < rows)
    leftIndex.resize(rows, -1);
  size_t before = left.entries.size();
  for (size_t i = 0; i < before; ++i)
    leftIndex[left.entries[i].row] = static_cast<int32_t>(i);
  for (const Entry &entry : right.entries) {
    int32_t index = leftIndex[entry.row];
    if (index < 0) {
      left.entries.push_back(entry);
      continue;
    }
    float *to = left.entries[index].sum;
    for (int64_t i = 0; i < dim; ++i)
      to[i] += entry.sum[i];
    spare.push_back(entry.sum);
  }
  for (size_t i = 0; i < before; ++i)
    leftIndex[left.entries[i].row] = -1;
  ++left.level;
  --count;
}

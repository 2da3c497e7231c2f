//===- portion_sums.cu - Sums over portions on a device -------------------===//

#include "portion_sums.h"

#include "genrec_rt/kernels/cuda/exact_sum.h"
#include "row_kernels.h"

#include <algorithm>
#include <numeric>

namespace genrec::rt::cuda {

static void copyFloats(float *to, const float *from, int64_t count, cudaStream_t stream) {
  if (count > 0 && to != from)
    GENREC_CUDA_CHECK(cudaMemcpyAsync(to, from, static_cast<size_t>(count) * sizeof(float),
                                      cudaMemcpyDeviceToDevice, stream));
}

PortionSums::PortionSums(Communicator &comm, int32_t portions, const cudaStream_t &queue)
    : comm(comm), portions(portions), ranks(comm.getSize()), rank(comm.getRank()),
      own(getPortions(portions, rank, ranks)), queue(queue) {
  for (int32_t other = 0; other < ranks; ++other)
    covers.push_back(getNodes(getPortions(portions, other, ranks)));
}

void PortionSums::begin() {
  for (Sum &sum : sums) {
    sum.free.clear(); // each step takes the same memory in the same order
    for (DeviceArray<float> &memory : sum.memory)
      sum.free.push_back(memory.data());
    sum.nodes.clear();
    sum.given = 0;
    sum.total = nullptr;
  }
}

void PortionSums::describePlaces(GraphKey &key) const {
  for (const Sum &sum : sums)
    key.addPlace(sum.total);
}

void PortionSums::contribute(int32_t number, std::span<const float *const> partial,
                             std::span<const int64_t> floats) {
  if (static_cast<size_t>(number) >= sums.size())
    sums.resize(number + 1);
  Sum &sum = sums[number];
  if (!std::ranges::equal(sum.floats, floats)) { // of the first portion, or of another program
    sum.floats.assign(floats.begin(), floats.end());
    sum.length = std::accumulate(floats.begin(), floats.end(), int64_t(0));
    for (DeviceArray<float> &memory : sum.memory) // which would wait for the device as it ends
      memory.release(queue);
    sum.memory.clear();
    sum.free.clear();
  }
  if (sum.free.empty())
    sum.free.push_back(sum.memory.emplace_back("sums.nodes").ensure(sum.length + 1, queue));
  float *values = sum.free.back(), *to = values;
  sum.free.pop_back();
  for (size_t list = 0; list < partial.size(); ++list) {
    copyFloats(to, partial[list], floats[list], queue);
    to += floats[list];
  }
  sum.nodes.push_back({{own.first + sum.given++, 0}, values});
  while (sum.nodes.size() > 1 && areSiblings(sum.nodes[sum.nodes.size() - 2], sum.nodes.back())) {
    Node &left = sum.nodes[sum.nodes.size() - 2];
    addFloats(left.values, sum.nodes.back().values, sum.length, queue);
    sum.free.push_back(sum.nodes.back().values);
    sum.nodes.pop_back();
    ++left.level;
  }
}

PortionSums::Slice PortionSums::sliceOf(const Sum &sum, int32_t of) const {
  if (!isSliced(sum))
    return {0, sum.length};
  const int64_t each = ((sum.length + ranks - 1) / ranks + 15) / 16 * 16;
  const int64_t begin = std::min(sum.length, of * each);
  return {begin, std::min(sum.length, begin + each) - begin};
}

/// The sum of a node, in the memory of its first one that is there.
float *PortionSums::addTree(Sum &sum, std::span<float *const> messages, int32_t first,
                            int32_t level) {
  const Slice slice = sliceOf(sum, rank);
  for (int32_t from = 0; from < ranks; ++from)
    for (size_t i = 0; i < covers[from].size(); ++i)
      if (covers[from][i].first == first && covers[from][i].level == level)
        return from == rank ? sum.nodes[i].values + slice.begin
                            : messages[from] + static_cast<int64_t>(i) * slice.count;
  const int32_t middle = first + (int32_t(1) << (level - 1));
  float *left = addTree(sum, messages, first, level - 1);
  if (middle < portions)
    addFloats(left, addTree(sum, messages, middle, level - 1), slice.count, queue);
  return left;
}

void PortionSums::reduce(Communicator &on) {
  for (Sum &sum : sums)
    if (isWhole(sum))
      reduce(on, sum);
}

void PortionSums::reduce(Communicator &on, Sum &sum) {
  const Slice mine = sliceOf(sum, rank);
  std::vector<float *> messages(ranks);
  int64_t floats = 0;
  size_t most = 0;
  for (int32_t other = 0; other < ranks; ++other) {
    floats += other == rank ? 0 : static_cast<int64_t>(covers[other].size()) * mine.count;
    most = std::max(most, covers[other].size());
  }
  float *to = ranks > 1 ? sum.messages.ensure(floats + 1, queue) : nullptr;
  for (int32_t other = 0; other < ranks && ranks > 1; ++other) {
    messages[other] = to;
    to += other == rank ? 0 : static_cast<int64_t>(covers[other].size()) * mine.count;
  }
  for (size_t node = 0; node < most && ranks > 1; ++node) {
    std::vector<SendPart> send(ranks);
    std::vector<ReceivePart> receive(ranks);
    for (int32_t other = 0; other < ranks; ++other) {
      const Slice theirs = sliceOf(sum, other);
      if (other != rank && node < sum.nodes.size())
        send[other] = {sum.nodes[node].values + theirs.begin, theirs.count * 4};
      if (other != rank && node < covers[other].size())
        receive[other] = {messages[other] + static_cast<int64_t>(node) * mine.count,
                          mine.count * 4};
      receivedBytes += receive[other].bytes;
    }
    on.exchange(send, receive, onDevice());
  }
  int32_t root = 0;
  while ((int32_t(1) << root) < portions)
    ++root;
  float *total = addTree(sum, messages, 0, root);
  if (isSliced(sum))
    gather(on, sum, total);
  else
    sum.total = total;
}

/// All ranks get all slices.
void PortionSums::gather(Communicator &on, Sum &sum, const float *mine) {
  sum.total = sum.gathered.ensure(sum.length, queue);
  const Slice slice = sliceOf(sum, rank);
  copyFloats(sum.total + slice.begin, mine, slice.count, queue);
  std::vector<SendPart> send(ranks);
  std::vector<ReceivePart> receive(ranks);
  for (int32_t other = 0; other < ranks; ++other) {
    const Slice theirs = sliceOf(sum, other);
    if (other == rank)
      continue;
    send[other] = {mine, slice.count * 4};
    receive[other] = {sum.total + theirs.begin, theirs.count * 4};
    receivedBytes += receive[other].bytes;
  }
  on.exchange(send, receive, onDevice());
}

void PortionSums::collect(int32_t number, std::span<float *const> totals) {
  if (!has(number) && !isWhole(number))
    throw Error("sum " + std::to_string(number) + " over portions is read, and " +
                std::to_string(isGiven(number) ? sums[number].given : 0) + " of the " +
                std::to_string(own.count) + " portions of this rank have given to it");
  Sum &sum = sums[number];
  if (!sum.total) // it is needed in the stage that gives it
    reduce(comm, sum);
  const float *from = sum.total;
  for (size_t list = 0; list < totals.size(); ++list) {
    copyFloats(totals[list], from, sum.floats[list], queue);
    from += sum.floats[list];
  }
}

void PortionSums::sumExactly(std::span<const ExactValues> of) {
  constexpr int64_t kBytes = kExactSumBytes;
  const auto count = static_cast<int64_t>(of.size());
  char *mine = limbs.ensure(count * kBytes, queue);
  std::vector<ExactTerms> terms;
  for (const ExactValues &each : of)
    terms.push_back({each.rows->device, each.rows->capacity, each.values, each.counts});
  addExactly(terms, mine, queue);
  const bool any = ranks > 1 && std::ranges::any_of(of, &ExactValues::travels);
  char *all = any ? allLimbs.ensure(ranks * count * kBytes, queue) : nullptr;
  if (any)
    comm.allGather(mine, all, count * kBytes, onDevice());
  std::vector<ExactLimbs> sums;
  for (int64_t i = 0; i < count; ++i)
    if (any && of[i].travels)
      sums.push_back({all + i * kBytes, ranks, count * kBytes, of[i].sum});
    else
      sums.push_back({mine + i * kBytes, 1, 0, of[i].sum});
  roundExactly(sums, queue);
}

} // namespace genrec::rt::cuda

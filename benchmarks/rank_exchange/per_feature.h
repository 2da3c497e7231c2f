//===- per_feature.h - A step by MPI_Alltoallv per feature ------*- C++ -*-===//
//
// The peer: what is written first without a system for it. Ids go to the owners of their rows as
// they are, feature by feature, rows come back one per id, and so do gradients, which owners add.
// Counts of all features share one round.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_BENCHMARKS_RANK_EXCHANGE_PER_FEATURE_H
#define GENREC_BENCHMARKS_RANK_EXCHANGE_PER_FEATURE_H

#include "shape.h"

#include <mpi.h>

#include <numeric>
#include <span>

namespace bench {

class PerFeature {
public:
  PerFeature(const Shape &shape, const Tables &tables) : shape(shape), tables(tables) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int64_t received = shape.batch * ranks;
    for (int64_t dim : shape.dims) {
      Feature &of = features.emplace_back();
      of.order.resize(shape.batch);
      of.sent.resize(shape.batch);
      of.received.resize(received);
      of.found.resize(received);
      of.numbers.reserve(received);
      of.rows.ensure(shape.batch * dim);
      of.sums.ensure(received * dim);
      of.entries.resize(shape.batch);
    }
    int64_t widest = *std::max_element(shape.dims.begin(), shape.dims.end());
    sending.ensure(received * widest);
    receiving.ensure(received * widest);
    sendCounts.resize(shape.features() * ranks);
    receiveCounts.resize(sendCounts.size());
    for (std::vector<int> *each : {&sendSizes, &sendStarts, &receiveSizes, &receiveStarts})
      each->resize(ranks);
  }

  void prepare(const Ids &given) { ids = &given; }

  void fetch() {
    begin();
    for (int64_t feature = 0; feature < shape.features(); ++feature)
      partition(feature);
    MPI_Alltoall(sendCounts.data(), static_cast<int>(shape.features()), MPI_INT,
                 receiveCounts.data(), static_cast<int>(shape.features()), MPI_INT, MPI_COMM_WORLD);
    ++rounds;
    for (int64_t feature = 0; feature < shape.features(); ++feature)
      fetch(feature);
  }

  void giveBack(const std::vector<std::vector<float>> &gradients) {
    for (int64_t feature = 0; feature < shape.features(); ++feature) {
      Feature &of = features[feature];
      int64_t dim = shape.dims[feature];
      gather(dim, of.order, [&](int64_t entry) { return &gradients[feature][entry * dim]; });
      exchange(feature, /*toOwners=*/true, sending.data(), receiving.data(), MPI_FLOAT, dim);
      of.distinct.begin(shape.ids);
      of.numbers.clear();
      for (int64_t i = 0; i < receivedIds(feature); ++i)
        of.numbers.push_back(of.distinct.number(of.received[i] & kIdMask));
      addByNumber(of.numbers, 0, receiving.data(), dim,
                  [&](int32_t number) { return &of.sums[number * dim]; });
    }
  }

  Outcome outcome() const {
    Outcome result;
    for (int64_t feature = 0; feature < shape.features(); ++feature) {
      const Feature &of = features[feature];
      int64_t dim = shape.dims[feature];
      for (int64_t i = 0; i < shape.batch; ++i)
        result.addRow(i, of.entries[i], dim);
      int32_t next = 0;
      for (size_t i = 0; i < of.numbers.size(); ++i)
        if (of.numbers[i] == next)
          result.addSum(of.found[i], &of.sums[next++ * dim], dim);
    }
    return result;
  }

  int64_t rounds = 0, sentBytes = 0; ///< of a step; to other ranks

private:
  static constexpr int64_t kIdMask = (int64_t(1) << Tables::kKeyBits) - 1;

  struct Feature {
    std::vector<int64_t> order;          ///< entries, by owner
    std::vector<int64_t> sent, received; ///< keys
    genrec::rt::GrowBuffer<float> rows;  ///< by place in `order`
    std::vector<const float *> entries;  ///< by entry: its row
    std::vector<float *> found;          ///< rows of `received`
    Distinct distinct;                   ///< ids of `received`
    std::vector<int32_t> numbers;        ///< of `received`
    genrec::rt::GrowBuffer<float> sums;
  };

  void begin() { rounds = sentBytes = 0; }
  int &sendCount(int owner, int64_t feature) {
    return sendCounts[owner * shape.features() + feature];
  }
  int64_t receivedIds(int64_t feature) const {
    int64_t count = 0;
    for (int other = 0; other < ranks; ++other)
      count += receiveCounts[other * shape.features() + feature];
    return count;
  }

  /// Sorts entries by owner, which the id's remainder says.
  void partition(int64_t feature) {
    Feature &of = features[feature];
    const std::vector<int64_t> &from = (*ids)[feature];
    for (int owner = 0; owner < ranks; ++owner)
      sendCount(owner, feature) = 0;
    for (int64_t id : from)
      ++sendCount(static_cast<int>(id % ranks), feature);
    int64_t start = 0;
    for (int owner = 0; owner < ranks; ++owner) {
      sendStarts[owner] = static_cast<int>(start);
      start += sendCount(owner, feature);
    }
    for (int64_t i = 0; i < shape.batch; ++i) {
      int at = sendStarts[from[i] % ranks]++;
      of.order[at] = i;
      of.sent[at] = tables.keyOf(feature, from[i]);
    }
  }

  void fetch(int64_t feature) {
    Feature &of = features[feature];
    int64_t dim = shape.dims[feature];
    exchange(feature, true, of.sent.data(), of.received.data(), MPI_INT64_T, 1);
    auto count = static_cast<size_t>(receivedIds(feature));
    tables.find(tables.storeOf[feature], std::span(of.received).first(count), of.found.data());
    gather(dim, std::span(of.found).first(count), [](const float *row) { return row; });
    exchange(feature, false, sending.data(), of.rows.data(), MPI_FLOAT, dim);
    for (int64_t i = 0; i < shape.batch; ++i)
      of.entries[of.order[i]] = &of.rows[i * dim];
  }

  /// Copies a row of `dim` floats for each of `items`, which are prefetched, into `sending`.
  template <class Items, class RowOf>
  void gather(int64_t dim, const Items &items, const RowOf &rowOf) {
    constexpr size_t kAhead = 12;
    withDim(dim, [&](auto size) {
      float *to = sending.data();
      for (size_t i = 0; i < items.size(); ++i, to += size()) {
        if (i + kAhead < items.size())
          for (int64_t line = 0; line < size(); line += 16)
            __builtin_prefetch(rowOf(items[i + kAhead]) + line);
        std::copy_n(rowOf(items[i]), size(), to);
      }
    });
  }

  /// `each` elements per id, to the owners of ids or back from them.
  void exchange(int64_t feature, bool toOwners, const void *send, void *receive, MPI_Datatype type,
                int64_t each) {
    int sendEnd = 0, receiveEnd = 0, size = 0;
    MPI_Type_size(type, &size);
    for (int other = 0; other < ranks; ++other) {
      size_t cell = other * shape.features() + feature;
      sendSizes[other] = (toOwners ? sendCounts : receiveCounts)[cell] * static_cast<int>(each);
      receiveSizes[other] = (toOwners ? receiveCounts : sendCounts)[cell] * static_cast<int>(each);
      sendStarts[other] = sendEnd;
      receiveStarts[other] = receiveEnd;
      sendEnd += sendSizes[other];
      receiveEnd += receiveSizes[other];
      sentBytes += other == rank ? 0 : int64_t(sendSizes[other]) * size;
    }
    MPI_Alltoallv(send, sendSizes.data(), sendStarts.data(), type, receive, receiveSizes.data(),
                  receiveStarts.data(), type, MPI_COMM_WORLD);
    ++rounds;
  }

  const Shape &shape;
  const Tables &tables;
  const Ids *ids = nullptr;
  int rank = 0, ranks = 1;
  std::vector<Feature> features;
  genrec::rt::GrowBuffer<float> sending, receiving;
  std::vector<int> sendCounts, receiveCounts; ///< by rank and feature: ids
  std::vector<int> sendSizes, sendStarts, receiveSizes, receiveStarts;
};

} // namespace bench

#endif // GENREC_BENCHMARKS_RANK_EXCHANGE_PER_FEATURE_H

//===- shape.h - Features, tables and batches of the benchmark --*- C++ -*-===//

#ifndef GENREC_BENCHMARKS_RANK_EXCHANGE_SHAPE_H
#define GENREC_BENCHMARKS_RANK_EXCHANGE_SHAPE_H

#include "../../runtime/ranks/row_copies.h"

#include "genrec_rt/buffer.h"
#include "genrec_rt/error.h"
#include "genrec_rt/identity.h"
#include "genrec_rt/store.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace bench {

/// The features of a step: feature f has a table of `ids` rows of dims[f] floats.
struct Shape {
  std::vector<int64_t> dims;
  int64_t ids = 20000;
  int64_t batch = 2048; ///< rows per rank; every feature has one id per row
  int64_t features() const { return static_cast<int64_t>(dims.size()); }
};

/// The ids that one rank looks up in a step, of each feature.
using Ids = std::vector<std::vector<int64_t>>;

/// Every id `duplication` times, in a random order.
inline Ids drawRepeated(const Shape &shape, int64_t duplication, uint32_t seed) {
  std::mt19937_64 random(seed);
  Ids ids(shape.dims.size());
  for (std::vector<int64_t> &of : ids) {
    while (static_cast<int64_t>(of.size()) < shape.batch) {
      int64_t id = static_cast<int64_t>(random() % static_cast<uint64_t>(shape.ids));
      of.insert(of.end(), static_cast<size_t>(duplication), id);
    }
    of.resize(static_cast<size_t>(shape.batch));
    std::shuffle(of.begin(), of.end(), random);
  }
  return ids;
}

/// Ids by Zipf's law: the k-th most frequent is drawn with a chance of k^-exponent.
class Zipf {
public:
  Zipf(int64_t ids, double exponent) {
    double sum = 0;
    for (int64_t rank = 1; rank <= ids; ++rank)
      sums.push_back(sum += std::pow(static_cast<double>(rank), -exponent));
  }
  Ids draw(const Shape &shape, uint32_t seed) const {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> place(0, sums.back());
    Ids ids(shape.dims.size());
    for (std::vector<int64_t> &of : ids)
      for (int64_t i = 0; i < shape.batch; ++i) {
        auto rank = static_cast<uint64_t>(
            std::lower_bound(sums.begin(), sums.end(), place(random)) - sums.begin());
        // Frequent ids lie anywhere in a table.
        of.push_back(static_cast<int64_t>(rank * 2654435761 % static_cast<uint64_t>(shape.ids)));
      }
    return ids;
  }

private:
  std::vector<double> sums;
};

/// The tables of a rank, as the compiler merges them: those of one dimension share a store, whose
/// keys are a number of the table and an id. Both sides find rows in them; each rank has all rows
/// and uses those that it owns, so that the sides may differ in who owns what.
class Tables {
public:
  static constexpr int64_t kKeyBits = 40;

  explicit Tables(const Shape &shape) : shape(shape) {
    for (int64_t feature = 0; feature < shape.features(); ++feature) {
      size_t store = 0;
      while (store < dims.size() && dims[store] != shape.dims[feature])
        ++store;
      if (store == dims.size()) {
        dims.push_back(shape.dims[feature]);
        members.emplace_back();
      }
      storeOf.push_back(static_cast<int32_t>(store));
      memberOf.push_back(static_cast<int64_t>(members[store].size()));
      members[store].push_back(feature);
    }
    for (size_t store = 0; store < dims.size(); ++store) {
      genrec::rt::StoreConfig config;
      config.dim = dims[store];
      config.members.resize(members[store].size());
      config.keyBits = kKeyBits;
      stores.push_back(genrec::rt::makeHostStore(config));
      for (int64_t feature : members[store])
        fill(feature);
    }
  }

  int64_t keyOf(int64_t feature, int64_t id) const { return memberOf[feature] << kKeyBits | id; }
  void find(int32_t store, std::span<const int64_t> keys, float **rows) const {
    stores[store]->find({}, keys.data(), nullptr, static_cast<int64_t>(keys.size()), rows, nullptr);
  }

  std::vector<int64_t> dims;                 ///< by store
  std::vector<std::vector<int64_t>> members; ///< by store: its features
  std::vector<int32_t> storeOf;              ///< by feature

private:
  void fill(int64_t feature) {
    std::vector<int64_t> keys;
    for (int64_t id = 0; id < shape.ids; ++id)
      keys.push_back(keyOf(feature, id));
    std::vector<float *> rows(keys.size());
    stores[storeOf[feature]]->findOrInsert({}, keys.data(), nullptr, shape.ids, rows.data());
    for (int64_t id = 0; id < shape.ids; ++id)
      for (int64_t i = 0; i < shape.dims[feature]; ++i)
        rows[id][i] =
            static_cast<float>(genrec::rt::splitMix64(id * 8192 + feature * 128 + i) % 1000);
  }

  const Shape &shape;
  std::vector<int64_t> memberOf; ///< by feature
  std::vector<std::unique_ptr<genrec::rt::TableStore>> stores;
};

/// Gradients of the looked-up rows, by feature: small whole numbers, whose sums are exact in any
/// order, so that both sides can be compared.
inline std::vector<std::vector<float>> makeGradients(const Shape &shape, uint32_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::vector<float>> gradients;
  for (int64_t dim : shape.dims) {
    gradients.emplace_back(static_cast<size_t>(shape.batch * dim));
    for (float &value : gradients.back())
      value = static_cast<float>(static_cast<int64_t>(random() % 17) - 8);
  }
  return gradients;
}

/// Numbers distinct things of a step, which are told apart by small numbers.
class Distinct {
public:
  void begin(int64_t most) {
    if (static_cast<int64_t>(seen.size()) < most)
      seen.resize(most);
    ++step;
    count = 0;
  }
  /// The number of `thing`, below `most`: `count` as it was before where it is new.
  int32_t number(int64_t thing) {
    Seen &of = seen[thing];
    if (of.step != step)
      of = {step, count++};
    return of.number;
  }

  int32_t count = 0;

private:
  struct Seen {
    uint32_t step = 0;
    int32_t number = 0;
  };
  uint32_t step = 0;
  std::vector<Seen> seen;
};

/// Calls `body` with the number of floats of a row as a constant, as both sides' loops have it.
template <class Body> void withDim(int64_t dim, const Body &body) {
  genrec::rt::withRowSize(dim, [&](auto size) {
    if constexpr (size() == 0)
      throw genrec::rt::Error("a row of " + std::to_string(dim) + " floats");
    else
      body(size);
  });
}

/// Adds the gradients of entries by number, where `place(number)` is. Numbers from `next` on have
/// none yet; returns the next one.
template <class Place>
int32_t addByNumber(std::span<const int32_t> numbers, int32_t next, const float *gradients,
                    int64_t dim, const Place &place) {
  withDim(dim, [&](auto size) {
    constexpr int64_t kDim = size();
    const float *__restrict__ gradient = gradients;
    for (int32_t number : numbers) {
      float *__restrict__ to = place(number);
      if (number == next) {
        std::copy_n(gradient, kDim, to);
        ++next;
      } else {
        for (int64_t i = 0; i < kDim; ++i)
          to[i] += gradient[i];
      }
      gradient += kDim;
    }
  });
  return next;
}

/// What both sides must agree on: of the rows that ranks got, and of the sums that owners have.
struct Outcome {
  double rows = 0, sums = 0;
  bool operator==(const Outcome &) const = default;

  void addRow(int64_t entry, const float *row, int64_t dim) {
    rows += static_cast<double>(entry % 31) * (row[0] + row[dim - 1]);
  }
  /// `row`: the one that is updated.
  void addSum(const float *row, const float *sum, int64_t dim) {
    sums += static_cast<double>(row[0]) * (sum[0] + 2.0 * sum[dim - 1]);
  }
};

} // namespace bench

#endif // GENREC_BENCHMARKS_RANK_EXCHANGE_SHAPE_H

//===- fused.h - A step by the runtime's row exchange -----------*- C++ -*-===//

#ifndef GENREC_BENCHMARKS_RANK_EXCHANGE_FUSED_H
#define GENREC_BENCHMARKS_RANK_EXCHANGE_FUSED_H

#include "../../runtime/ranks/row_exchange.h"
#include "shape.h"

#include "genrec_rt/owner.h"

#include <string>

namespace bench {

class Fused {
public:
  Fused(genrec::rt::Communicator &comm, const Shape &shape, const Tables &tables,
        genrec::rt::RowTravel travel = {})
      : shape(shape), tables(tables), portion(comm.getRank()),
        exchange(comm, describeStores(tables), comm.getSize(), travel), keys(shape.features()),
        rows(shape.features() * shape.batch), numbers(shape.features() * shape.batch) {}

  /// What a step is given: a compiled model makes keys of ids when it reads.
  void prepare(const Ids &ids) {
    for (int64_t feature = 0; feature < shape.features(); ++feature) {
      keys[feature].clear();
      for (int64_t id : ids[feature])
        keys[feature].push_back(tables.keyOf(feature, id));
    }
  }

  void fetch() {
    exchange.begin();
    requests.clear();
    for (int64_t feature = 0; feature < shape.features(); ++feature)
      requests.push_back({tables.storeOf[feature], keys[feature].data(), nullptr, shape.batch,
                          rows.data() + feature * shape.batch, nullptr});
    exchange.fetch(requests, [&](int32_t store, std::span<const int64_t> found, float **to) {
      tables.find(store, found, to);
    });
  }

  /// Adds the gradients of equal keys, whose rows have one address, where the exchange wants them;
  /// then exchanges the sums.
  void giveBack(const std::vector<std::vector<float>> &gradients) {
    for (size_t store = 0; store < tables.members.size(); ++store) {
      numberRows(store);
      std::span<float *const> places =
          exchange.contribute(static_cast<int32_t>(store), portion, touched);
      int32_t next = 0;
      for (int64_t feature : tables.members[store])
        next = addByNumber(std::span(numbers).subspan(feature * shape.batch, shape.batch), next,
                           gradients[feature].data(), tables.dims[store],
                           [&](int32_t number) { return places[number]; });
    }
    exchange.collect();
  }

  Outcome outcome() {
    Outcome result;
    for (int64_t feature = 0; feature < shape.features(); ++feature)
      for (int64_t i = 0; i < shape.batch; ++i)
        result.addRow(i, rows[feature * shape.batch + i], shape.dims[feature]);
    for (size_t store = 0; store < tables.dims.size(); ++store) {
      genrec::rt::RowExchange::Update update = exchange.getUpdate(static_cast<int32_t>(store));
      for (size_t i = 0; i < update.rows.size(); ++i)
        result.addSum(update.rows[i], update.sums + static_cast<int64_t>(i) * tables.dims[store],
                      tables.dims[store]);
    }
    return result;
  }

private:
  static std::vector<genrec::rt::ExchangedStore> describeStores(const Tables &tables) {
    std::vector<genrec::rt::ExchangedStore> stores;
    for (size_t store = 0; store < tables.dims.size(); ++store) {
      stores.push_back({tables.dims[store], {}, Tables::kKeyBits});
      for (int64_t feature : tables.members[store])
        stores.back().members.push_back(
            genrec::rt::hashTableName("table" + std::to_string(feature)));
    }
    return stores;
  }

  /// Numbers the distinct rows of a store by their addresses, which lie close to each other.
  void numberRows(size_t store) {
    const float *first = rows[tables.members[store][0] * shape.batch], *last = first;
    for (int64_t feature : tables.members[store])
      for (int64_t i = feature * shape.batch; i < (feature + 1) * shape.batch; ++i) {
        first = std::min<const float *>(first, rows[i]);
        last = std::max<const float *>(last, rows[i]);
      }
    withDim(tables.dims[store], [&](auto size) {
      distinct.begin((last - first) / size() + 1);
      touched.clear();
      for (int64_t feature : tables.members[store])
        for (int64_t i = feature * shape.batch; i < (feature + 1) * shape.batch; ++i) {
          numbers[i] = distinct.number((rows[i] - first) / size());
          if (static_cast<size_t>(numbers[i]) == touched.size())
            touched.push_back(rows[i]);
        }
    });
  }

  const Shape &shape;
  const Tables &tables;
  int32_t portion;
  genrec::rt::RowExchange exchange;
  std::vector<std::vector<int64_t>> keys; ///< by feature
  std::vector<float *> rows;              ///< by feature and entry
  std::vector<genrec::rt::RowRequest> requests;
  Distinct distinct;            ///< rows of a store
  std::vector<int32_t> numbers; ///< by feature and entry, of its store
  std::vector<float *> touched; ///< of a store
};

} // namespace bench

#endif // GENREC_BENCHMARKS_RANK_EXCHANGE_FUSED_H

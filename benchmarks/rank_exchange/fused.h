//===- fused.h - A step by the runtime's row exchange -----------*- C++ -*-===//

#ifndef GENREC_BENCHMARKS_RANK_EXCHANGE_FUSED_H
#define GENREC_BENCHMARKS_RANK_EXCHANGE_FUSED_H

#include "../../runtime/embedding/segments.h"
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
        rows(shape.features() * shape.batch), touched(rows.size()) {}

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

  /// Finds entries of equal rows and adds their gradients where the exchange wants them, as a compiled
  /// model does; then exchanges the sums.
  void giveBack(const std::vector<std::vector<float>> &gradients) {
    for (size_t store = 0; store < tables.members.size(); ++store)
      contribute(static_cast<int32_t>(store), gradients);
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
        result.addSum(update.rows[i], update.sums[i], tables.dims[store]);
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

  void contribute(int32_t store, const std::vector<std::vector<float>> &gradients) {
    counts.assign(tables.members[store].size(), shape.batch);
    handles.clear();
    parts.clear();
    for (int64_t feature : tables.members[store]) {
      handles.push_back(rows.data() + feature * shape.batch);
      parts.push_back(gradients[feature].data());
    }
    genrec::rt::GradientParts all{static_cast<int32_t>(parts.size()), counts.data(),
                                  handles.data(), parts.data(), tables.dims[store]};
    all.all = true;
    int64_t entries = shape.batch * static_cast<int64_t>(parts.size());
    void *memory = segments.ensure(genrec::rt::segmentBytes(entries));
    int64_t count = genrec::rt::buildSegments(nullptr, all, nullptr, touched.data(), memory);
    std::span<float *const> places =
        exchange.contribute(store, portion, std::span(touched).first(static_cast<size_t>(count)));
    genrec::rt::sumSegments(nullptr, all, count, memory, places.data());
  }

  const Shape &shape;
  const Tables &tables;
  int32_t portion;
  genrec::rt::RowExchange exchange;
  std::vector<std::vector<int64_t>> keys; ///< by feature
  std::vector<float *> rows;              ///< by feature and entry
  std::vector<genrec::rt::RowRequest> requests;
  std::vector<float *> touched; ///< of a store
  std::vector<int64_t> counts;  ///< by feature of a store, as the next two
  std::vector<float *const *> handles;
  std::vector<const float *> parts;
  genrec::rt::GrowBuffer<char> segments;
};

} // namespace bench

#endif // GENREC_BENCHMARKS_RANK_EXCHANGE_FUSED_H

//===- host_side.h - A store with the host's values, for tests ---*- C++ -*-===//

#ifndef GENREC_TEST_RUNTIME_HOST_SIDE_H
#define GENREC_TEST_RUNTIME_HOST_SIDE_H

#include "genrec_rt/table_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace genrec::rt::test {

/// A store of any memory as the conformance suites see it: vectors of the host go in and out.
/// Nothing here knows more of the store than the interface says.
class HostSide {
public:
  using Row = float *;

  explicit HostSide(TableStore &store, const StoreStream &on = {}) : table(store), on(on) {}

  std::vector<Row> insert(const std::vector<int64_t> &ids, const std::vector<uint8_t> &valid = {},
                          Row untouched = nullptr) {
    auto mask = onStore(valid);
    auto rows = onStore(std::vector<Row>(ids.size(), untouched));
    table.findOrInsert(on, onStore(ids).data(), valid.empty() ? nullptr : mask.data(), countOf(ids),
                       rows.data());
    return fetched(rows);
  }
  std::vector<Row> find(const std::vector<int64_t> &ids, int64_t *missing = nullptr,
                        const std::vector<uint8_t> &valid = {}, Row untouched = nullptr) const {
    auto mask = onStore(valid);
    auto rows = onStore(std::vector<Row>(ids.size(), untouched));
    auto count = onStore(std::vector<int64_t>{0});
    table.find(on, onStore(ids).data(), valid.empty() ? nullptr : mask.data(), countOf(ids),
               rows.data(), count.data());
    if (missing)
      *missing = fetched(count)[0];
    return fetched(rows);
  }
  std::vector<Row> train(const std::vector<int64_t> &ids, int64_t step,
                         const std::vector<uint8_t> &valid = {}, Row untouched = nullptr) {
    auto mask = onStore(valid);
    auto rows = onStore(std::vector<Row>(ids.size(), untouched));
    auto waits = onStore(std::vector<int64_t>{0});
    table.findOrAdmit(on, onStore(ids).data(), valid.empty() ? nullptr : mask.data(), countOf(ids),
                      step, rows.data(), waits.data());
    std::vector<Row> found = fetched(rows);
    int64_t without = 0;
    for (size_t i = 0; i < ids.size(); ++i)
      without += (valid.empty() || valid[i]) && !found[i];
    EXPECT_EQ(fetched(waits)[0], without);
    return found;
  }
  void evict(int64_t step, int64_t expired = -1) { table.evict(on, step, expired); }
  void erase(const std::vector<int64_t> &ids) {
    table.erase(on, onStore(ids).data(), countOf(ids));
  }
  void clear() { table.clear(on); }

  /// Ids and rows by ascending number; of a member, where tables share the store.
  std::vector<std::pair<int64_t, Row>> exported(int64_t member = 0) const {
    std::vector<int64_t> all(static_cast<size_t>(table.memberSize(on, member)));
    auto ids = onStore(all);
    auto rows = onStore(std::vector<Row>(all.size()));
    const int64_t half = countOf(all) / 2; // in two parts, as saves take them in several
    table.exportRows(on, member, 0, half, ids.data(), rows.data());
    table.exportRows(on, member, half, countOf(all) - half, ids.data() + half, rows.data() + half);
    all = fetched(ids);
    std::vector<Row> places = fetched(rows);
    std::vector<std::pair<int64_t, Row>> result;
    for (size_t i = 0; i < all.size(); ++i)
      result.push_back({all[i], places[i]});
    return result;
  }
  /// The first ids, or rows, without the others.
  std::vector<int64_t> exportedIds(int64_t count) const {
    auto ids = onStore(std::vector<int64_t>(static_cast<size_t>(count)));
    table.exportRows(on, 0, 0, count, ids.data(), nullptr);
    return fetched(ids);
  }
  std::vector<Row> exportedRows(int64_t count) const {
    auto rows = onStore(std::vector<Row>(static_cast<size_t>(count)));
    table.exportRows(on, 0, 0, count, nullptr, rows.data());
    return fetched(rows);
  }
  std::vector<int64_t> ids() const {
    std::vector<int64_t> result;
    for (auto &[id, row] : exported())
      result.push_back(id);
    return result;
  }
  std::vector<float> values(Row row) const {
    std::vector<float> result(static_cast<size_t>(table.rowStride()));
    table.readRows(on, onStore(std::vector<Row>{row}).data(), 1, 0, table.rowStride(),
                   result.data());
    return result;
  }
  /// Columns of rows, row behind row.
  std::vector<float> columns(const std::vector<Row> &rows, int64_t first, int64_t width) const {
    std::vector<float> result(rows.size() * static_cast<size_t>(width));
    table.readRows(on, onStore(rows).data(), static_cast<int64_t>(rows.size()), first, width,
                   result.data());
    return result;
  }
  void writeColumns(const std::vector<Row> &rows, int64_t first, int64_t width,
                    const std::vector<float> &values) {
    table.writeRows(on, onStore(rows).data(), static_cast<int64_t>(rows.size()), first, width,
                    values.data());
  }
  void write(Row row, int64_t column, float value) {
    table.writeRows(on, onStore(std::vector<Row>{row}).data(), 1, column, 1, &value);
  }
  Sighting sighting(int64_t id) const {
    Sighting result;
    const Row row = find({id})[0];
    if (!row)
      ADD_FAILURE() << id << " has no row";
    else
      table.readRows(on, onStore(std::vector<Row>{row}).data(), 1, table.sightingOffset(),
                     sizeof(Sighting) / sizeof(float), reinterpret_cast<float *>(&result));
    return result;
  }
  /// Of rows, of which the first `counted` are identified where that is not negative.
  std::vector<uint64_t> identities(const std::vector<Row> &rows, int64_t counted = -1) const {
    auto result = onStore(std::vector<uint64_t>(rows.size(), 99));
    auto count = onStore(std::vector<int64_t>{counted});
    table.identify(on, onStore(rows).data(), static_cast<int64_t>(rows.size()),
                   counted < 0 ? nullptr : count.data(), result.data());
    return fetched(result);
  }
  /// Of a table with hot rows: the values of rows, both halves, row behind row.
  std::vector<float> halves(const std::vector<Row> &rows) const {
    std::vector<float> result(rows.size() * static_cast<size_t>(dim()));
    table.readHalves(on, onStore(rows).data(), static_cast<int64_t>(rows.size()), result.data());
    return result;
  }
  std::vector<float> halves(Row row) const { return halves(std::vector<Row>{row}); }
  void writeHalves(const std::vector<Row> &rows, const std::vector<float> &values) {
    table.writeHalves(on, onStore(rows).data(), static_cast<int64_t>(rows.size()), values.data());
  }
  void writeHalves(Row row, const std::vector<float> &values) {
    writeHalves(std::vector<Row>{row}, values);
  }
  void settle(const std::vector<Row> &rows, const std::vector<Sighting> &sightings) {
    const auto addresses = onStore(rows);
    const auto count = static_cast<int64_t>(rows.size());
    table.writeRows(on, addresses.data(), count, table.sightingOffset(),
                    sizeof(Sighting) / sizeof(float),
                    reinterpret_cast<const float *>(sightings.data()));
    table.settleHot(on, addresses.data(), count);
  }
  int64_t hotRows() const { return table.hotRows(on); }
  int64_t dim() const { return table.configuration().dim; }
  int64_t size() const { return table.size(on); }
  int64_t rowStride() const { return table.rowStride(); }

private:
  template <class T> StoreArray<T> onStore(const std::vector<T> &values) const {
    return {table, values.data(), static_cast<int64_t>(values.size()), on};
  }
  template <class T> static std::vector<T> fetched(const StoreArray<T> &array) {
    std::vector<T> result(static_cast<size_t>(array.size()));
    array.fetch(result.data());
    return result;
  }
  static int64_t countOf(const std::vector<int64_t> &ids) {
    return static_cast<int64_t>(ids.size());
  }

  TableStore &table;
  StoreStream on;
};

} // namespace genrec::rt::test

#endif // GENREC_TEST_RUNTIME_HOST_SIDE_H

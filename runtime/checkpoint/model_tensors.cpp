//===- model_tensors.cpp - A session's state as named tensors -------------===//

#include "model_tensors.h"

#include "expected_tensors.h"
#include "tensor_names.h"

#include "genrec_rt/checkpoint.h"
#include "genrec_rt/comm.h"
#include "genrec_rt/owner.h"
#include "genrec_rt/safetensors.h"

#include <algorithm>
#include <cstring>
#include <memory>

namespace genrec::rt {

namespace {

/// Lists the tensors of one table after another.
class TableTensors {
public:
  TableTensors(std::vector<SharedTensor> &tensors, std::shared_ptr<SavedTables> tables,
               bool isIncremental)
      : tensors(tensors), tables(std::move(tables)), isIncremental(isIncremental) {}

  void add(SavedTable table, const std::string &name, const TableView &view, bool states) {
    const StoreConfig &config = view.configuration();
    int64_t dim = config.dim, width = config.stateWidth();
    // A hot row's value is a float, so those of its table are saved as floats, all of them.
    RowColumn::Kind values = config.keepsLower()                  ? RowColumn::Kind::values
                             : config.element == RowElement::bf16 ? RowColumn::Kind::halves
                                                                  : RowColumn::Kind::floats;
    add(table, name + ".ids", {RowColumn::Kind::ids}, {});
    add(table, name + ".values", {values, 0, dim}, {dim});
    if (isIncremental)
      add({table.index, false, true}, removedName(name), {RowColumn::Kind::ids}, {});
    if (!states)
      return;
    for (int32_t s = 0; s < config.states; ++s)
      add(table, stateName(name, s),
          {RowColumn::Kind::floats, config.stateOffset() + s * width, width},
          config.rowStates ? std::vector<int64_t>{} : std::vector{width});
    if (config.rules.any())
      addSightings(table, name);
    if (!view.waiting())
      return;
    SavedTable waiting{table.index, true};
    add(waiting, waitingName(name) + ".ids", {RowColumn::Kind::ids}, {});
    addSightings(waiting, waitingName(name));
    if (isIncremental)
      add({table.index, true, true}, removedName(waitingName(name)), {RowColumn::Kind::ids}, {});
  }

private:
  void addSightings(SavedTable table, const std::string &name) {
    for (const SightingTensor &tensor : kSightings)
      add(table, name + tensor.name, {tensor.kind}, {});
  }

  /// A tensor of one column; `shape` is that of a row.
  void add(SavedTable table, const std::string &name, RowColumn column,
           std::vector<int64_t> shape) {
    shape.insert(shape.begin(), tables->size(table));
    const char *dtype = column.isFloats()                        ? "F32"
                        : column.kind == RowColumn::Kind::halves ? "BF16"
                                                                 : "I64";
    tensors.push_back({name, dtype, std::move(shape), tables->boundsOf(table, column),
                       [tables = tables, table, column](int64_t begin, int64_t end, char *to) {
                         tables->read(table, column, begin, end, to);
                       }});
  }

  std::vector<SharedTensor> &tensors;
  std::shared_ptr<SavedTables> tables; ///< kept by the tensors
  bool isIncremental;
};

/// A tensor that all ranks have.
SharedTensor replicated(const std::string &name, const float *values, std::vector<int64_t> shape,
                        int32_t ranks) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return {name, "F32", std::move(shape), divideBlocks(count * 4, ranks),
          [values](int64_t begin, int64_t end, char *to) {
            std::memcpy(to, reinterpret_cast<const char *>(values) + begin,
                        static_cast<size_t>(end - begin));
          }};
}

/// A state of a parameter, of which each rank has the rows that it updates.
SharedTensor stateOf(const std::string &name, ParameterView view, int32_t number,
                     std::vector<int64_t> shape, int32_t ranks) {
  constexpr int64_t kFloat = sizeof(float);
  std::vector<int64_t> bounds;
  for (int64_t row : view.rowBounds)
    bounds.push_back(row * view.width * kFloat);
  if (bounds.empty())
    bounds = divideBlocks(static_cast<int64_t>(view.value.size()) * kFloat, ranks);
  return {name, "F32", std::move(shape), std::move(bounds),
          [view, number](int64_t begin, int64_t end, char *to) {
            int64_t rowBytes = view.width * kFloat;
            for (int64_t at = begin; at < end;) {
              int64_t inRow = at % rowBytes, bytes = std::min(end - at, rowBytes - inRow);
              const float *row = view.state(number, at / rowBytes).data();
              std::memcpy(to, reinterpret_cast<const char *>(row) + inRow, bytes);
              to += bytes;
              at += bytes;
            }
          }};
}

void readParameter(const SafetensorsReader &file, const genrec_parameter_desc &desc,
                   ParameterView view, States states) {
  auto size = static_cast<int64_t>(view.value.size());
  file.readFloats(desc.name, 0, size, view.value.data());
  int64_t first = view.firstRow * view.width, count = view.ownRows * view.width;
  std::vector<float> values(count);
  for (int32_t s = 0; states != States::ignored && s < desc.optimizer.states; ++s)
    if (file.has(stateName(desc.name, s))) {
      file.readFloats(stateName(desc.name, s), first, count, values.data());
      for (int64_t row = 0; row < view.ownRows; ++row)
        std::copy_n(values.begin() + row * view.width, view.width,
                    view.state(s, view.firstRow + row).begin());
    }
}

void checkIds(const SafetensorsReader &file, const genrec_table_desc &desc,
              const std::vector<int64_t> &ids) {
  for (int64_t id : ids)
    if (id < 0 || (desc.id_bits < 63 && id >> desc.id_bits != 0))
      throw Error(file.path() + ": tensor '" + desc.name + ".ids' holds id " + std::to_string(id) +
                  ", beyond the " + std::to_string(desc.id_bits) + " bits of the table");
}

/// All tensors of a table have as many rows as it has ids.
void checkRowCounts(const SafetensorsReader &file, const std::string &ids,
                    const std::vector<std::string> &tensors) {
  int64_t count = file.tensor(ids).shape[0];
  for (const std::string &tensor : tensors)
    if (file.has(tensor) && file.tensor(tensor).shape[0] != count)
      throw Error(file.path() + ": '" + ids + "' has " + std::to_string(count) + " rows, '" +
                  tensor + "' has " + std::to_string(file.tensor(tensor).shape[0]));
}

/// What a file has of each row of a table, beside its id: tensors by name, the value and each
/// state; the sightings as "<sighted>.last_step" and "<sighted>.steps".
struct RowTensors {
  std::string ids;
  std::vector<std::pair<std::string, int64_t>> floats; ///< names and widths
  std::string sighted;                                 ///< "" where there are none
};

/// How the rows of a file become those of a table.
struct RowOrder {
  bool isSorted;      ///< by slice and id
  bool isIncremental; ///< some rows are there already
};

/// Reads the rows of a table that this rank has, block by block: those that it owns among the ranks
/// of `comm`, or all.
class RowReader {
public:
  RowReader(const SafetensorsReader &file, const genrec_table_desc &desc, TableView table,
            const Communicator *comm, RowOrder order)
      : file(file), desc(desc), table(table), comm(comm), isSorted(order.isSorted && comm),
        isIncremental(order.isIncremental), nameHash(hashTableName(desc.name)) {}

  void read(const RowTensors &tensors) {
    int64_t had = 0;
    forOwned(tensors.ids, [&](int64_t first, int64_t count) {
      auto kept = static_cast<int64_t>(ids.size());
      TableRows rows = table.findOrInsert(ids.data(), kept);
      had += kept;
      if (!isIncremental && table.size() != had)
        throw Error(file.path() + ": tensor '" + tensors.ids + "' holds an id twice, before row " +
                    std::to_string(first + count));
      // First, as they say which rows are hot.
      if (!tensors.sighted.empty())
        readSightings(tensors.sighted, first, count, rows);
      int64_t offset = 0;
      for (const auto &[name, width] : tensors.floats) {
        if (file.has(name))
          readFloats(name, first, count, width, offset, rows);
        offset += offset == 0 ? table.configuration().stateOffset() : width;
      }
    });
  }

  /// Rows that left.
  void erase(const std::string &tensor) {
    forOwned(tensor,
             [&](int64_t, int64_t) { table.erase(ids.data(), static_cast<int64_t>(ids.size())); });
  }

private:
  /// Calls body(first, count) for blocks of a tensor of ids, with those that this rank owns in
  /// `ids`.
  template <class Body> void forOwned(const std::string &tensor, const Body &body) {
    int64_t begin = 0, end = file.tensor(tensor).shape[0];
    if (isSorted) {
      int32_t rank = comm->getRank(), ranks = comm->getSize();
      begin = findSlice(tensor, getFirstSlice(rank, ranks));
      end = findSlice(tensor, getFirstSlice(rank + 1, ranks));
    }
    forBlocks(begin, end, [&](int64_t first, int64_t count) {
      chooseOwned(tensor, first, count);
      body(first, count);
    });
  }

  /// The first row of `slice` or a later one, in a file whose rows are sorted by slice.
  int64_t findSlice(const std::string &tensor, int32_t slice) const {
    int64_t begin = 0, end = file.tensor(tensor).shape[0];
    while (begin < end) {
      int64_t middle = begin + (end - begin) / 2, id = 0;
      file.readIntegers(tensor, middle, 1, &id);
      if (getSlice(nameHash, id) < slice)
        begin = middle + 1;
      else
        end = middle;
    }
    return begin;
  }

  /// Ids and places of the rows in a block that this rank owns.
  void chooseOwned(const std::string &tensor, int64_t first, int64_t count) {
    ids.resize(count);
    file.readIntegers(tensor, first, count, ids.data());
    checkIds(file, desc, ids);
    places.clear();
    for (int64_t i = 0; i < count; ++i)
      if (ownsRow(comm, nameHash, ids[i])) {
        ids[places.size()] = ids[i];
        places.push_back(i);
      }
    if (isSorted && static_cast<int64_t>(places.size()) != count)
      throw Error(file.path() + ": tensor '" + tensor +
                  "' is not in the order of slices, near row " + std::to_string(first));
    ids.resize(places.size());
  }

  void readFloats(const std::string &tensor, int64_t first, int64_t count, int64_t width,
                  int64_t offset, TableRows &rows) {
    values.resize(count * width);
    file.readFloats(tensor, first * width, count * width, values.data());
    for (size_t i = 0; i < places.size(); ++i) // to places at or before their own
      std::copy_n(values.begin() + places[i] * width, width, values.begin() + i * width);
    if (offset == 0)
      rows.writeValues(values.data());
    else
      rows.write(offset, width, values.data());
  }

  void readSightings(const std::string &name, int64_t first, int64_t count, TableRows &rows) {
    std::vector<int64_t> numbers(count);
    std::vector<Sighting> sightings(places.size());
    for (const SightingTensor &tensor : kSightings) {
      if (!file.has(name + tensor.name))
        continue;
      file.readIntegers(name + tensor.name, first, count, numbers.data());
      for (int64_t i = 0; i < count; ++i)
        if (numbers[i] < 0)
          throw Error(file.path() + ": tensor '" + name + tensor.name + "' holds " +
                      std::to_string(numbers[i]) + " in row " + std::to_string(first + i));
      for (size_t i = 0; i < places.size(); ++i)
        sightings[i].*tensor.field = numbers[places[i]];
    }
    rows.writeSightings(sightings.data());
  }

  const SafetensorsReader &file;
  const genrec_table_desc &desc;
  TableView table;
  const Communicator *comm;
  bool isSorted; ///< so that other ranks' rows need not be read
  bool isIncremental;
  uint64_t nameHash;
  std::vector<int64_t> ids, places; ///< of the rows of a block that are kept
  std::vector<float> values;
};

/// The ids that wait to be admitted.
void readWaiting(const SafetensorsReader &file, const genrec_table_desc &desc, TableView table,
                 const Communicator *comm, RowOrder order) {
  std::string name = waitingName(desc.name);
  if (desc.admit_after <= 1 || !file.has(name + ".ids"))
    return;
  checkRowCounts(file, name + ".ids", {name + kSightings[0].name, name + kSightings[1].name});
  RowReader(file, desc, *table.waiting(), comm, order).read({name + ".ids", {}, name});
}

void readTable(const SafetensorsReader &file, const genrec_table_desc &desc, TableView table,
               const Communicator *comm, States states, RowOrder order) {
  std::string name = desc.name;
  RowTensors tensors{name + ".ids", {{name + ".values", desc.dim}}, hasRules(desc) ? name : ""};
  for (int32_t s = 0; states != States::ignored && s < desc.optimizer.states; ++s)
    tensors.floats.emplace_back(stateName(name, s), table.configuration().stateWidth());
  std::vector<std::string> names{name + kSightings[0].name, name + kSightings[1].name};
  for (const auto &[tensor, width] : tensors.floats)
    names.push_back(tensor);
  checkRowCounts(file, tensors.ids, names);
  RowReader(file, desc, table, comm, order).read(tensors);
  if (hasRules(desc))
    readWaiting(file, desc, table, comm, order);
}

} // namespace

void addModelTensors(SafetensorsWriter &writer, Session &session, bool states) {
  addTensors(writer, modelTensors(session, states));
}

std::vector<SharedTensor> modelTensors(Session &session, bool states, const RowChanges *changes) {
  const genrec_model_desc &model = session.model();
  int32_t ranks = session.comm() ? session.comm()->getSize() : 1;
  auto saved = std::make_shared<SavedTables>(session, changes);
  std::vector<SharedTensor> tensors;
  runTogether(session.comm(), [&] {
    const std::vector<ParameterView> views = session.readParameters();
    for (int32_t i = 0; i < model.parameter_count; ++i) {
      const genrec_parameter_desc &desc = model.parameters[i];
      const ParameterView &view = views[i];
      tensors.push_back(replicated(desc.name, view.value.data(), shapeOf(desc), ranks));
      for (int32_t s = 0; states && s < desc.optimizer.states; ++s)
        tensors.push_back(stateOf(stateName(desc.name, s), view, s, shapeOf(desc), ranks));
    }
    TableTensors rows(tensors, std::move(saved), changes != nullptr);
    for (int32_t i = 0; i < model.table_count; ++i)
      rows.add({i, false}, model.tables[i].name, session.table(i), states);
  });
  return tensors;
}

void readModelTensors(const SafetensorsReader &file, Session &session, States states,
                      bool isSorted) {
  const genrec_model_desc &model = session.model();
  checkTensors(file, model, states, /*isIncremental=*/false);
  for (int32_t i = 0; i < model.table_count; ++i)
    if (session.table(i).size() > 0)
      throw Error("tables are set from a file in a fresh session only; '" +
                  std::string(model.tables[i].name) + "' has rows already");
  for (int32_t i = 0; i < model.parameter_count; ++i)
    readParameter(file, model.parameters[i], session.parameter(i), states);
  for (int32_t i = 0; i < model.table_count; ++i)
    readTable(file, model.tables[i], session.table(i), session.commOfRows(i), states,
              {isSorted, false});
}

void replayModelTensors(const SafetensorsReader &file, Session &session, States states) {
  const genrec_model_desc &model = session.model();
  const RowOrder order{/*isSorted=*/true, /*isIncremental=*/true};
  checkTensors(file, model, states, /*isIncremental=*/true);
  for (int32_t i = 0; i < model.parameter_count; ++i)
    readParameter(file, model.parameters[i], session.parameter(i), states);
  for (int32_t i = 0; i < model.table_count; ++i) {
    const genrec_table_desc &desc = model.tables[i];
    TableView table = session.table(i);
    const Communicator *comm = session.commOfRows(i);
    // What left one of the two may be in the other one now.
    RowReader(file, desc, table, comm, order).erase(removedName(desc.name));
    if (std::optional<TableView> waiting = table.waiting())
      RowReader(file, desc, *waiting, comm, order).erase(removedName(waitingName(desc.name)));
    readTable(file, desc, table, comm, states, order);
  }
}

} // namespace genrec::rt

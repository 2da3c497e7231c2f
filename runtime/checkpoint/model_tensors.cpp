//===- model_tensors.cpp - A session's state as named tensors -------------===//

#include "model_tensors.h"
#include "../core/text.h"
#include "genrec_rt/checkpoint.h"
#include "genrec_rt/safetensors.h"

#include <algorithm>
#include <memory>
#include <set>

namespace genrec::rt {

namespace {

/// Rows moved at a time between a table and a file.
constexpr int64_t kBlockRows = 1 << 14;

std::string stateName(const std::string &name, int32_t state) {
  return name + ".state" + std::to_string(state);
}

std::vector<int64_t> shapeOf(const genrec_parameter_desc &parameter) {
  return {parameter.shape, parameter.shape + parameter.rank};
}

/// The rows of a table in the order in which they are saved: that of insertion; of a table
/// with rules, where others take the places of rows that left, that of ids.
class SavedRows {
public:
  explicit SavedRows(const TableView &table) : table(table), count(table.size()) {
    if (!table.configuration().rules.any())
      return;
    sorted = std::make_shared<std::vector<int64_t>>(table.ids(0, count));
    std::sort(sorted->begin(), sorted->end());
  }

  int64_t size() const { return count; }
  std::vector<int64_t> ids(int64_t first, int64_t block) const {
    if (!sorted)
      return table.ids(first, block);
    return {sorted->begin() + first, sorted->begin() + first + block};
  }
  TableRows rows(int64_t first, int64_t block) const {
    return sorted ? table.find(sorted->data() + first, block) : table.rows(first, block);
  }

private:
  TableView table;
  int64_t count;
  std::shared_ptr<std::vector<int64_t>> sorted; ///< ids; copies share it
};

/// Calls body(first, count) for blocks of rows, in order.
template <class Body> void forBlocks(int64_t rows, Body body) {
  for (int64_t first = 0; first < rows; first += kBlockRows)
    body(first, std::min(kBlockRows, rows - first));
}

void putIds(const SavedRows &rows, const SafetensorsWriter::Put &put) {
  forBlocks(rows.size(),
            [&](int64_t first, int64_t count) { put(rows.ids(first, count).data(), count * 8); });
}

/// `width` floats of every row from `offset` on.
void putRows(const SavedRows &rows, int64_t offset, int64_t width,
             const SafetensorsWriter::Put &put) {
  std::vector<float> block(static_cast<size_t>(std::min(kBlockRows, rows.size()) * width));
  forBlocks(rows.size(), [&](int64_t first, int64_t count) {
    rows.rows(first, count).read(offset, width, block.data());
    put(block.data(), count * width * 4);
  });
}

/// The shape of a table's state, -1 for the number of rows.
std::vector<int64_t> stateShape(const genrec_table_desc &table) {
  if (table.optimizer.row_states)
    return {-1};
  return {-1, table.dim};
}

bool hasRules(const genrec_table_desc &table) {
  return table.bounded > 0 || table.ttl > 0 || table.admit_after > 0;
}

/// Numbers kept for the rules about rows, one per row of a store.
struct SightingTensor {
  const char *name;
  int64_t Sighting::*field;
};
constexpr SightingTensor kSightings[] = {{".last_step", &Sighting::lastStep},
                                         {".steps", &Sighting::steps}};

/// The ids that a store waits to admit, as a table of its own: "<table>.waiting".
std::string waitingName(const std::string &name) { return name + ".waiting"; }

void addSightings(SafetensorsWriter &writer, const std::string &name, const SavedRows &rows) {
  for (const SightingTensor &tensor : kSightings)
    writer.add(name + tensor.name, "I64", {rows.size()},
               [rows, tensor](const SafetensorsWriter::Put &put) {
                 std::vector<Sighting> block(static_cast<size_t>(kBlockRows));
                 forBlocks(rows.size(), [&](int64_t first, int64_t count) {
                   rows.rows(first, count).readSightings(block.data());
                   for (int64_t i = 0; i < count; ++i)
                     put(&(block[i].*tensor.field), 8);
                 });
               });
}

void addWaiting(SafetensorsWriter &writer, const std::string &name, const SavedRows &waiting) {
  writer.add(name + ".ids", "I64", {waiting.size()},
             [waiting](const SafetensorsWriter::Put &put) { putIds(waiting, put); });
  addSightings(writer, name, waiting);
}

void addTable(SafetensorsWriter &writer, const std::string &name, const TableView &table,
              bool states) {
  const StoreConfig &config = table.configuration();
  SavedRows rows(table);
  int64_t dim = config.dim, count = rows.size();
  writer.add(name + ".ids", "I64", {count},
             [rows](const SafetensorsWriter::Put &put) { putIds(rows, put); });
  writer.add(name + ".values", "F32", {count, dim},
             [rows, dim](const SafetensorsWriter::Put &put) { putRows(rows, 0, dim, put); });
  if (!states)
    return;
  int64_t width = config.stateWidth();
  std::vector<int64_t> shape{count};
  if (!config.rowStates)
    shape.push_back(width);
  for (int32_t s = 0; s < config.states; ++s)
    writer.add(stateName(name, s), "F32", shape,
               [rows, dim, width, s](const SafetensorsWriter::Put &put) {
                 putRows(rows, dim + s * width, width, put);
               });
  if (config.rules.any())
    addSightings(writer, name, rows);
  if (std::optional<TableView> waiting = table.waiting())
    addWaiting(writer, waitingName(name), SavedRows(*waiting));
}

/// What a file must or may hold for a model.
struct Expected {
  std::vector<int64_t> shape; ///< -1: any size
  bool required;
};

std::map<std::string, Expected> expectedTensors(const genrec_model_desc &model, States use) {
  bool states = use == States::required;
  std::map<std::string, Expected> expected;
  for (int32_t i = 0; i < model.parameter_count; ++i) {
    const genrec_parameter_desc &parameter = model.parameters[i];
    expected[parameter.name] = {shapeOf(parameter), true};
    for (int32_t s = 0; s < parameter.optimizer.states; ++s)
      expected[stateName(parameter.name, s)] = {shapeOf(parameter), states};
  }
  for (int32_t i = 0; i < model.table_count; ++i) {
    const genrec_table_desc &table = model.tables[i];
    std::string name = table.name;
    expected[name + ".ids"] = {{-1}, true};
    expected[name + ".values"] = {{-1, table.dim}, true};
    for (int32_t s = 0; s < table.optimizer.states; ++s)
      expected[stateName(name, s)] = {stateShape(table), states};
    for (const SightingTensor &tensor : kSightings) {
      if (hasRules(table))
        expected[name + tensor.name] = {{-1}, states};
      if (table.admit_after > 1)
        expected[waitingName(name) + tensor.name] = {{-1}, states};
    }
    if (table.admit_after > 1)
      expected[waitingName(name) + ".ids"] = {{-1}, states};
  }
  return expected;
}

bool shapeFits(const std::vector<int64_t> &shape, const std::vector<int64_t> &wanted) {
  if (shape.size() != wanted.size())
    return false;
  for (size_t i = 0; i < shape.size(); ++i)
    if (wanted[i] >= 0 && shape[i] != wanted[i])
      return false;
  return true;
}

/// "[n, 4]" where -1 stands for any size.
std::string describeWanted(const std::vector<int64_t> &shape) {
  std::string text = describeShape(shape);
  for (size_t at; (at = text.find("-1")) != std::string::npos;)
    text.replace(at, 2, "n");
  return text;
}

/// Whether a tensor is an optimizer's state of a parameter or table of the model: "<name>.state0".
bool isState(const std::string &tensor, const genrec_model_desc &model) {
  size_t at = tensor.rfind(".state");
  if (at == std::string::npos)
    return false;
  std::string owner = tensor.substr(0, at);
  for (int32_t i = 0; i < model.parameter_count; ++i)
    if (owner == model.parameters[i].name)
      return true;
  for (int32_t i = 0; i < model.table_count; ++i)
    if (owner == model.tables[i].name)
      return true;
  return false;
}

/// All differences at once, so that one run tells everything.
void checkTensors(const SafetensorsReader &file, const genrec_model_desc &model, States states) {
  std::map<std::string, Expected> expected = expectedTensors(model, states);
  std::vector<std::string> missing, unknown, differing;
  for (const auto &[name, wanted] : expected) {
    if (!file.has(name)) {
      if (wanted.required)
        missing.push_back(name + " " + describeWanted(wanted.shape));
      continue;
    }
    const auto &tensor = file.tensor(name);
    if (states == States::ignored && isState(name, model))
      continue;
    if (!shapeFits(tensor.shape, wanted.shape))
      differing.push_back(name + " (" + describeShape(tensor.shape) + " in the file, " +
                          describeWanted(wanted.shape) + " in the model)");
  }
  for (const auto &[name, tensor] : file.tensors())
    if (!expected.count(name) && !(states == States::ignored && isState(name, model)))
      unknown.push_back(name + " " + describeShape(tensor.shape));
  if (missing.empty() && unknown.empty() && differing.empty())
    return;
  std::string text = file.path() + ": does not fit model '" + model.name + "'";
  if (!missing.empty())
    text += "; only in the model: " + listNames(missing);
  if (!unknown.empty())
    text += "; only in the file: " + listNames(unknown);
  if (!differing.empty())
    text += "; of another shape: " + listNames(differing);
  throw Error(text, "use the file of the same model, or rename its tensors");
}

void readParameter(const SafetensorsReader &file, const genrec_parameter_desc &desc,
                   ParameterView view, States states) {
  auto size = static_cast<int64_t>(view.value.size());
  file.readFloats(desc.name, 0, size, view.value.data());
  for (int32_t s = 0; states != States::ignored && s < desc.optimizer.states; ++s)
    if (file.has(stateName(desc.name, s)))
      file.readFloats(stateName(desc.name, s), 0, size, view.state.data() + s * size);
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

/// Sets the sightings of a table's rows, in blocks.
void readSightings(const SafetensorsReader &file, const std::string &name, const TableView &table) {
  std::vector<int64_t> numbers(kBlockRows);
  std::vector<Sighting> sightings(kBlockRows);
  for (const SightingTensor &tensor : kSightings) {
    if (!file.has(name + tensor.name))
      continue;
    forBlocks(table.size(), [&](int64_t first, int64_t count) {
      file.readIntegers(name + tensor.name, first, count, numbers.data());
      TableRows rows = table.rows(first, count);
      rows.readSightings(sightings.data());
      for (int64_t i = 0; i < count; ++i) {
        if (numbers[i] < 0)
          throw Error(file.path() + ": tensor '" + name + tensor.name + "' holds " +
                      std::to_string(numbers[i]) + " in row " + std::to_string(first + i));
        sightings[i].*tensor.field = numbers[i];
      }
      rows.writeSightings(sightings.data());
    });
  }
}

/// The sightings of a table's rows and the ids that wait.
void readRules(const SafetensorsReader &file, const genrec_table_desc &desc, TableView table) {
  std::string name = desc.name, waits = waitingName(name);
  readSightings(file, name, table);
  if (desc.admit_after <= 1 || !file.has(waits + ".ids"))
    return;
  checkRowCounts(file, waits + ".ids", {waits + kSightings[0].name, waits + kSightings[1].name});
  int64_t count = file.tensor(waits + ".ids").shape[0];
  std::vector<int64_t> ids(count);
  file.readIntegers(waits + ".ids", 0, count, ids.data());
  checkIds(file, desc, ids);
  TableView waiting = *table.waiting();
  waiting.findOrInsert(ids.data(), count);
  if (waiting.size() != count)
    throw Error(file.path() + ": tensor '" + waits + ".ids' holds an id twice");
  readSightings(file, waits, waiting);
}

void readTable(const SafetensorsReader &file, const genrec_table_desc &desc, TableView table,
               States states) {
  std::string name = desc.name;
  int64_t count = file.tensor(name + ".ids").shape[0];
  std::vector<std::string> tensors{name + ".values"};
  for (int32_t s = 0; states != States::ignored && s < desc.optimizer.states; ++s)
    tensors.push_back(stateName(name, s));
  checkRowCounts(file, name + ".ids", tensors);
  checkRowCounts(file, name + ".ids", {name + kSightings[0].name, name + kSightings[1].name});
  std::vector<int64_t> ids(kBlockRows);
  std::vector<float> values(kBlockRows * desc.dim);
  for (int64_t first = 0; first < count; first += kBlockRows) {
    int64_t block = std::min(kBlockRows, count - first);
    ids.resize(block);
    file.readIntegers(name + ".ids", first, block, ids.data());
    checkIds(file, desc, ids);
    TableRows rows = table.findOrInsert(ids.data(), block);
    if (table.size() != first + block)
      throw Error(file.path() + ": tensor '" + name + ".ids' holds an id twice, before row " +
                  std::to_string(first + block));
    int64_t offset = 0, width = desc.dim;
    for (const std::string &tensor : tensors) {
      if (file.has(tensor)) {
        file.readFloats(tensor, first * width, block * width, values.data());
        rows.write(offset, width, values.data());
      }
      offset += width;
      width = table.configuration().stateWidth();
    }
  }
  if (hasRules(desc))
    readRules(file, desc, table);
}

} // namespace

void addModelTensors(SafetensorsWriter &writer, Session &session, bool states) {
  const genrec_model_desc &model = session.model();
  for (int32_t i = 0; i < model.parameter_count; ++i) {
    const genrec_parameter_desc &desc = model.parameters[i];
    ParameterView view = session.parameter(i);
    writer.add(desc.name, view.value.data(), shapeOf(desc));
    for (int32_t s = 0; states && s < desc.optimizer.states; ++s)
      writer.add(stateName(desc.name, s), view.state.data() + s * view.value.size(), shapeOf(desc));
  }
  for (int32_t i = 0; i < model.table_count; ++i)
    addTable(writer, model.tables[i].name, session.table(i), states);
}

void readModelTensors(const SafetensorsReader &file, Session &session, States states) {
  const genrec_model_desc &model = session.model();
  checkTensors(file, model, states);
  for (int32_t i = 0; i < model.table_count; ++i)
    if (session.table(i).size() > 0)
      throw Error("tables are set from a file in a fresh session only; '" +
                  std::string(model.tables[i].name) + "' has rows already");
  for (int32_t i = 0; i < model.parameter_count; ++i)
    readParameter(file, model.parameters[i], session.parameter(i), states);
  for (int32_t i = 0; i < model.table_count; ++i)
    readTable(file, model.tables[i], session.table(i), states);
}

} // namespace genrec::rt

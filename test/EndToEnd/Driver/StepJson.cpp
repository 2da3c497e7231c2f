//===- StepJson.cpp - what a step leaves, as JSON -------------------------===//

#include "StepJson.h"

#include "genrec_rt/error.h"
#include "genrec_rt/owner.h"

#include <cmath>

using namespace genrec::rt;
namespace json = llvm::json;

static json::Value toJson(double value) {
  if (std::isfinite(value))
    return value;
  return std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
}

/// null where no row counts.
static json::Value meanToJson(std::optional<double> mean) {
  return mean ? toJson(*mean) : json::Value(nullptr);
}

static json::Array toJson(const float *values, int64_t count) {
  json::Array list;
  for (int64_t i = 0; i < count; ++i)
    list.push_back(toJson(values[i]));
  return list;
}

static json::Value readElement(const OutputRows &rows, int64_t i) {
  int64_t width = rows.width ? rows.width : 1;
  if (rows.isNull(i / width) || rows.isNull(i / width, i % width))
    return nullptr;
  switch (rows.type) {
  case GENREC_F32:
    return toJson(rows.as<float>()[i]);
  case GENREC_F64:
    return toJson(rows.as<double>()[i]);
  case GENREC_I32:
    return static_cast<int64_t>(rows.as<int32_t>()[i]);
  case GENREC_I1:
    return static_cast<int64_t>(rows.as<uint8_t>()[i]);
  default:
    return rows.as<int64_t>()[i];
  }
}

static void appendOutput(const OutputRows &rows, json::Array &list) {
  for (int64_t row = 0; row < rows.count; ++row) {
    if (rows.width <= 1) {
      list.push_back(readElement(rows, row));
      continue;
    }
    json::Array columns;
    for (int64_t column = 0; column < rows.width; ++column)
      columns.push_back(readElement(rows, row * rows.width + column));
    list.push_back(std::move(columns));
  }
}

/// Throws where a row is not this rank's.
static json::Object tableToJson(const TableView &table, const std::string &name,
                                const Communicator *comm) {
  const StoreConfig &config = table.configuration();
  const int64_t count = table.size(), dim = config.dim, width = dim + config.stateFloats();
  const std::vector<int64_t> ids = table.ids(0, count);
  const TableRows stored = table.rows(0, count);
  std::vector<float> values(static_cast<size_t>(count * dim)),
      states(static_cast<size_t>(count * config.stateFloats()));
  stored.readValues(values.data());
  stored.read(config.stateOffset(), config.stateFloats(), states.data());
  std::vector<Sighting> sightings(static_cast<size_t>(config.rules.any() ? count : 0));
  if (!sightings.empty())
    stored.readSightings(sightings.data());
  json::Object rows;
  for (int64_t number = 0; number < count; ++number) {
    int64_t id = ids[static_cast<size_t>(number)];
    if (comm && getOwner(getSlice(hashTableName(name), id), comm->getSize()) != comm->getRank())
      throw Error("rank " + std::to_string(comm->getRank()) + " has row " + std::to_string(id) +
                  " of table '" + name + "', which it does not own");
    json::Array row = toJson(values.data() + number * dim, dim);
    for (json::Value &state : toJson(states.data() + number * (width - dim), width - dim))
      row.push_back(std::move(state));
    if (!sightings.empty()) {
      row.push_back(sightings[static_cast<size_t>(number)].lastStep);
      row.push_back(sightings[static_cast<size_t>(number)].steps);
    }
    rows[std::to_string(id)] = std::move(row);
  }
  return rows;
}

/// States one after another, each of the size of the value.
static json::Array statesToJson(const ParameterView &view) {
  json::Array all;
  for (int32_t number = 0; number < view.stateCount; ++number)
    for (int64_t row = view.firstRow; row < view.firstRow + view.ownRows; ++row)
      for (json::Value &value : toJson(view.state(number, row).data(), view.width))
        all.push_back(std::move(value));
  return all;
}

json::Object driver::stepToJson(Session &session, const StepReport &report) {
  const genrec_model_desc &model = session.model();
  json::Object top, losses, parameters, states, tables, outputs, metrics;
  for (int32_t i = 0; i < model.loss_count; ++i)
    losses[model.losses[i].name] = json::Object{{"mean", meanToJson(report.losses[i].mean())},
                                                {"sum", toJson(report.losses[i].sum)},
                                                {"weight", toJson(report.losses[i].weight)}};
  for (int32_t i = 0; i < model.parameter_count; ++i) {
    ParameterView view = session.parameter(i);
    parameters[model.parameters[i].name] =
        toJson(view.value.data(), static_cast<int64_t>(view.value.size()));
    states[model.parameters[i].name] = statesToJson(view);
  }
  for (int32_t i = 0; i < model.table_count; ++i)
    tables[model.tables[i].name] =
        tableToJson(session.table(i), model.tables[i].name, session.commOfRows(i));
  for (int32_t i = 0; i < model.output_count; ++i)
    for (size_t portion = 0; portion < report.batches.size(); ++portion) {
      const OutputRows &rows = session.output(i, static_cast<int32_t>(portion));
      if (!rows.given)
        continue;
      auto place = outputs.try_emplace(model.outputs[i].name, json::Array()).first;
      appendOutput(rows, *place->second.getAsArray());
    }
  for (auto &[name, value] : session.metrics().values())
    metrics[name] = toJson(value);
  top["losses"] = std::move(losses);
  top["loss"] = meanToJson(report.loss);
  top["parameters"] = std::move(parameters);
  top["states"] = std::move(states);
  top["tables"] = std::move(tables);
  top["outputs"] = std::move(outputs);
  top["metrics"] = std::move(metrics);
  return top;
}

/// Moves the members of `from` behind those of `to`; no key is in both.
static void moveRows(const std::string &table, json::Object &from, json::Object &to) {
  for (auto &[id, row] : from)
    if (!to.try_emplace(id, std::move(row)).second)
      throw Error("row " + id.str() + " of table '" + table + "' is on two ranks");
}

json::Object driver::joinRanks(std::vector<json::Object> ofRanks,
                               const std::vector<std::string> &replicated) {
  json::Object all = std::move(ofRanks.front());
  for (size_t rank = 1; rank < ofRanks.size(); ++rank) {
    json::Object &other = ofRanks[rank];
    for (const char *key : {"losses", "loss", "parameters", "states", "metrics"})
      if (*other.get(key) != *all.get(key))
        throw Error("rank " + std::to_string(rank) + " has other " + key + " than rank 0");
    for (auto &[table, rows] : *other.getObject("tables"))
      if (!std::ranges::count(replicated, table.str()))
        moveRows(table.str(), *rows.getAsObject(), *all.getObject("tables")->getObject(table));
    for (const std::string &table : replicated)
      if (*other.getObject("tables")->get(table) != *all.getObject("tables")->get(table))
        throw Error("rank " + std::to_string(rank) + " has other rows of table '" + table +
                    "' than rank 0");
    for (auto &[output, rows] : *other.getObject("outputs")) {
      json::Array &to =
          *all.getObject("outputs")->try_emplace(output, json::Array()).first->second.getAsArray();
      for (json::Value &row : *rows.getAsArray())
        to.push_back(std::move(row));
    }
  }
  return all;
}

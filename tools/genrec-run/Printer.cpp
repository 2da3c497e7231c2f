//===- Printer.cpp - results as text or JSON ------------------------------===//

#include "Printer.h"

#include "mlir/IR/AsmState.h"

#include <cmath>

using namespace mlir;
using namespace genrec;
using namespace genrec::run;
using namespace genrec::interpreter;

namespace json = llvm::json;

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

/// JSON has no infinity and no NaN: they become strings.
static json::Value numberToJson(double value) {
  if (std::isfinite(value))
    return value;
  return std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
}

static json::Array listToJson(ArrayRef<double> values) {
  json::Array list;
  for (double value : values)
    list.push_back(numberToJson(value));
  return list;
}

static json::Value elementToJson(const Tensor &x, size_t i) {
  if (x.isFloat())
    return numberToJson(x.floats()[i]);
  if (x.isInteger())
    return x.integers()[i];
  if (x.isString())
    return x.strings()[i];
  return x.handles()[i].isZero() ? "zeros" : "row";
}

/// `isVector`: rows are lists even when they have one element. `isNull`: per element; may be
/// empty.
static json::Value tensorToJson(const Tensor &x, bool isVector, ArrayRef<uint8_t> isNull = {}) {
  json::Array rows;
  for (int64_t row = 0; row < x.rows; ++row) {
    json::Array columns;
    for (int64_t column = 0; column < x.width; ++column)
      columns.push_back(!isNull.empty() && isNull[x.at(row, column)]
                            ? json::Value(nullptr)
                            : elementToJson(x, x.at(row, column)));
    rows.push_back(isVector ? json::Value(std::move(columns)) : std::move(columns.front()));
  }
  return x.shared ? std::move(rows.front()) : json::Value(std::move(rows));
}

/// null where no row counts.
static json::Value meanToJson(std::optional<double> mean) {
  return mean ? numberToJson(*mean) : json::Value(nullptr);
}

static json::Object lossesToJson(const Results &results) {
  json::Object losses;
  for (const LossResult &loss : results.losses)
    losses[loss.name] = json::Object{{"mean", meanToJson(loss.mean())},
                                     {"sum", numberToJson(loss.sum)},
                                     {"weight", numberToJson(loss.weight)}};
  return losses;
}

static json::Object gradientsToJson(const Results &results) {
  json::Object gradients;
  for (const auto &[name, gradient] : results.parameterGradients)
    gradients[name] = listToJson(gradient);
  for (const auto &[name, rows] : results.tableGradients) {
    json::Object ids;
    for (const auto &[id, gradient] : rows)
      ids[std::to_string(id)] = listToJson(gradient);
    gradients[name] = std::move(ids);
  }
  return gradients;
}

static json::Object tablesToJson(const State &state) {
  json::Object tables;
  for (const auto &[name, table] : state.tables) {
    json::Object rows;
    for (const auto &[id, row] : table.rows) {
      json::Array list = listToJson(row);
      if (auto sighting = table.seen.find(id); sighting != table.seen.end()) {
        list.push_back(static_cast<int64_t>(sighting->second.lastStep));
        list.push_back(sighting->second.steps);
      }
      rows[std::to_string(id)] = std::move(list);
    }
    tables[name] = std::move(rows);
  }
  return tables;
}

static json::Object valuesToJson(ProgramOp program, const Results &results) {
  json::Object values;
  AsmState names(program->getParentOfType<ModuleOp>());
  for (const auto &[value, tensor] : results.values) {
    std::string name;
    llvm::raw_string_ostream os(name);
    value.printAsOperand(os, names);
    values[name] = tensorToJson(tensor, !getRowShape(value.getType()).empty());
  }
  return values;
}

json::Object run::toJson(ProgramOp program, const Results &results, const State &state,
                         ArrayRef<Section> sections) {
  json::Object top;
  auto wants = [&](Section section) { return llvm::is_contained(sections, section); };
  if (wants(Section::losses) && !results.losses.empty()) {
    top["losses"] = lossesToJson(results);
    top["loss"] = meanToJson(results.loss());
  }
  if (wants(Section::outputs) && !results.outputs.empty()) {
    json::Object outputs;
    for (const OutputResult &output : results.outputs)
      outputs[output.name] = tensorToJson(output.value, output.value.width > 1, output.isNull);
    top["outputs"] = std::move(outputs);
  }
  if (wants(Section::metrics) && !results.metrics.empty()) {
    json::Object metrics;
    for (const auto &[name, value] : results.metrics)
      metrics[name] = numberToJson(value);
    top["metrics"] = std::move(metrics);
  }
  if (wants(Section::gradients))
    top["gradients"] = gradientsToJson(results);
  if (wants(Section::parameters)) {
    json::Object parameters;
    for (const auto &[name, parameter] : state.parameters)
      parameters[name] = listToJson(parameter.value());
    top["parameters"] = std::move(parameters);
  }
  if (wants(Section::tables))
    top["tables"] = tablesToJson(state);
  if (wants(Section::values))
    top["values"] = valuesToJson(program, results);
  return top;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// Numbers to nine digits, lists in brackets.
static void printInline(const json::Value &value, raw_ostream &os) {
  if (const json::Array *list = value.getAsArray()) {
    os << '[';
    llvm::interleaveComma(*list, os, [&](const json::Value &entry) { printInline(entry, os); });
    os << ']';
  } else if (auto integer = value.getAsInteger()) {
    os << *integer;
  } else if (auto number = value.getAsNumber()) {
    os << llvm::format("%.9g", *number);
  } else if (auto text = value.getAsString()) {
    os << *text;
  } else { // a mean of no rows, a null of an output
    os << "null";
  }
}

static void printTree(StringRef name, const json::Value &value, unsigned indent, raw_ostream &os) {
  os.indent(indent) << name << ':';
  if (const json::Object *object = value.getAsObject()) {
    os << '\n';
    std::map<StringRef, const json::Value *> sorted;
    for (const auto &[key, below] : *object)
      sorted[key] = &below;
    for (auto [key, below] : sorted)
      printTree(key, *below, indent + 2, os);
    return;
  }
  const json::Array *rows = value.getAsArray();
  if (rows && !rows->empty() && rows->front().getAsArray()) {
    os << '\n';
    for (const json::Value &row : *rows) {
      printInline(row, os.indent(indent + 2));
      os << '\n';
    }
    return;
  }
  printInline(value, os << ' ');
  os << '\n';
}

void run::printText(const json::Object &results, raw_ostream &os) {
  for (StringRef section :
       {"losses", "loss", "metrics", "outputs", "gradients", "parameters", "tables", "values"})
    if (const json::Value *value = results.get(section))
      printTree(section, *value, 0, os);
}

bool run::printCheck(const GradientCheck &check, bool allowZero, raw_ostream &os) {
  bool passes = true;
  for (const GradientSummary &summary : check.summaries) {
    os << "gradient of " << summary.name << ": " << summary.checked << " derivatives, "
       << summary.nonzero << " not 0\n";
    if (summary.nonzero > 0 || allowZero)
      continue;
    passes = false;
    os << "error: every derivative of " << summary.name
       << " is 0, so nothing was checked: give the loss a way to it, or --allow-zero\n";
  }
  for (const GradientMismatch &wrong : check.mismatches) {
    passes = false;
    os << llvm::format("error: the gradient of %s [%lld, %lld] is %.12g, the central difference "
                       "%.12g\n",
                       wrong.name.c_str(), static_cast<long long>(wrong.row),
                       static_cast<long long>(wrong.column), wrong.gradient, wrong.difference);
  }
  if (passes)
    os << llvm::format("gradients agree, within %.1e relative\n", check.worst);
  return passes;
}

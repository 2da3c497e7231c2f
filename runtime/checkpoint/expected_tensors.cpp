//===- expected_tensors.cpp - Whether a file fits a model -----------------===//

#include "expected_tensors.h"

#include "../core/text.h"
#include "tensor_names.h"

#include "genrec_rt/error.h"

#include <map>

namespace genrec::rt {

namespace {

/// What a file must or may hold for a model.
struct Expected {
  std::vector<int64_t> shape; ///< -1: any size
  bool required;
};

std::map<std::string, Expected> expectedTensors(const genrec_model_desc &model, States use,
                                                bool isIncremental) {
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
    if (isIncremental)
      expected[removedName(name)] = {{-1}, true};
    if (isIncremental && table.admit_after > 1)
      expected[removedName(waitingName(name))] = {{-1}, true};
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

} // namespace

void checkTensors(const SafetensorsReader &file, const genrec_model_desc &model, States states,
                  bool isIncremental) {
  std::map<std::string, Expected> expected = expectedTensors(model, states, isIncremental);
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

} // namespace genrec::rt

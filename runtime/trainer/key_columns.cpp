//===- key_columns.cpp - Columns passed through by predict ----------------===//

#include "key_columns.h"

#include "../core/model_queries.h"
#include "../data/leaf_values.h"
#include "genrec_rt/batch.h"
#include "genrec_rt/error.h"

#include <arrow/type.h>

namespace genrec::rt {

ExtendedModel::ExtendedModel(const genrec_model_desc &model, const genrec_program_desc &program,
                             const std::vector<int32_t> &domains,
                             const std::vector<std::string> &paths, const FileSpec &files,
                             Communicator *comm)
    : extended(model), extendedProgram(program),
      features(model.features, model.features + model.feature_count),
      read(program.features, program.features + program.feature_count) {
  for (const std::string &path : paths) {
    for (int32_t output = 0; output < model.output_count; ++output)
      if (path == model.outputs[output].name)
        throw Error("key '" + path + "' has the name of an output of the model",
                    "leave it out of --keys, or rename the output");
    // Few readers take a file with two columns of one name.
    for (const KeyColumn &key : columns)
      if (path == key.path)
        throw Error("--keys names column '" + path + "' twice", "name it once");
    columns.push_back({path, 0, 0, false, nullptr});
  }
  FoundColumns found = findColumns(files, paths, comm);
  for (size_t i = 0; i < paths.size(); ++i)
    addKey(model, domains, columns[i], found.columns[i], found.file);
  extended.features = features.data();
  extended.feature_count = static_cast<int32_t>(features.size());
  extendedProgram.features = read.data();
  extendedProgram.feature_count = static_cast<int32_t>(read.size());
}

std::vector<KeyColumn> ExtendedModel::keysOf(int32_t domain, const Dataset &data) const {
  std::vector<KeyColumn> keys;
  for (const KeyColumn &key : columns) {
    if (!key.isRoot && key.domain != domain)
      continue;
    keys.push_back(key);
    keys.back().type = data.keyType(key.feature);
    if (keys.back().type->id() == arrow::Type::NA)
      throw Error("column '" + key.path +
                      "' is null throughout, without a type, so it cannot be a "
                      "key",
                  "leave it out of --keys, or write the column with its type");
  }
  return keys;
}

int32_t listDomain(const genrec_model_desc &model, const std::vector<int32_t> &domains,
                   const ColumnPath &found, const std::string &path) {
  int32_t only = -1;
  for (int32_t domain : domains) {
    const genrec_domain_desc &desc = model.domains[domain];
    if (desc.kind != GENREC_DOMAIN_DATA || domainDepth(model, domain) != found.depth)
      continue;
    std::string list = desc.column ? std::string(desc.column) + "." : "";
    if (path.rfind(list, 0) == 0)
      return domain;
    // Columns of parallel lists have paths of their own, and Parquet's path has more parts. Those
    // of structs have the list's.
    bool isInAnother = path.find('.') != std::string::npos &&
                       path.substr(0, path.find('.')) != list.substr(0, list.find('.'));
    for (int32_t i = 0; i < model.feature_count; ++i)
      isInAnother |= model.features[i].domain == domain &&
                     std::string(model.features[i].column).rfind(list, 0) == 0;
    only = domains.size() == 1 && !isInAnother ? domain : -1;
  }
  return only;
}

namespace {

std::string namesOf(const genrec_model_desc &model, const std::vector<int32_t> &domains) {
  std::string names;
  for (int32_t domain : domains)
    names += (names.empty() ? "'" : " and '") + std::string(model.domains[domain].name) + "'";
  return names;
}

} // namespace

void ExtendedModel::addKey(const genrec_model_desc &model, const std::vector<int32_t> &domains,
                           KeyColumn &key, const ColumnPath &found, const std::string &file) {
  const std::string &path = key.path;
  std::string ignored;
  if (!isReadable(*found.type, GENREC_KEY, ignored))
    throw Error(file + ": column '" + path + "' is " + typeName(*found.type) +
                    ", which cannot be a key",
                "keys are booleans, numbers, decimals, strings, bytes, dates and times");
  int32_t owner = found.depth == 0 ? dataRoot(model) : listDomain(model, domains, found, path);
  if (owner < 0)
    throw Error(file + ": key '" + path +
                    "' is of a list that the outputs do not belong to: they are rows of " +
                    namesOf(model, domains),
                "keys are columns of the rows of the file or of a list that outputs belong to");
  key.feature = static_cast<int32_t>(features.size());
  key.domain = owner;
  key.isRoot = found.depth == 0;
  genrec_feature_desc feature{};
  feature.column = key.path.c_str();
  feature.domain = owner;
  feature.type = GENREC_KEY;
  feature.nullable = 1;
  features.push_back(feature);
  read.push_back(key.feature);
}

} // namespace genrec::rt

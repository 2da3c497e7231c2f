//===- ReadingModel.h - Models that only read --------------------*- C++ -*-===//

#ifndef GENREC_TEST_RUNTIME_READING_MODEL_H
#define GENREC_TEST_RUNTIME_READING_MODEL_H

#include "TinyData.h"
#include "genrec_rt/dataset.h"
#include "genrec_rt/error.h"

#include <arrow/api.h>

#include <algorithm>
#include <cstdio>
#include <functional>

namespace genrec::rt::test {

/// A model that only reads: domains and features given by the test.
struct ReadingModel {
  ReadingModel(std::vector<genrec_domain_desc> domainList,
               std::vector<genrec_feature_desc> featureList)
      : domains(std::move(domainList)), features(std::move(featureList)) {
    for (size_t i = 0; i < domains.size(); ++i)
      domainNumbers.push_back(static_cast<int32_t>(i));
    for (size_t i = 0; i < features.size(); ++i)
      featureNumbers.push_back(static_cast<int32_t>(i));
    program.name = "train";
    program.mode = 1;
    program.domains = domainNumbers.data();
    program.domain_count = static_cast<int32_t>(domains.size());
    program.features = featureNumbers.data();
    program.feature_count = static_cast<int32_t>(features.size());
    description.abi_version = GENREC_ABI_VERSION;
    description.name = "reading";
    description.domains = domains.data();
    description.domain_count = program.domain_count;
    description.features = features.data();
    description.feature_count = program.feature_count;
    description.programs = &program;
    description.program_count = 1;
  }

  std::vector<genrec_domain_desc> domains;
  std::vector<genrec_feature_desc> features;
  std::vector<int32_t> domainNumbers, featureNumbers;
  genrec_program_desc program{};
  genrec_model_desc description{};

  ReadingModel(const ReadingModel &) = delete; // the descriptions point inside
};

inline genrec_domain_desc root(const char *name) {
  return {name, GENREC_DOMAIN_DATA, -1, "", nullptr, nullptr, 0, 0, 0};
}
inline genrec_domain_desc child(const char *name, int32_t parent, const char *column) {
  return {name, GENREC_DOMAIN_DATA, parent, column, nullptr, nullptr, 0, 0, 0};
}
inline genrec_feature_desc feature(const char *column, int32_t domain, int32_t type) {
  genrec_feature_desc desc{};
  desc.column = column;
  desc.domain = domain;
  desc.type = type;
  return desc;
}

inline Batch readAll(const ReadingModel &model, const std::string &files,
                     EpochOptions options = {}) {
  Dataset data(model.description, {&model.program}, files, {});
  options.batch = std::max<int64_t>(data.rows(), 1);
  Batch batch(model.description);
  data.epoch(options)->next(batch);
  return batch;
}

template <class T> std::vector<T> valuesOf(const Batch &batch, int32_t index, int64_t count) {
  const auto *values = reinterpret_cast<const T *>(batch.columns[index].values.data());
  return {values, values + count};
}
inline std::vector<int64_t> offsetsOf(const Batch &batch, int32_t domain, int64_t parents) {
  const int64_t *offsets = batch.domains[domain].offsets.data();
  return {offsets, offsets + parents + 1};
}

struct Message {
  std::string text, help;
};
inline Message errorOf(const std::function<void()> &body) {
  try {
    body();
  } catch (const Error &error) {
    return {error.what(), error.help()};
  }
  return {"no error", ""};
}

using arrow::field;

inline ReadingModel userModel() {
  return ReadingModel({root("user"), child("history", 0, "history")},
                      {feature("user", 0, GENREC_I64), feature("history.movie", 1, GENREC_I64)});
}

/// Users 0 … rows-1, in several files with several row groups.
inline std::string writeUsers(const TestFolder &folder, int64_t rows, int64_t perFile,
                              int64_t perGroup) {
  for (int64_t first = 0, number = 0; first < rows; first += perFile, ++number) {
    std::string json = "[";
    for (int64_t u = first; u < std::min(rows, first + perFile); ++u)
      json += (u == first ? "[" : ",[") + std::to_string(u) +
              ",0,0,[{\"movie\":" + std::to_string(u * 2) +
              "},{\"movie\":" + std::to_string(u * 2 + 1) + "}]]";
    char name[32];
    std::snprintf(name, sizeof name, "part-%03d.parquet", static_cast<int>(number));
    writeParquet(folder / name, *tableOf(tinySchema(), json + "]"), perGroup);
  }
  return folder.path;
}

} // namespace genrec::rt::test

#endif // GENREC_TEST_RUNTIME_READING_MODEL_H

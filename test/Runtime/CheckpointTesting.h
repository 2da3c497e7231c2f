//===- CheckpointTesting.h - What tests of checkpoints share -----*- C++ -*-===//

#ifndef GENREC_TEST_RUNTIME_CHECKPOINT_TESTING_H
#define GENREC_TEST_RUNTIME_CHECKPOINT_TESTING_H

#include "TinyData.h"
#include "TinyModel.h"
#include "error_text.h"
#include "genrec_rt/checkpoint.h"
#include "genrec_rt/safetensors.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace genrec::rt::test {

inline constexpr int64_t kMovies = 60;

inline SessionOptions seeded() {
  SessionOptions options;
  options.seed = 3;
  options.threads = 2;
  return options;
}

inline void trainSome(Session &session, int64_t steps) {
  for (int64_t i = 0; i < steps; ++i) {
    Batch batch = tinyBatch(session.stepsDone(), 30, kMovies);
    session.train(batch);
  }
}

inline TrainingState stateOf(const Session &session) {
  TrainingState state;
  state.step = session.stepsDone();
  state.epoch = 2;
  state.rowsInEpoch = 60;
  state.epochLosses = {{0.1 + 0.2, 1.0 / 3}};
  state.history = R"([{"epoch":1,"loss":0.625}])";
  state.seed = session.seed();
  state.batch = 30;
  state.shuffle = true;
  state.dataRows = 600;
  state.windowRows = 600;
  return state;
}

/// What is in a file.
inline std::string bytesOf(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The files below a folder, sorted.
inline std::vector<std::string> filesIn(const std::string &folder) {
  std::vector<std::string> files;
  for (const auto &entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      files.push_back(std::filesystem::relative(entry.path(), folder).string());
  std::sort(files.begin(), files.end());
  return files;
}

inline void writeText(const std::string &path, const std::string &text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// A checkpoint as version 1 of the format had it.
inline void saveVersion1(const std::string &folder, Session &session, nlohmann::json changes = {}) {
  std::string name = "step-" + std::to_string(session.stepsDone());
  std::filesystem::create_directories(folder + "/" + name);
  SafetensorsWriter writer;
  addModelTensors(writer, session, /*states=*/true);
  int64_t bytes = writer.write(folder + "/" + name + "/model.safetensors");
  nlohmann::json manifest = {{"version", 1},
                             {"model", "tiny"},
                             {"compiler", "x"},
                             {"step", session.stepsDone()},
                             {"epoch", 2},
                             {"rows_in_epoch", 60},
                             {"seed", session.seed()},
                             {"batch", 30},
                             {"shuffle", true},
                             {"data_rows", 600},
                             {"window_rows", 600},
                             {"tensors", name + "/model.safetensors"},
                             {"tensor_bytes", bytes}};
  manifest["epoch_losses"] = {{{"sum", 0.5}, {"weight", 2.0}}};
  manifest["history"] = nlohmann::json::array();
  if (changes.is_object())
    manifest.update(changes);
  writeText(folder + "/manifest.json", manifest.dump(1));
}

/// The tiny model with a table more, whose rows come and leave by rule.
struct TwoTables {
  TwoTables() : tables{tinyModel().tables[0], tinyModel().tables[0]}, model(tinyModel()) {
    tables[1].name = "genre";
    tables[1].ttl = 10;
    tables[1].admit_after = 3;
    model.tables = tables;
    model.table_count = 2;
  }
  genrec_table_desc tables[2];
  genrec_model_desc model;
};

/// A session of one thread, on a rank of `comm` (null: alone).
inline SessionOptions optionsOf(Communicator *comm) {
  SessionOptions options = seeded();
  options.threads = 1;
  options.comm = comm;
  return options;
}

} // namespace genrec::rt::test

#endif // GENREC_TEST_RUNTIME_CHECKPOINT_TESTING_H

//===- checkpoint.cpp - Saving and restoring training ---------------------===//

#include "genrec_rt/checkpoint.h"

#include "aside_file.h"
#include "genrec_rt/safetensors.h"
#include "model_tensors.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace genrec::rt {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kManifestVersion = 1;
constexpr const char *kTensorFile = "model.safetensors";
constexpr const char *kPartial = ".partial";

std::string manifestPath(const std::string &folder) { return folder + "/manifest.json"; }

/// The folder of tensors of a step; a run that was resumed and came back to the
/// same step writes under another name, since the old one is in use until the
/// manifest is replaced.
std::string freeTensorFolder(const std::string &folder, uint64_t step) {
  std::string stem = "step-" + std::to_string(step), name = stem;
  for (int copy = 2; fs::exists(folder + "/" + name); ++copy)
    name = stem + "." + std::to_string(copy);
  return name;
}

bool isTensorFolder(const std::string &name) { return name.rfind("step-", 0) == 0; }

/// Removes tensors that no manifest names: of older checkpoints, and what saves
/// that failed left behind. Failing to is no error: it is tried again next time.
void removeOthers(const std::string &folder, const std::string &kept) {
  std::error_code ignored;
  for (const auto &entry : fs::directory_iterator(folder, ignored)) {
    std::string name = entry.path().filename().string();
    if (isTensorFolder(name) && name != kept)
      fs::remove_all(entry.path(), ignored);
  }
}

Json readManifest(const std::string &folder) {
  std::string path = manifestPath(folder);
  std::ifstream file(path);
  if (!file)
    throw Error("there is no checkpoint in '" + folder + "' (no manifest.json)",
                "train with --checkpoint " + folder + " first");
  std::stringstream text;
  text << file.rdbuf();
  Json manifest = Json::parse(text.str(), nullptr, /*allow_exceptions=*/false);
  if (!manifest.is_object() || !manifest.contains("version"))
    throw Error(path + ": is damaged: no JSON object with a version");
  if (manifest["version"] != kManifestVersion)
    throw Error(path + ": has version " + manifest["version"].dump() + ", this binary reads " +
                std::to_string(kManifestVersion));
  return manifest;
}

Json toJson(const TrainingState &state, const genrec_model_desc &model) {
  Json losses = Json::array();
  for (const LossValue &loss : state.epochLosses)
    losses.push_back({{"sum", loss.sum}, {"weight", loss.weight}});
  return {{"version", kManifestVersion},
          {"model", model.name},
          {"compiler", model.compiler ? model.compiler : ""},
          {"step", state.step},
          {"epoch", state.epoch},
          {"rows_in_epoch", state.rowsInEpoch},
          {"epoch_losses", losses},
          {"seed", state.seed},
          {"batch", state.batch},
          {"shuffle", state.shuffle},
          {"data_rows", state.dataRows},
          {"window_rows", state.windowRows},
          {"history", Json::parse(state.history)}};
}

TrainingState fromJson(const Json &manifest) {
  TrainingState state;
  state.step = manifest.at("step");
  state.epoch = manifest.at("epoch");
  state.rowsInEpoch = manifest.at("rows_in_epoch");
  for (const Json &loss : manifest.at("epoch_losses"))
    state.epochLosses.push_back({loss.at("sum"), loss.at("weight")});
  state.seed = manifest.at("seed");
  state.batch = manifest.at("batch");
  state.shuffle = manifest.at("shuffle");
  state.dataRows = manifest.at("data_rows");
  state.windowRows = manifest.at("window_rows");
  state.history = manifest.at("history").dump();
  return state;
}

/// Runs `body`, which reads the manifest; what it lacks is an Error.
template <class Body> auto guarded(const std::string &folder, const Body &body) {
  try {
    return body();
  } catch (const nlohmann::json::exception &error) {
    throw Error(manifestPath(folder) + ": is damaged: " + error.what());
  }
}

void writeTensors(const std::string &folder, const std::string &name, Session &session,
                  int64_t &bytes) {
  std::string partial = folder + "/" + name + kPartial;
  fs::remove_all(partial);
  fs::create_directories(partial);
  SafetensorsWriter writer;
  writer.note("model", session.model().name);
  addModelTensors(writer, session, /*states=*/true);
  bytes = writer.write(partial + "/" + kTensorFile);
  syncFolder(partial);
  fs::rename(partial, folder + "/" + name);
  syncFolder(folder);
}

void save(const std::string &folder, Session &session, const TrainingState &state) {
  fs::create_directories(folder);
  std::string name = freeTensorFolder(folder, state.step);
  Json manifest = toJson(state, session.model());
  int64_t bytes = 0;
  writeTensors(folder, name, session, bytes);
  manifest["tensors"] = name + "/" + kTensorFile;
  manifest["tensor_bytes"] = bytes;
  writeFile(manifestPath(folder), manifest.dump(1) + "\n");
  syncFolder(folder);
  removeOthers(folder, name);
}

} // namespace

bool hasCheckpoint(const std::string &folder) { return fs::exists(manifestPath(folder)); }

void saveCheckpoint(const std::string &folder, Session &session, const TrainingState &state) {
  std::string message, help;
  try {
    return save(folder, session, state);
  } catch (const Error &error) {
    message = error.what();
    help = error.help();
  } catch (const fs::filesystem_error &error) {
    message = error.what();
  }
  // What was written in vain may be what fills the disk.
  std::error_code ignored;
  std::string before = "there was none before";
  std::string kept;
  try {
    Json manifest = readManifest(folder);
    before = "the one of step " + manifest.at("step").dump() + " is whole";
    kept = fs::path(manifest.at("tensors").get<std::string>()).parent_path().string();
  } catch (const std::exception &) {
  }
  if (fs::is_directory(folder, ignored))
    removeOthers(folder, kept);
  throw Error("the checkpoint of step " + std::to_string(state.step) +
                  " was not saved: " + message + "; " + before,
              help);
}

TrainingState loadCheckpoint(const std::string &folder, Session &session) {
  Json manifest = readManifest(folder);
  return guarded(folder, [&] {
    if (manifest.at("model") != session.model().name)
      throw Error("'" + folder + "' is a checkpoint of model " + manifest.at("model").dump() +
                  ", this binary is model \"" + session.model().name + "\"");
    std::string tensors = folder + "/" + manifest.at("tensors").get<std::string>();
    std::error_code missing;
    auto size = fs::file_size(tensors, missing);
    if (missing)
      throw Error(manifestPath(folder) + ": names " + tensors +
                  ", which cannot be read: " + missing.message());
    if (static_cast<int64_t>(size) != manifest.at("tensor_bytes").get<int64_t>())
      throw Error(tensors + ": is damaged: it has " + std::to_string(size) +
                  " bytes, the manifest says " + manifest.at("tensor_bytes").dump());
    readModelTensors(SafetensorsReader(tensors), session, /*states=*/true);
    TrainingState state = fromJson(manifest);
    session.setStepsDone(state.step);
    return state;
  });
}

TrainingState readTrainingState(const std::string &folder) {
  Json manifest = readManifest(folder);
  return guarded(folder, [&] { return fromJson(manifest); });
}

std::vector<std::string> checkpointTensorFiles(const std::string &folder) {
  Json manifest = readManifest(folder);
  return guarded(folder, [&] {
    return std::vector{folder + "/" + manifest.at("tensors").get<std::string>()};
  });
}

} // namespace genrec::rt

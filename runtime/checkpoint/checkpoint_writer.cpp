//===- checkpoint_writer.cpp - Saving training ----------------------------===//

#include "../core/aside_file.h"
#include "checkpoint_reader.h"
#include "checksum.h"
#include "generations.h"
#include "genrec_rt/safetensors.h"
#include "model_tensors.h"

#include <algorithm>
#include <cmath>
#include <exception>

namespace genrec::rt {

namespace {

bool names(const FolderManifest &manifest, const std::string &name) {
  return std::any_of(manifest.generations.begin(), manifest.generations.end(),
                     [&](const GenerationEntry &entry) { return entry.name == name; });
}

bool isFinite(const std::vector<LossValue> &losses) {
  return std::all_of(losses.begin(), losses.end(), [](const LossValue &loss) {
    return std::isfinite(loss.sum) && std::isfinite(loss.weight);
  });
}

} // namespace

struct CheckpointWriter::Impl {
  Impl(const std::string &folder, const CheckpointOptions &options)
      : folder(folder), options(options), lock((makeFolders(folder), folder)) {
    readFolder();
  }

  std::string manifestPath() const { return folder + "/" + kManifestFile; }

  /// What the folder's manifest names is known from here on: this process alone changes it.
  void readFolder();
  void keepUpTo(const std::string &name, uint64_t step, uint64_t checksum);
  GenerationEntry writeGeneration(const std::string &name, Session &session,
                                  const std::shared_ptr<SavedTables> &tables,
                                  const TrainingState &state) const;
  /// What the manifest shall say once `entry` is there.
  FolderManifest withGeneration(const GenerationEntry &entry) const;
  bool isNamed(const std::string &name) const;
  void save(Session &session, const std::shared_ptr<SavedTables> &tables,
            const TrainingState &state);
  void saveOrExplain(Session &session, const std::shared_ptr<SavedTables> &tables,
                     const TrainingState &state);
  void removeRetired();
  std::string describePrevious() const;

  std::string folder;
  CheckpointOptions options;
  FolderLock lock;
  /// On disk now. `kept` of them are this run's, the others go with its first save.
  FolderManifest manifest;
  std::vector<GenerationEntry> kept;
};

void CheckpointWriter::Impl::readFolder() {
  try {
    std::optional<std::string> text = readTextFile(manifestPath());
    if (text && checkManifest(*text, manifestPath()) == 1) {
      GenerationManifest old = parseVersion1(*text, manifestPath());
      manifest.retired = {old.tensors.substr(0, old.tensors.find('/'))};
    } else if (text) {
      manifest = parseFolderManifest(*text, manifestPath());
    }
  } catch (const Error &) {
    return; // what cannot be read names nothing that may be removed
  }
  // Of a save that was killed before it counted.
  const std::string &left = lock.leftBehind();
  bool isOld = std::find(manifest.retired.begin(), manifest.retired.end(), left) !=
               manifest.retired.end();
  if (!left.empty() && !names(manifest, left) && !isOld)
    removeGeneration(folder, left);
}

void CheckpointWriter::Impl::keepUpTo(const std::string &name, uint64_t step, uint64_t checksum) {
  kept.clear();
  if (checksum == 0) // of version 1, which has no manifest to name
    return;
  for (const GenerationEntry &entry : manifest.generations) {
    if (entry.name == name)
      break;
    kept.push_back(entry);
  }
  kept.push_back({name, step, checksum});
}

GenerationEntry CheckpointWriter::Impl::writeGeneration(const std::string &name, Session &session,
                                                        const std::shared_ptr<SavedTables> &tables,
                                                        const TrainingState &state) const {
  const genrec_model_desc &model = session.model();
  if (!options.allowNonFinite && !isFinite(state.epochLosses))
    throw Error("the loss of the epoch is a NaN or an infinity");
  SafetensorsWriter writer;
  writer.note("model", model.name);
  addModelTensors(writer, session, tables, /*states=*/true);
  GenerationManifest generation;
  std::string path = folder + "/" + name + "/";
  generation.digest = writer.writeWithDigest(path + kTensorFile, !options.allowNonFinite);
  generation.model = model.name;
  generation.compiler = model.compiler ? model.compiler : "";
  generation.identity = model.identity ? model.identity : "";
  generation.state = state;
  generation.isFinite = generation.digest->notFinite.empty() && isFinite(state.epochLosses);
  std::string text = toText(generation);
  writeFile(path + kManifestFile, text);
  return {name, state.step, checksumOf(text)};
}

FolderManifest CheckpointWriter::Impl::withGeneration(const GenerationEntry &entry) const {
  FolderManifest next;
  next.generations = kept;
  // A step that is saved again, at the end of its epoch for example, is no generation more.
  std::erase_if(next.generations,
                [&](const GenerationEntry &old) { return old.step == entry.step; });
  next.generations.push_back(entry);
  auto count = static_cast<int64_t>(next.generations.size());
  if (count > options.keep)
    next.generations.erase(next.generations.begin(),
                           next.generations.begin() + (count - options.keep));
  std::vector<std::string> before = manifest.retired;
  for (const auto *list : {&manifest.generations, &kept})
    for (const GenerationEntry &old : *list)
      before.push_back(old.name);
  for (const std::string &name : before)
    if (!names(next, name) &&
        std::find(next.retired.begin(), next.retired.end(), name) == next.retired.end())
      next.retired.push_back(name);
  return next;
}

/// Whether the manifest on disk names a generation, or cannot be asked.
bool CheckpointWriter::Impl::isNamed(const std::string &name) const {
  try {
    std::optional<std::string> text = readTextFile(manifestPath());
    if (!text)
      return false;
    if (checkManifest(*text, manifestPath()) == 1)
      return false;
    return names(parseFolderManifest(*text, manifestPath()), name);
  } catch (const std::exception &) {
    return true;
  }
}

void CheckpointWriter::Impl::save(Session &session, const std::shared_ptr<SavedTables> &tables,
                                  const TrainingState &state) {
  std::string name = makeGeneration(folder, state.step, lock);
  FolderManifest next;
  bool isWritten = false;
  try {
    GenerationEntry entry = writeGeneration(name, session, tables, state);
    syncFolder(folder);
    next = withGeneration(entry);
    isWritten = true;
    writeFile(manifestPath(), toText(next));
  } catch (...) {
    // Renamed, but not known to survive a power cut: all that it names stays.
    if (isWritten && isNamed(name)) {
      manifest = next;
      kept = next.generations;
        } else if (!removeGeneration(folder, name)) {
      manifest.retired.push_back(name);
    }
    throw;
  }
  manifest = next;
  kept = next.generations;
  lock.setWriting("");
  removeRetired();
}

void CheckpointWriter::Impl::removeRetired() {
  std::erase_if(manifest.retired,
                [&](const std::string &name) { return removeGeneration(folder, name); });
}

std::string CheckpointWriter::Impl::describePrevious() const {
  if (manifest.generations.empty())
    return manifest.retired.empty() ? "there was none before" : "what was there is as it was";
  return "the one of step " + std::to_string(manifest.generations.back().step) + " is whole";
}

/// The same; an error says what became of the previous generation.
void CheckpointWriter::Impl::saveOrExplain(Session &session,
                                           const std::shared_ptr<SavedTables> &tables,
                                           const TrainingState &state) {
  std::string message, help;
  try {
    return save(session, tables, state);
  } catch (const CommError &) {
    throw; // the run ends with the ranks
  } catch (const Error &error) {
    message = error.what();
    help = error.help();
  } catch (const std::bad_alloc &) {
    message = "out of memory";
  }
  throw Error("the checkpoint of step " + std::to_string(state.step) +
                  " was not saved: " + message + "; " + describePrevious(),
              help);
}

CheckpointWriter::CheckpointWriter(const std::string &folder, const CheckpointOptions &options)
    : comm(options.comm) {
  runTogether(comm, [&] {
    if (isFirstRank(comm))
      impl = std::make_unique<Impl>(folder, options);
  });
}

CheckpointWriter::~CheckpointWriter() = default;

void CheckpointWriter::continueFrom(const CheckpointReader &reader) {
  if (impl)
    impl->keepUpTo(reader.generation(), reader.state().step, reader.impl->checksum);
}

void CheckpointWriter::continueFromNewest() {
  if (impl)
    impl->kept = impl->manifest.generations;
}

void CheckpointWriter::save(Session &session, const TrainingState &state) {
  auto tables = std::make_shared<SavedTables>(session);
  runTogether(comm, [&] {
    if (!impl)
      return tables->serve();
    std::exception_ptr failure;
    try {
      impl->saveOrExplain(session, tables, state);
    } catch (const CommError &) {
      throw;
    } catch (...) {
      failure = std::current_exception();
    }
    tables->end();
    if (failure)
      std::rethrow_exception(failure);
  });
}

void saveCheckpoint(const std::string &folder, Session &session, const TrainingState &state) {
  CheckpointWriter writer(folder, {.comm = session.comm()});
  writer.continueFromNewest();
  writer.save(session, state);
}

} // namespace genrec::rt

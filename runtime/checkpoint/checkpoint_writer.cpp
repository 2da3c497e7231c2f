//===- checkpoint_writer.cpp - Saving training ----------------------------===//

#include "../core/aside_file.h"
#include "../core/checksum.h"
#include "checkpoint_reader.h"
#include "generations.h"
#include "genrec_rt/safetensors.h"
#include "model_tensors.h"
#include "row_changes.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <set>

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

/// Rank 0's text, on all.
void broadcastText(Communicator *comm, std::string &text) {
  if (!comm)
    return;
  auto bytes = static_cast<int64_t>(text.size());
  comm->broadcast(&bytes, sizeof bytes, 0);
  text.resize(static_cast<size_t>(bytes));
  comm->broadcast(text.data(), bytes, 0);
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
  void keepUpTo(const CheckpointReader::Impl &reader);
  void begin(const TrainingState &state);
  void finish(const genrec_model_desc &model, const TrainingState &state, TensorDigest digest,
              bool isFull);
  GenerationEntry writeManifest(const genrec_model_desc &model, const TrainingState &state,
                                TensorDigest digest, bool isFull) const;
  /// What the manifest shall say once `entry` is there.
  FolderManifest withGeneration(const GenerationEntry &entry) const;
  bool isNamed(const std::string &name) const;
  /// What a save that failed leaves; then an error that says what became of the previous generation.
  [[noreturn]] void explain(const TrainingState &state, const std::string &message,
                            const std::string &help);
  void removeRetired();
  std::string describePrevious() const;

  std::string folder;
  CheckpointOptions options;
  FolderLock lock;
  /// On disk now. `kept` of them are this run's, the others go with its first save.
  FolderManifest manifest;
  std::vector<GenerationEntry> kept;
  std::string writing; ///< the generation that is being written; "": none
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
  lock.setWriting("");
}

void CheckpointWriter::Impl::keepUpTo(const CheckpointReader::Impl &reader) {
  kept.clear();
  if (reader.checksum == 0) // of version 1, which has no manifest to name
    return;
  for (const GenerationEntry &entry : manifest.generations) {
    if (entry.name == reader.generation)
      break;
    kept.push_back(entry);
  }
  // What it is built on is there, whether or not the folder's manifest could be read.
  auto add = [&](const GenerationEntry &entry) {
    if (std::none_of(kept.begin(), kept.end(),
                     [&](const GenerationEntry &one) { return one.name == entry.name; }))
      kept.push_back(entry);
  };
  for (auto base = reader.bases.rbegin(); base != reader.bases.rend(); ++base)
    add((*base)->entry());
  add(reader.entry());
}

/// Makes the folder of a generation.
void CheckpointWriter::Impl::begin(const TrainingState &state) {
  if (!options.allowNonFinite && !isFinite(state.epochLosses))
    throw Error("the loss of the epoch is a NaN or an infinity");
  writing = makeGeneration(folder, state.step, lock);
}

GenerationEntry CheckpointWriter::Impl::writeManifest(const genrec_model_desc &model,
                                                      const TrainingState &state,
                                                      TensorDigest digest, bool isFull) const {
  GenerationManifest generation;
  generation.model = model.name;
  generation.compiler = model.compiler ? model.compiler : "";
  generation.identity = model.identity ? model.identity : "";
  generation.state = state;
  generation.isFinite = digest.notFinite.empty() && isFinite(state.epochLosses);
  generation.isSorted = true;
  if (!isFull) { // what this writer saved last
    generation.base = kept.back().name;
    generation.baseChecksum = kept.back().checksum;
  }
  generation.digest = std::move(digest);
  std::string text = toText(generation);
  writeFile(folder + "/" + writing + "/" + kManifestFile, text);
  return {writing, state.step, checksumOf(text), generation.base};
}

FolderManifest CheckpointWriter::Impl::withGeneration(const GenerationEntry &entry) const {
  std::vector<GenerationEntry> all = kept;
  all.push_back(entry);
  // The newest of every step, until there are enough: a step that is saved again, at the end of its epoch for
  // example, is no generation more.
  std::set<std::string> wanted;
  std::set<uint64_t> steps;
  for (auto one = all.rbegin(); one != all.rend(); ++one)
    if (static_cast<int64_t>(steps.size()) < options.keep && steps.insert(one->step).second)
      wanted.insert(one->name);
  // And what they are built on, which comes before them.
  for (auto one = all.rbegin(); one != all.rend(); ++one)
    if (wanted.contains(one->name) && !one->base.empty())
      wanted.insert(one->base);
  FolderManifest next;
  for (const GenerationEntry &one : all)
    if (wanted.contains(one.name))
      next.generations.push_back(one);
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

/// Once the tensors are on disk: from the rename of the folder's manifest on, the save counts.
void CheckpointWriter::Impl::finish(const genrec_model_desc &model, const TrainingState &state,
                                    TensorDigest digest, bool isFull) {
  GenerationEntry entry = writeManifest(model, state, std::move(digest), isFull);
  syncFolder(folder);
  FolderManifest next = withGeneration(entry);
  try {
    writeFile(manifestPath(), toText(next));
  } catch (...) {
    // Renamed, but not known to survive a power cut: all that it names stays.
    if (isNamed(writing)) {
      manifest = next;
      kept = next.generations;
      writing.clear();
    }
    throw;
  }
  manifest = next;
  kept = next.generations;
  writing.clear();
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

void CheckpointWriter::Impl::explain(const TrainingState &state, const std::string &message,
                                     const std::string &help) {
  if (!writing.empty() && !removeGeneration(folder, writing))
    manifest.retired.push_back(writing);
  writing.clear();
  throw Error("the checkpoint of step " + std::to_string(state.step) +
                  " was not saved: " + message + "; " + describePrevious(),
              help);
}

CheckpointWriter::CheckpointWriter(const std::string &folder, const CheckpointOptions &options)
    : folder(folder), options(options) {
  runTogether(options.comm, [&] {
    if (isFirstRank(options.comm))
      impl = std::make_unique<Impl>(folder, options);
    if (options.fullEvery > 1)
      changes = std::make_unique<RowChanges>();
  });
}

CheckpointWriter::~CheckpointWriter() = default;

void CheckpointWriter::continueFrom(const CheckpointReader &reader) {
  if (impl)
    impl->keepUpTo(*reader.impl);
}

void CheckpointWriter::continueFromNewest() {
  if (impl)
    impl->kept = impl->manifest.generations;
}

/// Writes what all ranks have, each its share.
TensorDigest CheckpointWriter::write(const std::string &path, Session &session, bool isFull) const {
  std::vector<SharedTensor> tensors =
      modelTensors(session, /*states=*/true, isFull ? nullptr : changes.get());
  SafetensorsWriter header;
  runTogether(options.comm, [&] {
    header.note("model", session.model().name);
    for (const SharedTensor &tensor : tensors)
      header.add(tensor.name, tensor.dtype, tensor.shape, {});
  });
  return writeTogether(options.comm, path, header, tensors, !options.allowNonFinite);
}

void CheckpointWriter::save(Session &session, const TrainingState &given) {
  TrainingState state = given;
  state.clock = session.clock();
  std::string message, help;
  try {
    runTogether(options.comm, [&] {
      if (impl)
        impl->begin(state);
    });
    std::string name = impl ? impl->writing : "";
    broadcastText(options.comm, name);
    bool isFull = !changes || !changes->isKnown() || savesSinceFull + 1 >= options.fullEvery;
    runTogether(options.comm, [&] {
      if (changes)
        changes->update(session);
    });
    TensorDigest digest = write(folder + "/" + name + "/" + kTensorFile, session, isFull);
    runTogether(options.comm, [&] {
      if (impl)
        impl->finish(session.model(), state, std::move(digest), isFull);
    });
    savesSinceFull = isFull ? 0 : savesSinceFull + 1;
    return;
  } catch (const CommError &) {
    throw; // the run ends with the ranks
  } catch (const Error &error) {
    message = error.what();
    help = error.help();
  } catch (const std::bad_alloc &) {
    message = "out of memory";
  } catch (const std::exception &error) {
    message = error.what();
  }
  if (changes)
    changes->forget(); // since the last save that counts; the next one is full
  runTogether(options.comm, [&] { // all are here: what one throws, all have thrown
    if (impl)
      impl->explain(state, message, help);
  });
}

void saveCheckpoint(const std::string &folder, Session &session, const TrainingState &state) {
  CheckpointWriter writer(folder, {.comm = session.comm()});
  writer.continueFromNewest();
  writer.save(session, state);
}

} // namespace genrec::rt

//===- checkpoint_reader.cpp - Restoring training -------------------------===//

#include "checkpoint_reader.h"
#include "../core/aside_file.h"
#include "../core/checksum.h"
#include "../core/text.h"
#include "generations.h"
#include "identity.h"
#include "model_tensors.h"

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace genrec::rt {

namespace {

namespace fs = std::filesystem;

/// Between reading the folder's manifest and opening what it names, a run may have saved often
/// enough to remove that. Then there is a newer one.
constexpr int kMostAttempts = 1000;
constexpr std::chrono::milliseconds kPause(1);

/// A file that was named is not there: removed meanwhile, or lost.
struct Vanished {
  std::string path;
};

/// Opens a generation's tensors so that they are not removed while the descriptor is open.
int openShared(const std::string &path) {
  int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0 && (errno == ENOENT || errno == ENOTDIR))
    throw Vanished{path};
  if (descriptor < 0)
    throwFileError("open", path);
  struct stat status{};
  if (!lockShared(descriptor) || fstat(descriptor, &status) != 0 || status.st_nlink == 0) {
    close(descriptor);
    throw Vanished{path};
  }
  return descriptor;
}

Error noCheckpoint(const std::string &folder, const std::string &help) {
  std::error_code ignored;
  fs::file_status status = fs::status(folder, ignored);
  if (fs::exists(status) && !fs::is_directory(status))
    return Error("'" + folder + "' is a file, but a checkpoint is a folder",
                 "name the folder that --checkpoint of train named");
  const auto [above, generation] = namedGeneration(folder);
  if (!fs::exists(status) && !generation.empty() && hasCheckpoint(above))
    return Error("there is no generation " + generation + " in '" + above + "'",
                 "--checkpoint " + above + " is the newest; genrec-checkpoint list " + above +
                     " shows which there are");
  return Error("there is no checkpoint in '" + folder + "' (no " +
                   (fs::exists(status) ? kManifestFile : "such folder") + ")",
               help.empty() ? "train with --checkpoint " + folder + " first" : help);
}

/// "--generation" takes the folder's name, or its step alone.
std::string generationName(const std::string &wanted) {
  std::string name = wanted;
  bool isStep = !name.empty() && name.find_first_not_of("0123456789.") == std::string::npos;
  if (isStep)
    name = "step-" + name;
  if (!isGenerationName(name))
    throw Error("'" + wanted + "' is no generation of a checkpoint",
                "name one of its folders, like step-1200");
  return name;
}

/// Which of these generations can be used instead, as help; "" where none can.
std::string wholeOneOf(const std::string &folder, const std::vector<std::string> &names) {
  for (const std::string &name : names) {
    try {
      CheckpointReader(folder, name).verify();
      return "generation " + name + " is whole: --generation " + name + " uses it";
    } catch (const Error &) {
    }
  }
  return {};
}

} // namespace

//===-- finding a generation ------------------------------------------------===//

void OpenedGeneration::open(const std::string &folder, const std::string &manifestText,
                            const std::string &name) {
  std::string path = folder + "/" + name + "/" + kManifestFile;
  checkManifest(manifestText, path);
  manifest = parseGenerationManifest(manifestText, path);
  generation = name;
  checksum = checksumOf(manifestText);
  openTensors(folder + "/" + name + "/" + manifest.tensors);
}

/// A generation, and those that it is built on.
void CheckpointReader::Impl::openAll(const std::string &manifestText, const std::string &name) {
  bases.clear();
  open(folder, manifestText, name);
  const OpenedGeneration *last = this;
  while (!last->manifest.base.empty()) {
    const std::string base = last->manifest.base, path = folder + "/" + base + "/" + kManifestFile;
    std::optional<std::string> text = readTextFile(path);
    if (!text)
      throw Vanished{path};
    if (checksumOf(*text) != last->manifest.baseChecksum)
      throw Error(path + ": has another checksum than " + folder + "/" + last->generation +
                  ", which is built on it, says");
    for (const std::unique_ptr<OpenedGeneration> &one : bases)
      if (one->generation == base)
        throw Error(path + ": is damaged: it is built on itself");
    bases.push_back(std::make_unique<OpenedGeneration>());
    bases.back()->open(folder, *text, base);
    last = bases.back().get();
  }
}

void OpenedGeneration::openTensors(const std::string &path) {
  int descriptor = openShared(path);
  struct stat status{};
  if (!manifest.digest && fstat(descriptor, &status) == 0 &&
      status.st_size != manifest.tensorBytes) {
    close(descriptor);
    throw Error(path + ": is damaged: it has " + std::to_string(status.st_size) +
                " bytes, the manifest says " + std::to_string(manifest.tensorBytes));
  }
  const TensorDigest *digest = manifest.digest ? &*manifest.digest : nullptr;
  tensors = std::make_unique<SafetensorsReader>(
      descriptor, path, SafetensorsReader::Checks{digest, manifest.isFinite});
}

void CheckpointReader::Impl::openVersion1(const std::string &text) {
  manifest = parseVersion1(text, folder + "/" + kManifestFile);
  generation = manifest.tensors.substr(0, manifest.tensors.find('/'));
  openTensors(folder + "/" + manifest.tensors);
}

/// The newest generation of the folder's manifest `text`.
void CheckpointReader::Impl::openNewest(const std::string &text) {
  std::string path = folder + "/" + kManifestFile;
  if (checkManifest(text, path) == 1)
    return openVersion1(text);
  FolderManifest root = parseFolderManifest(text, path);
  if (root.generations.empty())
    throw Error(path + ": is damaged: it names no generation");
  for (size_t i = root.generations.size() - 1; i-- > 0;)
    others.push_back(root.generations[i].name);
  const GenerationEntry &newest = root.generations.back();
  std::string newestPath = folder + "/" + newest.name + "/" + kManifestFile;
  std::optional<std::string> manifestText = readTextFile(newestPath);
  if (!manifestText)
    throw Vanished{newestPath};
  if (checksumOf(*manifestText) != newest.checksum)
    throw Error(newestPath + ": is damaged: it has another checksum than " + path + " says");
  openAll(*manifestText, newest.name);
  if (manifest.state.step != newest.step)
    throw Error(newestPath + ": is damaged: it is of step " + std::to_string(manifest.state.step) +
                ", " + path + " says " + std::to_string(newest.step));
}

void CheckpointReader::Impl::findNewest() {
  std::string path = folder + "/" + kManifestFile, before;
  for (int attempt = 0;; ++attempt) {
    std::optional<std::string> text = readTextFile(path);
    if (!text)
      throw noCheckpoint(folder, wholeOneOf(folder, listGenerations(folder)));
    bool isStable = attempt > 0 && *text == before;
    before = *text;
    others.clear();
    std::string trouble, help;
    try {
      return openNewest(*text);
    } catch (const Vanished &file) {
      trouble =
          file.path + ": is not there, and the newest generation that " + path + " names needs it";
    } catch (const Error &error) {
      trouble = error.what();
      help = error.help();
    }
    // A run that goes on saving replaces the manifest before it removes what that named.
    if (isStable || attempt >= kMostAttempts) {
      if (others.empty())
        others = listGenerations(folder);
      std::string other = wholeOneOf(folder, others);
      throw Error(trouble, help.empty() ? other : help);
    }
    std::this_thread::sleep_for(kPause);
  }
}

void CheckpointReader::Impl::find(const std::string &wanted) {
  std::string name = generationName(wanted), path = folder + "/" + name + "/" + kManifestFile;
  try {
    if (std::optional<std::string> text = readTextFile(path))
      return openAll(*text, name);
    std::optional<std::string> root = readTextFile(folder + "/" + kManifestFile);
    if (root && checkManifest(*root, folder + "/" + kManifestFile) == 1) {
      openVersion1(*root);
      if (generation == name)
        return;
    }
  } catch (const Vanished &file) {
    throw Error(file.path + ": is not there, and generation " + name + " needs it");
  }
  std::vector<std::string> names = listGenerations(folder);
  throw Error("there is no generation " + name + " in '" + folder + "'",
              names.empty() ? "" : "there are " + listNames(names));
}

//===-- what it is ------------------------------------------------------------===//

CheckpointReader::CheckpointReader(const std::string &folder, const std::string &generation)
    : impl(std::make_unique<Impl>()) {
  impl->folder = folder;
  if (generation.empty())
    impl->findNewest();
  else
    impl->find(generation);
}

CheckpointReader::~CheckpointReader() = default;

const TrainingState &CheckpointReader::state() const { return impl->manifest.state; }
const std::string &CheckpointReader::generation() const { return impl->generation; }
const SafetensorsReader &CheckpointReader::tensors() const { return *impl->tensors; }

std::string CheckpointReader::note(const genrec_model_desc &model) const {
  if (impl->manifest.model == model.name)
    return {};
  return "the checkpoint is of model '" + impl->manifest.model + "', which is '" + model.name +
         "' under another name: its structure is the same";
}

std::string CheckpointReader::difference(const genrec_model_desc &model, RestoreFor purpose) const {
  bool isKnown = model.identity && *model.identity && !impl->manifest.identity.empty();
  if (isKnown)
    return identityDifference(impl->manifest.identity, model.identity, purpose);
  if (impl->manifest.model == model.name)
    return {};
  return "it is model '" + impl->manifest.model + "', this binary is model '" + model.name + "'";
}

//===-- restoring -------------------------------------------------------------===//

Error CheckpointReader::Impl::unlike(const CheckpointReader &reader, const genrec_model_desc &model,
                                     const std::string &difference, RestoreFor purpose) const {
  std::string message = "'" + folder + "' is a checkpoint of another model: " + difference;
  if (purpose == RestoreFor::training && reader.difference(model, RestoreFor::inference).empty())
    return Error("'" + folder + "' was trained by another optimizer: " + difference,
                 "evaluate, predict and export work with it; to train, compile the model with the "
                 "optimizers it had, or start anew with --init " +
                     folder + " and another --checkpoint");
  if (manifest.identity.empty() || !model.identity)
    return Error(message, "if the class was only renamed, call it '" + manifest.model +
                              "' again, or start from its weights with --init " + folder);
  return Error(message, "use the binary that trained it, or train this model into another folder, "
                        "from each table and parameter that is as it was: --init <name>=" +
                            folder);
}

void CheckpointReader::restore(Session &session, RestoreFor purpose) {
  runTogether(session.comm(), [&] { impl->restore(*this, session, purpose); });
}

void CheckpointReader::Impl::restore(const CheckpointReader &reader, Session &session,
                                     RestoreFor purpose) const {
  const genrec_model_desc &model = session.model();
  std::string differs = reader.difference(model, purpose);
  if (!differs.empty())
    throw unlike(reader, model, differs, purpose);
  bool isTraining = purpose == RestoreFor::training;
  if (isTraining && manifest.state.epochLosses.size() != static_cast<size_t>(model.loss_count))
    throw Error("'" + folder + "' was trained for " +
                std::to_string(manifest.state.epochLosses.size()) + " losses, the model has " +
                std::to_string(model.loss_count));
  try {
    const Communicator *comm = session.comm();
    States states = isTraining ? States::required : States::ignored;
    std::vector<const SafetensorsReader *> links = reader.links();
    readModelTensors(*links.front(), session, states,
                     (bases.empty() ? manifest : bases.back()->manifest).isSorted);
    for (size_t i = 1; i < links.size(); ++i)
      replayModelTensors(*links[i], session, states);
    for (const SafetensorsReader *link : links)
      link->verifyRest(comm ? comm->getRank() : 0, comm ? comm->getSize() : 1);
  } catch (const Error &error) {
    std::string other = wholeOneOf(folder, others);
    throw Error(error.what(), other.empty() ? error.help() : other);
  }
  session.setStepsDone(manifest.state.step);
  if (purpose == RestoreFor::training)
    session.setClock(manifest.state.clock);
}

std::vector<const SafetensorsReader *> CheckpointReader::links() const {
  std::vector<const SafetensorsReader *> links;
  for (auto base = impl->bases.rbegin(); base != impl->bases.rend(); ++base)
    links.push_back((*base)->tensors.get());
  links.push_back(impl->tensors.get());
  return links;
}

void CheckpointReader::verify() const {
  for (const SafetensorsReader *link : links())
    link->verifyRest();
}

//===-- in one call -----------------------------------------------------------===//

bool hasCheckpoint(const std::string &folder) {
  return fs::exists(fs::symlink_status(folder + "/" + kManifestFile));
}

void requireNoCheckpoint(const std::string &folder, const genrec_model_desc &model) {
  if (!hasCheckpoint(folder))
    return;
  std::string holds = folder + (folder.back() == '/' ? "" : "/") + " holds a checkpoint ";
  std::unique_ptr<CheckpointReader> reader;
  try {
    reader = std::make_unique<CheckpointReader>(folder);
  } catch (const Error &error) {
    throw Error(holds + "that cannot be used: " + error.what(),
                (error.help().empty() ? "" : error.help() + "; ") +
                    std::string("--overwrite starts anew"));
  }
  std::string step = " at step " + withThousands(static_cast<int64_t>(reader->state().step));
  std::string differs = reader->difference(model, RestoreFor::training);
  if (differs.empty())
    throw Error(
        holds + "of this model" + step +
        "; --resume goes on with its run, --continue with new data, --overwrite starts anew");
  throw Error(holds + "of another model" + step + ": " + differs,
              "use another folder to keep it, or --overwrite to start anew");
}

TrainingState readTrainingState(const std::string &folder) {
  return CheckpointReader(folder).state();
}

TrainingState loadCheckpoint(const std::string &folder, Session &session) {
  CheckpointReader reader(folder);
  reader.restore(session, RestoreFor::training);
  return reader.state();
}

} // namespace genrec::rt

//===- export.cpp - The export command ------------------------------------===//

#include "../checkpoint/saved_tables.h"
#include "../core/aside_file.h"
#include "commands.h"
#include "genrec_rt/checkpoint.h"
#include "genrec_rt/safetensors.h"
#include "overwriting.h"

#include <algorithm>
#include <cerrno>

#include <sys/stat.h>
#include <unistd.h>

namespace genrec::rt {

namespace {

/// How long other ranks wait for rank 0.
constexpr std::chrono::hours kLongestExport(24);

/// The ids of a catalogue: its first int64 feature that feeds a table, else its
/// first int64 feature; -1 where there is none.
int32_t idFeature(const genrec_model_desc &model, int32_t domain) {
  int32_t found = -1;
  for (int32_t i = model.feature_count - 1; i >= 0; --i) {
    const genrec_feature_desc &feature = model.features[i];
    if (feature.domain != domain || feature.type != GENREC_I64)
      continue;
    if (found < 0 || feature.table || !model.features[found].table)
      found = i;
  }
  return found;
}

/// Files of an earlier export, which are back under their names where the new one fails.
class EarlierFiles {
public:
  ~EarlierFiles() { // takes no memory: there may be none
    for (auto file = files.rbegin(); file != files.rend(); ++file)
      if (file->isMoved)
        rename(file->aside.c_str(), file->path.c_str());
  }
  void move(const std::string &path) {
    struct stat status{};
    const bool isFolder = lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
    File &file = files.emplace_back(File{path, path + ".before"});
    file.isMoved = !isFolder && rename(path.c_str(), file.aside.c_str()) == 0;
    if (isFolder)
      errno = EISDIR;
    if (!file.isMoved && errno != ENOENT)
      throwFileError("replace", path);
  }
  /// The new ones are there. Removes also what an export that was killed had moved.
  void remove() {
    for (const File &file : files)
      unlink(file.aside.c_str());
    files.clear();
  }

private:
  struct File {
    std::string path, aside;
    bool isMoved = false;
  };
  std::vector<File> files; ///< in order
};

class Exporter {
public:
  Exporter(const genrec_model_desc &model, const Flags &flags, Progress &progress)
      : model(model), flags(flags), progress(progress),
        session(restoredSession(model, flags, nullptr, progress)) {}

  Json run() {
    if (hasCheckpoint(flags.out)) // --init of the folder would mean either
      throw Error("--out " + flags.out + ": holds a checkpoint", "export to another folder");
    requireFolder("--out", flags.out);
    requireCatalogues();
    writeTensors(kParameterFile, true);
    writeTensors(kTableFile, false);
    if (hasItemOutputs())
      exportItems();
    else
      exportCatalogueRows();
    commit();
    return written;
  }

private:
  /// Before anything is written.
  void requireCatalogues() const {
    std::vector<int32_t> needed;
    if (hasItemOutputs())
      needed = neededCatalogues(*session, {itemMode()});
    else
      for (int32_t domain = 0; domain < model.domain_count; ++domain)
        if (model.domains[domain].kind == GENREC_DOMAIN_CATALOGUE &&
            !catalogueFile(model, flags, domain).empty())
          needed.push_back(domain);
    for (int32_t domain : needed)
      listFiles(requireCatalogueFile(model, flags, domain));
  }

  void finish(SafetensorsWriter &writer, const std::string &name) {
    writer.note("model", model.name);
    std::string path = flags.out + "/" + name;
    files.push_back(std::make_unique<AsideFile>(path));
    written.push_back({{"file", path}, {"bytes", writer.writeAside(*files.back()).bytes}});
    files.back()->flushToDisk();
  }

  /// Renames the files when all are on disk. Parameters are first, which leave their name before
  /// another file changes and come back last: --init takes no folder without them, so never files
  /// of two exports.
  void commit() {
    EarlierFiles earlier;
    for (const Json &file : written)
      earlier.move(file["file"].get<std::string>());
    syncFolder(flags.out);
    for (auto file = files.rbegin(); file != files.rend(); ++file)
      (*file)->commit();
    earlier.remove();
  }

  /// Parameters or tables, without optimizer states.
  void writeTensors(const std::string &name, bool parameters) {
    SafetensorsWriter all;
    addModelTensors(all, *session, /*states=*/false);
    SafetensorsWriter writer = all.filtered([&](const std::string &tensor) {
      for (int32_t i = 0; i < model.parameter_count; ++i)
        if (tensor == model.parameters[i].name)
          return parameters;
      return !parameters;
    });
    finish(writer, name);
  }

  /// Where item vectors come from: a program of their own, or prediction.
  Mode itemMode() const { return session->hasProgram(Mode::items) ? Mode::items : Mode::predict; }

  bool hasItemOutputs() const {
    if (!session->hasProgram(itemMode()))
      return false;
    for (int32_t i = 0; i < model.output_count; ++i)
      if (model.domains[model.outputs[i].domain].kind == GENREC_DOMAIN_CATALOGUE)
        return true;
    return false;
  }

  /// Reads a catalogue's ids and adds them as "<catalogue>.ids".
  std::vector<int64_t> addIds(SafetensorsWriter &writer, int32_t domain, int32_t feature) {
    Catalogue catalogue = readCatalogue(model, domain, requireCatalogueFile(model, flags, domain));
    const Batch &rows = catalogue.rows;
    for (const std::string &note : catalogue.notes)
      if (!hasItemOutputs()) // else loadCatalogues has told them
        progress.message(note);
    const auto *ids = reinterpret_cast<const int64_t *>(rows.columns[feature].values.data());
    std::vector<int64_t> kept(ids, ids + rows.rows);
    std::string name = std::string(model.domains[domain].name) + ".ids";
    writer.add(name, "I64", {rows.rows}, [kept](const SafetensorsWriter::Put &put) {
      put(kept.data(), static_cast<int64_t>(kept.size()) * 8);
    });
    return kept;
  }

  /// What the model gives out for every item, as "<catalogue>.<output>".
  void exportItems() {
    loadCatalogues(*session, flags, {itemMode()}, progress);
    session->stepWithoutRows(itemMode());
    SafetensorsWriter writer;
    std::vector<char> hasIds(model.domain_count);
    for (int32_t i = 0; i < model.output_count; ++i) {
      const genrec_output_desc &output = model.outputs[i];
      if (model.domains[output.domain].kind != GENREC_DOMAIN_CATALOGUE || output.type != GENREC_F32)
        continue;
      int32_t feature = idFeature(model, output.domain);
      if (feature >= 0 && !hasIds[output.domain])
        addIds(writer, output.domain, feature);
      hasIds[output.domain] = 1;
      OutputRows &rows = session->output(i);
      if (!rows.given)
        throw Error(std::string("output '") + output.name + "' was not given out");
      std::vector<int64_t> shape = {rows.count};
      if (rows.width > 0)
        shape.push_back(rows.width);
      writer.add(std::string(model.domains[output.domain].name) + "." + output.name,
                 rows.as<float>().data(), shape);
    }
    finish(writer, kItemFile);
  }

  /// Without such outputs: the table rows of every item, as
  /// "<catalogue>.<table>"; ids that were never trained have their initial values.
  void exportCatalogueRows() {
    SafetensorsWriter writer;
    bool any = false;
    for (int32_t domain = 0; domain < model.domain_count; ++domain) {
      int32_t feature = idFeature(model, domain);
      if (model.domains[domain].kind != GENREC_DOMAIN_CATALOGUE || feature < 0 ||
          !model.features[feature].table || catalogueFile(model, flags, domain).empty())
        continue;
      any = true;
      std::vector<int64_t> ids = addIds(writer, domain, feature);
      TableView table = session->table(model.features[feature].table);
      int64_t count = static_cast<int64_t>(ids.size()), dim = table.dim();
      table.findOrInsert(ids.data(), count);
      writer.add(std::string(model.domains[domain].name) + "." + model.features[feature].table,
                 "F32", {count, dim}, [table, ids, count, dim](const SafetensorsWriter::Put &put) {
                   std::vector<float> values(
                       static_cast<size_t>(std::min(kBlockRows, count) * dim));
                   forBlocks(count, [&](int64_t first, int64_t block) {
                     table.find(ids.data() + first, block).readValues(values.data());
                     put(values.data(), block * dim * 4);
                   });
                 });
    }
    if (any)
      finish(writer, kItemFile);
  }

  const genrec_model_desc &model;
  const Flags &flags;
  Progress &progress;
  std::unique_ptr<Session> session;
  Json written = Json::array();
  std::vector<std::unique_ptr<AsideFile>> files; ///< as in `written`
};

} // namespace

int runExport(const genrec_model_desc &model, const Flags &flags, Communicator *comm) {
  Progress progress(flags.progress, flags.logEvery, "export");
  Json written = Json::array();
  if (comm)
    comm->setPatience(kLongestExport);
  runTogether(comm, [&] { // rank 0 has all rows
    if (isFirstRank(comm))
      written = Exporter(model, flags, progress).run();
  });
  for (const Json &file : written)
    progress.message("wrote " + file["file"].get<std::string>());
  progress.done({{"files", written}});
  return 0;
}

} // namespace genrec::rt

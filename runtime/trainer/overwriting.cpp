//===- overwriting.cpp - Outputs that are inputs --------------------------===//

#include "overwriting.h"

#include "genrec_rt/error.h"
#include "genrec_rt/warm_start.h"
#include "output_tables.h"

#include <filesystem>
#include <system_error>

#include <sys/stat.h>

namespace genrec::rt {

namespace {

namespace fs = std::filesystem;

/// A file, whatever its path: device and inode.
using Identity = std::pair<dev_t, ino_t>;

std::optional<Identity> identityOf(const std::string &path) {
  struct stat status{};
  if (stat(path.c_str(), &status) != 0)
    return std::nullopt;
  return Identity{status.st_dev, status.st_ino};
}

/// Outputs are written aside and renamed to their name: a file would take the place of a device or
/// a pipe (/dev/null, say), and what the program prints would be lost.
bool isReplaceable(const std::string &path) {
  struct stat status{};
  if (stat(path.c_str(), &status) != 0 || S_ISDIR(status.st_mode))
    return true; // nothing yet, or told by requireWritable
  for (const char *printed : {"/proc/self/fd/1", "/proc/self/fd/2"})
    if (identityOf(printed) == identityOf(path))
      return false;
  return S_ISREG(status.st_mode);
}

/// The absolute path of a file that may not exist yet, with links resolved.
std::string placeOf(const std::string &path) {
  std::error_code ignored;
  // A relative path of which nothing exists would stay relative.
  fs::path place = fs::weakly_canonical(fs::absolute(path, ignored), ignored);
  return place.empty() ? path : place.string();
}

struct Named {
  std::string flag, path;
};

class Inputs {
public:
  void add(const std::string &flag, const std::string &path) {
    if (std::optional<Identity> identity = identityOf(path))
      known.emplace(*identity, Named{flag, path});
  }

  void addAll(const std::string &flag, const FileSpec &spec) {
    for (const std::string &entry : spec.entries) {
      try {
        for (const std::string &path : listFiles(entry))
          add(flag, path);
      } catch (const Error &) {
        // Reported when it is read.
      }
    }
  }

  /// The manifests and tensors below a checkpoint folder; a run that saves may remove some
  /// meanwhile.
  void addCheckpoint(const std::string &flag, const std::string &folder) {
    std::error_code error;
    fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied,
                                        error);
    for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
      fs::path path = it->path();
      if (path.filename() == "manifest.json" || path.extension() == ".safetensors")
        add(flag, path);
    }
  }

  const Named *find(const std::string &path) const {
    std::optional<Identity> identity = identityOf(path);
    auto found = identity ? known.find(*identity) : known.end();
    return found == known.end() ? nullptr : &found->second;
  }

private:
  std::map<Identity, Named> known;
};

Inputs inputsOf(const genrec_model_desc &model, const Flags &flags) {
  Inputs inputs;
  inputs.addAll("--data", flags.data);
  inputs.addAll("--validation", flags.validation);
  for (int32_t i = 0; i < model.domain_count; ++i) {
    const genrec_domain_desc &domain = model.domains[i];
    std::string flag = std::string("catalogue ") + domain.name + ":";
    auto given = flags.catalogues.find(domain.name);
    if (given != flags.catalogues.end())
      inputs.addAll(flag, given->second);
    else if (domain.kind == GENREC_DOMAIN_CATALOGUE && domain.source)
      inputs.addAll(flag, std::string(domain.source));
  }
  if (!flags.checkpoint.empty())
    inputs.addCheckpoint("--checkpoint", flags.checkpoint);
  if (!flags.continued.empty())
    inputs.addCheckpoint("--continue", flags.continued);
  for (const std::string &file : warmStartFiles(flags.init))
    inputs.add("--init", file);
  inputs.add("the program", "/proc/self/exe");
  return inputs;
}

std::vector<Named> outputsOf(const genrec_model_desc &model, const Flags &flags) {
  std::vector<Named> outputs;
  auto addFolder = [&](const char *flag, const std::string &folder,
                       std::initializer_list<const char *> files) {
    for (const char *file : files)
      outputs.push_back({flag, folder + "/" + file});
  };
  if (!flags.metricsJson.empty())
    outputs.push_back({"--metrics-json", flags.metricsJson});
  if (!flags.idsOut.empty())
    outputs.push_back({"--ids-out", flags.idsOut});
  if (flags.command == Flags::Command::predict)
    for (const OutputTable &table : outputTables(model, flags.out))
      outputs.push_back({"--out", table.path});
  if (flags.command == Flags::Command::exportTensors)
    addFolder("--out", flags.out, {kParameterFile, kTableFile, kItemFile});
  if (!flags.profile.empty())
    addFolder("--profile", flags.profile, {kProfileFile, kTraceFile});
  return outputs;
}

/// The output folders, by their absolute paths.
std::map<std::string, Named> outputFolders(const Flags &flags) {
  std::map<std::string, Named> folders;
  for (const Named &one :
       {Named{"--tensorboard", flags.tensorboard}, Named{"--profile", flags.profile}})
    if (!one.path.empty())
      folders.emplace(placeOf(one.path), one);
  if (flags.command == Flags::Command::train && !flags.checkpoint.empty())
    folders.emplace(placeOf(flags.checkpoint), Named{"--checkpoint", flags.checkpoint});
  return folders;
}

} // namespace

void refuseOverwriting(const genrec_model_desc &model, const Flags &flags) {
  std::vector<Named> outputs = outputsOf(model, flags);
  std::map<std::string, Named> folders = outputFolders(flags);
  if (outputs.empty() && folders.empty())
    return;
  Inputs inputs = inputsOf(model, flags);
  for (const auto &[place, folder] : folders)
    if (const Named *input = inputs.find(place))
      throw Error(folder.flag + " " + folder.path + ": is the file of " + input->flag + " " +
                      input->path + ", which is read; a folder is needed",
                  "name a folder");
  std::map<std::string, Named> places;
  for (const Named &output : outputs) {
    // Files are written under this name first.
    for (const std::string &path : {output.path, output.path + ".partial"})
      if (const Named *input = inputs.find(path))
        throw Error(output.flag + " " + output.path + ": would overwrite " + input->flag + " " +
                        input->path + ", which is read",
                    "name another file");
    if (!isReplaceable(output.path))
      throw Error(output.flag + " " + output.path +
                      ": a file would take the place of a device, a pipe or what is printed",
                  "name another file");
    std::string place = placeOf(output.path);
    if (auto folder = folders.find(place); folder != folders.end())
      throw Error(output.flag + " " + output.path + ": is the folder that " + folder->second.flag +
                      " writes into",
                  "name another file");
    auto [other, isNew] = places.emplace(place, output);
    if (!isNew)
      throw Error(output.flag + " " + output.path + ": is what " + other->second.flag +
                      " writes, too",
                  "name another file");
  }
}

} // namespace genrec::rt

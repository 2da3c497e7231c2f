//===- file_list.cpp - Which files a flag means ---------------------------===//

#include "genrec_rt/dataset.h"

#include "../core/text.h"
#include "genrec_rt/error.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include <glob.h>
#include <sys/stat.h>

namespace genrec::rt {

namespace {

namespace fs = std::filesystem;

/// Gets a line per folder with skipped entries; may be null.
using Notes = std::vector<std::string>;

bool isHidden(const std::string &name) {
  return !name.empty() && (name[0] == '.' || name[0] == '_');
}

bool isParquetName(const fs::path &path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension == ".parquet" || extension == ".parq" || extension == ".pq";
}

/// Folders that were visited: a link may lead to a folder above, or to one that another link led
/// to.
class Visited {
public:
  /// Whether `folder` was not visited before, nor what leads to it.
  bool add(const fs::path &folder) {
    struct stat status{};
    return stat(folder.c_str(), &status) != 0 ||
           places.insert({status.st_dev, status.st_ino}).second;
  }

private:
  std::set<std::pair<dev_t, ino_t>> places;
};

[[noreturn]] void throwUnreadable(const fs::path &folder, const std::error_code &error) {
  throw Error("folder '" + folder.string() + "' cannot be read: " + error.message(),
              "let this user read it and enter it (chmod u+rx), or name the files to read instead");
}

/// Throws Error where a folder on the way to `path` may not be entered: `path` only seems not to
/// exist.
void requireReachable(const fs::path &path) {
  std::error_code error, ignored;
  (void)fs::status(path, error);
  if (error != std::errc::permission_denied)
    return; // what is not there is told by those who look for it
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  requireReachable(folder);
  const bool isLink = fs::exists(folder / ".", ignored); // to what this user may not enter
  throwUnreadable(isLink ? path : folder, error);
}

/// What a folder holds, sorted. Throws Error where it cannot be listed, or what it holds cannot
/// be reached.
std::vector<fs::path> entriesOf(const fs::path &folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    entries.push_back(at->path());
  if (!error)
    (void)fs::status(folder / ".", error);
  if (error)
    throwUnreadable(folder, error);
  std::sort(entries.begin(), entries.end());
  return entries;
}

/// Collects the Parquet files below a folder, following links, and the entries that are skipped.
class FolderWalk {
public:
  explicit FolderWalk(std::string folder) : top(std::move(folder)) { enter(top); }

  std::vector<std::string> files;

  /// "skipped in 'data': a.csv (…); _SUCCESS (…)"; empty where nothing was.
  std::string note() const {
    std::string text;
    for (const auto &[reason, names] : skipped)
      text += (text.empty() ? "skipped in '" + top + "': " : "; ") + listNames(names, 3) + " (" +
              reason + ")";
    return text;
  }

private:
  void skip(const fs::path &path, const std::string &reason) {
    skipped[reason].push_back(path.lexically_relative(top).string());
  }

  void enter(const fs::path &folder) {
    if (!visited.add(folder))
      return skip(folder, "a folder that is read already");
    for (const fs::path &path : entriesOf(folder))
      add(path);
  }

  void add(const fs::path &path) {
    std::error_code ignored;
    fs::file_status status = fs::status(path, ignored);
    if (isHidden(path.filename().string()))
      return skip(path, "names that begin with . or _ are hidden");
    requireReachable(path);
    if (fs::is_directory(status))
      enter(path);
    else if (!fs::exists(status))
      skip(path, "links to nothing");
    else if (!fs::is_regular_file(status) || !isParquetName(path))
      skip(path, "no .parquet, .parq or .pq files");
    else
      files.push_back(path.string());
  }

  std::string top;
  Visited visited;
  std::map<std::string, std::vector<std::string>> skipped; ///< by reason
};

void addFolder(const std::string &folder, std::vector<std::string> &files, Notes *notes) {
  FolderWalk walk(folder);
  std::string note = walk.note();
  if (walk.files.empty())
    throw Error("folder '" + folder + "' holds no .parquet file", note);
  if (notes && !note.empty())
    notes->push_back(note);
  std::sort(walk.files.begin(), walk.files.end());
  files.insert(files.end(), walk.files.begin(), walk.files.end());
}

std::vector<std::string> globbed(const std::string &pattern) {
  glob_t found{};
  glob(pattern.c_str(), GLOB_TILDE, nullptr, &found);
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return paths;
}

/// Adds `folder` and the folders below it, but hidden ones, following links.
void addFolders(const fs::path &folder, Visited &visited, std::vector<std::string> &folders) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored) || !visited.add(folder))
    return;
  folders.push_back(folder.string());
  for (const fs::path &entry : entriesOf(folder))
    if (!isHidden(entry.filename().string()))
      addFolders(entry, visited, folders);
}

/// What a pattern matches, sorted. A component ** is any number of folders, none as well, and at
/// the end all that lies below.
std::vector<std::string> matches(const std::string &pattern) {
  size_t at = pattern.starts_with("**/") ? 0 : pattern.find("/**/");
  if (at == std::string::npos)
    return globbed(pattern.ends_with("/**") ? pattern.substr(0, pattern.size() - 3) : pattern);
  const std::string base = at == 0 && pattern[0] == '*' ? "." : pattern.substr(0, at + 1);
  const std::string rest = pattern.substr(pattern.find("**/", at) + 3);
  std::vector<std::string> folders, paths;
  Visited visited;
  for (const std::string &top : globbed(base))
    addFolders(top, visited, folders);
  for (const std::string &folder : folders)
    for (std::string &path : matches((fs::path(folder) / rest).string()))
      paths.push_back(std::move(path));
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  return paths;
}

void addPattern(const std::string &pattern, std::vector<std::string> &files, Notes *notes) {
  std::vector<std::string> paths = matches(pattern);
  if (paths.empty())
    throw Error("no file matches '" + pattern + "'");
  for (const std::string &path : paths) {
    std::error_code ignored;
    if (fs::is_directory(path, ignored))
      addFolder(path, files, notes);
    else
      files.push_back(path);
  }
}

bool isPattern(const std::string &entry) { return entry.find_first_of("*?[") != std::string::npos; }

/// Whether all of `entry`, commas included, is an existing path or a pattern with matches.
bool isPathOrPattern(const std::string &entry) {
  std::error_code ignored;
  if (fs::exists(entry, ignored))
    return true;
  return isPattern(entry) && !matches(entry).empty();
}

/// The path that may be meant by one that is not there: a name on the way to it is another. ""
/// where none is near.
fs::path nearest(const fs::path &path) {
  std::error_code ignored;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (folder != path && !fs::is_directory(folder, ignored)) {
    const fs::path above = nearest(folder), meant = above / path.filename();
    if (above.empty() || !fs::is_directory(above, ignored))
      return "";
    return fs::exists(meant, ignored) ? meant : nearest(meant);
  }
  // Endings are alike, so they say nothing.
  std::vector<std::string> stems;
  for (fs::directory_iterator at(folder, ignored), end; !ignored && at != end;
       at.increment(ignored))
    if (at->path().extension() == path.extension())
      stems.push_back(at->path().stem().string());
  std::sort(stems.begin(), stems.end());
  const std::string near = closestName(path.stem().string(), stems);
  const fs::path name = near + path.extension().string();
  return near.empty() ? "" : path.has_parent_path() ? folder / name : name;
}

/// What to do about a path that is not there.
std::string helpForMissing(const fs::path &path) {
  if (const fs::path meant = nearest(path); !meant.empty())
    return "did you mean '" + meant.string() + "'?";
  std::error_code ignored;
  fs::path missing;
  for (fs::path above = path.parent_path(); !above.empty() && !fs::exists(above, ignored);
       above = above.parent_path())
    missing = above;
  return missing.empty() ? "" : "there is no folder '" + missing.string() + "'";
}

void addOne(const std::string &entry, std::vector<std::string> &files, Notes *notes) {
  if (entry.find("://") != std::string::npos)
    throw Error("'" + entry + "' is not a local file", "copy it here: only local files are read");
  std::error_code ignored;
  if (fs::is_directory(entry, ignored))
    return addFolder(entry, files, notes);
  if (fs::exists(entry, ignored)) {
    files.push_back(entry);
    return;
  }
  if (isPattern(entry))
    return addPattern(entry, files, notes);
  throw Error("there is no file or folder '" + entry + "'", helpForMissing(entry));
}

void addEntry(const std::string &entry, std::vector<std::string> &files, Notes *notes) {
  requireReachable(entry);
  if (entry.find(',') == std::string::npos)
    return entry.empty() ? void() : addOne(entry, files, notes);
  if (isPathOrPattern(entry))
    return addOne(entry, files, notes);
  for (size_t begin = 0; begin <= entry.size();) {
    size_t comma = std::min(entry.find(',', begin), entry.size());
    if (comma > begin)
      addOne(entry.substr(begin, comma - begin), files, notes);
    begin = comma + 1;
  }
}

} // namespace

std::string FileSpec::text() const {
  std::string text;
  for (const std::string &entry : entries)
    text += (text.empty() ? "" : ", ") + entry;
  return text;
}

std::vector<std::string> listFiles(const FileSpec &spec, std::vector<std::string> *notes) {
  std::vector<std::string> files;
  for (const std::string &entry : spec.entries)
    addEntry(entry, files, notes);
  if (files.empty())
    throw Error("no data file was named");
  return files;
}

} // namespace genrec::rt

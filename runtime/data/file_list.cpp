//===- file_list.cpp - Which files a flag means ---------------------------===//

#include "genrec_rt/dataset.h"
#include "genrec_rt/error.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <glob.h>

namespace genrec::rt {

namespace {

namespace fs = std::filesystem;

bool isHidden(const fs::path &path) {
  std::string name = path.filename().string();
  return !name.empty() && (name[0] == '.' || name[0] == '_');
}

void addFolder(const std::string &folder, std::vector<std::string> &files) {
  size_t before = files.size();
  fs::recursive_directory_iterator entries(folder), end;
  for (; entries != end; ++entries) {
    if (isHidden(entries->path())) {
      if (entries->is_directory())
        entries.disable_recursion_pending();
    } else if (entries->is_regular_file() && entries->path().extension() == ".parquet") {
      files.push_back(entries->path().string());
    }
  }
  if (files.size() == before)
    throw Error("folder '" + folder + "' holds no .parquet file");
  std::sort(files.begin() + static_cast<ptrdiff_t>(before), files.end());
}

void addPattern(const std::string &pattern, std::vector<std::string> &files) {
  glob_t found{};
  int status = glob(pattern.c_str(), GLOB_TILDE, nullptr, &found);
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  if (status != 0 || paths.empty())
    throw Error("no file matches '" + pattern + "'");
  for (const std::string &path : paths) {
    if (fs::is_directory(path))
      addFolder(path, files);
    else
      files.push_back(path);
  }
}

bool isPattern(const std::string &entry) { return entry.find_first_of("*?[") != std::string::npos; }

/// Whether `entry` names something, or matches something, as it stands.
bool isThere(const std::string &entry) {
  std::error_code ignored;
  if (fs::exists(entry, ignored))
    return true;
  glob_t found{};
  bool matches = isPattern(entry) && glob(entry.c_str(), GLOB_TILDE, nullptr, &found) == 0;
  globfree(&found);
  return matches;
}

void addOne(const std::string &entry, std::vector<std::string> &files) {
  if (entry.find("://") != std::string::npos)
    throw Error("'" + entry + "' is not a local file", "copy it here: only local files are read");
  std::error_code ignored;
  if (fs::is_directory(entry, ignored))
    return addFolder(entry, files);
  if (fs::exists(entry, ignored)) {
    files.push_back(entry);
    return;
  }
  if (isPattern(entry))
    return addPattern(entry, files);
  throw Error("there is no file or folder '" + entry + "'");
}

void addEntry(const std::string &entry, std::vector<std::string> &files) {
  if (entry.find(',') == std::string::npos)
    return entry.empty() ? void() : addOne(entry, files);
  if (isThere(entry))
    return addOne(entry, files);
  for (size_t begin = 0; begin <= entry.size();) {
    size_t comma = std::min(entry.find(',', begin), entry.size());
    if (comma > begin)
      addOne(entry.substr(begin, comma - begin), files);
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

std::vector<std::string> listFiles(const FileSpec &spec) {
  std::vector<std::string> files;
  for (const std::string &entry : spec.entries)
    addEntry(entry, files);
  if (files.empty())
    throw Error("no data file was named");
  return files;
}

} // namespace genrec::rt

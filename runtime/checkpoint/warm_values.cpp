//===- warm_values.cpp - Tensors by name for a warm start -----------------===//

#include "warm_values.h"

#include "../core/text.h"
#include "chained_rows.h"
#include "generations.h"
#include "genrec_rt/checkpoint.h"
#include "genrec_rt/error.h"
#include "genrec_rt/safetensors.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <numeric>

namespace genrec::rt {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIds = ".ids", kRows = ".values";

bool endsWith(const std::string &text, std::string_view end) {
  return text.size() > end.size() && std::string_view(text).ends_with(end);
}

/// Whether `tensor` is kept beside a weight for training alone: its optimizer states, and what
/// tables with rules count.
bool isState(const SafetensorsReader &file, const std::string &tensor) {
  size_t dot = tensor.rfind('.');
  if (dot == std::string::npos)
    return false;
  std::string base = tensor.substr(0, dot), end = tensor.substr(dot + 1);
  bool isOfTable = file.has(base + std::string(kIds));
  if (end.starts_with("state") && end.size() > 5 &&
      std::all_of(end.begin() + 5, end.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return isOfTable || file.has(base);
  if (end == "last_step" || end == "steps")
    return isOfTable;
  return end == "ids" && (endsWith(base, ".waiting") || endsWith(base, ".removed")) &&
         !file.has(base + std::string(kRows));
}

WarmValues valuesOf(const std::shared_ptr<const SafetensorsReader> &file, const std::string &name,
                    const std::string &tensor) {
  WarmValues values;
  values.source = file->path() + ": '" + name + "'";
  values.dtype = file->tensor(tensor).dtype;
  values.shape = file->tensor(tensor).shape;
  values.read = [file, tensor](int64_t first, int64_t count, float *to) {
    file->readFloats(tensor, first, count, to);
  };
  return values;
}

void addTensors(const std::shared_ptr<const SafetensorsReader> &file, NamedWarmValues &all) {
  for (const auto &[tensor, description] : file->tensors()) {
    if (isState(*file, tensor))
      continue;
    if (endsWith(tensor, kRows)) {
      std::string name = tensor.substr(0, tensor.size() - kRows.size());
      std::string ids = name + std::string(kIds);
      if (file->has(ids)) {
        WarmValues values = valuesOf(file, name, tensor);
        values.idType = file->tensor(ids).dtype;
        values.idShape = file->tensor(ids).shape;
        values.readIds = [file, ids](int64_t first, int64_t count, int64_t *to) {
          file->readIntegers(ids, first, count, to);
        };
        all[name] = std::move(values);
        continue;
      }
    }
    if (endsWith(tensor, kIds) &&
        file->has(tensor.substr(0, tensor.size() - kIds.size()) + std::string(kRows)))
      continue;
    all[tensor] = valuesOf(file, tensor, tensor);
  }
}

/// The rows of a table of an incremental generation, wherever they lie. `checkpoint` is kept.
WarmValues chainedValues(WarmValues values, const std::shared_ptr<const CheckpointReader> &checkpoint,
                         const std::string &table) {
  auto rows = std::make_shared<const ChainedRows>(checkpoint->links(), table);
  int64_t width = rows->widthOf(kRows.data());
  values.shape[0] = values.idShape[0] = rows->size();
  values.readIds = [rows, checkpoint](int64_t first, int64_t count, int64_t *to) {
    for (int64_t i = 0; i < count; ++i)
      to[i] = rows->id(first + i);
  };
  values.read = [rows, width, checkpoint](int64_t first, int64_t count, float *to) {
    int64_t begin = first / width, end = (first + count + width - 1) / width;
    std::vector<int64_t> numbers(static_cast<size_t>(end - begin));
    std::iota(numbers.begin(), numbers.end(), begin);
    std::vector<float> floats(numbers.size() * static_cast<size_t>(width));
    rows->read(kRows.data(), numbers.data(), end - begin, width, floats.data());
    std::copy_n(floats.begin() + (first - begin * width), count, to);
  };
  return values;
}

std::vector<std::string> exportedFiles(const std::string &folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (const char *file : {kParameterFile, kTableFile})
    if (fs::exists(fs::path(folder) / file, error))
      files.push_back(folder + "/" + file);
  if (error == std::errc::permission_denied)
    throw Error("folder '" + folder + "' cannot be read: " + error.message(),
                "let this user read it and enter it (chmod u+rx)");
  return files;
}

/// Throws Error for the folder of one generation, which --checkpoint names in another way.
void requireNoGeneration(const std::string &folder) {
  const auto [above, generation] = namedGeneration(folder);
  if (!generation.empty() && hasCheckpoint(above))
    throw Error("--init " + folder + ": is one generation of a checkpoint",
                "--init " + above + " takes the newest one; --init " + folder +
                    "/model.safetensors takes this one, if it is a full one");
}

bool isCheckpoint(const std::string &path) {
  return fs::is_directory(path) && exportedFiles(path).empty() && hasCheckpoint(path);
}

std::vector<std::string> namesOf(const NamedWarmValues &all) {
  std::vector<std::string> names;
  for (const auto &[name, values] : all)
    names.push_back(name);
  return names;
}

} // namespace

bool isParquetPath(const std::string &path) {
  return endsWith(path, ".parquet") || endsWith(path, ".parq") || endsWith(path, ".pq");
}

std::vector<std::string> tensorFiles(const std::string &path) {
  if (!fs::is_directory(path))
    return {path};
  requireNoGeneration(path);
  if (isCheckpoint(path)) {
    CheckpointReader checkpoint(path);
    std::vector<std::string> files;
    for (const SafetensorsReader *link : checkpoint.links())
      files.push_back(link->path());
    return files;
  }
  std::vector<std::string> files = exportedFiles(path);
  if (files.size() == 1)
    throw Error("'" + path + "' holds no whole export: it has " +
                    fs::path(files[0]).filename().string() + ", but no " +
                    (files[0].ends_with(kParameterFile) ? kTableFile : kParameterFile),
                "export once more, or name the file itself: --init " + files[0]);
  if (files.empty())
    throw Error("'" + path + "' is the folder of no export and of no checkpoint: it has neither "
                             "parameters.safetensors, tables.safetensors nor manifest.json",
                "name the folder that export wrote, or that --checkpoint named");
  return files;
}

static NamedWarmValues readAllValues(const std::string &path) {
  NamedWarmValues all;
  if (fs::is_directory(path))
    requireNoGeneration(path);
  if (isCheckpoint(path)) {
    // Held to its checksums, and kept while a run saves into the folder.
    auto checkpoint = std::make_shared<CheckpointReader>(path);
    checkpoint->verify();
    addTensors({checkpoint, &checkpoint->tensors()}, all);
    for (const std::string &table : tableNames(checkpoint->tensors()))
      if (checkpoint->links().size() > 1)
        all[table] = chainedValues(all[table], checkpoint, table);
    return all;
  }
  for (const std::string &file : tensorFiles(path))
    addTensors(std::make_shared<SafetensorsReader>(file), all);
  return all;
}

const NamedWarmValues &WarmFiles::all(const std::string &path) {
  auto found = opened.find(path);
  return found != opened.end() ? found->second
                               : opened.emplace(path, readAllValues(path)).first->second;
}

WarmValues WarmFiles::one(const std::string &path, const std::string &name,
                          const std::string &source) {
  if (endsWith(path, ".npy"))
    return readNumpy(path, source);
  if (isParquetPath(path))
    return readParquetVectors(path, source);
  const NamedWarmValues &all = this->all(path);
  std::string wanted = source.empty() ? name : source;
  auto found = all.find(wanted);
  // A file of one array needs no name.
  if (found == all.end() && source.empty() && all.size() == 1)
    found = all.begin();
  if (found == all.end())
    throw Error(path + ": has no '" + wanted + "'; it has " + listNames(namesOf(all)),
                source.empty() ? "name what to take: --init " + name + "=" + path + ":<its name there>"
                               : suggestion(wanted, namesOf(all)));
  return found->second;
}

} // namespace genrec::rt

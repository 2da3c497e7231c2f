//===- warm_start.cpp - Training that starts from given values ------------===//

#include "genrec_rt/warm_start.h"

#include "../core/text.h"
#include "genrec_rt/owner.h"
#include "genrec_rt/safetensors.h"
#include "saved_tables.h"
#include "warm_values.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

namespace genrec::rt {

namespace {

namespace fs = std::filesystem;

/// One entry of --init, taken apart.
struct Entry {
  std::string text, name, path, source; ///< `name` is "" where everything is meant
};

bool pathExists(const std::string &path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// Splits "<path>:<source>" unless the path is there as it stands.
void splitSource(const std::string &text, Entry &entry) {
  entry.path = text;
  size_t colon = text.rfind(':');
  if (pathExists(text) || colon == std::string::npos || !pathExists(text.substr(0, colon)))
    return;
  entry.path = text.substr(0, colon);
  entry.source = text.substr(colon + 1);
}

Entry parseEntry(const std::string &text) {
  Entry entry;
  entry.text = text;
  size_t equals = text.find('=');
  if (pathExists(text) || equals == std::string::npos || equals == 0) {
    entry.path = text;
    return entry;
  }
  entry.name = text.substr(0, equals);
  splitSource(text.substr(equals + 1), entry);
  return entry;
}

void requireThere(const Entry &entry) {
  if (!pathExists(entry.path))
    throw Error("--init " + entry.text + ": there is no file or folder '" + entry.path + "'",
                "it takes <path>, <name>=<path> or <name>=<path>:<its name there>");
}

/// A table or parameter of the model.
struct Target {
  std::string name;
  bool isTable = false;
  int32_t index = 0;
  std::vector<int64_t> shape; ///< of a table: {-1, dim}
  int64_t idEnd = 0;          ///< ids below this: of a table all, of a parameter its rows
};

std::vector<Target> targetsOf(const genrec_model_desc &model) {
  std::vector<Target> targets;
  for (int32_t i = 0; i < model.parameter_count; ++i) {
    const genrec_parameter_desc &desc = model.parameters[i];
    std::vector<int64_t> shape(desc.shape, desc.shape + desc.rank);
    targets.push_back({desc.name, false, i, shape, desc.rank == 2 ? desc.shape[0] : 0});
  }
  for (int32_t i = 0; i < model.table_count; ++i) {
    const genrec_table_desc &desc = model.tables[i];
    targets.push_back({desc.name,
                       true,
                       i,
                       {-1, desc.dim},
                       desc.id_bits >= 63 ? INT64_MAX : int64_t(1) << desc.id_bits});
  }
  return targets;
}

bool isFloat(const std::string &dtype) {
  return dtype == "F32" || dtype == "F64" || dtype == "F16" || dtype == "BF16";
}

bool isInteger(const std::string &dtype) {
  return !dtype.empty() && (dtype[0] == 'I' || dtype[0] == 'U');
}

std::string describe(const WarmValues &values) {
  std::string text = values.dtype + " " + describeShape(values.shape);
  return values.hasIds() ? text + " by ids " + values.idType + " " + describeShape(values.idShape)
                         : text;
}

std::string describe(const Target &target) {
  if (!target.isTable)
    return "parameter '" + target.name + "' is F32 " + describeShape(target.shape);
  return "table '" + target.name + "' is F32 [n, " + std::to_string(target.shape[1]) + "]";
}

/// Whether values have the shape and types for a target.
bool fits(const WarmValues &values, const Target &target) {
  if (!isFloat(values.dtype))
    return false;
  bool byRows = target.isTable || values.hasIds();
  if (!byRows)
    return values.shape == target.shape;
  if (target.shape.size() != 2 || values.shape.size() != 2)
    return false;
  bool isEmpty = values.shape[0] == 0 && values.shape[1] == 0; // Parquet's lists have no width then
  if (values.shape[1] != target.shape[1] && !isEmpty)
    return false;
  return !values.hasIds() || (isInteger(values.idType) && values.idShape.size() == 1 &&
                              values.idShape[0] == values.shape[0]);
}

class Filler {
public:
  Filler(Session &session) : session(session), targets(targetsOf(session.model())) {}

  void choose(const std::vector<std::string> &entries);
  WarmStart fill();

private:
  struct Chosen {
    Entry entry;
    WarmValues values;
  };

  const Target *find(const std::string &name) const;
  std::vector<std::string> names() const;
  void chooseOne(const Entry &entry);
  void chooseAll(const Entry &entry);
  void checkShapes() const;
  std::string thoseThatFit() const;
  void fillParameter(const Target &target, const WarmValues &values);
  void fillParameterRows(const Target &target, const WarmValues &values);
  void fillTable(const Target &target, const WarmValues &values);
  void readIds(const Target &target, const WarmValues &values, int64_t first, int64_t count,
               std::vector<int64_t> &ids) const;

  Session &session;
  std::vector<Target> targets;
  WarmFiles files;
  std::map<std::string, Chosen> chosen; ///< by name of the target
  std::vector<std::string> unused;
};

const Target *Filler::find(const std::string &name) const {
  auto found = std::find_if(targets.begin(), targets.end(),
                            [&](const Target &target) { return target.name == name; });
  return found == targets.end() ? nullptr : &*found;
}

std::vector<std::string> Filler::names() const {
  std::vector<std::string> names;
  for (const Target &target : targets)
    names.push_back(target.name);
  return names;
}

void Filler::chooseOne(const Entry &entry) {
  if (!find(entry.name)) {
    std::string near = suggestion(entry.name, names());
    throw Error("--init " + entry.text + ": the model has no table or parameter '" + entry.name +
                    "'; it has " + listNames(names()),
                near);
  }
  requireThere(entry);
  auto [other, isNew] = chosen.try_emplace(
      entry.name, Chosen{entry, files.one(entry.path, entry.name, entry.source)});
  if (!isNew)
    throw Error("--init " + entry.text + ": '" + entry.name + "' is given by --init " +
                    other->second.entry.text + ", too",
                "leave one of them out");
}

/// Takes what entries by name did not take before.
void Filler::chooseAll(const Entry &entry) {
  requireThere(entry);
  if (entry.path.ends_with(".npy") || isParquetPath(entry.path))
    throw Error("--init " + entry.text + ": does not say which table or parameter it is for",
                "--init <name>=" + entry.path + ", of " + listNames(names()));
  bool fitsAny = false;
  std::vector<std::string> found;
  for (const auto &[name, values] : files.all(entry.path)) {
    found.push_back(name);
    if (!find(name)) {
      unused.push_back(values.source);
      continue;
    }
    fitsAny = true;
    auto known = chosen.find(name);
    if (known == chosen.end())
      chosen.emplace(name, Chosen{entry, values});
    else if (known->second.entry.name.empty())
      throw Error("--init " + entry.text + ": '" + name + "' is given by --init " +
                      known->second.entry.text + ", too",
                  "say which: --init " + name + "=<path>");
  }
  if (!fitsAny)
    throw Error("--init " + entry.text + ": nothing in it has a name of the model; it has " +
                    listNames(found) + ", the model has " + listNames(names()),
                "give each its name in the model: --init <name>=" + entry.path +
                    ":<its name there>");
}

void Filler::choose(const std::vector<std::string> &entries) {
  std::vector<Entry> parsed;
  for (const std::string &text : entries)
    parsed.push_back(parseEntry(text));
  for (const Entry &entry : parsed)
    if (!entry.name.empty())
      chooseOne(entry);
  for (const Entry &entry : parsed)
    if (entry.name.empty())
      chooseAll(entry);
  checkShapes();
}

/// All differences at once, so that one run tells everything.
void Filler::checkShapes() const {
  std::string text;
  for (const auto &[name, one] : chosen)
    if (const Target &target = *find(name); !fits(one.values, target))
      text += (text.empty() ? "" : "; ") + one.values.source + " is " + describe(one.values) +
              ", " + describe(target);
  if (text.empty())
    return;
  const std::string others = thoseThatFit();
  throw Error("--init: " + text,
              "write it with the shape and type of the model, or give the model those of the file" +
                  (others.empty() ? "" : "; to start from the others alone:\n    " + others));
}

/// The flags that load what fits, each by its name, for the user's command.
std::string Filler::thoseThatFit() const {
  std::string flags;
  for (const auto &[name, one] : chosen) {
    if (!fits(one.values, *find(name)))
      continue;
    const bool isByName = !one.entry.name.empty();
    flags += (flags.empty() ? "--init " : " --init ") +
             shellWord(isByName ? one.entry.text : name + "=" + one.entry.path);
  }
  return flags;
}

void checkFinite(const WarmValues &values, int64_t first, const float *from, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    if (!std::isfinite(from[i]))
      throw Error(values.source + ": value " + withThousands(first + i) + " is " +
                      (std::isnan(from[i]) ? "NaN" : "infinite"),
                  "weights must be numbers: look at how it was made");
}

void Filler::fillParameter(const Target &target, const WarmValues &values) {
  std::span<float> to = session.parameter(target.index).value;
  values.read(0, static_cast<int64_t>(to.size()), to.data());
  checkFinite(values, 0, to.data(), static_cast<int64_t>(to.size()));
}

/// Ids of rows [first, first + count), each in range.
void Filler::readIds(const Target &target, const WarmValues &values, int64_t first, int64_t count,
                     std::vector<int64_t> &ids) const {
  ids.resize(static_cast<size_t>(count));
  if (values.hasIds())
    values.readIds(first, count, ids.data());
  else
    std::iota(ids.begin(), ids.end(), first);
  for (int64_t i = 0; i < count; ++i)
    if (ids[i] < 0 || ids[i] >= target.idEnd)
      throw Error(values.source + ", row " + withThousands(first + i) + ": id " +
                  std::to_string(ids[i]) + " is outside of " +
                  (target.isTable ? "table '" : "parameter '") + target.name +
                  "', whose ids are 0 to " + std::to_string(target.idEnd - 1));
}

/// Of a table, the rows that this rank has.
void Filler::fillTable(const Target &target, const WarmValues &values) {
  TableView table = session.table(target.index);
  if (table.size() > 0)
    throw Error("--init: table '" + target.name + "' has rows already");
  int64_t width = values.shape[1], had = 0;
  uint64_t nameHash = hashTableName(target.name);
  const Communicator *comm = session.commOfRows(target.index);
  std::vector<int64_t> ids;
  std::vector<float> block;
  forBlocks(values.shape[0], [&](int64_t first, int64_t count) {
    readIds(target, values, first, count, ids);
    block.resize(static_cast<size_t>(count * width));
    values.read(first * width, count * width, block.data());
    checkFinite(values, first * width, block.data(), count * width);
    int64_t kept = 0;
    for (int64_t i = 0; i < count; ++i)
      if (ownsRow(comm, nameHash, ids[i])) {
        std::copy_n(block.data() + i * width, width, block.data() + kept * width);
        ids[kept++] = ids[i];
      }
    TableRows rows = table.findOrInsert(ids.data(), kept);
    if (table.size() != (had += kept))
      throw Error(values.source + ": an id is there twice, before row " +
                      withThousands(first + count),
                  "keep one row of each id");
    rows.writeValues(block.data());
  });
}

/// Rows of a parameter of two sizes, by id.
void Filler::fillParameterRows(const Target &target, const WarmValues &values) {
  int64_t width = values.shape[1];
  std::span<float> parameter = session.parameter(target.index).value;
  std::vector<bool> isSet(static_cast<size_t>(target.idEnd));
  std::vector<int64_t> ids;
  std::vector<float> block;
  forBlocks(values.shape[0], [&](int64_t first, int64_t count) {
    readIds(target, values, first, count, ids);
    for (int64_t i = 0; i < count; ++i) {
      if (isSet[ids[i]])
        throw Error(values.source + ", row " + withThousands(first + i) + ": id " +
                    std::to_string(ids[i]) + " is there twice");
      isSet[ids[i]] = true;
    }
    block.resize(static_cast<size_t>(count * width));
    values.read(first * width, count * width, block.data());
    checkFinite(values, first * width, block.data(), count * width);
    for (int64_t i = 0; i < count; ++i)
      std::copy_n(block.data() + i * width, width, parameter.data() + ids[i] * width);
  });
}

WarmStart Filler::fill() {
  WarmStart result;
  result.unused = unused;
  for (const Target &target : targets) {
    auto found = chosen.find(target.name);
    if (found == chosen.end()) {
      result.notFilled.push_back(target.name);
      continue;
    }
    const WarmValues &values = found->second.values;
    int64_t rows = target.isTable || values.hasIds() ? values.shape[0] : 0;
    if (target.isTable)
      fillTable(target, values);
    else if (values.hasIds())
      fillParameterRows(target, values);
    else
      fillParameter(target, values);
    result.filled.push_back({target.name, target.isTable, rows, values.source});
  }
  return result;
}

} // namespace

WarmStart warmStart(const std::vector<std::string> &entries, Session &session) {
  WarmStart result;
  runTogether(session.comm(), [&] {
    Filler filler(session);
    filler.choose(entries);
    result = filler.fill();
  });
  return result;
}

std::vector<std::string> warmStartFiles(const std::vector<std::string> &entries) {
  std::vector<std::string> files;
  for (const std::string &text : entries) {
    Entry entry = parseEntry(text);
    if (pathExists(entry.source))
      files.push_back(entry.source);
    try {
      if (pathExists(entry.path))
        for (const std::string &file : tensorFiles(entry.path))
          files.push_back(file);
    } catch (const Error &) {
      // Told of when it is read.
    }
  }
  return files;
}

} // namespace genrec::rt

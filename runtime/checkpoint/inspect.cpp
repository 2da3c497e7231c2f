//===- inspect.cpp - Looking at checkpoints without their model ------------===//

#include "inspect.h"

#include "../core/text.h"
#include "chained_rows.h"
#include "generations.h"
#include "genrec_rt/checkpoint.h"
#include "genrec_rt/safetensors.h"
#include "genrec_rt/warm_start.h"
#include "manifest.h"
#include "saved_tables.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>

namespace genrec::rt {

namespace {

namespace fs = std::filesystem;

std::unique_ptr<CheckpointReader> openNamed(const std::string &path) {
  const NamedGeneration named = namedGeneration(path);
  return std::make_unique<CheckpointReader>(named.folder, named.generation);
}

/// The oldest first.
std::vector<std::string> generationsOf(const std::string &folder) {
  std::string path = folder + "/" + kManifestFile;
  std::optional<std::string> text = readTextFile(path);
  std::vector<std::string> names;
  if (!text || checkManifest(*text, path) == 1)
    return {CheckpointReader(folder).generation()}; // or what is wrong
  for (const GenerationEntry &entry : parseFolderManifest(*text, path).generations)
    names.push_back(entry.name);
  return names;
}

std::string count(int64_t number, const std::string &what) {
  return withThousands(number) + " " + what + (number == 1 ? "" : "s");
}

int64_t fileBytes(const SafetensorsReader &file) {
  return static_cast<int64_t>(fs::file_size(file.path()));
}

/// "2026-11-23 09:00:00 UTC"; in seconds since 1970 where that has no calendar date.
std::string describeTime(int64_t seconds) {
  std::tm parts{};
  char text[40];
  if (auto time = static_cast<std::time_t>(seconds);
      !gmtime_r(&time, &parts) ||
      std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts) == 0)
    return withThousands(seconds) + " s";
  return text;
}

std::string describe(const CheckpointReader &reader) {
  const SafetensorsReader &file = reader.tensors();
  std::vector<const SafetensorsReader *> links = reader.links();
  bool isFull = links.size() == 1;
  std::string base =
      isFull ? "" : fs::path(links[links.size() - 2]->path()).parent_path().filename();
  std::string text = "step " + withThousands(static_cast<int64_t>(reader.state().step)) +
                     ", epoch " + std::to_string(reader.state().epoch) + ", " +
                     (isFull ? "full" : "incremental, built on " + base) + ", " +
                     withThousands(fileBytes(file)) + " bytes";
  if (std::optional<int64_t> seconds = reader.state().clock.seconds)
    text += ", clock at " + describeTime(*seconds);
  for (const std::string &table : tableNames(file)) {
    text += "; " + table + ": " + count(file.tensor(table + ".ids").count(), "row");
    if (!isFull)
      text +=
          " changed, " + withThousands(file.tensor(table + ".removed.ids").count()) + " removed";
  }
  return text;
}

/// The largest difference of two values, and whether any bits differ.
struct Difference {
  bool isAny = false;
  double largest = 0;

  void add(const float *a, const float *b, int64_t size) {
    if (std::memcmp(a, b, static_cast<size_t>(size) * 4) == 0)
      return;
    isAny = true;
    for (int64_t i = 0; i < size; ++i)
      if (double by = std::abs(double(a[i]) - double(b[i])); !(by <= largest))
        largest = by; // a NaN stays
  }
  std::string text() const { return formatted("%.6g", largest); }
};

/// Compares two tables of one name.
class TableComparison {
public:
  TableComparison(const CheckpointReader &before, const CheckpointReader &after,
                  const std::string &table)
      : before(before.links(), table), after(after.links(), table), table(table) {}

  std::string run() {
    if (before.widthOf(".values") != after.widthOf(".values"))
      return "table '" + table + "': " + std::to_string(before.widthOf(".values")) +
             " floats in a row, then " + std::to_string(after.widthOf(".values"));
    match();
    compareCommon();
    if (added + removed + changed == 0)
      return "";
    return "table '" + table + "': " + count(added, "row") + " added, " + withThousands(removed) +
           " removed, " + withThousands(changed) + " changed" +
           (values.isAny ? ", values by at most " + values.text() : "");
  }

private:
  /// Finds the rows that both have.
  void match() {
    std::vector<std::pair<int64_t, int64_t>> ids;
    for (int64_t i = 0; i < before.size(); ++i)
      ids.emplace_back(before.id(i), i);
    std::sort(ids.begin(), ids.end());
    for (int64_t i = 0; i < after.size(); ++i) {
      auto found = std::lower_bound(ids.begin(), ids.end(), std::pair(after.id(i), int64_t(0)));
      if (found == ids.end() || found->first != after.id(i)) {
        ++added;
        continue;
      }
      inBefore.push_back(found->second);
      inAfter.push_back(i);
    }
    removed = before.size() - static_cast<int64_t>(inBefore.size());
  }

  void compareCommon() {
    std::vector<std::string> suffixes = {".values"};
    for (int state = 0; before.has(".state" + std::to_string(state)) &&
                        after.has(".state" + std::to_string(state));
         ++state)
      suffixes.push_back(".state" + std::to_string(state));
    std::vector<char> differs(inBefore.size());
    for (const std::string &suffix : suffixes)
      compareTensor(suffix, differs);
    changed = std::count(differs.begin(), differs.end(), 1);
  }

  void compareTensor(const std::string &suffix, std::vector<char> &differs) {
    int64_t width = before.widthOf(suffix);
    if (width != after.widthOf(suffix)) // of another optimizer
      return;
    std::vector<float> a(static_cast<size_t>(kBlockRows * width)), b(a.size());
    forBlocks(static_cast<int64_t>(inBefore.size()), [&](int64_t first, int64_t count) {
      before.read(suffix, inBefore.data() + first, count, width, a.data());
      after.read(suffix, inAfter.data() + first, count, width, b.data());
      for (int64_t i = 0; i < count; ++i) {
        Difference row;
        row.add(a.data() + i * width, b.data() + i * width, width);
        differs[static_cast<size_t>(first + i)] |= row.isAny;
        if (suffix == ".values")
          values.add(a.data() + i * width, b.data() + i * width, width);
      }
    });
  }

  ChainedRows before, after;
  std::string table;
  std::vector<int64_t> inBefore, inAfter; ///< of the rows that both have
  int64_t added = 0, removed = 0, changed = 0;
  Difference values;
};

/// Whether a tensor is one of a table's.
bool isOfTable(const std::string &tensor, const std::vector<std::string> &tables) {
  return std::any_of(tables.begin(), tables.end(),
                     [&](const std::string &table) { return tensor.starts_with(table + "."); });
}

std::string compareParameter(const SafetensorsReader &before, const SafetensorsReader &after,
                             const std::string &name) {
  const auto &a = before.tensor(name), &b = after.tensor(name);
  if (a.shape != b.shape || a.dtype != b.dtype)
    return "parameter '" + name + "': " + describe(a) + ", then " + describe(b);
  std::vector<float> was(static_cast<size_t>(a.count())), is(was.size());
  before.readFloats(name, 0, a.count(), was.data());
  after.readFloats(name, 0, b.count(), is.data());
  Difference difference;
  difference.add(was.data(), is.data(), a.count());
  return difference.isAny ? "parameter '" + name + "': changed by at most " + difference.text()
                          : "";
}

} // namespace

std::vector<std::string> listCheckpoint(const std::string &folder) {
  std::vector<std::string> lines;
  for (const std::string &name : generationsOf(folder)) {
    try {
      lines.push_back(name + ": " + describe(CheckpointReader(folder, name)));
    } catch (const Error &error) {
      lines.push_back(name + ": " + error.what());
    }
  }
  return lines;
}

std::vector<Verified> verifyCheckpoint(const std::string &path) {
  const NamedGeneration named = namedGeneration(path);
  std::vector<std::string> names{named.generation};
  if (named.generation.empty())
    names = generationsOf(named.folder);
  std::vector<Verified> found;
  for (const std::string &name : names) {
    try {
      CheckpointReader reader(named.folder, name);
      reader.verify();
      found.push_back(
          {name + ": whole, " + withThousands(fileBytes(reader.tensors())) + " bytes", true});
    } catch (const Error &error) {
      found.push_back({name + ": " + error.what(), false});
    }
  }
  return found;
}

std::vector<std::string> compareCheckpoints(const std::string &before, const std::string &after) {
  auto was = openNamed(before), is = openNamed(after);
  std::vector<std::string> lines;
  auto add = [&](const std::string &line) {
    if (!line.empty())
      lines.push_back(line);
  };
  std::vector<std::string> tables = tableNames(was->tensors()), others = tableNames(is->tensors());
  for (const std::string &table : tables)
    if (!is->tensors().has(table + ".values"))
      add("table '" + table + "' is only in " + before);
    else
      add(TableComparison(*was, *is, table).run());
  for (const std::string &table : others)
    if (!was->tensors().has(table + ".values")) {
      add("table '" + table + "' is only in " + after);
      tables.push_back(table);
    }
  for (const auto &[name, tensor] : was->tensors().tensors())
    if (!isOfTable(name, tables))
      add(is->tensors().has(name) ? compareParameter(was->tensors(), is->tensors(), name)
                                  : "parameter '" + name + "' is only in " + before);
  for (const auto &[name, tensor] : is->tensors().tensors())
    if (!isOfTable(name, tables) && !was->tensors().has(name))
      add("parameter '" + name + "' is only in " + after);
  return lines;
}

std::vector<std::string> importValues(const std::string &model,
                                      const std::vector<std::string> &entries, uint64_t seed,
                                      const std::string &folder) {
  LoadedModel loaded(model);
  if (hasCheckpoint(folder))
    throw Error(folder + " holds a checkpoint", "name another folder: import makes a new one");
  SessionOptions options;
  options.seed = seed;
  Session session(loaded.model(), options);
  WarmStart result = warmStart(entries, session);
  TrainingState state;
  state.seed = seed;
  state.batch = 1;
  state.epochLosses.resize(static_cast<size_t>(loaded.model().loss_count));
  saveCheckpoint(folder, session, state);
  std::vector<std::string> lines;
  for (const WarmStart::Filled &one : result.filled)
    lines.push_back("filled: " + one.name +
                    (one.rows > 0 ? " (" + count(one.rows, "row") + ")" : "") + " from " +
                    one.source);
  for (const std::string &name : result.notFilled)
    lines.push_back("not filled: " + name);
  for (const std::string &name : result.unused)
    lines.push_back("not used: " + name);
  return lines;
}

} // namespace genrec::rt

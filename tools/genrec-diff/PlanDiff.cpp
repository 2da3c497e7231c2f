//===- PlanDiff.cpp - what differs between two plans ----------------------===//

#include "PlanDiff.h"

#include "genrec/Report/PlanJson.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <deque>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <vector>

using namespace genrec;
using llvm::raw_ostream;
using llvm::StringRef;
namespace json = llvm::json;

static std::string getText(const json::Object &object, StringRef key) {
  return object.getString(key).value_or("").str();
}

/// "12", "adam", "-" where it is missing.
static std::string show(const json::Value *value) {
  if (!value)
    return "-";
  if (auto text = value->getAsString())
    return text->str();
  return llvm::formatv("{0}", *value).str();
}

/// `text` without the lines of the model that it names, as "(ranker.py:9, ranker.py:12)", which
/// move with every edit above them.
static std::string withoutPlaces(StringRef text) {
  static const std::regex places(R"( ?\([^() ]*:[0-9]+(, [^() ]*:[0-9]+)*(, …)?\))");
  return std::regex_replace(text.str(), places, "");
}

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

namespace {
struct Cost {
  double bytes = 0, flops = 0;
  std::optional<double> milliseconds;

  static Cost of(const json::Object &op) {
    Cost cost;
    cost.bytes = op.getNumber("bytes").value_or(0) + op.getNumber("gathered_bytes").value_or(0);
    cost.flops = op.getNumber("flops").value_or(0) + op.getNumber("product_flops").value_or(0);
    cost.milliseconds = op.getNumber("predicted_milliseconds");
    return cost;
  }

  void add(const Cost &other, double sign) {
    bytes += sign * other.bytes;
    flops += sign * other.flops;
    if (other.milliseconds)
      milliseconds = milliseconds.value_or(0) + sign * *other.milliseconds;
  }

  bool isNothing() const { return bytes == 0 && flops == 0; }
};

/// "+2.048 MB", "-16 B": `number` by the largest of `units`, a thousand apart, that leaves
/// something before the point.
std::string scaled(double number, llvm::ArrayRef<StringRef> units) {
  size_t unit = 0;
  for (; unit + 1 < units.size() && std::abs(number) >= 1000; ++unit)
    number /= 1000;
  return llvm::formatv(
             "{0}{1} {2}", number < 0 ? "-" : "+",
             llvm::format(std::abs(number) < 10 && unit ? "%.2f" : "%.0f", std::abs(number)),
             units[unit])
      .str();
}

raw_ostream &operator<<(raw_ostream &os, const Cost &change) {
  std::vector<std::string> parts;
  if (std::abs(change.bytes) >= 1)
    parts.push_back(scaled(change.bytes, {"B", "kB", "MB", "GB"}));
  if (std::abs(change.flops) >= 1)
    parts.push_back(scaled(change.flops, {"FLOP", "kFLOP", "MFLOP", "GFLOP"}));
  if (std::abs(change.milliseconds.value_or(0)) >= 0.5e-6)
    parts.push_back(scaled(*change.milliseconds * 1e6, {"ns", "us", "ms", "s"}));
  return os << (parts.empty() ? "no cost" : llvm::join(parts, ", "));
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

struct Kernel {
  const json::Object *op;
  std::string name, domain, from;
  std::multiset<std::string> parts; ///< the model's ops that it was made of
  Cost cost;

  explicit Kernel(const json::Object &op)
      : op(&op), name(getText(op, "name")), domain(getText(op, "domain")),
        from(getText(op, "from")), cost(Cost::of(op)) {
    // "lookup, pool; of user (ranker.py:9)"
    StringRef ops = StringRef(from).take_until([](char c) { return c == ';' || c == '('; });
    for (StringRef part : llvm::split(ops, ", "))
      if (!part.trim().empty())
        parts.insert(part.trim().str());
    // A kernel of one op is called after it: "row_tanh_2".
    if (StringRef own = name; parts.empty() && own.consume_front("row_"))
      parts.insert(own.rtrim("0123456789").rtrim('_').str());
  }
  /// What it is made of and works on; with `places`, on which lines of the model, too; with
  /// `costs`, what it costs.
  std::string identity(bool places, bool costs) const {
    std::string text = getText(*op, "op") + "\n" + StringRef(domain).rtrim('_').str() + "\n" +
                       getText(*op, "stage") + "\n" + (places ? from : withoutPlaces(from)) + "\n" +
                       llvm::join(parts, ",");
    return costs ? text + llvm::formatv("\n{0} {1}", cost.bytes, cost.flops).str() : text;
  }
};

using Kernels = std::vector<Kernel>;

/// Kernels of `many` over one domain whose parts together are those of `one`; empty where
/// there are none.
std::vector<size_t> findParts(const Kernel &one, const Kernels &many) {
  std::multiset<std::string> left = one.parts;
  std::vector<size_t> found;
  for (const auto &[number, kernel] : llvm::enumerate(many)) {
    bool fits = kernel.domain == one.domain && !kernel.parts.empty() &&
                llvm::all_of(kernel.parts, [&](const std::string &part) {
                  return left.count(part) >= kernel.parts.count(part);
                });
    if (!fits)
      continue;
    for (const std::string &part : kernel.parts)
      left.erase(left.find(part));
    found.push_back(number);
  }
  // Recomputed ops may be left over, or come twice: most of the parts is enough.
  bool covers = 4 * left.size() <= one.parts.size();
  return found.size() >= 2 && covers ? found : std::vector<size_t>();
}

std::string takeNames(const std::vector<size_t> &numbers, Kernels &kernels, double sign,
                      Cost &change) {
  std::vector<std::string> names;
  for (size_t number : numbers) {
    names.push_back(kernels[number].name);
    change.add(kernels[number].cost, sign);
  }
  for (size_t number : llvm::reverse(numbers))
    kernels.erase(kernels.begin() + number);
  return llvm::join(names, " + ");
}

class ProgramDiff {
public:
  ProgramDiff(const json::Object &a, const json::Object &b, raw_ostream &os) : a(a), b(b), os(os) {}
  bool print();

private:
  void match();
  void pair(bool places, bool costs);
  void pairNames();
  void printHead(bool isSame);
  void printRegrouped();
  void printRest();
  void line(StringRef kind, const std::string &what, const Cost &change, StringRef from);

  const json::Object &a, &b;
  raw_ostream &os;
  Kernels removed, added;
  std::vector<std::pair<Kernel, Cost>> changed; ///< the same ops, other costs
};
} // namespace

/// Pairs the kernels that are the same: first those that are so to the line and the byte, last
/// those that are made of the same.
void ProgramDiff::match() {
  for (const json::Object *op : getObjects(a, "ops"))
    removed.emplace_back(*op);
  for (const json::Object *op : getObjects(b, "ops"))
    added.emplace_back(*op);
  pair(/*places=*/true, /*costs=*/true);
  pair(/*places=*/false, /*costs=*/true);
  pair(/*places=*/true, /*costs=*/false);
  pair(/*places=*/false, /*costs=*/false);
}

void ProgramDiff::pair(bool places, bool costs) {
  std::map<std::string, std::deque<size_t>> before;
  for (const auto &[number, kernel] : llvm::enumerate(removed))
    before[kernel.identity(places, costs)].push_back(number);
  std::set<size_t> paired;
  llvm::erase_if(added, [&](const Kernel &kernel) {
    std::deque<size_t> &same = before[kernel.identity(places, costs)];
    if (same.empty())
      return false;
    Cost change = kernel.cost;
    change.add(removed[same.front()].cost, -1);
    if (!change.isNothing())
      changed.emplace_back(kernel, change);
    paired.insert(same.front());
    same.pop_front();
    return true;
  });
  Kernels left;
  for (const auto &[number, kernel] : llvm::enumerate(removed))
    if (!paired.count(number))
      left.push_back(kernel);
  removed = std::move(left);
}

void ProgramDiff::line(StringRef kind, const std::string &what, const Cost &change,
                       StringRef from) {
  os << "  " << llvm::left_justify(kind, 8) << what << ": " << change << "\n";
  if (!from.empty())
    os << "          " << from << "\n";
}

void ProgramDiff::printRegrouped() {
  for (size_t i = 0; i < added.size();) {
    std::vector<size_t> parts = findParts(added[i], removed);
    if (parts.empty()) {
      ++i;
      continue;
    }
    Cost change = added[i].cost;
    std::string names = takeNames(parts, removed, -1, change);
    line("fused", names + " → " + added[i].name, change, added[i].from);
    added.erase(added.begin() + i);
  }
  for (size_t i = 0; i < removed.size();) {
    std::vector<size_t> parts = findParts(removed[i], added);
    if (parts.empty()) {
      ++i;
      continue;
    }
    Cost change;
    change.add(removed[i].cost, -1);
    std::string names = takeNames(parts, added, 1, change);
    line("split", removed[i].name + " → " + names, change, removed[i].from);
    removed.erase(removed.begin() + i);
  }
}

/// Row kernels of one name are one kernel that is made of other ops now.
void ProgramDiff::pairNames() {
  for (auto kernel = added.begin(); kernel != added.end();) {
    auto same = llvm::find_if(removed, [&](const Kernel &other) {
      return StringRef(kernel->name).starts_with("row_") && other.name == kernel->name &&
             other.domain == kernel->domain;
    });
    if (same == removed.end()) {
      ++kernel;
      continue;
    }
    Cost change = kernel->cost;
    change.add(same->cost, -1);
    changed.emplace_back(*kernel, change);
    removed.erase(same);
    kernel = added.erase(kernel);
  }
}

void ProgramDiff::printRest() {
  pairNames();
  for (const Kernel &kernel : removed) {
    Cost change;
    change.add(kernel.cost, -1);
    line("-", kernel.name, change, kernel.from);
  }
  for (const Kernel &kernel : added)
    line("+", kernel.name, kernel.cost, kernel.from);
  for (const auto &[kernel, change] : changed)
    line("changed", kernel.name, change, kernel.from);
}

void ProgramDiff::printHead(bool isSame) {
  Cost change;
  for (const json::Object *op : getObjects(b, "ops"))
    change.add(Cost::of(*op), 1);
  for (const json::Object *op : getObjects(a, "ops"))
    change.add(Cost::of(*op), -1);
  os << "program " << getText(b, "name") << ": ";
  if (isSame) {
    os << "the same " << show(b.get("launches")) << " launches\n";
    return;
  }
  os << show(a.get("launches")) << " → " << show(b.get("launches")) << " launches, "
     << show(a.get("row_kernels")) << " → " << show(b.get("row_kernels")) << " row kernels, "
     << change << "\n";
}

bool ProgramDiff::print() {
  match();
  bool isSame = removed.empty() && added.empty() && changed.empty();
  printHead(isSame);
  printRegrouped();
  printRest();
  return !isSame;
}

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

/// Entries of the list `key` by name: gone, new, and those of which a field differs.
static bool printEntries(const json::Object &a, const json::Object &b, StringRef key,
                         StringRef what, StringRef nameKey, llvm::ArrayRef<StringRef> fields,
                         raw_ostream &os) {
  llvm::MapVector<StringRef, const json::Object *> before, after;
  for (auto [plan, map] : {std::pair(&a, &before), std::pair(&b, &after)})
    for (const json::Object *entry : getObjects(*plan, key))
      if (getText(*entry, "kind") != "step") // not the user's: what comes and goes with kernels
        (*map)[entry->getString(nameKey).value_or("")] = entry;
  bool differs = false;
  auto where = [](const json::Object &entry) {
    std::string place = getText(entry, "where");
    return place.empty() ? place : " (" + place + ")";
  };
  for (auto [name, entry] : before)
    if (!after.count(name)) {
      os << "- " << what << " '" << name << "'" << where(*entry) << "\n";
      differs = true;
    }
  for (auto [name, entry] : after) {
    auto known = before.find(name);
    if (known == before.end()) {
      os << "+ " << what << " '" << name << "'" << where(*entry) << "\n";
      differs = true;
      continue;
    }
    std::vector<std::string> changes;
    for (StringRef field : fields)
      if (std::string was = show(known->second->get(field)), is = show(entry->get(field));
          was != is)
        changes.push_back(llvm::formatv("{0} {1} → {2}", field, was, is).str());
    if (changes.empty())
      continue;
    os << "~ " << what << " '" << name << "': " << llvm::join(changes, ", ") << where(*entry)
       << "\n";
    differs = true;
  }
  return differs;
}

/// Lines of the list `key` that only one of the two has.
static bool printLines(const json::Object &a, const json::Object &b, StringRef key, StringRef what,
                       raw_ostream &os) {
  auto getLines = [&](const json::Object &plan) {
    std::vector<std::string> lines;
    if (const json::Array *array = plan.getArray(key))
      for (const json::Value &line : *array)
        lines.push_back(show(&line));
    return lines;
  };
  std::vector<std::string> before = getLines(a), after = getLines(b);
  bool differs = false;
  auto printMissing = [&](char sign, const std::vector<std::string> &from,
                          const std::vector<std::string> &in) {
    std::set<std::string> known;
    for (const std::string &line : in)
      known.insert(withoutPlaces(line));
    for (const std::string &line : from)
      if (!known.count(withoutPlaces(line))) {
        os << sign << " " << what << ": " << line << "\n";
        differs = true;
      }
  };
  printMissing('-', before, after);
  printMissing('+', after, before);
  return differs;
}

bool genrec::printDifferences(const json::Object &a, const json::Object &b, raw_ostream &os) {
  bool differs = false;
  for (StringRef field : {"model", "compiler", "batch", "longest", "machine"})
    if (std::string was = show(a.get(field)), is = show(b.get(field)); was != is) {
      os << "~ " << field << ": " << was << " → " << is << "\n";
      differs = true;
    }
  differs |= printEntries(a, b, "domains", "domain", "name", {"kind", "parent"}, os);
  differs |= printEntries(a, b, "tables", "table", "name",
                          {"dim", "optimizer", "bytes_per_row", "rules", "in"}, os);
  differs |= printEntries(a, b, "columns", "column", "column", {"domain", "table"}, os);
  differs |= printLines(a, b, "decisions", "decision", os);
  llvm::MapVector<StringRef, const json::Object *> before;
  for (const json::Object *program : getObjects(a, "programs"))
    before[program->getString("name").value_or("")] = program;
  for (const json::Object *program : getObjects(b, "programs")) {
    StringRef name = program->getString("name").value_or("");
    auto known = before.find(name);
    if (known == before.end()) {
      os << "+ program " << name << "\n";
      differs = true;
      continue;
    }
    differs |= ProgramDiff(*known->second, *program, os).print();
    differs |= printLines(*known->second, *program, "decisions", "kept", os);
    before.erase(known);
  }
  for (auto [name, program] : before) {
    os << "- program " << name << "\n";
    differs = true;
  }
  return differs;
}

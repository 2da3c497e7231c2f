//===- held.cpp - What a program has to give back -------------------------===//
//
// Memory of a device, pinned memory, streams, events, graphs and what cuBLAS and NCCL make. A
// device has little enough memory that a step which keeps some ends a run after hours.
//
//===----------------------------------------------------------------------===//

#include "operations.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>

namespace simt {

namespace {

struct Holding {
  std::string what;
  int64_t number = 0;  ///< in the order in which things were made
  bool isKept = false; ///< it may be
  Callers callers = {};
};

struct Registry {
  std::mutex mutex;
  std::map<const void *, Holding> held;
  int64_t count = 0;
};
Registry &registry() {
  static Registry instance;
  return instance;
}

/// Appends what is held at the end of the program.
const struct Report {
  Report() { registry(); }
  ~Report() {
    FILE *out = file ? std::fopen(file, "a") : nullptr;
    if (!out)
      return;
    std::fputs(describeHeld(0).c_str(), out);
    std::fclose(out);
  }
  const char *file = std::getenv("GENREC_SIMT_HELD");
} report;

} // namespace

void hold(const void *thing, std::string what, bool isKept) {
  Callers from = callers();
  std::lock_guard lock(registry().mutex);
  registry().held[thing] = {std::move(what), registry().count++, isKept, from};
}

bool giveBack(const void *thing) {
  std::lock_guard lock(registry().mutex);
  return registry().held.erase(thing) > 0;
}

void keepHeld() {
  std::lock_guard lock(registry().mutex);
  for (auto &[thing, holding] : registry().held)
    holding.isKept = true;
}

int64_t heldCount() {
  std::lock_guard lock(registry().mutex);
  return registry().count;
}

std::string describeHeld(int64_t from) {
  std::vector<const Holding *> since;
  std::lock_guard lock(registry().mutex);
  for (const auto &[thing, holding] : registry().held)
    if (holding.number >= from && !holding.isKept)
      since.push_back(&holding);
  std::sort(since.begin(), since.end(),
            [](const Holding *a, const Holding *b) { return a->number < b->number; });
  std::string text;
  for (const Holding *holding : since)
    text += holding->what + " is never given back: made at " + placesOf(holding->callers) + "\n";
  return text;
}

} // namespace simt

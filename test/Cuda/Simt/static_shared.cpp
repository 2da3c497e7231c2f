//===- static_shared.cpp - Static shared memory, of all loaded objects ----===//
//
// A `__shared__` variable is a variable of section simt_shared of the object that has it. All
// blocks find it at one address: what a block has there is moved in and out.
//
//===----------------------------------------------------------------------===//

#include "operations.h"

#include <algorithm>
#include <mutex>

namespace simt {

namespace {

struct Section {
  char *from, *to;

  size_t bytes() const { return static_cast<size_t>(to - from); }
};

/// In the order in which objects were loaded. Objects come and go while no kernel runs, also before
/// main and after it, where the engine's own lock is not there.
struct Sections {
  std::mutex mutex;
  std::vector<Section> all;
  uint64_t version = 1;
};
Sections &sections() {
  static Sections instance;
  return instance;
}

/// The number of the section that an address is of; that of sections where it is of none.
size_t sectionOf(const char *at) {
  const std::vector<Section> &all = sections().all;
  static size_t last = 0; // accesses follow each other
  if (last < all.size() && at >= all[last].from && at < all[last].to)
    return last;
  auto found = std::find_if(all.begin(), all.end(), [&](const Section &section) {
    return at >= section.from && at < section.to;
  });
  const auto number = static_cast<size_t>(found - all.begin());
  if (number < all.size())
    last = number;
  return number;
}

} // namespace

SharedSection::SharedSection(char *from, char *to) : from(from) {
  if (from == to)
    return;
  std::lock_guard held(sections().mutex);
  sections().all.push_back({from, to});
  ++sections().version;
}

SharedSection::~SharedSection() {
  std::lock_guard held(sections().mutex);
  if (std::erase_if(sections().all, [&](const Section &section) { return section.from == from; }))
    ++sections().version;
}

bool isStaticShared(const void *memory) {
  return sectionOf(static_cast<const char *>(memory)) < sections().all.size();
}

bool checkStaticShared(const Accessor &who, const char *at, size_t bytes, bool isWrite,
                       bool notesIt) {
  const size_t number = sectionOf(at);
  if (number == sections().all.size())
    return false;
  const Section &section = sections().all[number];
  if (at + bytes > section.to)
    fail("out of bounds: " + accessText(bytes, isWrite) + " by " + self() +
         " beyond shared memory");
  StaticShared &shared = machine.block->statics[number];
  const auto offset = static_cast<size_t>(at - section.from);
  if (shared.touchedTo == shared.touchedFrom)
    shared.touchedFrom = shared.touchedTo = offset;
  shared.touchedFrom = std::min(shared.touchedFrom, offset);
  shared.touchedTo = std::max(shared.touchedTo, offset + bytes);
  checkNotes(shared.notes.get(), nullptr, offset, bytes, isWrite, notesIt, who);
  return true;
}

void startStaticShared(Block &block) {
  const Sections &known = sections();
  if (block.sectionsVersion != known.version) {
    block.sectionsVersion = known.version;
    block.statics.clear();
    for (const Section &section : known.all)
      block.statics.push_back({zeros<char>(section.bytes()), zeros<Note>(section.bytes() / 4 + 1)});
  }
  for (StaticShared &shared : block.statics)
    shared.touchedFrom = shared.touchedTo = 0;
}

void saveStaticShared(Block &block) {
  for (size_t i = 0; i < block.statics.size(); ++i) {
    const StaticShared &shared = block.statics[i];
    std::copy(sections().all[i].from + shared.touchedFrom,
              sections().all[i].from + shared.touchedTo, shared.saved.get() + shared.touchedFrom);
  }
}

void restoreStaticShared(const Block &block) {
  for (size_t i = 0; i < block.statics.size(); ++i) {
    const StaticShared &shared = block.statics[i];
    std::copy(shared.saved.get() + shared.touchedFrom, shared.saved.get() + shared.touchedTo,
              sections().all[i].from + shared.touchedFrom);
  }
}

size_t staticSharedBytes(const Block &block) {
  size_t words = 0;
  for (const StaticShared &shared : block.statics)
    for (size_t word = shared.touchedFrom / 4; word * 4 < shared.touchedTo; ++word)
      words += shared.notes[word].operation == block.stamp && shared.notes[word].initialised;
  return words * 4;
}

} // namespace simt

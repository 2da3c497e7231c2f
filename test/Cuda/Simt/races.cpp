//===- races.cpp - Accesses that nothing orders ---------------------------===//

#include "operations.h"

namespace simt {

namespace {

constexpr uint32_t kActorMask = (1u << kActorBits) - 1;

/// "thread 5", or what hardware does for a warp; of another block with its number.
std::string nameOf(uint32_t who) {
  const Block &block = *machine.block;
  size_t actor = who & kActorMask, threads = block.threads.size();
  std::string name = actor < threads ? "thread " + std::to_string(actor)
                     : actor < threads + kMostWarps
                         ? "a product of warp " + std::to_string(actor - threads)
                         : std::string("an asynchronous copy");
  if (who >> kActorBits != block.number)
    name += " of another block";
  return name;
}

class Word {
public:
  Word(Note &note, uint32_t mask, const Accessor &who, const char *where, size_t offset)
      : note(note), mask(mask), who(who), where(where), offset(offset),
        me(machine.block->number << kActorBits | static_cast<uint32_t>(who.actor)) {}

  /// Fails where a write by another is not known, or not shown to the asynchronous proxy.
  void checkAgainstWriter(bool isWrite) const {
    if (!(note.writeMask & mask) || note.writer == me || (note.writeAtomic && who.isAtomic))
      return;
    if (!isKnown(note.writer, note.written))
      accuse(isWrite, "written by " + nameOf(note.writer));
    if (who.fenced && !note.writeAsync && note.writer >> kActorBits == machine.block->number &&
        !who.fenced->knows(note.writer & kActorMask, note.written))
      fail(std::string("no proxy fence: an asynchronous ") + (isWrite ? "write" : "read") +
           " started by " + self() + " of " + name() + ", written by " + nameOf(note.writer) +
           " without a fence.proxy.async since");
  }

  void checkAgainstReaders() const {
    for (int i = 0; i < 2; ++i)
      if ((note.readMasks[i] & mask) && note.readers[i] != me &&
          !((note.readAtomic >> i & 1) && who.isAtomic) && !isKnown(note.readers[i], note.read[i]))
        accuse(true, "read by " + nameOf(note.readers[i]));
  }

  void noteWrite() const {
    bool again = note.writer == me && note.written == who.clock;
    note.writeMask = static_cast<uint8_t>((again ? note.writeMask : 0u) | mask) & 0xF;
    note.writer = me;
    note.written = who.clock;
    note.writeAtomic = who.isAtomic;
    note.writeAsync = who.fenced != nullptr;
    note.initialised |= mask & 0xF;
    for (uint8_t &readMask : note.readMasks)
      readMask &= static_cast<uint8_t>(~mask);
  }

  /// Of readers that nothing orders two are kept, of different warps if there are any.
  void noteRead() const {
    int slot = 0;
    if (note.readMasks[0] && note.readers[0] != me && !isKnown(note.readers[0], note.read[0])) {
      bool sameWarp = note.readers[0] / kWarp == me / kWarp;
      slot = !note.readMasks[1] || !sameWarp || note.readers[1] == me;
      if (!slot)
        return; // the first one stands for its warp
    }
    bool again = note.readers[slot] == me && note.read[slot] == who.clock;
    note.readMasks[slot] = static_cast<uint8_t>((again ? note.readMasks[slot] : 0u) | mask);
    note.readers[slot] = me;
    note.read[slot] = who.clock;
    note.readAtomic = static_cast<uint8_t>((note.readAtomic & ~(1u << slot)) |
                                           static_cast<unsigned>(who.isAtomic) << slot) &
                      3;
  }

  bool isInitialised() const { return (note.initialised & mask) == mask; }
  std::string name() const {
    return where[0] == 's' ? "shared byte " + std::to_string(offset) : describeDevice(offset);
  }

private:
  bool isKnown(uint32_t other, Clock clock) const {
    uint32_t number = other >> kActorBits;
    size_t actor = other & kActorMask;
    if (number == machine.block->number)
      return who.known.here.knows(actor, clock);
    if (!who.known.elsewhere)
      return false;
    auto found = who.known.elsewhere->find(number);
    return found != who.known.elsewhere->end() && found->second->knows(actor, clock);
  }

  [[noreturn]] void accuse(bool isWrite, const std::string &other) const {
    fail(std::string("race in ") + where + " memory: " + (isWrite ? "write" : "read") +
         accessPlace() + " by " + nameOf(me) + " of block (" +
         std::to_string(machine.block->index.x) + "," + std::to_string(machine.block->index.y) +
         "," + std::to_string(machine.block->index.z) + ") of " + name() + ", " + other +
         " with nothing between that orders them");
  }

  Note &note;
  uint32_t mask;
  const Accessor &who;
  const char *where;
  size_t offset;
  uint32_t me;
};

} // namespace

void checkNotes(Note *notes, History *history, size_t offset, size_t bytes, bool isWrite,
                bool notesIt, const Accessor &who, const char *where) {
  const uint32_t operation = machine.operation->number;
  const bool isSharedMemory = where[0] == 's';
  for (size_t at = offset / 4; at * 4 < offset + bytes; ++at) {
    Note &note = notes[at];
    const bool isFirst = note.operation != operation;
    if (isFirst && history)
      foldNote(note, history[at], at * 4);
    if (isFirst) {
      note = Note{};
      note.operation = operation;
    }
    uint32_t mask = 0xF;
    if (at * 4 < offset)
      mask &= 0xFu << (offset - at * 4);
    if (at * 4 + 4 > offset + bytes)
      mask &= 0xFu >> (at * 4 + 4 - offset - bytes);
    if (history && (isFirst || (isWrite && mask & ~uint32_t(note.writeMask))))
      checkHistory(history[at], mask, isWrite, who.isAtomic, at * 4);
    Word word(note, mask, who, where, at * 4);
    if (isSharedMemory && !isWrite && !word.isInitialised())
      fail("uninitialised shared memory: read of " + std::to_string(bytes) + " bytes by " + self() +
           ", " + word.name());
    word.checkAgainstWriter(isWrite);
    if (isWrite)
      word.checkAgainstReaders();
    if (!notesIt)
      continue;
    if (isWrite)
      word.noteWrite();
    else
      word.noteRead();
  }
}

} // namespace simt

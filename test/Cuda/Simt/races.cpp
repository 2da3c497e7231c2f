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
  Word(Note &note, uint32_t mask, const Accessor &who, bool isShared, size_t offset, uint32_t me)
      : note(note), mask(mask), who(who), isShared(isShared), offset(offset), me(me) {}

  /// Fails where a write by another is not known, or not shown to the asynchronous proxy.
  void checkAgainstWriter(bool isWrite) const {
    if (!(note.writeMask & mask) || note.writer == me || (note.writeAtomic && who.isAtomic))
      return;
    if (!isKnown(note.writer, note.written))
      accuse(isWrite, "written", note.writer);
    if (who.fenced && !note.writeAsync && note.writer >> kActorBits == me >> kActorBits &&
        !who.fenced->knows(note.writer & kActorMask, note.written))
      accuseOfProxy(isWrite);
  }

  void checkAgainstReaders() const {
    for (int i = 0; i < 2; ++i)
      if ((note.readMasks[i] & mask) && note.readers[i] != me &&
          !((note.readAtomic >> i & 1) && who.isAtomic) && !isKnown(note.readers[i], note.read[i]))
        accuse(true, "read", note.readers[i]);
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

  void checkInitialised(size_t bytes) const {
    if ((note.initialised & mask) != mask)
      accuseUninitialised(bytes);
  }

private:
  std::string name() const {
    return isShared ? "shared byte " + std::to_string(offset) : describeDevice(offset);
  }

  bool isKnown(uint32_t other, Clock clock) const {
    uint32_t number = other >> kActorBits;
    size_t actor = other & kActorMask;
    if (number == me >> kActorBits)
      return who.known.here.knows(actor, clock);
    if (!who.known.elsewhere)
      return false;
    auto found = who.known.elsewhere->find(number);
    return found != who.known.elsewhere->end() && found->second->knows(actor, clock);
  }

  // Texts are made beside what every access goes through.
  [[noreturn, gnu::cold, gnu::noinline]] void accuseUninitialised(size_t bytes) const {
    fail("uninitialised shared memory: read of " + std::to_string(bytes) + " bytes by " + self() +
         ", " + name());
  }
  [[noreturn, gnu::cold, gnu::noinline]] void accuseOfProxy(bool isWrite) const {
    fail(std::string("no proxy fence: an asynchronous ") + (isWrite ? "write" : "read") +
         " started by " + self() + " of " + name() + ", written by " + nameOf(note.writer) +
         " without a fence.proxy.async since");
  }
  [[noreturn, gnu::cold, gnu::noinline]] void accuse(bool isWrite, const char *did,
                                                     uint32_t other) const {
    fail(std::string("race in ") + (isShared ? "shared" : "device") + " memory: " +
         (isWrite ? "write" : "read") + accessPlace() + " by " + nameOf(me) + " of block (" +
         std::to_string(machine.block->index.x) + "," + std::to_string(machine.block->index.y) +
         "," + std::to_string(machine.block->index.z) + ") of " + name() + ", " + did + " by " +
         nameOf(other) + " with nothing between that orders them");
  }

  Note &note;
  uint32_t mask;
  const Accessor &who;
  bool isShared;
  size_t offset;
  uint32_t me;
};

} // namespace

void checkNotes(Note *notes, History *history, size_t offset, size_t bytes, bool isWrite,
                bool notesIt, const Accessor &who) {
  const uint32_t owner = history ? machine.operation->number : machine.block->stamp;
  const uint32_t me = machine.block->number << kActorBits | static_cast<uint32_t>(who.actor);
  for (size_t at = offset / 4; at * 4 < offset + bytes; ++at) {
    Note &note = notes[at];
    const bool isFirst = note.operation != owner;
    if (isFirst) {
      if (history)
        foldNote(note, history[at], at * 4);
      note = Note{};
      note.operation = owner;
    }
    uint32_t mask = 0xF;
    if (at * 4 < offset)
      mask &= 0xFu << (offset - at * 4);
    if (at * 4 + 4 > offset + bytes)
      mask &= 0xFu >> (at * 4 + 4 - offset - bytes);
    if (history && (isFirst || (isWrite && mask & ~uint32_t(note.writeMask))))
      checkHistory(history[at], mask, isWrite, who.isAtomic, at * 4);
    Word word(note, mask, who, !history, at * 4, me);
    if (!history && !isWrite)
      word.checkInitialised(bytes);
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

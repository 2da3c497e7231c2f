//===- history.cpp - Operations that touch the same memory ----------------===//
//
// Notes (races.cpp) tell of the threads of one kernel. When the next operation touches a word, what
// they say becomes the word's history: which operations wrote and read it. An access that neither
// streams, events nor the host order with one of those is a race, whenever both ran.
//
//===----------------------------------------------------------------------===//

#include "arena.h"

#include <cstring>

namespace simt {

namespace {

/// Whether the running operation knows of another. Words that lie together were touched by the same
/// few: what is known of the last ones is kept.
bool isKnown(uint32_t number) {
  static uint64_t kept[64] = {};
  const uint64_t both = uint64_t(machine.operation->number) << 32 | number;
  uint64_t &last = kept[number % std::size(kept)];
  if (last == both)
    return true;
  const OperationInfo &info = operationInfo(number);
  if (!knows(machine.operation->known, info.timeline, info.clock))
    return false;
  last = both;
  return true;
}

[[noreturn]] void accuse(uint32_t other, bool otherWrites, bool isWrite, size_t offset) {
  fail("race between operations: " + describe(machine.operation->info) +
       (isWrite ? " writes " : " reads ") + describeDevice(offset) + accessPlace() + ", which " +
       describe(operationInfo(other)) + (otherWrites ? " writes" : " reads") +
       ": no stream, event or waiting orders them");
}

/// Memory of cudaMallocAsync is there for what knows of that call.
void checkAllocated(size_t offset) {
  static const Allocation *last = nullptr;
  static char *from = nullptr;
  static uint64_t changes = 0;
  const char *at = arena().base + offset;
  if (changes != arena().changes || at < from || at >= from + last->bytes) {
    auto found = arena().nearest(at);
    if (found == arena().allocations.end())
      return;
    last = &found->second;
    from = found->first;
    changes = arena().changes;
  }
  if (last->made.what[0] && !knows(machine.operation->known, last->made.timeline, last->made.clock))
    fail("race between operations: " + describe(machine.operation->info) + " touches " +
         describeDevice(offset) + " before that is there: " + describe(last->made) +
         " is not ordered before");
}

void noteReader(History &history, uint32_t reader, uint32_t mask) {
  const uint32_t timeline = operationInfo(reader).timeline;
  auto replaces = [&](uint32_t other, uint32_t otherMask) {
    return !otherMask || operationInfo(other).timeline == timeline;
  };
  if (replaces(history.readers[0], history.readMask0) ||
      !replaces(history.readers[1], history.readMask1)) {
    // The one that this one follows, or the older of two that nothing orders.
    history.readMask0 = mask & 0xF;
    history.readers[0] = reader;
    return;
  }
  history.readMask1 = mask & 0xF;
  history.readers[1] = reader;
}

uint32_t maskOf(size_t word, size_t offset, size_t bytes) {
  uint32_t mask = 0xF;
  if (word * 4 < offset)
    mask &= 0xFu << (offset - word * 4);
  if (word * 4 + 4 > offset + bytes)
    mask &= 0xFu >> (word * 4 + 4 - offset - bytes);
  return mask;
}

/// An access of the running operation as a whole.
void noteWhole(Note &note, History &history, uint32_t mask, bool isWrite, size_t offset) {
  const uint32_t number = machine.operation->number;
  const bool isFirst = note.operation != number;
  if (isFirst) {
    foldNote(note, history, offset);
    note = Note{};
    note.operation = number;
  }
  checkHistory(history, mask, isWrite, false, offset);
  uint8_t &readMask = note.readMasks[0];
  if (isWrite) {
    note.writeMask = static_cast<uint8_t>(note.writeMask | mask) & 0xF;
    readMask &= static_cast<uint8_t>(~mask);
  } else {
    readMask = static_cast<uint8_t>(readMask | mask);
  }
}

} // namespace

void foldNote(Note &note, History &history, size_t offset) {
  Arena &memory = arena();
  memory.touched[offset / kPageBytes] = 1;
  if (!note.operation) {
    checkAllocated(offset);
    return;
  }
  if (note.writeMask) {
    history.writer = note.operation;
    history.writeMask = note.writeMask;
    history.writeAtomic = note.writeAtomic;
    history.readMask0 &= static_cast<uint8_t>(~note.writeMask) & 0xF;
    history.readMask1 &= static_cast<uint8_t>(~note.writeMask) & 0xF;
  }
  if (uint32_t mask = note.readMasks[0] | note.readMasks[1])
    noteReader(history, note.operation, mask);
}

void checkEarly(const Note &note, const History &history, bool isWrite, size_t offset) {
  const OperationInfo &own = machine.operation->info;
  auto check = [&](uint32_t number, bool otherWrites) {
    if (number == 0 || number == machine.operation->number)
      return;
    const OperationInfo &other = operationInfo(number);
    if (other.timeline == own.timeline && other.clock + 1 == own.clock)
      fail("race between operations: " + describe(own) + (isWrite ? " writes " : " reads ") +
           describeDevice(offset) + accessPlace() + " before it waits for " + describe(other) +
           ", which " + (otherWrites ? "writes" : "reads"));
  };
  // Of the operation before, or folded already.
  if (note.writeMask)
    check(note.operation, true);
  if (history.writeMask)
    check(history.writer, true);
  if (!isWrite)
    return;
  if (note.readMasks[0] | note.readMasks[1])
    check(note.operation, false);
  if (history.readMask0)
    check(history.readers[0], false);
  if (history.readMask1)
    check(history.readers[1], false);
}

void awaitLaunchBefore() { machine.thread->isEarly = false; }

void checkHistory(const History &history, uint32_t mask, bool isWrite, bool isAtomic,
                  size_t offset) {
  if ((history.writeMask & mask) && !(isAtomic && history.writeAtomic) && !isKnown(history.writer))
    accuse(history.writer, true, isWrite, offset);
  if (!isWrite)
    return;
  if ((history.readMask0 & mask) && !isKnown(history.readers[0]))
    accuse(history.readers[0], false, true, offset);
  if ((history.readMask1 & mask) && !isKnown(history.readers[1]))
    accuse(history.readers[1], false, true, offset);
}

void accessRange(const void *memory, size_t bytes, bool isWrite) {
  Arena &all = arena();
  if (!bytes || !all.holds(memory))
    return;
  const size_t offset = all.offsetOf(memory);
  const uint8_t *shadow = all.shadow + offset;
  if (std::memchr(shadow, freed, bytes))
    fail("freed memory: " + std::to_string(bytes) + " bytes " + describeAddress(memory) +
         (isWrite ? ", written by " : ", read by ") + describe(machine.operation->info));
  if (std::memchr(shadow, outside, bytes))
    fail("out of bounds: " + std::to_string(bytes) + " bytes " + describeAddress(memory) +
         (isWrite ? ", written by " : ", read by ") + describe(machine.operation->info));
  for (size_t word = offset / 4; word * 4 < offset + bytes; ++word)
    noteWhole(all.notes[word], all.history[word], maskOf(word, offset, bytes), isWrite, word * 4);
}

void accessRows(const void *memory, size_t rowBytes, int64_t rows, int64_t strideBytes,
                bool isWrite) {
  for (int64_t r = 0; r < rows; ++r) {
    const char *row = static_cast<const char *>(memory) + r * strideBytes;
    if (arena().holds(row) && !isWrite && std::memchr(arena().shadowOf(row), fresh, rowBytes))
      fail("uninitialised device memory: row " + std::to_string(r) + ", " + describeAddress(row) +
           ", read by " + describe(machine.operation->info));
    accessRange(row, rowBytes, isWrite);
    if (isWrite && arena().holds(row))
      std::memset(arena().shadowOf(row), written, rowBytes);
  }
}

void accessAllocation(void *memory) {
  Arena &all = arena();
  const size_t from = all.offsetOf(memory), to = from + all.startingAt(memory)->bytes;
  for (size_t at = from; at < to; at = (at / kPageBytes + 1) * kPageBytes)
    if (all.touched[at / kPageBytes])
      for (size_t word = at / 4; word * 4 < std::min(to, (at / kPageBytes + 1) * kPageBytes);
           ++word)
        if (all.notes[word].operation)
          noteWhole(all.notes[word], all.history[word], 0xF, true, word * 4);
}

} // namespace simt

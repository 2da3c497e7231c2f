//===- memory.cpp - Device memory, and the check of every access ----------===//

#include "machine.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sys/mman.h>

extern "C" {
extern char __start_simt_shared[] __attribute__((weak));
extern char __stop_simt_shared[] __attribute__((weak));
extern char __executable_start[];
extern char _end[];
}

namespace simt {

namespace {

/// What a byte of the arena is.
enum Shadow : uint8_t { outside, fresh, written, freed };

// Addresses are never given out twice, so that a freed one is always known as such.
constexpr size_t kArenaBytes = size_t(64) << 30;
constexpr size_t kAlignment = 256;
constexpr size_t kRedZone = 256;

struct Allocation {
  size_t bytes;
  MemoryKind kind;
};

struct Arena {
  char *base = nullptr;
  uint8_t *shadow = nullptr;
  Note *notes = nullptr; ///< by word
  size_t used = 0;
  int64_t inUse = 0, count = 0;
  std::map<char *, Allocation> allocations;

  Arena() {
    auto reserve = [](size_t bytes) {
      void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (memory == MAP_FAILED) {
        std::perror("simt: address space for device memory");
        std::abort();
      }
      return memory;
    };
    base = static_cast<char *>(reserve(kArenaBytes));
    shadow = static_cast<uint8_t *>(reserve(kArenaBytes));
    notes = static_cast<Note *>(reserve(kArenaBytes / 4 * sizeof(Note)));
  }
  bool holds(const void *memory) const { return memory >= base && memory < base + kArenaBytes; }
  uint8_t *shadowOf(const void *memory) {
    return shadow + (static_cast<const char *>(memory) - base);
  }
  /// The allocation that `memory` is in or just behind.
  auto nearest(const void *memory) {
    auto after = allocations.upper_bound(static_cast<char *>(const_cast<void *>(memory)));
    return after == allocations.begin() ? allocations.end() : std::prev(after);
  }
};

Arena &arena() {
  static Arena instance;
  return instance;
}

std::string describe(const void *memory) {
  auto found = arena().nearest(memory);
  if (found == arena().allocations.end())
    return "before all allocations";
  size_t offset = static_cast<size_t>(static_cast<const char *>(memory) - found->first);
  return "at byte " + std::to_string(offset) + " of an allocation of " +
         std::to_string(found->second.bytes) + " bytes";
}

std::string accessText(size_t bytes, bool isWrite) {
  return std::string(isWrite ? "write" : "read") + " of " + std::to_string(bytes) + " bytes";
}

void checkArena(const Accessor &who, const void *memory, size_t bytes, bool isWrite, bool notesIt) {
  uint8_t *shadow = arena().shadowOf(memory);
  for (size_t i = 0; i < bytes; ++i) {
    const char *at = static_cast<const char *>(memory) + i;
    if (shadow[i] == outside)
      fail("out of bounds: " + accessText(bytes, isWrite) + " by " + self() + ", " + describe(at));
    if (shadow[i] == freed)
      fail("freed memory: " + accessText(bytes, isWrite) + " by " + self());
    if (!isWrite && shadow[i] == fresh)
      fail("uninitialised device memory: " + accessText(bytes, isWrite) + " by " + self() + ", " +
           describe(at));
  }
  if (isWrite && notesIt)
    std::memset(shadow, written, bytes);
  size_t offset = static_cast<size_t>(static_cast<const char *>(memory) - arena().base);
  checkNotes(arena().notes, offset, bytes, isWrite, notesIt, who, "device");
}

bool isStaticShared(const char *at) { return at >= __start_simt_shared && at < __stop_simt_shared; }

void checkStaticShared(const Accessor &who, const char *at, size_t bytes, bool isWrite,
                       bool notesIt) {
  Block &block = *machine.block;
  size_t offset = static_cast<size_t>(at - __start_simt_shared);
  if (at + bytes > __stop_simt_shared)
    fail("out of bounds: " + accessText(bytes, isWrite) + " by " + self() +
         " beyond shared memory");
  if (block.touchedTo == block.touchedFrom) {
    block.touchedFrom = offset;
    block.touchedTo = offset + bytes;
  }
  block.touchedFrom = std::min(block.touchedFrom, offset);
  block.touchedTo = std::max(block.touchedTo, offset + bytes);
  checkNotes(block.sharedNotes.get(), offset, bytes, isWrite, notesIt, who, "shared");
}

constexpr size_t kNear = 4096; // as far past the end as an access still counts as meant for it

bool isDynamicShared(const char *at) {
  const char *base = static_cast<const char *>(dynamicShared());
  return at >= base && at < base + machine.launch.dynamicBytes + kNear;
}

void checkDynamicShared(const Accessor &who, const char *at, size_t bytes, bool isWrite,
                        bool notesIt) {
  size_t offset = static_cast<size_t>(at - static_cast<const char *>(dynamicShared()));
  if (offset + bytes > machine.launch.dynamicBytes)
    fail("out of bounds: " + accessText(bytes, isWrite) + " by " + self() + " at byte " +
         std::to_string(offset) + " of " + std::to_string(machine.launch.dynamicBytes) +
         " bytes of dynamic shared memory");
  checkNotes(machine.block->dynamicNotes.get(), offset, bytes, isWrite, notesIt, who, "shared");
}

bool isOwnStack(const char *at) {
  const char *stack =
      machine.block->stacks + static_cast<size_t>(machine.thread->number) * kStackBytes;
  return at >= stack && at < stack + kStackBytes;
}

void checkSomewhere(const Accessor &who, const char *at, size_t bytes, bool isWrite, bool notesIt) {
  if (arena().holds(at))
    return checkArena(who, at, bytes, isWrite, notesIt);
  if (isStaticShared(at))
    return checkStaticShared(who, at, bytes, isWrite, notesIt);
  if (isDynamicShared(at))
    return checkDynamicShared(who, at, bytes, isWrite, notesIt);
  if (at >= __executable_start && at < _end) {
    if (isWrite)
      fail("host memory: " + accessText(bytes, isWrite) + " of a variable of the program by " +
           self());
    return; // constants
  }
  fail("host memory: " + accessText(bytes, isWrite) + " by " + self() +
       " of what is neither its stack nor shared nor device memory");
}

void checkThread(const char *at, size_t bytes, bool isWrite) {
  if (isOwnStack(at))
    return;
  Thread &thread = *machine.thread;
  if (!thread.stores.empty())
    showStoresAt(thread, at, bytes);
  checkSomewhere(accessorOf(thread), at, bytes, isWrite, true);
  if (machine.options.preemptOneIn && arena().holds(at) &&
      machine.draw() % machine.options.preemptOneIn == 0)
    giveWay();
}

void checkHost(const char *at, size_t bytes) {
  if (!arena().holds(at))
    return;
  auto found = arena().nearest(at);
  if (found != arena().allocations.end() && found->second.kind == MemoryKind::host &&
      at + bytes <= found->first + found->second.bytes)
    return;
  std::fprintf(stderr, "simt: the host touches device memory (%zu bytes, %s)\n", bytes,
               describe(at).c_str());
  std::abort();
}

} // namespace

void *allocate(size_t bytes, MemoryKind kind) {
  Arena &memory = arena();
  bytes = std::max<size_t>(bytes, 1);
  if (kind == MemoryKind::device &&
      memory.inUse + static_cast<int64_t>(bytes) > options().deviceBytes)
    return nullptr;
  size_t room = (bytes + kAlignment - 1) / kAlignment * kAlignment + kRedZone;
  if (memory.used + room > kArenaBytes) {
    std::fprintf(stderr, "simt: %zu GiB of addresses are used up\n", kArenaBytes >> 30);
    std::abort();
  }
  char *result = memory.base + memory.used;
  memory.used += room;
  if (kind == MemoryKind::device)
    memory.inUse += static_cast<int64_t>(bytes);
  ++memory.count;
  std::memset(memory.shadowOf(result), kind == MemoryKind::host ? written : fresh, bytes);
  memory.allocations[result] = {bytes, kind};
  return result;
}

bool release(void *pointer) {
  if (!pointer)
    return true;
  Arena &memory = arena();
  auto found = memory.allocations.find(static_cast<char *>(pointer));
  if (found == memory.allocations.end())
    return false;
  size_t bytes = found->second.bytes;
  if (found->second.kind == MemoryKind::device)
    memory.inUse -= static_cast<int64_t>(bytes);
  std::memset(memory.shadowOf(pointer), freed, bytes);
  size_t from = (static_cast<size_t>(found->first - memory.base) + 4095) & ~size_t(4095);
  size_t to = (static_cast<size_t>(found->first - memory.base) + bytes) & ~size_t(4095);
  if (to > from) {
    madvise(memory.base + from, to - from, MADV_DONTNEED);
    madvise(memory.notes + from / 4, (to - from) / 4 * sizeof(Note), MADV_DONTNEED);
  }
  memory.allocations.erase(found);
  return true;
}

/// True where all bytes were allocated and not freed, or are not device memory at all.
static bool allocated(const void *at, size_t bytes) {
  if (bytes == 0 || !arena().holds(at))
    return true;
  const uint8_t *shadow = arena().shadowOf(at);
  return std::all_of(shadow, shadow + bytes, [](uint8_t s) { return s == fresh || s == written; });
}

bool copy(void *to, const void *from, size_t bytes) {
  if (!allocated(to, bytes) || !allocated(from, bytes)) {
    machine.error = "out of bounds: copy of " + std::to_string(bytes) + " bytes";
    return false;
  }
  std::memcpy(to, from, bytes);
  if (!arena().holds(to))
    return true;
  if (arena().holds(from))
    std::memcpy(arena().shadowOf(to), arena().shadowOf(from), bytes);
  else
    std::memset(arena().shadowOf(to), written, bytes);
  return true;
}

bool fill(void *to, int value, size_t bytes) {
  if (!allocated(to, bytes)) {
    machine.error = "out of bounds: fill of " + std::to_string(bytes) + " bytes";
    return false;
  }
  std::memset(to, value, bytes);
  if (arena().holds(to))
    std::memset(arena().shadowOf(to), written, bytes);
  return true;
}

int64_t allocationCount() { return arena().count; }
int64_t bytesInUse() { return arena().inUse; }

std::string describeDevice(size_t offset) {
  std::string text = describe(arena().base + offset);
  return text.starts_with("at ") ? text.substr(3) : text;
}

void access(const Accessor &who, const void *memory, size_t bytes, bool isWrite) {
  checkSomewhere(who, static_cast<const char *>(memory), bytes, isWrite, true);
}

void checkWrite(const Accessor &who, const void *memory, size_t bytes) {
  checkSomewhere(who, static_cast<const char *>(memory), bytes, true, false);
}

bool isShared(const void *memory) {
  const char *at = static_cast<const char *>(memory);
  return !arena().holds(at) && (isStaticShared(at) || isDynamicShared(at));
}

size_t staticSharedBytes(const Block &block) {
  size_t words = 0;
  const auto launch = static_cast<uint32_t>(machine.launches);
  for (size_t word = block.touchedFrom / 4; word * 4 < block.touchedTo; ++word)
    words += block.sharedNotes[word].launch == launch && block.sharedNotes[word].initialised;
  return words * 4;
}

void checkAlignment(const void *memory, size_t bytes) {
  const char *at = static_cast<const char *>(memory);
  if (machine.inside || !machine.thread || reinterpret_cast<uintptr_t>(at) % bytes == 0)
    return;
  Inside inside;
  if (arena().holds(at) || isShared(at))
    fail("misaligned address: access of " + std::to_string(bytes) + " bytes by " + self());
}

void checkAccess(const void *memory, size_t bytes, bool isWrite) {
  if (machine.inside)
    return;
  Inside inside;
  const char *at = static_cast<const char *>(memory);
  if (machine.thread)
    checkThread(at, bytes, isWrite);
  else
    checkHost(at, bytes);
}

} // namespace simt

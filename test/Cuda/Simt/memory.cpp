//===- memory.cpp - Device memory, and the check of every access ----------===//

#include "arena.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>
#include <utility>

extern "C" {
extern char __executable_start[];
extern char _end[];
extern char __start_simt_indices[];
extern char __stop_simt_indices[];
}

namespace simt {

namespace {

constexpr size_t kAlignment = 256;
constexpr size_t kRedZone = 256;

/// Whether all bytes have been written: of the sizes that a thread accesses at once.
bool areWritten(const uint8_t *shadow, size_t bytes) {
  constexpr uint64_t kAll = written * 0x0101010101010101ull;
  uint64_t word = kAll, more = kAll;
  if (bytes == 4)
    std::memcpy(&word, shadow, 4);
  else if (bytes == 8 || bytes == 16)
    std::memcpy(&word, shadow, 8);
  else if (bytes < 4)
    std::memcpy(&word, shadow, bytes);
  else
    return false;
  if (bytes == 16)
    std::memcpy(&more, shadow + 8, 8);
  return word == kAll && more == kAll;
}

/// Fails where something may not be read, or written.
[[gnu::noinline]] void checkShadow(const uint8_t *shadow, const void *memory, size_t bytes,
                                   bool isWrite) {
  for (size_t i = 0; i < bytes; ++i) {
    const char *at = static_cast<const char *>(memory) + i;
    if (shadow[i] == outside)
      fail("out of bounds: " + accessText(bytes, isWrite) + " by " + self() + ", " +
           describeAddress(at));
    if (shadow[i] == freed)
      fail("freed memory: " + accessText(bytes, isWrite) + accessPlace() + " by " + self());
    if (!isWrite && shadow[i] == fresh)
      fail("uninitialised device memory: " + accessText(bytes, isWrite) + accessPlace() + " by " +
           self() + ", " + describeAddress(at));
  }
}

[[noreturn, gnu::cold, gnu::noinline]] void accuseOfDevice(int region, size_t bytes, bool isWrite) {
  fail("memory of device " + std::to_string(region) + ": " + accessText(bytes, isWrite) + " by " +
       self() + " on device " + std::to_string(machine.operation->device));
}

void checkArena(const Accessor &who, const void *memory, size_t bytes, bool isWrite, bool notesIt) {
  Arena &all = arena();
  const size_t offset = all.offsetOf(memory);
  // All of these are far apart, and seldom in a cache.
  __builtin_prefetch(&all.notes[offset / 4]);
  __builtin_prefetch(&all.history[offset / 4]);
  uint8_t *shadow = all.shadow + offset;
  if (!areWritten(shadow, bytes)) {
    checkShadow(shadow, memory, bytes, isWrite);
    if (isWrite && notesIt)
      std::memset(shadow, written, bytes);
  }
  const int region = all.regionOf(memory);
  if (region == kMostDevices)
    noteHostPage(memory, bytes, isWrite);
  else if (region != machine.operation->device)
    accuseOfDevice(region, bytes, isWrite);
  if (machine.thread && machine.thread->isEarly)
    for (size_t word = offset / 4; word * 4 < offset + bytes; ++word)
      checkEarly(all.notes[word], all.history[word], isWrite, word * 4);
  checkNotes(all.notes, all.history, offset, bytes, isWrite, notesIt, who);
}

constexpr size_t kNear = 4096; // as far past the end as an access still counts as meant for it

bool isDynamicShared(const char *at) {
  const char *base = static_cast<const char *>(dynamicShared());
  return at >= base && at < base + machine.launch.dynamicBytes + kNear;
}

[[noreturn, gnu::cold, gnu::noinline]] void accuseBeyondShared(size_t offset, size_t bytes,
                                                               bool isWrite) {
  fail("out of bounds: " + accessText(bytes, isWrite) + " by " + self() + " at byte " +
       std::to_string(offset) + " of " + std::to_string(machine.launch.dynamicBytes) +
       " bytes of dynamic shared memory");
}

void checkDynamicShared(const Accessor &who, const char *at, size_t bytes, bool isWrite,
                        bool notesIt) {
  size_t offset = static_cast<size_t>(at - static_cast<const char *>(dynamicShared()));
  if (offset + bytes > machine.launch.dynamicBytes)
    accuseBeyondShared(offset, bytes, isWrite);
  checkNotes(machine.block->dynamicNotes.get(), nullptr, offset, bytes, isWrite, notesIt, who);
}

/// Whether a variable of the program or of an object that it has loaded lies there: a model's
/// constants.
bool isOfProgram(const char *at) {
  Dl_info object;
  return (at >= __executable_start && at < _end) || dladdr(at, &object) != 0;
}

/// Of threadIdx and its like, which most lines of a kernel read.
bool isIndex(const char *at) { return at >= __start_simt_indices && at < __stop_simt_indices; }

/// Of what is none of the memories of devices: kernels read constants there.
[[gnu::noinline]] void checkProgram(const char *at, size_t bytes, bool isWrite) {
  if (static_cast<size_t>(at - machine.block->stacks) < kMostThreads * kStackBytes)
    fail("another thread's stack: " + accessText(bytes, isWrite) + " by " + self() +
         ", whose own has " + std::to_string(kStackBytes >> 10) + " KiB and may be full");
  if (!isOfProgram(at))
    fail("host memory: " + accessText(bytes, isWrite) + " by " + self() +
         " of what is neither its stack nor shared nor device memory");
  if (isWrite)
    fail("host memory: " + accessText(bytes, isWrite) + " of a variable of the program by " +
         self());
}

/// Of what is not the arena's.
void checkBeside(const Accessor &who, const char *at, size_t bytes, bool isWrite, bool notesIt) {
  if (checkStaticShared(who, at, bytes, isWrite, notesIt))
    return;
  if (isDynamicShared(at))
    return checkDynamicShared(who, at, bytes, isWrite, notesIt);
  checkProgram(at, bytes, isWrite);
}

void checkSomewhere(const Accessor &who, const char *at, size_t bytes, bool isWrite, bool notesIt) {
  if (arena().holds(at))
    return checkArena(who, at, bytes, isWrite, notesIt);
  checkBeside(who, at, bytes, isWrite, notesIt);
}

} // namespace

std::string accessText(size_t bytes, bool isWrite) {
  return std::string(isWrite ? "write" : "read") + " of " + std::to_string(bytes) + " bytes";
}

Arena::Arena() {
  auto reserve = [](size_t bytes, int protection = PROT_READ | PROT_WRITE) {
    void *memory =
        mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      std::perror("simt: address space for device memory");
      std::abort();
    }
    return memory;
  };
  base = static_cast<char *>(reserve(kArenaBytes, PROT_NONE)); // opened: host_memory.cpp
  arenaBase = reinterpret_cast<uintptr_t>(base);
  if (mprotect(base + kMostDevices * kRegionBytes, kRegionBytes, PROT_READ | PROT_WRITE) != 0)
    std::perror("simt: pinned memory");
  shadow = static_cast<uint8_t *>(reserve(kArenaBytes));
  notes = static_cast<Note *>(reserve(kArenaBytes / 4 * sizeof(Note)));
  history = static_cast<History *>(reserve(kArenaBytes / 4 * sizeof(History)));
  touched = static_cast<uint8_t *>(reserve(kArenaBytes / kPageBytes));
}

std::map<char *, Allocation>::iterator Arena::nearest(const void *memory) {
  auto after = allocations.upper_bound(static_cast<char *>(const_cast<void *>(memory)));
  return after == allocations.begin() ? allocations.end() : std::prev(after);
}

Allocation *Arena::startingAt(void *memory) {
  auto found = allocations.find(static_cast<char *>(memory));
  return found == allocations.end() ? nullptr : &found->second;
}

std::string describeAddress(const void *memory) {
  auto found = arena().nearest(memory);
  if (found == arena().allocations.end())
    return "before all allocations";
  size_t offset = static_cast<size_t>(static_cast<const char *>(memory) - found->first);
  return "at byte " + std::to_string(offset) + " of an allocation of " +
         std::to_string(found->second.bytes) + " bytes";
}

/// Whether the next allocation of a device comes before those there are.
static bool isNextAtEnd(const Arena &memory) {
  const Options &of = options();
  const uint64_t drawn = (of.seed + static_cast<uint64_t>(memory.count)) * 0x9E3779B97F4A7C15ull;
  return of.addresses == Addresses::descending ||
         (of.addresses == Addresses::bySeed && of.seed % 2 == 0 && drawn >> 63 == 0);
}

void *allocate(size_t bytes, MemoryKind kind, int device) {
  Arena &memory = arena();
  bytes = std::max<size_t>(bytes, 1);
  const bool isHost = kind == MemoryKind::host;
  if (!isHost && memory.inUse[device] + static_cast<int64_t>(bytes) > options().deviceBytes)
    return nullptr;
  if (isHost && static_cast<int64_t>(bytes) > options().mostPinnedBytes)
    return nullptr;
  // Pages of pinned memory are protected: they hold nothing else.
  const size_t alignment = isHost ? kPageBytes : kAlignment;
  size_t room = (bytes + alignment - 1) / alignment * alignment + (isHost ? kPageBytes : kRedZone);
  const int region = isHost ? kMostDevices : device;
  const size_t taken = memory.used[region] + (isHost ? 0 : memory.usedAtEnd[region]);
  if (taken + room > kRegionBytes) {
    std::fprintf(stderr, "simt: %zu GiB of addresses are used up\n", kRegionBytes >> 30);
    std::abort();
  }
  char *result = memory.base + static_cast<size_t>(region) * kRegionBytes;
  if (!isHost && isNextAtEnd(memory))
    result += kRegionBytes - (memory.usedAtEnd[region] += room);
  else
    result += std::exchange(memory.used[region], memory.used[region] + room);
  if (!isHost)
    memory.inUse[device] += static_cast<int64_t>(bytes);
  ++memory.count;
  ++memory.changes;
  std::memset(memory.shadowOf(result), isHost ? written : fresh, bytes);
  if (isHost) // its reads are not looked at: whoever reads what nobody wrote gets no zeros
    std::memset(result, 0xC5, bytes);
  memory.allocations[result] = {bytes, kind, false, {}};
  hold(result, std::to_string(bytes) + " bytes of " + (isHost ? "pinned" : "device") + " memory");
  return result;
}

/// Gives pages of [from, to) back, with what was noted of them.
static void forgetPages(Arena &memory, size_t from, size_t to) {
  if (from >= to)
    return;
  madvise(memory.base + from, to - from, MADV_DONTNEED);
  madvise(memory.notes + from / 4, (to - from) / 4 * sizeof(Note), MADV_DONTNEED);
  madvise(memory.history + from / 4, (to - from) / 4 * sizeof(History), MADV_DONTNEED);
}

void release(void *pointer) {
  Arena &memory = arena();
  auto found = memory.allocations.find(static_cast<char *>(pointer));
  const size_t bytes = found->second.bytes, offset = memory.offsetOf(pointer);
  std::memset(memory.shadowOf(pointer), freed, bytes);
  // Pages that nothing else is in: of this allocation, and the one before it, which may have been
  // the last one when what was in it left.
  const int region = memory.regionOf(pointer);
  const size_t begin = static_cast<size_t>(region) * kRegionBytes;
  const bool isAtEnd =
      region < kMostDevices && offset - begin >= kRegionBytes - memory.usedAtEnd[region];
  size_t from = 0, to = begin + (isAtEnd ? kRegionBytes : memory.used[region]);
  if (found != memory.allocations.begin()) {
    auto before = std::prev(found);
    from = memory.offsetOf(before->first) + before->second.bytes;
  }
  if (auto behind = std::next(found); behind != memory.allocations.end())
    to = std::min(to, memory.offsetOf(behind->first));
  const size_t page = offset & ~(kPageBytes - 1);
  from = std::max((from + kPageBytes - 1) & ~(kPageBytes - 1),
                  page % kRegionBytes ? page - kPageBytes : page);
  to = std::min(to, offset + bytes + kPageBytes - 1) & ~(kPageBytes - 1);
  forgetPages(memory, from, to);
  memory.allocations.erase(found);
  ++memory.changes;
}

bool isAllocated(const void *at, size_t bytes) {
  if (bytes == 0 || !arena().holds(at))
    return true;
  const uint8_t *shadow = arena().shadowOf(at);
  return std::all_of(shadow, shadow + bytes, [](uint8_t s) { return s == fresh || s == written; });
}

int64_t allocationCount() { return arena().count; }
int64_t bytesInUse() {
  int64_t sum = 0;
  for (int64_t bytes : arena().inUse)
    sum += bytes;
  return sum;
}

void placeNext(const void *address) {
  Lock lock;
  int device = 0;
  cudaGetDevice(&device);
  const size_t offset = arena().offsetOf(address) - static_cast<size_t>(device) * kRegionBytes;
  if (!arena().holds(address) || arena().regionOf(address) != device ||
      offset < arena().used[device] || offset % kAlignment != 0) {
    std::fprintf(stderr, "simt: no allocation can begin at the place that was asked for\n");
    std::abort();
  }
  arena().used[device] = offset;
}

std::string describeDevice(size_t offset) {
  std::string text = describeAddress(arena().base + offset);
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

void checkAlignment(const void *memory, size_t bytes) {
  const char *at = static_cast<const char *>(memory);
  if (insideEngine || !onDevice || reinterpret_cast<uintptr_t>(at) % bytes == 0)
    return;
  Inside inside;
  if (arena().holds(at) || isShared(at))
    fail("misaligned address: not a multiple of " + std::to_string(bytes) + ", by " + self());
}

void checkAccess(const void *memory, size_t bytes, bool isWrite) {
  const char *at = static_cast<const char *>(memory);
  if (!isWrite && isIndex(at))
    return;
  Inside inside;
  Thread &thread = *machine.thread;
  if (!thread.stores.empty())
    showStoresAt(thread, at, bytes);
  if (countsAccesses() && (arena().holds(at) || isShared(at)))
    countAccess(thread, at, bytes, isWrite);
  const Accessor who = accessorOf(thread);
  if (!arena().holds(at))
    return checkBeside(who, at, bytes, isWrite, true);
  checkArena(who, at, bytes, isWrite, true);
  if (machine.options.preemptOneIn && machine.draw() % machine.options.preemptOneIn == 0)
    giveWay();
}

void checkHost(const void *memory, size_t bytes) {
  if (arena().isPinned(memory)) // host_memory.cpp
    return;
  Inside inside;
  Lock lock;
  std::fprintf(stderr, "simt: the host touches device memory (%zu bytes, %s)\n", bytes,
               describeAddress(memory).c_str());
  std::abort();
}

} // namespace simt

//===- host_memory.cpp - What the host may touch, and when ----------------===//
//
// Pinned memory that is used while the host goes on, and memory of devices, which it may never
// touch. The host's code is not instrumented. Instead, pages of pinned memory are protected from
// when something that uses them is enqueued until the host has waited for it: against writing where
// it is read, against any access where it is written. What a kernel will touch is not known
// beforehand: those pages are protected when it has run. An access that a page's protection meets
// but that touches nobody's bytes is let through by a single step of the processor.
//
//===----------------------------------------------------------------------===//

#include "arena.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <execinfo.h>
#include <sys/mman.h>
#include <ucontext.h>

namespace simt {

namespace {

/// A use of whose operation the host does not know yet.
struct Use {
  HostRange range;
  OperationInfo by;
};
/// By a kernel, of some of a page: word by word in its notes.
struct PageUse {
  uint32_t timeline;
  Clock clock;
  bool isWrite;
};
struct Page {
  int readers = 0, writers = 0; ///< of `uses`
  std::vector<PageUse> kernels;
  int protection = PROT_READ | PROT_WRITE;
};

struct Watch {
  std::vector<Use> uses;
  std::map<uintptr_t, Page> pages;
  std::map<uintptr_t, bool> touched; ///< pages by the running kernel: whether written
  std::map<char *, size_t> registered;
  /// Memory is opened by the first of several operations that run, and closed when the host goes
  /// on. Pages of pinned memory are opened when an operation touches them (onFault), as most touch
  /// none, or all at once.
  bool isOpen = false, isAllOpen = false;
  /// Memory of devices likewise: whether operations may open it, and which of its pieces are open.
  bool isDeviceOpen = false;
  std::vector<uintptr_t> openPieces;
  struct sigaction oldFault = {};
};
Watch &watch() {
  static Watch instance;
  return instance;
}

uintptr_t pageOf(const void *at) { return reinterpret_cast<uintptr_t>(at) & ~(kPageBytes - 1); }

int wantedProtection(const Page &page) {
  bool isWritten = page.writers > 0, isRead = page.readers > 0;
  for (const PageUse &use : page.kernels)
    (use.isWrite ? isWritten : isRead) = true;
  return isWritten ? PROT_NONE : isRead ? PROT_READ : PROT_READ | PROT_WRITE;
}

/// Protects pages as they should be now, neighbours at once; forgets those that nothing uses.
void protect() {
  Watch &all = watch();
  uintptr_t from = 0, to = 0;
  int current = 0;
  auto flush = [&] {
    if (to > from)
      mprotect(reinterpret_cast<void *>(from), to - from, current);
  };
  for (auto at = all.pages.begin(); at != all.pages.end();) {
    Page &page = at->second;
    const bool staysOpen = all.isOpen && page.protection == (PROT_READ | PROT_WRITE);
    const int wanted = all.isAllOpen || staysOpen ? PROT_READ | PROT_WRITE : wantedProtection(page);
    if (page.protection != wanted) {
      if (at->first != to || wanted != current) {
        flush();
        from = at->first;
        current = wanted;
      }
      to = at->first + kPageBytes;
      page.protection = wanted;
    }
    const bool isUnused = !page.readers && !page.writers && page.kernels.empty();
    at = isUnused ? all.pages.erase(at) : std::next(at);
  }
  flush();
}

/// Calls body(page) for the whole pages that a range may be protected by.
template <class Body> void forPages(const HostRange &range, Body body) {
  uintptr_t from = pageOf(range.begin), to = pageOf(range.begin + range.bytes + kPageBytes - 1);
  if (!arena().isPinned(range.begin)) { // registered: others may share its first and last page
    auto found = watch().registered.upper_bound(const_cast<char *>(range.begin));
    const auto &[begin, bytes] = *std::prev(found);
    from = std::max(from, pageOf(begin + kPageBytes - 1));
    to = std::min(to, pageOf(begin + bytes));
  }
  for (uintptr_t page = from; page < to; page += kPageBytes)
    body(watch().pages[page]);
}

void count(const Use &use, int change) {
  forPages(use.range,
           [&](Page &page) { (use.range.isWrite ? page.writers : page.readers) += change; });
}

bool hostKnows(const OperationInfo &info) {
  return knows(hostKnowledge(), info.timeline, info.clock);
}

/// What the host may not touch yet at one place: empty where it may.
std::string conflict(const char *at, bool isWrite) {
  for (const Use &use : watch().uses)
    if (at >= use.range.begin && at < use.range.begin + use.range.bytes &&
        (isWrite || use.range.isWrite) && !hostKnows(use.by))
      return describe(use.by) + (use.range.isWrite ? " writes" : " reads");
  if (!arena().isPinned(at))
    return {};
  const size_t word = arena().offsetOf(at) / 4;
  const Note &note = arena().notes[word];
  const History &history = arena().history[word];
  const uint32_t mask = 1u << (reinterpret_cast<uintptr_t>(at) % 4);
  auto check = [&](uint32_t number, uint32_t of, bool otherWrites) -> std::string {
    if (!number || !(of & mask) || (!isWrite && !otherWrites) || hostKnows(operationInfo(number)))
      return {};
    return describe(operationInfo(number)) + (otherWrites ? " writes" : " reads");
  };
  for (const std::string &text :
       {check(note.operation, note.writeMask, true),
        check(note.operation, note.readMasks[0] | note.readMasks[1], false),
        check(history.writer, history.writeMask, true),
        check(history.readers[0], history.readMask0, false),
        check(history.readers[1], history.readMask1, false)})
    if (!text.empty())
      return text;
  return {};
}

//===-- faults -------------------------------------------------------------===//

constexpr greg_t kTrapFlag = 0x100, kDirectionFlag = 0x400;
thread_local std::array<uintptr_t, 8> stepped; ///< pages that are open for one instruction
thread_local size_t steppedCount = 0;

/// Where the fault was: its instruction, then the callers.
Callers faultCallers(const ucontext_t &context) {
  Callers result = {};
  char *at = reinterpret_cast<char *>(context.uc_mcontext.gregs[REG_RIP]);
  result[0] = at + 1;
  void *frames[24];
  const int frameCount = backtrace(frames, 24);
  int i = static_cast<int>(std::find(frames, frames + frameCount, at) - frames) + 1;
  for (size_t to = 1; to < result.size() && i < frameCount; ++to, ++i)
    result[to] = frames[i];
  return result;
}

void accuse(const std::string &text) {
  if (machine.error.empty()) {
    machine.error = text;
    machine.isErrorSeen = false;
  }
}

[[noreturn]] void refuseDeviceMemory(char *at, const ucontext_t &context) {
  std::string place = placesOf(faultCallers(context));
  std::fprintf(stderr, "simt: the host touches device memory (%s)%s%s\n",
               describeAddress(at).c_str(), place.empty() ? "" : " at ", place.c_str());
  std::abort();
}

/// Where an operation runs that touches a closed page of pinned memory.
bool openPage(uintptr_t at) {
  auto found = watch().pages.find(at);
  if (!watch().isOpen || found == watch().pages.end() ||
      found->second.protection == (PROT_READ | PROT_WRITE))
    return false;
  found->second.protection = PROT_READ | PROT_WRITE;
  return mprotect(reinterpret_cast<void *>(at), kPageBytes, PROT_READ | PROT_WRITE) == 0;
}

/// Memory of devices is opened by pieces: an operation touches few of what all devices have.
constexpr size_t kPieceBytes = 256 << 10;

bool isAllocatedIn(uintptr_t piece) {
  auto last = arena().nearest(reinterpret_cast<char *>(piece + kPieceBytes - 1));
  return last != arena().allocations.end() &&
         reinterpret_cast<uintptr_t>(last->first) + last->second.bytes > piece;
}

/// Where an operation runs that touches a closed piece of memory of devices. Another thread of the
/// host, which has not the engine's lock, may not meanwhile.
bool openPiece(const char *at) {
  if (!isHostInside() || !watch().isDeviceOpen)
    return false;
  Inside inside;
  const uintptr_t piece = reinterpret_cast<uintptr_t>(at) & ~(kPieceBytes - 1);
  std::vector<uintptr_t> &open = watch().openPieces;
  if (!isAllocatedIn(piece) || std::find(open.begin(), open.end(), piece) != open.end())
    return false;
  open.push_back(piece);
  return mprotect(reinterpret_cast<void *>(piece), kPieceBytes, PROT_READ | PROT_WRITE) == 0;
}

/// memcpy copies much by one instruction, `rep movsb`, of which one byte is done where instructions
/// are done one by one. What the host may touch of an open page is copied here instead; false where
/// it is another instruction.
bool copyAsInstructed(char *at, bool isWrite, ucontext_t &context) {
  greg_t *registers = context.uc_mcontext.gregs;
  constexpr unsigned char kRepMovsb[] = {0xF3, 0xA4};
  if (std::memcmp(reinterpret_cast<void *>(registers[REG_RIP]), kRepMovsb, sizeof(kRepMovsb)) ||
      registers[REG_EFL] & kDirectionFlag)
    return false;
  auto *to = reinterpret_cast<char *>(registers[REG_RDI]);
  const auto *from = reinterpret_cast<const char *>(registers[REG_RSI]);
  const auto most = std::min(static_cast<size_t>(registers[REG_RCX]),
                             kPageBytes - reinterpret_cast<uintptr_t>(at) % kPageBytes);
  const char *beside = isWrite ? from : to;
  if (at != (isWrite ? to : from) || isOfArena(beside) || isPinned(beside) ||
      isPinned(beside + most))
    return false;
  auto mayTouch = [&](const char *byte) {
    return (!isOfArena(byte) || *arena().shadowOf(byte) == written) &&
           conflict(byte, isWrite).empty();
  };
  size_t count = 0;
  while (count < most && mayTouch(at + count))
    ++count;
  std::memcpy(to, from, count);
  registers[REG_RDI] += static_cast<greg_t>(count);
  registers[REG_RSI] += static_cast<greg_t>(count);
  registers[REG_RCX] -= static_cast<greg_t>(count);
  return true;
}

/// True where the access may be repeated.
bool resolveFault(char *at, ucontext_t &context) {
  if (arena().holds(at) && !arena().isPinned(at)) {
    if (!openPiece(at))
      refuseDeviceMemory(at, context);
    return true;
  }
  if (!isPinned(at))
    return false;
  if (isHostInside() && openPage(pageOf(at)))
    return true;
  Inside inside;
  Lock lock;
  const bool isWrite = context.uc_mcontext.gregs[REG_ERR] & 2;
  auto place = [&] {
    std::string text = placesOf(faultCallers(context));
    return text.empty() ? text : " at " + text;
  };
  void *page = reinterpret_cast<void *>(pageOf(at));
  if (arena().isPinned(at) && *arena().shadowOf(at) != written) {
    accuse(std::string(*arena().shadowOf(at) == freed ? "freed pinned memory" : "out of bounds") +
           ": the host " + (isWrite ? "writes " : "reads ") + describeAddress(at) + place());
    return mprotect(page, kPageBytes, PROT_READ | PROT_WRITE) == 0;
  }
  auto found = watch().pages.find(pageOf(at));
  if (found == watch().pages.end() || found->second.protection == (PROT_READ | PROT_WRITE))
    return true; // another thread has waited meanwhile
  const std::string other = conflict(at, isWrite);
  mprotect(page, kPageBytes, PROT_READ | PROT_WRITE);
  if (!other.empty()) {
    accuse(std::string("race in pinned memory: the host ") + (isWrite ? "writes " : "reads ") +
           (arena().isPinned(at) ? describeAddress(at) : std::string("registered memory")) +
           place() + ", which " + other + ": the host has not waited for that");
    found->second.protection = PROT_READ | PROT_WRITE;
    return true;
  }
  if (copyAsInstructed(at, isWrite, context)) {
    mprotect(page, kPageBytes, found->second.protection);
    return true;
  }
  if (steppedCount < stepped.size())
    stepped[steppedCount++] = pageOf(at);
  context.uc_mcontext.gregs[REG_EFL] |= kTrapFlag;
  return true;
}

void onFault(int signal, siginfo_t *info, void *context) {
  if (resolveFault(static_cast<char *>(info->si_addr), *static_cast<ucontext_t *>(context)))
    return;
  sigaction(signal, &watch().oldFault, nullptr); // not ours: it happens again
}

void onTrap(int, siginfo_t *, void *context) {
  static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_EFL] &= ~kTrapFlag;
  Inside inside;
  Lock lock;
  for (; steppedCount > 0; --steppedCount) {
    auto found = watch().pages.find(stepped[steppedCount - 1]);
    if (found != watch().pages.end())
      mprotect(reinterpret_cast<void *>(found->first), kPageBytes, found->second.protection);
  }
}

void installHandlers() {
  [[maybe_unused]] static const bool isInstalled = [] {
    void *frame[1];
    backtrace(frame, 1); // loads what it needs now, not in a handler
    struct sigaction action = {};
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    action.sa_sigaction = onFault;
    sigaction(SIGSEGV, &action, &watch().oldFault);
    action.sa_sigaction = onTrap;
    sigaction(SIGTRAP, &action, nullptr);
    return true;
  }();
}

} // namespace

bool isPinned(const void *memory) {
  if (arena().isPinned(memory))
    return true;
  auto after = watch().registered.upper_bound(static_cast<char *>(const_cast<void *>(memory)));
  if (after == watch().registered.begin())
    return false;
  const auto &[begin, bytes] = *std::prev(after);
  return static_cast<const char *>(memory) < begin + bytes;
}

void watchHost(const OperationInfo &user, const std::vector<HostRange> &ranges) {
  if (ranges.empty())
    return;
  installHandlers();
  for (const HostRange &range : ranges) {
    watch().uses.push_back({range, user});
    count(watch().uses.back(), 1);
  }
  protect();
}

void unwatchKnown() {
  Watch &all = watch();
  if (all.pages.empty() && all.uses.empty())
    return;
  std::erase_if(all.uses, [](const Use &use) {
    if (!hostKnows(use.by))
      return false;
    count(use, -1);
    return true;
  });
  for (auto &[at, page] : all.pages)
    std::erase_if(page.kernels, [](const PageUse &use) {
      return knows(hostKnowledge(), use.timeline, use.clock);
    });
  protect();
}

void unwatchAll() { unwatchKnown(); }

void closeDeviceMemory() {
  watch().isDeviceOpen = false;
  std::vector<uintptr_t> &open = watch().openPieces;
  std::sort(open.begin(), open.end());
  for (size_t i = 0, next = 0; i < open.size(); i = next) {
    for (next = i + 1; next < open.size() && open[next] == open[next - 1] + kPieceBytes;)
      ++next;
    mprotect(reinterpret_cast<void *>(open[i]), (next - i) * kPieceBytes, PROT_NONE);
  }
  open.clear();
}

void closeMemory() {
  installHandlers();
  closeDeviceMemory();
  if (!watch().isOpen)
    return;
  watch().isOpen = watch().isAllOpen = false;
  protect();
}

void openPinnedMemory() {
  watch().isOpen = watch().isAllOpen = true;
  protect();
}

void openMemory() {
  installHandlers();
  watch().isDeviceOpen = watch().isOpen = true;
}

void openDeviceRange(const void *memory, size_t bytes) {
  const char *begin = static_cast<const char *>(memory), *end = begin + bytes;
  for (const char *at = begin; at < end; at += kPieceBytes)
    openPiece(at);
  if (bytes)
    openPiece(end - 1);
}

void noteHostPage(const void *memory, size_t bytes, bool isWrite) {
  for (uintptr_t page = pageOf(memory);
       page <= pageOf(static_cast<const char *>(memory) + bytes - 1); page += kPageBytes) {
    bool &isWritten = watch().touched[page];
    isWritten |= isWrite;
  }
}

void watchTouchedPages(const Operation &operation) {
  Watch &all = watch();
  if (all.touched.empty())
    return;
  installHandlers();
  const OperationInfo &by = operation.info;
  for (const auto &[at, isWrite] : all.touched) {
    std::vector<PageUse> &kernels = all.pages[at].kernels;
    auto same = std::find_if(kernels.begin(), kernels.end(), [&](const PageUse &use) {
      return use.timeline == by.timeline && use.isWrite == isWrite;
    });
    if (same != kernels.end())
      same->clock = std::max(same->clock, by.clock);
    else
      kernels.push_back({by.timeline, by.clock, isWrite});
  }
  all.touched.clear();
  protect();
}

std::string hostUseOf(const void *memory, size_t bytes) {
  const char *begin = static_cast<const char *>(memory);
  for (const Use &use : watch().uses)
    if (use.range.begin < begin + bytes && begin < use.range.begin + use.range.bytes &&
        !hostKnows(use.by))
      return describe(use.by);
  for (auto page = watch().pages.lower_bound(pageOf(memory));
       page != watch().pages.end() && page->first < reinterpret_cast<uintptr_t>(begin) + bytes;
       ++page)
    if (!page->second.kernels.empty())
      return "a kernel";
  return {};
}

void forbidFreedPages(void *memory, size_t bytes) {
  installHandlers();
  const char *begin = static_cast<const char *>(memory);
  std::erase_if(watch().uses, [&](const Use &use) {
    return use.range.begin >= begin && use.range.begin < begin + bytes;
  });
  std::erase_if(watch().pages, [&](const auto &page) {
    return page.first >= pageOf(begin) && page.first < reinterpret_cast<uintptr_t>(begin) + bytes;
  });
  mprotect(memory, (bytes + kPageBytes - 1) & ~(kPageBytes - 1), PROT_NONE);
}

bool registerPinned(void *memory, size_t bytes) {
  if (isPinned(memory) || isPinned(static_cast<char *>(memory) + bytes - 1))
    return false;
  watch().registered[static_cast<char *>(memory)] = bytes;
  return true;
}
size_t registeredBytes(void *memory) {
  auto found = watch().registered.find(static_cast<char *>(memory));
  return found == watch().registered.end() ? 0 : found->second;
}
void unregisterPinned(void *memory) {
  std::erase_if(watch().uses, [&](const Use &use) {
    const char *begin = static_cast<const char *>(memory);
    if (use.range.begin < begin || use.range.begin >= begin + registeredBytes(memory))
      return false;
    count(use, -1);
    return true;
  });
  protect();
  watch().registered.erase(static_cast<char *>(memory));
}

} // namespace simt

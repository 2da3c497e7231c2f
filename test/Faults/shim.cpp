//===- shim.cpp - Calls of the system that fail on demand -----------------===//
//
// Loaded before a program (LD_PRELOAD), it makes one call fail as a full disk, a limit or a
// lack of memory does. Counting begins with main and ends with it.
//
//   GENREC_FAULT=<kind>:<n>    the n-th call of the kind fails, from 1 on; "<kind>:<n>+": all
//                              from the n-th on do; "<kind>:<n>!": the process is killed there
//   GENREC_FAULT_COUNTS=<file> how many calls of each kind there were, written at the end
//   GENREC_FAULT_UNDER=<path>  only calls on files whose path begins with this count
//   GENREC_FAULT_RANK=<r>      nothing happens in other ranks than r of those that mpirun starts
//
// Kinds: open, write, fsync, rename, mmap, thread, allocation (but that of some libraries), and large_allocation
// for those of 4 KiB and more, whoever asks. What goes to the standard streams is left alone.
//
//===----------------------------------------------------------------------===//

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

enum Kind { kOpen, kWrite, kFsync, kRename, kMmap, kThread, kAllocation, kLargeAllocation, kKinds };
constexpr const char *kNames[kKinds] = {"open", "write",  "fsync",      "rename",
                                        "mmap", "thread", "allocation", "large_allocation"};
constexpr size_t kLargeBytes = 4096;

std::atomic<bool> armed{false};
std::atomic<long> counts[kKinds];
int chosen = -1;
std::atomic<long> failing{0};
bool allAfter = false, kills = false;
const char *under = nullptr;

bool fails(Kind kind, int reason) {
  if (!armed.load(std::memory_order_relaxed))
    return false;
  long number = counts[kind].fetch_add(1) + 1;
  if (kind != chosen || (allAfter ? number < failing : number != failing))
    return false;
  if (kills)
    raise(SIGKILL);
  errno = reason;
  return true;
}

/// Whether a library asks for memory that it takes where exceptions end the process, so that no
/// program which uses it survives a few bytes that it does not get: Arrow copies its status
/// objects there, the JSON library destroys with a stack of its own, directory_iterator opens.
bool isLibraryAsking() {
  static thread_local bool isLooking = false; // looking allocates, too
  if (isLooking)
    return true;
  isLooking = true;
  void *frames[64];
  bool isLibrary = false;
  int count = backtrace(frames, 64);
  for (int i = 0; i < count && !isLibrary; ++i) {
    Dl_info info{};
    if (!dladdr(frames[i], &info))
      continue;
    const char *file = info.dli_fname ? info.dli_fname : "";
    isLibrary = std::strstr(file, "libarrow") || std::strstr(file, "libparquet") ||
                (info.dli_sname && (std::strstr(info.dli_sname, "nlohmann") ||
                                    std::strstr(info.dli_sname, "directory_iterator")));
  }
  isLooking = false;
  return isLibrary;
}

/// Small allocations of such libraries are left out; the next one of somebody else fails instead.
bool failsToAllocate(size_t bytes) {
  if (bytes >= kLargeBytes && fails(kLargeAllocation, ENOMEM))
    return true;
  if (!fails(kAllocation, ENOMEM))
    return false;
  if (!isLibraryAsking()) {
    errno = ENOMEM;
    return true;
  }
  if (!allAfter)
    failing.fetch_add(1);
  return false;
}

/// Calls on a file count where it is one of those that faults are for.
bool fails(Kind kind, int reason, const char *path) {
  return (!under || std::strncmp(path, under, std::strlen(under)) == 0) && fails(kind, reason);
}
bool fails(Kind kind, int reason, int descriptor) {
  if (!under || !armed.load(std::memory_order_relaxed))
    return fails(kind, reason);
  char link[32], path[PATH_MAX];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  ssize_t length = readlink(link, path, sizeof path - 1);
  path[length < 0 ? 0 : length] = '\0';
  return fails(kind, reason, path);
}

bool isStandard(int descriptor) { return descriptor <= 2; }
bool isStandard(FILE *file) { return file == stdout || file == stderr; }

/// The function of this name that comes after this library's.
template <class Function> Function next(const char *name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

void readWish() {
  const char *wish = std::getenv("GENREC_FAULT");
  const char *colon = wish ? std::strchr(wish, ':') : nullptr;
  for (int kind = 0; colon && kind < kKinds; ++kind)
    if (std::strlen(kNames[kind]) == static_cast<size_t>(colon - wish) &&
        std::strncmp(wish, kNames[kind], static_cast<size_t>(colon - wish)) == 0)
      chosen = kind;
  if (!colon)
    return;
  char *end = nullptr;
  failing = std::strtol(colon + 1, &end, 10);
  allAfter = *end == '+';
  kills = *end == '!';
}

void writeCounts() {
  const char *path = std::getenv("GENREC_FAULT_COUNTS");
  FILE *file = path ? std::fopen(path, "w") : nullptr;
  for (int kind = 0; file && kind < kKinds; ++kind)
    std::fprintf(file, "%s %ld\n", kNames[kind], counts[kind].load());
  if (file)
    std::fclose(file);
}

using Main = int (*)(int, char **, char **);
Main realMain = nullptr;

bool isMeant() {
  const char *wanted = std::getenv("GENREC_FAULT_RANK");
  const char *rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return !wanted || (rank && std::strcmp(wanted, rank) == 0);
}

int armedMain(int argc, char **argv, char **environment) {
  if (!isMeant())
    return realMain(argc, argv, environment);
  readWish();
  under = std::getenv("GENREC_FAULT_UNDER");
  armed = true;
  int status = realMain(argc, argv, environment);
  armed = false;
  writeCounts();
  return status;
}

} // namespace

extern "C" {

int __libc_start_main(Main main, int argc, char **argv, void (*init)(), void (*fini)(),
                      void (*rtldFini)(), void *stackEnd) {
  realMain = main;
  using Start = int (*)(Main, int, char **, void (*)(), void (*)(), void (*)(), void *);
  return next<Start>("__libc_start_main")(armedMain, argc, argv, init, fini, rtldFini, stackEnd);
}

//===-- files -----------------------------------------------------------------===//

#define GENREC_OPEN(name)                                                                          \
  int name(const char *path, int flags, ...) {                                                     \
    static auto real = next<int (*)(const char *, int, ...)>(#name);                               \
    va_list list;                                                                                  \
    va_start(list, flags);                                                                         \
    int mode = va_arg(list, int);                                                                  \
    va_end(list);                                                                                  \
    return fails(kOpen, EMFILE, path) ? -1 : real(path, flags, mode);                                    \
  }
GENREC_OPEN(open)
GENREC_OPEN(open64)

#define GENREC_OPENAT(name)                                                                        \
  int name(int folder, const char *path, int flags, ...) {                                         \
    static auto real = next<int (*)(int, const char *, int, ...)>(#name);                          \
    va_list list;                                                                                  \
    va_start(list, flags);                                                                         \
    int mode = va_arg(list, int);                                                                  \
    va_end(list);                                                                                  \
    return fails(kOpen, EMFILE, path) ? -1 : real(folder, path, flags, mode);                            \
  }
GENREC_OPENAT(openat)
GENREC_OPENAT(openat64)

#define GENREC_FOPEN(name)                                                                         \
  FILE *name(const char *path, const char *mode) {                                                 \
    static auto real = next<FILE *(*)(const char *, const char *)>(#name);                         \
    return fails(kOpen, EMFILE, path) ? nullptr : real(path, mode);                                      \
  }
GENREC_FOPEN(fopen)
GENREC_FOPEN(fopen64)

ssize_t write(int descriptor, const void *data, size_t bytes) {
  static auto real = next<ssize_t (*)(int, const void *, size_t)>("write");
  return !isStandard(descriptor) && fails(kWrite, ENOSPC, descriptor) ? -1 : real(descriptor, data, bytes);
}
ssize_t writev(int descriptor, const struct iovec *parts, int count) {
  static auto real = next<ssize_t (*)(int, const struct iovec *, int)>("writev");
  return !isStandard(descriptor) && fails(kWrite, ENOSPC, descriptor) ? -1 : real(descriptor, parts, count);
}
ssize_t pwrite64(int descriptor, const void *data, size_t bytes, off_t at) {
  static auto real = next<ssize_t (*)(int, const void *, size_t, off_t)>("pwrite64");
  return fails(kWrite, ENOSPC, descriptor) ? -1 : real(descriptor, data, bytes, at);
}
size_t fwrite(const void *data, size_t size, size_t count, FILE *file) {
  static auto real = next<size_t (*)(const void *, size_t, size_t, FILE *)>("fwrite");
  return !isStandard(file) && fails(kWrite, ENOSPC, fileno(file)) ? 0 : real(data, size, count, file);
}

#define GENREC_SYNC(name)                                                                          \
  int name(int descriptor) {                                                                       \
    static auto real = next<int (*)(int)>(#name);                                                  \
    return fails(kFsync, EIO, descriptor) ? -1 : real(descriptor);                                             \
  }
GENREC_SYNC(fsync)
GENREC_SYNC(fdatasync)

int rename(const char *from, const char *to) {
  static auto real = next<int (*)(const char *, const char *)>("rename");
  return fails(kRename, EIO, to) ? -1 : real(from, to);
}
int renameat(int folder, const char *from, int other, const char *to) {
  static auto real = next<int (*)(int, const char *, int, const char *)>("renameat");
  return fails(kRename, EIO, to) ? -1 : real(folder, from, other, to);
}

//===-- memory and threads ----------------------------------------------------===//

void *mmap(void *at, size_t bytes, int protection, int flags, int descriptor, off_t offset) {
  static auto real = next<void *(*)(void *, size_t, int, int, int, off_t)>("mmap");
  return fails(kMmap, ENOMEM) ? MAP_FAILED : real(at, bytes, protection, flags, descriptor, offset);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
                   void *argument) {
  static auto real =
      next<int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *)>(
          "pthread_create");
  return fails(kThread, EAGAIN) ? EAGAIN : real(thread, attributes, body, argument);
}

// The allocator's own names: looking up functions allocates.
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes) { return failsToAllocate(bytes) ? nullptr : __libc_malloc(bytes); }
void *calloc(size_t count, size_t bytes) {
  return failsToAllocate(count * bytes) ? nullptr : __libc_calloc(count, bytes);
}
void *realloc(void *memory, size_t bytes) {
  return failsToAllocate(bytes) ? nullptr : __libc_realloc(memory, bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes) {
  return failsToAllocate(bytes) ? nullptr : __libc_memalign(alignment, bytes);
}
int posix_memalign(void **memory, size_t alignment, size_t bytes) {
  if (failsToAllocate(bytes))
    return ENOMEM;
  *memory = __libc_memalign(alignment, bytes);
  return *memory ? 0 : ENOMEM;
}

} // extern "C"

//===- memory_counter.cpp - counts the bytes that emitted code touches ----===//
//
// Linked with an emitted unit that clang built with -fsanitize-coverage=trace-loads,trace-stores:
// every load and store of it calls one of the functions here. Those outside of the stack are noted
// by the op that runs (genrec_rt_enter, wrapped by the linker), so that the program ends by writing
// how many distinct bytes each op read and wrote, as JSON, to $GENREC_MEMORY_COUNTS.
//
//===----------------------------------------------------------------------===//

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <unordered_set>

#include <pthread.h>

struct genrec_step;
extern "C" void __real_genrec_rt_enter(genrec_step *step, int32_t op);

namespace {

struct Touched {
  std::unordered_set<uintptr_t> loaded, stored;
};

struct Counter {
  std::mutex mutex;
  std::map<int32_t, Touched> ops;

  ~Counter() {
    const char *path = std::getenv("GENREC_MEMORY_COUNTS");
    std::FILE *file = path ? std::fopen(path, "w") : nullptr;
    if (!file)
      return;
    std::fputs("{", file);
    const char *separator = "";
    for (const auto &[op, touched] : ops) {
      std::fprintf(file, "%s\"%d\": {\"read\": %zu, \"written\": %zu}", separator, op,
                   touched.loaded.size(), touched.stored.size());
      separator = ", ";
    }
    std::fputs("}\n", file);
    std::fclose(file);
  }
};

Counter counter;
thread_local int32_t running = -1;

bool isOnStack(uintptr_t address) {
  thread_local uintptr_t begin = 0, end = 0;
  if (end == 0) {
    pthread_attr_t attributes;
    void *low;
    size_t size;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &low, &size);
    pthread_attr_destroy(&attributes);
    begin = reinterpret_cast<uintptr_t>(low);
    end = begin + size;
  }
  return address >= begin && address < end;
}

void note(const void *pointer, int bytes, bool isStore) {
  auto address = reinterpret_cast<uintptr_t>(pointer);
  if (running < 0 || isOnStack(address))
    return;
  std::lock_guard<std::mutex> lock(counter.mutex);
  Touched &touched = counter.ops[running];
  for (int i = 0; i < bytes; ++i)
    (isStore ? touched.stored : touched.loaded).insert(address + i);
}

} // namespace

extern "C" {

void __wrap_genrec_rt_enter(genrec_step *step, int32_t op) {
  running = op;
  __real_genrec_rt_enter(step, op);
}

void __sanitizer_cov_load1(uint8_t *at) { note(at, 1, false); }
void __sanitizer_cov_load2(uint16_t *at) { note(at, 2, false); }
void __sanitizer_cov_load4(uint32_t *at) { note(at, 4, false); }
void __sanitizer_cov_load8(uint64_t *at) { note(at, 8, false); }
void __sanitizer_cov_load16(void *at) { note(at, 16, false); }
void __sanitizer_cov_store1(uint8_t *at) { note(at, 1, true); }
void __sanitizer_cov_store2(uint16_t *at) { note(at, 2, true); }
void __sanitizer_cov_store4(uint32_t *at) { note(at, 4, true); }
void __sanitizer_cov_store8(uint64_t *at) { note(at, 8, true); }
void __sanitizer_cov_store16(void *at) { note(at, 16, true); }
}

//===- machine_memory.cpp - How much memory there is ----------------------===//

#include "machine_memory.h"

#include <algorithm>
#include <fstream>

#include <unistd.h>

namespace genrec::rt {

int64_t machineMemory() {
  int64_t bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  // Limits of control groups, version 2 and 1; "max" is none.
  for (const char *name :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream file(name);
    int64_t limit = 0;
    if (file >> limit && limit > 0)
      bytes = std::min(bytes, limit);
  }
  return bytes;
}

} // namespace genrec::rt

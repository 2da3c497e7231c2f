//===- threads.cpp - How many threads a process gets ----------------------===//

#include "threads.h"

#include "launcher.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>

namespace genrec::rt {

int32_t availableCores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) == 0)
    return std::max(1, CPU_COUNT(&cores));
  return std::max(1, static_cast<int32_t>(std::thread::hardware_concurrency()));
}

Cores ownCores() {
  Cores own;
  sched_getaffinity(0, sizeof own.set, &own.set);
  if (std::FILE *file = std::fopen("/proc/sys/kernel/random/boot_id", "r")) {
    if (!std::fgets(own.machine, sizeof own.machine, file))
      own.machine[0] = 0;
    std::fclose(file);
  }
  return own;
}

int32_t shareOfCores(std::span<const Cores> all, size_t index) {
  const Cores &own = all[index];
  double share = 0;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &own.set))
      continue;
    share +=
        1.0 / static_cast<double>(std::count_if(all.begin(), all.end(), [&](const Cores &each) {
          return CPU_ISSET(core, &each.set) &&
                 std::strncmp(each.machine, own.machine, sizeof own.machine) == 0;
        }));
  }
  return std::max(1, static_cast<int32_t>(share + 1e-6));
}

int32_t defaultThreads() { return std::max(1, availableCores() / currentLaunch().localRanks); }

} // namespace genrec::rt

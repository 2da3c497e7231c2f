//===- threads.cpp - How many threads a process gets ----------------------===//

#include "threads.h"

#include "launcher.h"

#include <algorithm>
#include <thread>

#include <sched.h>

namespace genrec::rt {

int32_t availableCores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) == 0)
    return std::max(1, CPU_COUNT(&cores));
  return std::max(1, static_cast<int32_t>(std::thread::hardware_concurrency()));
}

int32_t defaultThreads() {
  return std::max(1, availableCores() / currentLaunch().localRanks);
}

} // namespace genrec::rt

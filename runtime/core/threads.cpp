//===- threads.cpp - How many threads a process gets ----------------------===//

#include "threads.h"

#include <algorithm>
#include <cstdlib>
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
  // Open MPI, MPICH and Slurm name the ranks of one machine in these.
  for (const char *name :
       {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"})
    if (const char *ranks = std::getenv(name))
      return std::max(1, availableCores() / std::max(1, std::atoi(ranks)));
  return availableCores();
}

} // namespace genrec::rt

//===- threads.h - How many threads a process gets ---------------*- C++ -*-===//

#ifndef GENREC_RT_CORE_THREADS_H
#define GENREC_RT_CORE_THREADS_H

#include "genrec_rt/parallel.h"

#include <cstdint>
#include <span>

#include <sched.h>

namespace genrec::rt {

/// The cores this process may run on.
int32_t availableCores();

/// The cores of its machine that a process may run on.
struct Cores {
  char machine[40] = {}; ///< what tells machines apart
  cpu_set_t set{};
};
Cores ownCores();
/// The cores of process `index` of `all`, each divided by the processes that may run on it, at
/// least 1. Launchers may or may not have cut what a process may run on.
int32_t shareOfCores(std::span<const Cores> all, size_t index);

/// The cores divided by the ranks that the launcher says share the machine, at
/// least 1.
int32_t defaultThreads();

/// Removes the pool; a null pool is allowed.
struct PoolDeleter {
  void operator()(genrec_rt_pool *pool) const { genrec_rt_pool_destroy(pool); }
};

} // namespace genrec::rt

#endif // GENREC_RT_CORE_THREADS_H

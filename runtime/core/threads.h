//===- threads.h - How many threads a process gets ---------------*- C++ -*-===//

#ifndef GENREC_RT_CORE_THREADS_H
#define GENREC_RT_CORE_THREADS_H

#include <cstdint>

namespace genrec::rt {

/// The cores this process may run on.
int32_t availableCores();

/// The cores divided by the ranks that the launcher says share the machine, at
/// least 1.
int32_t defaultThreads();

} // namespace genrec::rt

#endif // GENREC_RT_CORE_THREADS_H

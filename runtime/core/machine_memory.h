//===- machine_memory.h - How much memory there is ---------------*- C++ -*-===//

#ifndef GENREC_RT_CORE_MACHINE_MEMORY_H
#define GENREC_RT_CORE_MACHINE_MEMORY_H

#include <cstdint>

namespace genrec::rt {

/// Bytes that processes of this machine may use together, or, in a container with a limit, those of
/// the container.
int64_t machineMemory();

} // namespace genrec::rt

#endif // GENREC_RT_CORE_MACHINE_MEMORY_H

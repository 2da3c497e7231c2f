//===- decode_memory.h - Where Arrow's buffers come from ---------*- C++ -*-===//

#ifndef GENREC_RT_DATA_DECODE_MEMORY_H
#define GENREC_RT_DATA_DECODE_MEMORY_H

#include <arrow/type_fwd.h>

namespace genrec::rt {

/// The memory pool for decoding. It returns freed memory to the system at once. Arrow's own pools
/// keep about as much as the largest row groups took, although a training run decodes its data
/// once.
arrow::MemoryPool *decodeMemory();

} // namespace genrec::rt

#endif // GENREC_RT_DATA_DECODE_MEMORY_H

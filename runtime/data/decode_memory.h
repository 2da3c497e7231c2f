//===- decode_memory.h - Where Arrow's buffers come from ---------*- C++ -*-===//

#ifndef GENREC_RT_DATA_DECODE_MEMORY_H
#define GENREC_RT_DATA_DECODE_MEMORY_H

#include <arrow/type_fwd.h>

namespace genrec::rt {

/// The memory of files being decoded. What is given back to it goes back to the system
/// at once: Arrow's own pools keep about as much as the largest row groups took, for
/// good, and a training run decodes its data once.
arrow::MemoryPool *decodeMemory();

} // namespace genrec::rt

#endif // GENREC_RT_DATA_DECODE_MEMORY_H

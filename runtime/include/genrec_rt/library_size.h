//===- library_size.h - Which products a device's library takes ---*- C++ -*-===//
//
// The compiler asks as well: what a library reads may be rounded to bfloat16 before.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_LIBRARY_SIZE_H
#define GENREC_RT_LIBRARY_SIZE_H

#include <stdint.h>

namespace genrec::rt {

/// A matrix whose sizes are both at least this is multiplied by cuBLASLt where it is there, a
/// smaller one by our tiles. Not measured on a device yet.
constexpr int64_t kLeastLibrarySize = 32;

} // namespace genrec::rt

#endif // GENREC_RT_LIBRARY_SIZE_H

//===- pool_pieces.h - In which order rows of a list are added ---*- C++ -*-===//
//
// What the compiler, its interpreter and the runtime agree on about sums and means of the rows of a
// list.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_POOL_PIECES_H
#define GENREC_RT_POOL_PIECES_H

#include <stdint.h>

namespace genrec::rt::kernels {

/// Floats of a list are added up in pieces of so many rows, each in the order of its rows, and then
/// the pieces in their order, on every target. So the pieces of a long list can be added up at the
/// same time.
constexpr int64_t kPoolPiece = 256;

} // namespace genrec::rt::kernels

#endif // GENREC_RT_POOL_PIECES_H

//===- padding.h - Dropping padding from lists -------------------*- C++ -*-===//

#ifndef GENREC_RT_DATA_PADDING_H
#define GENREC_RT_DATA_PADDING_H

#include "chunk.h"

#include "genrec_rt/abi.h"

namespace genrec::rt {

/// Removes the list entries whose value of some feature (of `read`, by feature
/// index) is that feature's padding id, with all that lies below them.
void dropPadding(const genrec_model_desc &model, const std::vector<char> &read, Chunk &chunk);

} // namespace genrec::rt

#endif // GENREC_RT_DATA_PADDING_H

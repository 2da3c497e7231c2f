//===- vector_values.h - Rows of several values ------------------*- C++ -*-===//

#ifndef GENREC_RT_DATA_VECTOR_VALUES_H
#define GENREC_RT_DATA_VECTOR_VALUES_H

#include "chunk.h"

#include <arrow/type_fwd.h>

#include <functional>
#include <string>

namespace genrec::rt {

/// Converts lists, each of `width` values that a `type` can hold, to one row per list. A row is
/// null where its list or an enclosing struct (`parentValid`, null for none) is, and holds zeros
/// then. Error, naming the row by `at`, for a list of another length and for a null in a list.
void convertVectors(const arrow::Array &lists, const std::vector<uint8_t> *parentValid,
                    int32_t type, int64_t width,
                    const std::function<std::string(int64_t row)> &at, ChunkColumn &out);

} // namespace genrec::rt

#endif // GENREC_RT_DATA_VECTOR_VALUES_H

//===- key_values.h - Keys of files of several types -------------*- C++ -*-===//

#ifndef GENREC_RT_DATA_KEY_VALUES_H
#define GENREC_RT_DATA_KEY_VALUES_H

#include "chunk.h"

#include <arrow/type_fwd.h>

#include <memory>

namespace genrec::rt {

/// What a column's values are: those of a dictionary.
std::shared_ptr<arrow::DataType> plainType(const std::shared_ptr<arrow::DataType> &type);

/// Whether values of two types are the same, however a file has them: in a dictionary, with offsets
/// of any size.
bool haveSameValues(const std::shared_ptr<arrow::DataType> &a,
                    const std::shared_ptr<arrow::DataType> &b);

/// The type of a key that one file has as `a`, a plain type, and another as `b`: what holds the
/// values of both, where a feature of a model is read from both. Null where there is none.
std::shared_ptr<arrow::DataType> commonKeyType(const std::shared_ptr<arrow::DataType> &a,
                                               const std::shared_ptr<arrow::DataType> &b);

/// Makes values of a key of type `from`, as convertLeaf leaves them, those of `to`, which is the
/// commonKeyType of it and others. Throws Error at a value that `to` does not hold.
void widenKey(ChunkColumn &column, const arrow::DataType &from, const arrow::DataType &to);

} // namespace genrec::rt

#endif // GENREC_RT_DATA_KEY_VALUES_H

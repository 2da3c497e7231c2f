//===- leaf_values.h - Values of a file's column -----------------*- C++ -*-===//

#ifndef GENREC_RT_DATA_LEAF_VALUES_H
#define GENREC_RT_DATA_LEAF_VALUES_H

#include "chunk.h"

#include <arrow/type_fwd.h>

#include <string>

namespace genrec::rt {

/// Whether values of a file's type become a genrec_type without loss: integers
/// and floats from equal or narrower ones, int64 also from timestamps with a
/// zone and dates (as UTC seconds, rounded down), strings from text and bytes, and
/// each of them from a dictionary, and from Arrow's type null (nulls alone); GENREC_VALID from
/// anything; GENREC_KEY from all but lists and structs. `why` gets the reason where
/// there is one worth telling.
bool isReadable(const arrow::DataType &from, int32_t type, std::string &why);

/// Sets the valid bytes of `out` where a value of `array` or a struct around it (`parentValid`,
/// may be null) is null.
void findNulls(const arrow::Array &array, const std::vector<uint8_t> *parentValid,
               ChunkColumn &out);

/// Converts all values of `array`. `parentValid` (may be null) has one byte per
/// value: 0 where an enclosing struct is null. Where a value is null, `valid`
/// says so and the value is 0 or empty. Throws Error at a uint64 beyond int64.
void convertLeaf(const arrow::Array &array, const std::vector<uint8_t> *parentValid, int32_t type,
                 ChunkColumn &out);

/// Whether a file's type is one of strings, with a length per value, or of fixed-size bytes.
bool isText(const arrow::DataType &type);

/// Bytes of a value of a file's type where all have equally many; 0 for others: text, bools,
/// dictionaries.
int64_t bytesOfValue(const arrow::DataType &type);

} // namespace genrec::rt

#endif // GENREC_RT_DATA_LEAF_VALUES_H

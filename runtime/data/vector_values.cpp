//===- vector_values.cpp - Rows of several values -------------------------===//

#include "vector_values.h"

#include "genrec_rt/batch.h"
#include "genrec_rt/error.h"
#include "leaf_values.h"

#include <arrow/array.h>

#include <algorithm>
#include <cstring>

namespace genrec::rt {

namespace {

using arrow::Type;

template <class List>
void convertTyped(const List &lists, int32_t type, int64_t width,
                  const std::function<std::string(int64_t)> &at, ChunkColumn &out) {
  int64_t first = lists.value_offset(0), count = lists.value_offset(lists.length()) - first;
  ChunkColumn entries;
  convertLeaf(*lists.values()->Slice(first, count), nullptr, type, entries);
  auto size = static_cast<size_t>(width * elementBytes(type));
  out.values.assign(static_cast<size_t>(lists.length()) * size, 0);
  for (int64_t row = 0; row < lists.length(); ++row) {
    if (!out.valid.empty() && !out.valid[row])
      continue;
    int64_t begin = lists.value_offset(row) - first;
    int64_t length = lists.value_offset(row + 1) - lists.value_offset(row);
    if (length != width)
      throw Error(at(row) + " has " + std::to_string(length) + " values, the model reads " +
                      std::to_string(width) + " per row",
                  "write lists of one length, or declare the column a list: it opens a domain then");
    if (!entries.valid.empty()) {
      auto from = entries.valid.begin() + begin;
      auto null = std::find(from, from + width, uint8_t(0));
      if (null != from + width)
        throw Error(at(row) + " is null in place " + std::to_string(null - from) +
                        " of its " + std::to_string(width) + " values",
                    "fill it when the data is written; only the whole row may be null, in a "
                    "nullable column");
    }
    std::memcpy(out.values.data() + static_cast<size_t>(row) * size,
                entries.values.data() + begin * elementBytes(type), size);
  }
}

} // namespace

void convertVectors(const arrow::Array &lists, const std::vector<uint8_t> *parentValid,
                    int32_t type, int64_t width,
                    const std::function<std::string(int64_t row)> &at, ChunkColumn &out) {
  out.given = true;
  findNulls(lists, parentValid, out);
  switch (lists.type_id()) {
  case Type::NA:
    return out.values.assign(static_cast<size_t>(lists.length() * width * elementBytes(type)), 0);
  case Type::FIXED_SIZE_LIST:
    return convertTyped(static_cast<const arrow::FixedSizeListArray &>(lists), type, width, at, out);
  case Type::LARGE_LIST:
    return convertTyped(static_cast<const arrow::LargeListArray &>(lists), type, width, at, out);
  case Type::LIST:
    return convertTyped(static_cast<const arrow::ListArray &>(lists), type, width, at, out);
  default:
    throw Error(at(0) + " is no list, but " + lists.type()->ToString());
  }
}

} // namespace genrec::rt

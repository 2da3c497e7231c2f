//===- leaf_values.cpp - Values of a file's column ------------------------===//

#include "leaf_values.h"

#include "../core/floor_divide.h"
#include "genrec_rt/batch.h"
#include "genrec_rt/error.h"
#include "genrec_rt/kernels/shared/row_values.h"

#include <arrow/array.h>
#include <arrow/type.h>
#include <arrow/type_traits.h>
#include <arrow/util/float16.h>

#include <cstring>
#include <limits>

namespace genrec::rt {

namespace {

using arrow::Type;

int64_t unitsPerSecond(arrow::TimeUnit::type unit) {
  switch (unit) {
  case arrow::TimeUnit::SECOND:
    return 1;
  case arrow::TimeUnit::MILLI:
    return 1000;
  case arrow::TimeUnit::MICRO:
    return 1000000;
  default:
    return 1000000000;
  }
}

/// Writes f(value i) of a primitive array as To; nulls were zeroed before.
template <class Array, class To, class F>
void fillFrom(const arrow::Array &array, const ChunkColumn &out, To *to, const F &convert) {
  const auto &typed = static_cast<const Array &>(array);
  for (int64_t i = 0; i < typed.length(); ++i)
    if (out.valid.empty() || out.valid[i])
      to[i] = convert(typed.Value(i));
}

template <class To, class F>
void fillNumbers(const arrow::Array &array, const ChunkColumn &out, To *to, const F &convert) {
  switch (array.type_id()) {
  case Type::INT8:
    return fillFrom<arrow::Int8Array>(array, out, to, convert);
  case Type::INT16:
    return fillFrom<arrow::Int16Array>(array, out, to, convert);
  case Type::INT32:
    return fillFrom<arrow::Int32Array>(array, out, to, convert);
  case Type::INT64:
    return fillFrom<arrow::Int64Array>(array, out, to, convert);
  case Type::UINT8:
    return fillFrom<arrow::UInt8Array>(array, out, to, convert);
  case Type::UINT16:
    return fillFrom<arrow::UInt16Array>(array, out, to, convert);
  case Type::UINT32:
    return fillFrom<arrow::UInt32Array>(array, out, to, convert);
  case Type::UINT64:
    return fillFrom<arrow::UInt64Array>(array, out, to, convert);
  case Type::FLOAT:
    return fillFrom<arrow::FloatArray>(array, out, to, convert);
  case Type::DOUBLE:
    return fillFrom<arrow::DoubleArray>(array, out, to, convert);
  case Type::HALF_FLOAT:
    return fillFrom<arrow::HalfFloatArray>(array, out, to, [&](uint16_t bits) {
      return convert(arrow::util::Float16::FromBits(bits).ToFloat());
    });
  default:
    throw Error("a column has no numbers, but " + array.type()->ToString());
  }
}

int64_t checkedUnsigned(uint64_t value) {
  if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    throw Error("value " + std::to_string(value) + " does not fit int64");
  return static_cast<int64_t>(value);
}

void fillInt64(const arrow::Array &array, const ChunkColumn &out, int64_t *to) {
  switch (array.type_id()) {
  case Type::TIMESTAMP: {
    int64_t units = unitsPerSecond(static_cast<const arrow::TimestampType &>(*array.type()).unit());
    return fillFrom<arrow::TimestampArray>(
        array, out, to, [=](int64_t value) { return floorDivide(value, units); });
  }
  case Type::DATE32:
    return fillFrom<arrow::Date32Array>(array, out, to, [](int64_t days) { return days * 86400; });
  case Type::DATE64:
    return fillFrom<arrow::Date64Array>(
        array, out, to, [](int64_t milliseconds) { return floorDivide(milliseconds, 1000); });
  case Type::UINT64:
    return fillFrom<arrow::UInt64Array>(array, out, to, checkedUnsigned);
  default:
    return fillNumbers(array, out, to, [](auto value) { return static_cast<int64_t>(value); });
  }
}

template <class Array> void fillStrings(const arrow::Array &array, ChunkColumn &out) {
  const auto &typed = static_cast<const Array &>(array);
  out.stringOffsets.resize(typed.length() + 1);
  int64_t total = 0;
  for (int64_t i = 0; i < typed.length(); ++i) {
    out.stringOffsets[i] = total;
    if (out.valid.empty() || out.valid[i])
      total += static_cast<int64_t>(typed.GetView(i).size());
  }
  out.stringOffsets[typed.length()] = total;
  out.bytes.resize(total);
  for (int64_t i = 0; i < typed.length(); ++i)
    if (out.valid.empty() || out.valid[i]) {
      auto view = typed.GetView(i);
      std::copy(view.begin(), view.end(), out.bytes.begin() + out.stringOffsets[i]);
    }
}

void convertStrings(const arrow::Array &array, ChunkColumn &out) {
  switch (array.type_id()) {
  case Type::STRING:
  case Type::BINARY:
    return fillStrings<arrow::BinaryArray>(array, out);
  case Type::LARGE_STRING:
  case Type::LARGE_BINARY:
    return fillStrings<arrow::LargeBinaryArray>(array, out);
  default:
    return fillStrings<arrow::FixedSizeBinaryArray>(array, out);
  }
}

/// Keeps the bytes of each value as they are; of a bool, one byte.
void keepBytes(const arrow::Array &array, ChunkColumn &out) {
  const bool isBool = array.type_id() == Type::BOOL;
  const int64_t size = isBool ? 1 : bytesOfValue(*array.type()), count = array.length();
  out.stringOffsets.resize(count + 1);
  for (int64_t i = 0; i <= count; ++i)
    out.stringOffsets[i] = i * size;
  out.bytes.resize(count * size);
  if (isBool)
    return fillFrom<arrow::BooleanArray>(array, out, out.bytes.data(),
                                         [](bool value) -> char { return value; });
  // The bytes of nulls are undefined.
  const uint8_t *from =
      count > 0 ? array.data()->GetValues<uint8_t>(1, array.offset() * size) : nullptr;
  if (from)
    std::memcpy(out.bytes.data(), from, out.bytes.size());
}

/// Converts the dictionary once and takes each value's entry.
void convertDictionary(const arrow::DictionaryArray &array, int32_t type, ChunkColumn &out) {
  ChunkColumn entries;
  convertLeaf(*array.dictionary(), nullptr, type, entries);
  int64_t count = array.length();
  if (!entries.valid.empty()) {
    if (out.valid.empty())
      out.valid.assign(count, 1);
    for (int64_t i = 0; i < count; ++i)
      out.valid[i] = out.valid[i] && entries.valid[array.GetValueIndex(i)];
  }
  auto entryOf = [&](int64_t i) -> int64_t {
    return out.valid.empty() || out.valid[i] ? array.GetValueIndex(i) : -1;
  };
  if (!hasBytes(type)) {
    auto size = static_cast<size_t>(elementBytes(type));
    out.values.resize(count * size);
    for (int64_t i = 0; i < count; ++i)
      if (int64_t entry = entryOf(i); entry >= 0)
        std::memcpy(out.values.data() + i * size, entries.values.data() + entry * size, size);
    return;
  }
  out.stringOffsets.resize(count + 1);
  for (int64_t i = 0; i < count; ++i) {
    out.stringOffsets[i] = static_cast<int64_t>(out.bytes.size());
    if (int64_t entry = entryOf(i); entry >= 0)
      out.bytes.insert(out.bytes.end(), entries.bytes.begin() + entries.stringOffsets[entry],
                       entries.bytes.begin() + entries.stringOffsets[entry + 1]);
  }
  out.stringOffsets[count] = static_cast<int64_t>(out.bytes.size());
}

bool isNarrowInteger(Type::type id, int most) {
  switch (id) {
  case Type::INT8:
  case Type::UINT8:
    return true;
  case Type::INT16:
  case Type::UINT16:
    return most >= 16;
  case Type::INT32:
    return most >= 32;
  default:
    return false;
  }
}

bool isReadableInt64(const arrow::DataType &from, std::string &why) {
  switch (from.id()) {
  case Type::TIMESTAMP:
    if (!static_cast<const arrow::TimestampType &>(from).timezone().empty())
      return true;
    why = "a timestamp without a time zone can be any time: write it with one, as timestamp[s, "
          "tz=UTC]";
    return false;
  case Type::UINT32:
  case Type::INT64:
  case Type::UINT64:
  case Type::DATE32:
  case Type::DATE64:
    return true;
  default:
    return isNarrowInteger(from.id(), 32);
  }
}

} // namespace

bool isText(const arrow::DataType &type) {
  return arrow::is_base_binary_like(type.id()) || type.id() == Type::FIXED_SIZE_BINARY;
}

int64_t bytesOfValue(const arrow::DataType &type) {
  if (type.id() == Type::DICTIONARY || type.id() == Type::BOOL || !arrow::is_fixed_width(type.id()))
    return 0;
  return static_cast<const arrow::FixedWidthType &>(type).bit_width() / 8;
}

void findNulls(const arrow::Array &array, const std::vector<uint8_t> *parentValid,
               ChunkColumn &out) {
  if (array.type_id() == Type::NA)
    return out.valid.assign(array.length(), 0);
  bool any = array.null_count() > 0;
  if (parentValid)
    for (uint8_t valid : *parentValid)
      any |= !valid;
  if (!any)
    return;
  out.valid.resize(array.length());
  for (int64_t i = 0; i < array.length(); ++i)
    out.valid[i] = array.IsValid(i) && (!parentValid || (*parentValid)[i]);
}

bool isReadable(const arrow::DataType &from, int32_t type, std::string &why) {
  auto id = from.id();
  if (type == GENREC_VALID || id == Type::NA)
    return true;
  if (id == Type::DICTIONARY)
    return isReadable(*static_cast<const arrow::DictionaryType &>(from).value_type(), type, why);
  if (type == GENREC_KEY)
    return isText(from) || id == Type::BOOL || bytesOfValue(from) > 0;
  bool isFloat = id == Type::FLOAT || id == Type::HALF_FLOAT;
  switch (type) {
  case GENREC_I1:
    return id == Type::BOOL;
  case GENREC_I32:
    return isNarrowInteger(id, 32);
  case GENREC_I64:
    return isReadableInt64(from, why);
  case GENREC_F32:
    if (id == Type::DOUBLE)
      why = "a double loses digits as float: declare the feature as double, or write floats";
    return isFloat || isNarrowInteger(id, 16);
  case GENREC_F64:
    return isFloat || id == Type::DOUBLE || id == Type::UINT32 || isNarrowInteger(id, 32);
  case GENREC_BF16:
    return isFloat;
  default:
    return isText(from);
  }
}

void convertLeaf(const arrow::Array &array, const std::vector<uint8_t> *parentValid, int32_t type,
                 ChunkColumn &out) {
  out.given = true;
  findNulls(array, parentValid, out);
  if (type == GENREC_VALID)
    return out.values.assign(static_cast<size_t>(array.length()), 0);
  if (array.type_id() == Type::NA && hasBytes(type))
    return out.stringOffsets.assign(static_cast<size_t>(array.length()) + 1, 0);
  if (array.type_id() == Type::DICTIONARY)
    return convertDictionary(static_cast<const arrow::DictionaryArray &>(array), type, out);
  if (type == GENREC_STRING || (type == GENREC_KEY && isText(*array.type())))
    return convertStrings(array, out);
  if (type == GENREC_KEY)
    return keepBytes(array, out);
  out.values.assign(static_cast<size_t>(array.length() * elementBytes(type)), 0);
  if (array.type_id() == Type::NA)
    return;
  void *to = out.values.data();
  switch (type) {
  case GENREC_I1:
    return fillFrom<arrow::BooleanArray>(array, out, static_cast<uint8_t *>(to),
                                         [](bool value) -> uint8_t { return value; });
  case GENREC_I32:
    return fillNumbers(array, out, static_cast<int32_t *>(to),
                       [](auto value) { return static_cast<int32_t>(value); });
  case GENREC_I64:
    return fillInt64(array, out, static_cast<int64_t *>(to));
  case GENREC_F32:
    return fillNumbers(array, out, static_cast<float *>(to),
                       [](auto value) { return static_cast<float>(value); });
  case GENREC_F64:
    return fillNumbers(array, out, static_cast<double *>(to),
                       [](auto value) { return static_cast<double>(value); });
  default:
    return fillNumbers(array, out, static_cast<kernels::Bf16 *>(to),
                       [](auto value) { return kernels::nearestBf16(static_cast<float>(value)); });
  }
}

} // namespace genrec::rt

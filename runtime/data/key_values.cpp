//===- key_values.cpp - Keys of files of several types --------------------===//

#include "key_values.h"

#include "genrec_rt/error.h"
#include "leaf_values.h"

#include <arrow/type.h>
#include <arrow/type_traits.h>
#include <arrow/util/float16.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace genrec::rt {

namespace {

using arrow::DataType;
using arrow::Type;
using TypePtr = std::shared_ptr<DataType>;

TypePtr valueType(const TypePtr &type) {
  switch (type->id()) {
  case Type::DICTIONARY:
    return valueType(plainType(type));
  case Type::LARGE_STRING:
    return arrow::utf8();
  case Type::LARGE_BINARY:
    return arrow::binary();
  default:
    return type;
  }
}

bool isDate(Type::type id) { return id == Type::DATE32 || id == Type::DATE64; }

/// The integer that holds both; int64 also beside a uint64, whose values are checked.
TypePtr commonInteger(const DataType &a, const DataType &b) {
  const int bitsA = static_cast<const arrow::FixedWidthType &>(a).bit_width();
  const int bitsB = static_cast<const arrow::FixedWidthType &>(b).bit_width();
  const bool isSignedA = arrow::is_signed_integer(a.id()),
             isSignedB = arrow::is_signed_integer(b.id());
  int bits = std::max(bitsA, bitsB);
  if (isSignedA == isSignedB && !isSignedA)
    return bits == 64 ? arrow::uint64() : bits == 32 ? arrow::uint32() : arrow::uint16();
  if (isSignedA != isSignedB)
    bits = std::max(bits, 2 * (isSignedA ? bitsB : bitsA));
  return bits >= 64 ? arrow::int64() : bits == 32 ? arrow::int32() : arrow::int16();
}

/// The float that holds all values of a number's type; null where none does.
TypePtr floatOf(const DataType &type) {
  if (type.id() == Type::DOUBLE || type.id() == Type::FLOAT)
    return type.id() == Type::DOUBLE ? arrow::float64() : arrow::float32();
  const int bits = static_cast<const arrow::FixedWidthType &>(type).bit_width();
  return bits <= 16 ? arrow::float32() : bits == 32 ? arrow::float64() : nullptr;
}

int64_t unitsPerSecond(const DataType &type) {
  if (type.id() == Type::DATE64)
    return 1'000;
  switch (static_cast<const arrow::TimestampType &>(type).unit()) {
  case arrow::TimeUnit::SECOND:
    return 1;
  case arrow::TimeUnit::MILLI:
    return 1'000;
  case arrow::TimeUnit::MICRO:
    return 1'000'000;
  default:
    return 1'000'000'000;
  }
}

/// Times with a zone and dates, which are midnights in UTC; times without a zone.
TypePtr commonTime(const TypePtr &a, const TypePtr &b) {
  if (isDate(a->id()) && isDate(b->id()))
    return arrow::date64();
  if (isDate(a->id()))
    return commonTime(b, a);
  const auto &time = static_cast<const arrow::TimestampType &>(*a);
  if (isDate(b->id()))
    return time.timezone().empty() ? nullptr : a;
  const auto &other = static_cast<const arrow::TimestampType &>(*b);
  if (time.timezone().empty() != other.timezone().empty())
    return nullptr;
  return arrow::timestamp(std::max(time.unit(), other.unit()), time.timezone());
}

int64_t integerAt(const char *bytes, Type::type id) {
  auto as = [&]<class T>(T value) {
    std::memcpy(&value, bytes, sizeof value);
    return static_cast<int64_t>(value);
  };
  switch (id) {
  case Type::INT8:
    return as(int8_t());
  case Type::UINT8:
    return as(uint8_t());
  case Type::INT16:
    return as(int16_t());
  case Type::UINT16:
    return as(uint16_t());
  case Type::INT32:
  case Type::DATE32:
    return as(int32_t());
  case Type::UINT32:
    return as(uint32_t());
  default:
    return as(int64_t());
  }
}

double floatAt(const char *bytes, Type::type id) {
  auto as = [&]<class T>(T value) {
    std::memcpy(&value, bytes, sizeof value);
    return value;
  };
  switch (id) {
  case Type::HALF_FLOAT:
    return arrow::util::Float16::FromBits(as(uint16_t())).ToFloat();
  case Type::FLOAT:
    return as(float());
  case Type::DOUBLE:
    return as(double());
  default:
    return static_cast<double>(integerAt(bytes, id));
  }
}

/// A value of `from` as one of `to`: its bytes are the first ones of the result, on machines that
/// write the low byte first.
int64_t widened(const char *bytes, const DataType &from, const DataType &to) {
  int64_t result = 0;
  if (arrow::is_floating(to.id())) {
    const double value = floatAt(bytes, from.id());
    const auto narrow = static_cast<float>(value);
    std::memcpy(&result, to.id() == Type::FLOAT ? static_cast<const void *>(&narrow) : &value,
                to.id() == Type::FLOAT ? sizeof narrow : sizeof value);
    return result;
  }
  result = integerAt(bytes, from.id());
  if (from.id() == Type::UINT64 && to.id() == Type::INT64 && result < 0)
    throw Error("value " + std::to_string(static_cast<uint64_t>(result)) + " does not fit int64");
  if (!isDate(to.id()) && to.id() != Type::TIMESTAMP)
    return result;
  const int64_t factor = from.id() == Type::DATE32 ? 86'400 * unitsPerSecond(to)
                                                   : unitsPerSecond(to) / unitsPerSecond(from);
  int64_t units = 0;
  if (__builtin_mul_overflow(result, factor, &units))
    throw Error("time " + std::to_string(result) + " does not fit " + to.ToString());
  // Milliseconds of dates beside seconds: those of a day's begin are none.
  return factor == 0 ? result / (unitsPerSecond(from) / unitsPerSecond(to)) : units;
}

} // namespace

TypePtr plainType(const TypePtr &type) {
  if (type->id() == Type::DICTIONARY)
    return static_cast<const arrow::DictionaryType &>(*type).value_type();
  return type;
}

bool haveSameValues(const TypePtr &a, const TypePtr &b) {
  return valueType(a)->Equals(*valueType(b));
}

TypePtr commonKeyType(const TypePtr &a, const TypePtr &given) {
  const TypePtr b = plainType(given);
  const Type::type idA = a->id(), idB = b->id();
  if (haveSameValues(a, b) || idB == Type::NA)
    return a;
  if (idA == Type::NA)
    return b;
  if (isText(*a) && isText(*b))
    return arrow::binary();
  if (arrow::is_integer(idA) && arrow::is_integer(idB))
    return commonInteger(*a, *b);
  if ((arrow::is_integer(idA) || arrow::is_floating(idA)) &&
      (arrow::is_integer(idB) || arrow::is_floating(idB))) {
    const TypePtr floatA = floatOf(*a), floatB = floatOf(*b);
    return !floatA || !floatB ? nullptr : floatA->id() == Type::DOUBLE ? floatA : floatB;
  }
  const bool areTimes =
      (isDate(idA) || idA == Type::TIMESTAMP) && (isDate(idB) || idB == Type::TIMESTAMP);
  return areTimes ? commonTime(a, b) : nullptr;
}

void widenKey(ChunkColumn &column, const DataType &from, const DataType &to) {
  const bool isNull = from.id() == Type::NA;
  if (from.Equals(to) || isText(to) || (isNull && bytesOfValue(to) == 0))
    return;
  const int64_t size = bytesOfValue(to),
                count = static_cast<int64_t>(column.stringOffsets.size()) - 1;
  std::vector<char> bytes(static_cast<size_t>(count * size));
  for (int64_t row = 0; row < count; ++row) {
    if (!isNull && (column.valid.empty() || column.valid[row])) {
      const int64_t value = widened(column.bytes.data() + column.stringOffsets[row], from, to);
      std::memcpy(bytes.data() + row * size, &value, static_cast<size_t>(size));
    }
    column.stringOffsets[row] = row * size;
  }
  column.stringOffsets[count] = count * size;
  column.bytes = std::move(bytes);
}

} // namespace genrec::rt

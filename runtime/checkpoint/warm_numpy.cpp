//===- warm_numpy.cpp - Arrays of NumPy for a warm start ------------------===//
//
// The .npy format (numpy.org/doc/stable/reference/generated/numpy.lib.format.html): a magic, a
// version, the length of a header that is a Python dictionary, then the elements.
//
//===----------------------------------------------------------------------===//

#include "../core/aside_file.h"
#include "genrec_rt/error.h"
#include "genrec_rt/safetensors.h"
#include "warm_values.h"

#include <cstring>
#include <fstream>
#include <regex>

namespace genrec::rt {

namespace {

struct Array {
  std::string path, dtype;
  std::vector<int64_t> shape;
  int64_t begin = 0, elementBytes = 0;
};

struct NumpyType {
  const char *name, *dtype;
  int64_t bytes;
};
constexpr NumpyType kTypes[] = {{"<f4", "F32", 4}, {"<f8", "F64", 8}, {"<f2", "F16", 2},
                                {"<i8", "I64", 8}, {"<u8", "U64", 8}, {"<i4", "I32", 4},
                                {"<u4", "U32", 4}, {"<i2", "I16", 2}, {"<u2", "U16", 2},
                                {"|i1", "I8", 1},  {"|u1", "U8", 1}};

Error noArray(const std::string &path, const std::string &why) {
  return Error(path + ": is no .npy array: " + why, "write it by numpy.save");
}

std::string readHeader(std::ifstream &file, const std::string &path, int64_t &begin) {
  char magic[8];
  if (!file.read(magic, 8) || std::memcmp(magic, "\x93NUMPY", 6) != 0)
    throw noArray(path, "it does not begin with NumPy's mark");
  int bytes = magic[6] == 1 ? 2 : 4;
  unsigned char size[4] = {};
  file.read(reinterpret_cast<char *>(size), bytes);
  int64_t length = size[0] | size[1] << 8 | size[2] << 16 | int64_t(size[3]) << 24;
  if (!file || length > (1 << 20))
    throw noArray(path, "its header is truncated");
  std::string header(static_cast<size_t>(length), ' ');
  if (!file.read(header.data(), length))
    throw noArray(path, "its header is truncated");
  begin = 8 + bytes + length;
  return header;
}

/// "(3, 4)" as {3, 4}.
std::vector<int64_t> parseShape(const std::string &text, const std::string &path) {
  static const std::regex number("[0-9]+");
  std::vector<int64_t> shape;
  int64_t count = 1;
  for (std::sregex_iterator it(text.begin(), text.end(), number), end; it != end; ++it) {
    if (it->length() > 18 || __builtin_mul_overflow(count, std::stoll(it->str()), &count))
      throw noArray(path, "its shape is too large");
    shape.push_back(std::stoll(it->str()));
  }
  return shape;
}

Array openArray(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throwFileError("open", path);
  Array array;
  array.path = path;
  std::string header = readHeader(file, path, array.begin);
  std::smatch type, order, shape;
  static const std::regex typeOf("'descr' *: *'([^']*)'"),
      orderOf("'fortran_order' *: *(True|False)"), shapeOf("'shape' *: *\\(([^)]*)\\)");
  if (!std::regex_search(header, type, typeOf) || !std::regex_search(header, order, orderOf) ||
      !std::regex_search(header, shape, shapeOf))
    throw noArray(path, "its header lacks descr, fortran_order or shape (arrays of records are not "
                        "read)");
  for (const NumpyType &known : kTypes)
    if (type[1] == known.name) {
      array.dtype = known.dtype;
      array.elementBytes = known.bytes;
    }
  if (array.dtype.empty())
    throw Error(path + ": has elements of type '" + type[1].str() + "', which are not read",
                "save it as numpy.float32: numpy.save(path, array.astype(numpy.float32))");
  array.shape = parseShape(shape[1], path);
  if (order[1] == "True" && array.shape.size() > 1)
    throw Error(path + ": is stored column by column (fortran_order)",
                "save numpy.ascontiguousarray(array)");
  int64_t count = 1;
  for (int64_t size : array.shape)
    count *= size;
  file.seekg(0, std::ios::end);
  int64_t size = file.tellg();
  if (size - array.begin < count * array.elementBytes)
    throw Error(path + ": is truncated: its " + describeShape(array.shape) + " " + array.dtype +
                    " take " + std::to_string(count * array.elementBytes) + " bytes, it has " +
                    std::to_string(size - array.begin),
                "write it again");
  return array;
}

template <class From, class To>
void readAs(std::ifstream &file, const Array &array, int64_t count, To *to) {
  std::vector<From> block(static_cast<size_t>(count));
  if (!file.read(reinterpret_cast<char *>(block.data()),
                 count * static_cast<int64_t>(sizeof(From))))
    throw Error(array.path + ": cannot be read");
  for (int64_t i = 0; i < count; ++i)
    to[i] = static_cast<To>(block[i]);
}

template <class To> void readElements(const Array &array, int64_t first, int64_t count, To *to) {
  std::ifstream file(array.path, std::ios::binary);
  file.seekg(array.begin + first * array.elementBytes);
  const std::string &type = array.dtype;
  if (type == "F32")
    return readAs<float>(file, array, count, to);
  if (type == "F64")
    return readAs<double>(file, array, count, to);
  if (type == "F16")
    return readAs<_Float16>(file, array, count, to);
  if (type == "I64")
    return readAs<int64_t>(file, array, count, to);
  if (type == "U64")
    return readAs<uint64_t>(file, array, count, to);
  if (type == "I32")
    return readAs<int32_t>(file, array, count, to);
  if (type == "U32")
    return readAs<uint32_t>(file, array, count, to);
  if (type == "I16")
    return readAs<int16_t>(file, array, count, to);
  if (type == "U16")
    return readAs<uint16_t>(file, array, count, to);
  return type == "I8" ? readAs<int8_t>(file, array, count, to)
                      : readAs<uint8_t>(file, array, count, to);
}

} // namespace

WarmValues readNumpy(const std::string &path, const std::string &ids) {
  Array array = openArray(path);
  WarmValues values;
  values.source = path;
  values.dtype = array.dtype;
  values.shape = array.shape;
  values.read = [array](int64_t first, int64_t count, float *to) {
    readElements(array, first, count, to);
  };
  if (ids.empty())
    return values;
  Array numbers = openArray(ids);
  values.idType = numbers.dtype;
  values.idShape = numbers.shape;
  values.readIds = [numbers](int64_t first, int64_t count, int64_t *to) {
    readElements(numbers, first, count, to);
  };
  return values;
}

} // namespace genrec::rt

//===- safetensors.cpp - Named tensors in one file ------------------------===//

#include "genrec_rt/safetensors.h"

#include "../core/text.h"
#include "aside_file.h"
#include "genrec_rt/error.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <set>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace genrec::rt {

namespace {

using Json = nlohmann::ordered_json;

/// Readers of the format refuse longer headers.
constexpr int64_t kMostHeaderBytes = 100 << 20;

int64_t countOf(const std::vector<int64_t> &shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

/// Bytes of one element, 0 for a type that is not known.
int64_t bytesOf(const std::string &dtype) {
  if (dtype == "F64" || dtype == "I64" || dtype == "U64")
    return 8;
  if (dtype == "F32" || dtype == "I32" || dtype == "U32")
    return 4;
  if (dtype == "F16" || dtype == "BF16" || dtype == "I16" || dtype == "U16")
    return 2;
  if (dtype == "I8" || dtype == "U8" || dtype == "BOOL")
    return 1;
  return 0;
}

float fromHalf(uint16_t bits) {
  _Float16 half;
  std::memcpy(&half, &bits, sizeof half);
  return static_cast<float>(half);
}

float fromBf16(uint16_t bits) {
  uint32_t word = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

template <class From, class To, class F>
void convert(const std::vector<char> &bytes, int64_t count, To *to, const F &f) {
  for (int64_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, bytes.data() + i * static_cast<int64_t>(sizeof(From)), sizeof value);
    to[i] = static_cast<To>(f(value));
  }
}

constexpr auto kAsIs = [](auto value) { return value; };

} // namespace

//===-- writing -----------------------------------------------------------===//

void SafetensorsWriter::add(const std::string &name, const float *values,
                            std::vector<int64_t> shape) {
  int64_t bytes = countOf(shape) * 4;
  add(name, "F32", std::move(shape), [=](const Put &put) { put(values, bytes); });
}

void SafetensorsWriter::add(const std::string &name, const int64_t *values,
                            std::vector<int64_t> shape) {
  int64_t bytes = countOf(shape) * 8;
  add(name, "I64", std::move(shape), [=](const Put &put) { put(values, bytes); });
}

void SafetensorsWriter::add(const std::string &name, const std::string &dtype,
                            std::vector<int64_t> shape, Fill fill) {
  tensors.push_back({name, dtype, std::move(shape), std::move(fill)});
}

SafetensorsWriter
SafetensorsWriter::filtered(const std::function<bool(const std::string &)> &keep) const {
  SafetensorsWriter chosen;
  chosen.notes = notes;
  for (const Tensor &tensor : tensors)
    if (keep(tensor.name))
      chosen.tensors.push_back(tensor);
  return chosen;
}

std::string SafetensorsWriter::header() const {
  Json header = Json::object();
  if (!notes.empty())
    header["__metadata__"] = notes;
  int64_t offset = 0;
  for (const Tensor &tensor : tensors) {
    if (header.contains(tensor.name))
      throw Error("two tensors of the model are called '" + tensor.name + "'",
                  "rename the parameter or table in the model");
    int64_t bytes = countOf(tensor.shape) * bytesOf(tensor.dtype);
    header[tensor.name] = {{"dtype", tensor.dtype},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' '); // tensors begin at a multiple of 8
  return text;
}

int64_t SafetensorsWriter::write(const std::string &path) const {
  std::string text = header();
  auto length = static_cast<uint64_t>(text.size());
  AsideFile file(path);
  file.write(&length, sizeof length);
  file.write(text.data(), static_cast<int64_t>(text.size()));
  int64_t size = 8 + static_cast<int64_t>(text.size());
  for (const Tensor &tensor : tensors) {
    int64_t written = 0;
    tensor.fill([&](const void *data, int64_t bytes) {
      file.write(data, bytes);
      written += bytes;
    });
    if (written != countOf(tensor.shape) * bytesOf(tensor.dtype))
      throw std::logic_error("tensor '" + tensor.name + "' has another size than its header says");
    size += written;
  }
  file.commit();
  return size;
}

//===-- reading -----------------------------------------------------------===//

int64_t SafetensorsReader::Tensor::count() const { return countOf(shape); }

std::string describeShape(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

std::string describe(const SafetensorsReader::Tensor &tensor) {
  return tensor.dtype + " " + describeShape(tensor.shape);
}

SafetensorsReader::SafetensorsReader(const std::string &path) : name(path) {
  descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    throwFileError("open", path);
  try {
    struct stat status{};
    if (fstat(descriptor, &status) != 0)
      throwFileError("read", path);
    int64_t size = status.st_size;
    uint64_t length = 0;
    if (size < 8 || pread(descriptor, &length, 8, 0) != 8)
      throw Error(path + ": is no safetensors file: it has " + std::to_string(size) + " bytes");
    if (length > static_cast<uint64_t>(std::min(size - 8, kMostHeaderBytes)))
      throw Error(path + ": is no safetensors file or truncated: its header should have " +
                  std::to_string(length) + " bytes, the file has " + std::to_string(size));
    std::string header(length, ' ');
    if (pread(descriptor, header.data(), length, 8) != static_cast<ssize_t>(length))
      throwFileError("read", path);
    parse(header, 8 + static_cast<int64_t>(length), size);
  } catch (...) {
    close(descriptor);
    throw;
  }
}

SafetensorsReader::~SafetensorsReader() { close(descriptor); }

void SafetensorsReader::parse(const std::string &header, int64_t dataBegin, int64_t size) {
  auto broken = [&](const std::string &why) { return Error(name + ": broken header: " + why); };
  Json json = Json::parse(header, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    throw broken("no JSON object");
  for (const auto &[key, value] : json.items()) {
    if (key == "__metadata__")
      continue;
    bool isSound = value.is_object() && value.contains("dtype") && value["dtype"].is_string() &&
                   value.contains("shape") && value["shape"].is_array() &&
                   value.contains("data_offsets") && value["data_offsets"].is_array() &&
                   value["data_offsets"].size() == 2;
    if (!isSound)
      throw broken("tensor '" + key + "' lacks dtype, shape or data_offsets");
    Tensor tensor;
    tensor.dtype = value["dtype"];
    int64_t count = 1;
    for (const Json &entry : value["shape"]) {
      if (!entry.is_number_unsigned() ||
          __builtin_mul_overflow(count, entry.get<int64_t>(), &count))
        throw broken("tensor '" + key + "' has a broken shape");
      tensor.shape.push_back(entry);
    }
    for (const Json &entry : value["data_offsets"])
      if (!entry.is_number_unsigned() || entry.get<uint64_t>() > (uint64_t(1) << 62))
        throw broken("tensor '" + key + "' has broken offsets");
    tensor.begin = dataBegin + value["data_offsets"][0].get<int64_t>();
    tensor.end = dataBegin + value["data_offsets"][1].get<int64_t>();
    int64_t bytes = 0;
    if (tensor.begin > tensor.end || __builtin_mul_overflow(count, bytesOf(tensor.dtype), &bytes) ||
        (bytesOf(tensor.dtype) > 0 && tensor.end - tensor.begin != bytes))
      throw broken("tensor '" + key + "' is " + describe(tensor) + " and has " +
                   std::to_string(tensor.end - tensor.begin) + " bytes");
    if (tensor.end > size)
      throw Error(name + ": is truncated: tensor '" + key + "' ends at byte " +
                  std::to_string(tensor.end) + ", the file has " + std::to_string(size));
    found[key] = std::move(tensor);
  }
}

const SafetensorsReader::Tensor &SafetensorsReader::tensor(const std::string &wanted) const {
  auto entry = found.find(wanted);
  if (entry != found.end())
    return entry->second;
  std::vector<std::string> names;
  for (const auto &[key, value] : found)
    names.push_back(key);
  throw Error(name + ": has no tensor '" + wanted + "'; it has " + listNames(names),
              suggestion(wanted, names));
}

std::vector<char> SafetensorsReader::readBytes(const Tensor &tensor, int64_t first, int64_t count,
                                               int64_t elementBytes) const {
  std::vector<char> bytes(static_cast<size_t>(count * elementBytes));
  int64_t at = tensor.begin + first * elementBytes, done = 0;
  while (done < static_cast<int64_t>(bytes.size())) {
    ssize_t got =
        pread(descriptor, bytes.data() + done, bytes.size() - static_cast<size_t>(done), at + done);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      throwFileError("read", name);
    if (got == 0)
      throw Error(name + ": is truncated");
    done += got;
  }
  return bytes;
}

void SafetensorsReader::readFloats(const std::string &wanted, int64_t first, int64_t count,
                                   float *to) const {
  const Tensor &from = tensor(wanted);
  std::vector<char> bytes = readBytes(from, first, count, bytesOf(from.dtype));
  if (from.dtype == "F32")
    return convert<float>(bytes, count, to, kAsIs);
  if (from.dtype == "F64")
    return convert<double>(bytes, count, to, kAsIs);
  if (from.dtype == "F16")
    return convert<uint16_t>(bytes, count, to, fromHalf);
  if (from.dtype == "BF16")
    return convert<uint16_t>(bytes, count, to, fromBf16);
  throw Error(name + ": tensor '" + wanted + "' is " + describe(from) + ", floats are read");
}

void SafetensorsReader::readIntegers(const std::string &wanted, int64_t first, int64_t count,
                                     int64_t *to) const {
  const Tensor &from = tensor(wanted);
  std::vector<char> bytes = readBytes(from, first, count, bytesOf(from.dtype));
  if (from.dtype == "I64")
    return convert<int64_t>(bytes, count, to, kAsIs);
  if (from.dtype == "I32")
    return convert<int32_t>(bytes, count, to, kAsIs);
  if (from.dtype == "U32")
    return convert<uint32_t>(bytes, count, to, kAsIs);
  throw Error(name + ": tensor '" + wanted + "' is " + describe(from) + ", integers are read");
}

} // namespace genrec::rt

//===- safetensors_reader.cpp - Reading named tensors ---------------------===//

#include "../core/aside_file.h"
#include "../core/checksum.h"
#include "../core/text.h"
#include "element_types.h"
#include "genrec_rt/error.h"
#include "genrec_rt/kernels/shared/row_values.h"
#include "genrec_rt/safetensors.h"
#include "json_fields.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace genrec::rt {

namespace {

/// Readers of the format refuse longer headers.
constexpr int64_t kMostHeaderBytes = 100 << 20;
constexpr int64_t kMostNumber = INT64_MAX;

float fromHalf(uint16_t bits) {
  _Float16 half;
  std::memcpy(&half, &bits, sizeof half);
  return static_cast<float>(half);
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

int64_t blocksOf(int64_t bytes) {
  return (bytes + TensorDigest::kBlockBytes - 1) / TensorDigest::kBlockBytes;
}

} // namespace

/// Which blocks of a tensor agreed with their checksums, and the one read last.
struct SafetensorsReader::Progress {
  explicit Progress(int64_t blocks) : isSound(static_cast<size_t>(blocks)) {}
  std::vector<bool> isSound;
  int64_t block = -1;
  std::vector<char> bytes;
};

int64_t SafetensorsReader::Tensor::count() const { return countOf(shape).value_or(0); }

std::string describeShape(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

std::string describe(const SafetensorsReader::Tensor &tensor) {
  return tensor.dtype + " " + describeShape(tensor.shape);
}

SafetensorsReader::SafetensorsReader(const std::string &path) : SafetensorsReader(path, {}) {}

SafetensorsReader::SafetensorsReader(const std::string &path, const Checks &checks)
    : SafetensorsReader(::open(path.c_str(), O_RDONLY | O_CLOEXEC), path, checks) {}

SafetensorsReader::SafetensorsReader(int opened, const std::string &path, const Checks &checks)
    : name(path), descriptor(opened), checks(checks) {
  if (descriptor < 0)
    throwFileError("open", path);
  try {
    readHeader();
  } catch (...) {
    close(descriptor);
    throw;
  }
}

SafetensorsReader::~SafetensorsReader() { close(descriptor); }

//===-- the header ----------------------------------------------------------===//

void SafetensorsReader::readHeader() {
  struct stat status{};
  if (fstat(descriptor, &status) != 0)
    throwFileError("read", name);
  int64_t size = status.st_size;
  if (!S_ISREG(status.st_mode))
    throw Error(name + ": is no safetensors file: it is no file but a folder or the like");
  if (size < 8)
    throw Error(name + ": is no safetensors file: it has " + std::to_string(size) + " bytes");
  if (checks.digest && checks.digest->bytes != size)
    throw Error(name + ": is damaged: it has " + std::to_string(size) +
                " bytes, the manifest says " + std::to_string(checks.digest->bytes));
  uint64_t length = 0;
  readAt(0, 8, reinterpret_cast<char *>(&length));
  if (length > static_cast<uint64_t>(std::min(size - 8, kMostHeaderBytes)))
    throw Error(name + ": is no safetensors file or truncated: its header should have " +
                std::to_string(length) + " bytes, the file has " + std::to_string(size));
  std::string header(8 + length, ' ');
  readAt(0, static_cast<int64_t>(header.size()), header.data());
  if (checks.digest && checks.digest->header != checksumOf(header))
    throw Error(name + ": is damaged: its header has another checksum than the manifest says");
  parse(header.substr(8), 8 + static_cast<int64_t>(length), size);
}

void SafetensorsReader::parse(const std::string &header, int64_t dataBegin, int64_t size) {
  JsonDocument document(header, name, "broken header");
  for (const auto &[key, fields] : document.root().members()) {
    if (key == "__metadata__")
      continue;
    Tensor tensor;
    tensor.dtype = fields.text("dtype");
    int64_t width = bytesOf(tensor.dtype);
    if (width == 0)
      throw fields.error("dtype", "is '" + tensor.dtype + "', which safetensors do not have");
    tensor.shape = fields.integers("shape", 0, kMostNumber);
    std::vector<int64_t> offsets = fields.integers("data_offsets", 0, kMostNumber);
    if (offsets.size() != 2 || offsets[0] > offsets[1])
      throw fields.error("data_offsets", "is no pair of a begin and an end");
    if (offsets[1] > size - dataBegin)
      throw Error(
          name + ": is truncated: tensor '" + key + "' ends at byte " +
          std::to_string(static_cast<uint64_t>(dataBegin) + static_cast<uint64_t>(offsets[1])) +
          ", the file has " + std::to_string(size));
    std::optional<int64_t> count = countOf(tensor.shape);
    int64_t bytes = 0;
    if (!count || __builtin_mul_overflow(*count, width, &bytes) || bytes != offsets[1] - offsets[0])
      throw Error(name + ": broken header: tensor '" + key + "' is " + describe(tensor) +
                  " and has " + std::to_string(offsets[1] - offsets[0]) + " bytes");
    tensor.begin = dataBegin + offsets[0];
    tensor.end = dataBegin + offsets[1];
    found[key] = std::move(tensor);
  }
  requireTiling(dataBegin, size);
}

/// Tensors that overlap would be one tensor's bytes read as another's; gaps hide what nothing
/// accounts for.
void SafetensorsReader::requireTiling(int64_t dataBegin, int64_t size) const {
  std::vector<const std::pair<const std::string, Tensor> *> order;
  for (const auto &entry : found)
    order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](auto *a, auto *b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  int64_t at = dataBegin;
  for (const auto *entry : order) {
    if (entry->second.begin != at)
      throw Error(name + ": broken header: tensor '" + entry->first + "' begins at byte " +
                  std::to_string(entry->second.begin) + ", the one before it ends at " +
                  std::to_string(at));
    at = entry->second.end;
  }
  if (at != size)
    throw Error(name + ": broken header: the tensors end at byte " + std::to_string(at) +
                ", the file at " + std::to_string(size));
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

//===-- tensors ---------------------------------------------------------------===//

void SafetensorsReader::readAt(int64_t offset, int64_t count, char *to) const {
  bytes += count;
  for (int64_t done = 0; done < count;) {
    ssize_t got = pread(descriptor, to + done, static_cast<size_t>(count - done), offset + done);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      throwFileError("read", name);
    if (got == 0)
      throw Error(name + ": is truncated");
    done += got;
  }
}

const std::vector<char> &SafetensorsReader::verifiedBlock(const std::string &wanted,
                                                          const Tensor &from, int64_t block) const {
  int64_t blocks = blocksOf(from.end - from.begin);
  auto &progress = verified[wanted];
  if (!progress)
    progress = std::make_unique<Progress>(blocks);
  if (progress->block == block)
    return progress->bytes;
  auto sums = checks.digest->blocks.find(wanted);
  if (sums == checks.digest->blocks.end() || static_cast<int64_t>(sums->second.size()) != blocks)
    throw Error(name + ": is damaged: the manifest has other blocks of tensor '" + wanted + "'");
  int64_t begin = from.begin + block * TensorDigest::kBlockBytes;
  int64_t end = std::min(from.end, begin + TensorDigest::kBlockBytes);
  progress->block = -1;
  progress->bytes.resize(static_cast<size_t>(end - begin));
  readAt(begin, end - begin, progress->bytes.data());
  if (checksumOf(progress->bytes.data(), end - begin) != sums->second[static_cast<size_t>(block)])
    throw Error(name + ": is damaged: bytes " + std::to_string(begin) + " to " +
                std::to_string(end) + ", of tensor '" + wanted +
                "', have another checksum than the manifest says");
  progress->isSound[static_cast<size_t>(block)] = true;
  progress->block = block;
  return progress->bytes;
}

/// Bytes [begin, end) of the file, which are a tensor's.
void SafetensorsReader::readBytes(const std::string &wanted, const Tensor &from, int64_t begin,
                                  int64_t end, char *to) const {
  if (!checks.digest)
    return readAt(begin, end - begin, to);
  while (begin < end) {
    int64_t block = (begin - from.begin) / TensorDigest::kBlockBytes;
    int64_t within = begin - from.begin - block * TensorDigest::kBlockBytes;
    const std::vector<char> &bytes = verifiedBlock(wanted, from, block);
    int64_t taken = std::min(end - begin, static_cast<int64_t>(bytes.size()) - within);
    std::memcpy(to, bytes.data() + within, static_cast<size_t>(taken));
    to += taken;
    begin += taken;
  }
  if (end == from.end) // tensors are read from front to back
    if (auto entry = verified.find(wanted); entry != verified.end()) {
      entry->second->block = -1;
      entry->second->bytes = {};
    }
}

void SafetensorsReader::verifyRest(int32_t part, int32_t parts) const {
  if (!checks.digest)
    return;
  for (const auto &[wanted, from] : found) {
    int64_t blocks = blocksOf(from.end - from.begin);
    for (int64_t block = blocks * part / parts; block < blocks * (part + 1) / parts; ++block) {
      auto entry = verified.find(wanted);
      if (entry == verified.end() || !entry->second->isSound[static_cast<size_t>(block)])
        verifiedBlock(wanted, from, block);
    }
    verified.erase(wanted);
  }
  for (const auto &[wanted, sums] : checks.digest->blocks)
    if (!found.count(wanted))
      throw Error(name + ": is damaged: it lacks tensor '" + wanted +
                  "', which the manifest names");
}

std::vector<char> SafetensorsReader::readElements(const std::string &wanted, const Tensor &from,
                                                  int64_t first, int64_t count) const {
  if (first < 0 || count < 0 || first > from.count() || count > from.count() - first)
    throw Error(name + ": tensor '" + wanted + "' is " + describe(from) + ", elements " +
                std::to_string(first) + " and " + std::to_string(count) + " more are read");
  int64_t width = bytesOf(from.dtype);
  std::vector<char> bytes(static_cast<size_t>(count * width));
  int64_t begin = from.begin + first * width;
  readBytes(wanted, from, begin, begin + count * width, bytes.data());
  return bytes;
}

void SafetensorsReader::readFloats(const std::string &wanted, int64_t first, int64_t count,
                                   float *to) const {
  const Tensor &from = tensor(wanted);
  const std::string &type = from.dtype;
  if (type != "F32" && type != "F64" && type != "F16" && type != "BF16")
    throw Error(name + ": tensor '" + wanted + "' is " + describe(from) + ", floats are read");
  std::vector<char> bytes = readElements(wanted, from, first, count);
  if (type == "F32")
    convert<float>(bytes, count, to, kAsIs);
  else if (type == "F64")
    convert<double>(bytes, count, to, kAsIs);
  else if (type == "F16")
    convert<uint16_t>(bytes, count, to, fromHalf);
  else
    convert<kernels::Bf16>(bytes, count, to, [](kernels::Bf16 x) { return kernels::widened(x); });
  for (int64_t i = 0; checks.finiteOnly && i < count; ++i)
    if (!std::isfinite(to[i])) {
      int64_t rows = from.shape.empty() ? 1 : std::max<int64_t>(from.shape[0], 1);
      int64_t rowElements = std::max<int64_t>(from.count() / rows, 1);
      throw Error(name + ": tensor '" + wanted + "' holds " +
                      (std::isnan(to[i]) ? "a NaN" : "an infinity") + " in row " +
                      std::to_string((first + i) / rowElements),
                  "use weights that are finite");
    }
}

void SafetensorsReader::readIntegers(const std::string &wanted, int64_t first, int64_t count,
                                     int64_t *to) const {
  const Tensor &from = tensor(wanted);
  const std::string &type = from.dtype;
  if (type != "I64" && type != "I32" && type != "U32")
    throw Error(name + ": tensor '" + wanted + "' is " + describe(from) + ", integers are read");
  std::vector<char> bytes = readElements(wanted, from, first, count);
  if (type == "I64")
    convert<int64_t>(bytes, count, to, kAsIs);
  else if (type == "I32")
    convert<int32_t>(bytes, count, to, kAsIs);
  else
    convert<uint32_t>(bytes, count, to, kAsIs);
}

} // namespace genrec::rt

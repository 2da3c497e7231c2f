//===- safetensors_writer.cpp - Writing named tensors ---------------------===//

#include "../core/aside_file.h"
#include "../core/checksum.h"
#include "../core/json.h"
#include "element_types.h"
#include "genrec_rt/error.h"
#include "genrec_rt/safetensors.h"
#include "non_finite.h"

#include <algorithm>

namespace genrec::rt {

namespace {

int64_t sizeOf(const std::string &name, const std::string &dtype,
               const std::vector<int64_t> &shape) {
  std::optional<int64_t> count = countOf(shape);
  int64_t bytes = 0;
  if (!count || __builtin_mul_overflow(*count, bytesOf(dtype), &bytes))
    throw Error("tensor '" + name + "' is too large: " + dtype + " " + describeShape(shape));
  return bytes;
}

/// Cuts one tensor's bytes into blocks, notes their checksums and writes them.
class BlockWriter {
public:
  BlockWriter(AsideFile &file, TensorDigest &digest, std::string &buffer, const std::string &name,
              int64_t floatBytes, int64_t rowElements, bool finiteOnly)
      : file(file), digest(digest), sums(digest.blocks[name]), buffer(buffer), name(name),
        floatBytes(floatBytes), rowElements(rowElements), finiteOnly(finiteOnly) {}

  void put(const char *data, int64_t bytes) {
    while (bytes > 0) {
      if (buffer.empty() && bytes >= TensorDigest::kBlockBytes) { // without a copy
        close(data, TensorDigest::kBlockBytes);
        data += TensorDigest::kBlockBytes;
        bytes -= TensorDigest::kBlockBytes;
        continue;
      }
      int64_t room = TensorDigest::kBlockBytes - static_cast<int64_t>(buffer.size());
      int64_t taken = std::min(room, bytes);
      buffer.append(data, static_cast<size_t>(taken));
      data += taken;
      bytes -= taken;
      if (static_cast<int64_t>(buffer.size()) == TensorDigest::kBlockBytes)
        flush();
    }
  }

  void flush() {
    if (buffer.empty())
      return;
    close(buffer.data(), static_cast<int64_t>(buffer.size()));
    buffer.clear();
  }

  int64_t written = 0;

private:
  void close(const char *data, int64_t bytes) {
    if (floatBytes)
      noteNonFinite(digest, {name, rowElements, written, floatBytes}, data, bytes, finiteOnly);
    sums.push_back(checksumOf(data, bytes));
    file.write(data, bytes);
    written += bytes;
  }

  AsideFile &file;
  TensorDigest &digest;
  std::vector<uint64_t> &sums;
  std::string &buffer;
  const std::string &name;
  int64_t floatBytes; ///< of an element; 0: elements are no floats
  int64_t rowElements;
  bool finiteOnly;
};

} // namespace

void SafetensorsWriter::add(const std::string &name, const float *values,
                            std::vector<int64_t> shape) {
  int64_t bytes = sizeOf(name, "F32", shape);
  add(name, "F32", std::move(shape), [=](const Put &put) { put(values, bytes); });
}

void SafetensorsWriter::add(const std::string &name, const int64_t *values,
                            std::vector<int64_t> shape) {
  int64_t bytes = sizeOf(name, "I64", shape);
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
    int64_t end = 0;
    if (__builtin_add_overflow(offset, sizeOf(tensor.name, tensor.dtype, tensor.shape), &end))
      throw Error("the tensors are too large for one file");
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = toText(header);
  text.resize((text.size() + 7) / 8 * 8, ' '); // tensors begin at a multiple of 8
  auto length = static_cast<uint64_t>(text.size());
  return std::string(reinterpret_cast<const char *>(&length), sizeof length) + text;
}

TensorDigest SafetensorsWriter::writeWithDigest(const std::string &path, bool finiteOnly) const {
  AsideFile file(path);
  TensorDigest digest = writeAside(file, finiteOnly);
  file.commit();
  return digest;
}

TensorDigest SafetensorsWriter::writeAside(AsideFile &file, bool finiteOnly) const {
  std::string text = header(), buffer;
  file.write(text.data(), static_cast<int64_t>(text.size()));
  TensorDigest digest;
  digest.header = checksumOf(text);
  digest.bytes = static_cast<int64_t>(text.size());
  for (const Tensor &tensor : tensors) {
    int64_t rowElements = 1;
    for (size_t i = 1; i < tensor.shape.size(); ++i)
      rowElements *= tensor.shape[i];
    BlockWriter blocks(file, digest, buffer, tensor.name,
                       isStoredFloat(tensor.dtype) ? bytesOf(tensor.dtype) : 0, rowElements,
                       finiteOnly);
    tensor.fill([&](const void *data, int64_t bytes) {
      blocks.put(static_cast<const char *>(data), bytes);
    });
    blocks.flush();
    if (blocks.written != sizeOf(tensor.name, tensor.dtype, tensor.shape))
      throw std::logic_error("tensor '" + tensor.name + "' has another size than its header says");
    digest.bytes += blocks.written;
  }
  return digest;
}

} // namespace genrec::rt

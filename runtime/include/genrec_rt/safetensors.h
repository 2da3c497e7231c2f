//===- safetensors.h - Named tensors in one file -----------------*- C++ -*-===//
//
// The safetensors format (github.com/huggingface/safetensors): 8 bytes with the
// length of a JSON header, the header {name: {dtype, shape, data_offsets}}, then
// raw little-endian row-major tensors, one behind the other without gaps.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_SAFETENSORS_H
#define GENREC_RT_SAFETENSORS_H

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace genrec::rt {

class AsideFile;

/// Checksums (XXH3, 64 bits) of a file of tensors, by which damage is found when it is read.
struct TensorDigest {
  /// Bytes of a tensor that one checksum is about; the last block of a tensor may be shorter.
  static constexpr int64_t kBlockBytes = 1 << 20;

  int64_t bytes = 0;                                   ///< of the file
  uint64_t header = 0;                                 ///< of all bytes before the tensors
  std::map<std::string, std::vector<uint64_t>> blocks; ///< by tensor
  std::string notFinite; ///< of the first NaN or infinity: "tensor 'x', row 3"; "" for none
};

/// Collects tensors, then writes them to a file in one go.
class SafetensorsWriter {
public:
  /// Takes the next piece of a tensor's bytes.
  using Put = std::function<void(const void *data, int64_t bytes)>;
  /// Hands a tensor's bytes to Put, piece by piece.
  using Fill = std::function<void(const Put &put)>;

  /// A tensor in memory, which must stay until `write`.
  void add(const std::string &name, const float *values, std::vector<int64_t> shape);
  void add(const std::string &name, const int64_t *values, std::vector<int64_t> shape);
  /// A tensor made when it is written; `dtype` is "F32", "BF16" or "I64".
  void add(const std::string &name, const std::string &dtype, std::vector<int64_t> shape,
           Fill fill);
  /// The tensors whose names `keep` chooses.
  SafetensorsWriter filtered(const std::function<bool(const std::string &)> &keep) const;
  /// Text kept beside the tensors.
  void note(const std::string &key, const std::string &value) { notes[key] = value; }

  /// Writes beside `path`, then renames, so that the file is whole or not there.
  /// Error, naming the file and the reason, where that fails. Returns the size.
  int64_t write(const std::string &path) const { return writeWithDigest(path).bytes; }
  /// The same, with the checksums of what was written. With `finiteOnly` the first NaN or
  /// infinity among the floats ends it with an Error, and no file is left.
  TensorDigest writeWithDigest(const std::string &path, bool finiteOnly = false) const;
  /// The same into a file that the caller commits.
  TensorDigest writeAside(AsideFile &file, bool finiteOnly = false) const;
  /// The bytes before the tensors. Error where two have one name, or the file would be too large.
  std::string header() const;

private:
  struct Tensor {
    std::string name, dtype;
    std::vector<int64_t> shape;
    Fill fill;
  };

  std::vector<Tensor> tensors;
  std::map<std::string, std::string> notes;
};

/// A file's tensors. The header is checked against the file's size when opened: types are known,
/// shapes agree with bytes, and the tensors fill the file without gaps or overlaps.
class SafetensorsReader {
public:
  struct Tensor {
    std::string dtype;
    std::vector<int64_t> shape;
    int64_t begin = 0, end = 0; ///< bytes in the file
    int64_t count() const;      ///< elements
  };

  /// What to hold a file to beyond its own header.
  struct Checks {
    const TensorDigest *digest = nullptr; ///< must outlive the reader
    bool finiteOnly = false;              ///< a NaN or an infinity among floats is an Error
  };

  /// Error where the file cannot be read, is truncated or has a broken header.
  explicit SafetensorsReader(const std::string &path);
  SafetensorsReader(const std::string &path, const Checks &checks);
  /// The same with a descriptor, which the reader closes; `path` is for messages.
  SafetensorsReader(int descriptor, const std::string &path, const Checks &checks);
  ~SafetensorsReader();
  SafetensorsReader(const SafetensorsReader &) = delete;
  SafetensorsReader &operator=(const SafetensorsReader &) = delete;

  const std::string &path() const { return name; }
  const std::map<std::string, Tensor> &tensors() const { return found; }
  bool has(const std::string &tensor) const { return found.count(tensor) != 0; }
  /// Error, listing what the file holds, where it has no such tensor.
  const Tensor &tensor(const std::string &tensor) const;

  /// Elements [first, first + count) as floats (from F32, F64, F16, BF16).
  void readFloats(const std::string &tensor, int64_t first, int64_t count, float *to) const;
  /// The same as integers (from I64, I32, U8, …).
  void readIntegers(const std::string &tensor, int64_t first, int64_t count, int64_t *to) const;
  /// Error where a block of any tensor has another checksum than the digest says. What was read
  /// before was held to it already and is not read again. Of several readers of one file, the
  /// `part`-th of `parts` looks at its part of each tensor alone.
  void verifyRest(int32_t part = 0, int32_t parts = 1) const;
  /// Of tensors, so far.
  int64_t bytesRead() const { return bytes; }

private:
  struct Progress;

  void readHeader();
  void parse(const std::string &header, int64_t dataBegin, int64_t size);
  void requireTiling(int64_t dataBegin, int64_t size) const;
  void readAt(int64_t offset, int64_t count, char *to) const;
  void readBytes(const std::string &name, const Tensor &tensor, int64_t begin, int64_t end,
                 char *to) const;
  const std::vector<char> &verifiedBlock(const std::string &name, const Tensor &tensor,
                                         int64_t block) const;
  std::vector<char> readElements(const std::string &name, const Tensor &tensor, int64_t first,
                                 int64_t count) const;

  std::string name;
  int descriptor = -1;
  Checks checks;
  std::map<std::string, Tensor> found;
  mutable std::map<std::string, std::unique_ptr<Progress>> verified;
  mutable int64_t bytes = 0;
};

/// "F32 [3, 4]".
std::string describe(const SafetensorsReader::Tensor &tensor);
/// "[3, 4]"
std::string describeShape(const std::vector<int64_t> &shape);

} // namespace genrec::rt

#endif // GENREC_RT_SAFETENSORS_H

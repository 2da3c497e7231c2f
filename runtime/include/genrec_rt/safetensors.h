//===- safetensors.h - Named tensors in one file -----------------*- C++ -*-===//
//
// The safetensors format (github.com/huggingface/safetensors): 8 bytes with the
// length of a JSON header, the header {name: {dtype, shape, data_offsets}}, then
// raw little-endian row-major tensors.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_SAFETENSORS_H
#define GENREC_RT_SAFETENSORS_H

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace genrec::rt {

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
  /// A tensor made when it is written; `dtype` is "F32" or "I64".
  void add(const std::string &name, const std::string &dtype, std::vector<int64_t> shape,
           Fill fill);
  /// The tensors whose names `keep` chooses.
  SafetensorsWriter filtered(const std::function<bool(const std::string &)> &keep) const;
  /// Text kept beside the tensors.
  void note(const std::string &key, const std::string &value) { notes[key] = value; }

  /// Writes beside `path`, then renames, so that the file is whole or not there.
  /// Error, naming the file and the reason, where that fails. Returns the size.
  int64_t write(const std::string &path) const;

private:
  struct Tensor {
    std::string name, dtype;
    std::vector<int64_t> shape;
    Fill fill;
  };

  std::string header() const;

  std::vector<Tensor> tensors;
  std::map<std::string, std::string> notes;
};

/// A file's tensors. The header is checked against the file's size when opened.
class SafetensorsReader {
public:
  struct Tensor {
    std::string dtype;
    std::vector<int64_t> shape;
    int64_t begin = 0, end = 0; ///< bytes in the file
    int64_t count() const;      ///< elements
  };

  /// Error where the file cannot be read, is truncated or has a broken header.
  explicit SafetensorsReader(const std::string &path);
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

private:
  void parse(const std::string &header, int64_t dataBegin, int64_t size);
  std::vector<char> readBytes(const Tensor &tensor, int64_t first, int64_t count,
                              int64_t elementBytes) const;

  std::string name;
  int descriptor = -1;
  std::map<std::string, Tensor> found;
};

/// "F32 [3, 4]".
std::string describe(const SafetensorsReader::Tensor &tensor);
/// "[3, 4]"
std::string describeShape(const std::vector<int64_t> &shape);

} // namespace genrec::rt

#endif // GENREC_RT_SAFETENSORS_H

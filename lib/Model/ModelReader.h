//===- ModelReader.h - a verified FlatBuffers model from bytes --*- C++ -*-===//

#ifndef GENREC_LIB_MODEL_MODELREADER_H
#define GENREC_LIB_MODEL_MODELREADER_H

#include "genrec/Model/model_generated.h"

#include "mlir/IR/Location.h"

#include <memory>
#include <optional>

namespace genrec {

/// A model file verified by FlatBuffers: every offset and string lies within the buffer. The values
/// are not checked.
class ModelReader {
public:
  /// Copies `data` if its alignment is not what FlatBuffers needs; otherwise `data` must outlive
  /// the reader.
  ModelReader(const void *data, size_t size);

  /// The model; null after a diagnostic at `location` if the bytes are not a valid model file.
  const schema::Model *read(mlir::Location location);

private:
  std::unique_ptr<uint64_t[]> copy;
  const uint8_t *bytes;
  size_t size;
};

/// `string`, or empty when it is absent.
inline llvm::StringRef toRef(const flatbuffers::String *string) {
  return string ? llvm::StringRef(string->data(), string->size()) : llvm::StringRef();
}

/// The numbers of `vector`, or none if it is absent. No value if they are misaligned, which
/// FlatBuffers does not verify and no writer produces.
template <typename T>
std::optional<llvm::ArrayRef<T>> toNumbers(const flatbuffers::Vector<T> *vector) {
  if (!vector)
    return llvm::ArrayRef<T>();
  if (reinterpret_cast<uintptr_t>(vector->Data()) % alignof(T) != 0)
    return std::nullopt;
  return llvm::ArrayRef<T>(reinterpret_cast<const T *>(vector->Data()), vector->size());
}

} // namespace genrec

#endif // GENREC_LIB_MODEL_MODELREADER_H

//===- ModelReader.h - bytes to a checked FlatBuffers model -----*- C++ -*-===//

#ifndef GENREC_LIB_MODEL_MODELREADER_H
#define GENREC_LIB_MODEL_MODELREADER_H

#include "genrec/Model/model_generated.h"

#include "mlir/IR/Location.h"

#include <memory>
#include <optional>

namespace genrec {

/// The bytes of a model file after FlatBuffers' own checks: every offset and string lies within
/// them. What the values mean is still unchecked.
class ModelReader {
public:
  /// Copies `data` where it is not aligned as FlatBuffers wants it; else `data` must outlive this.
  ModelReader(const void *data, size_t size);

  /// The model; null after a diagnostic at `location` when the bytes are not a readable model file.
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

/// The numbers of `vector`, none when it is absent; no value where they are not aligned, which
/// FlatBuffers leaves unchecked and no writer does.
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

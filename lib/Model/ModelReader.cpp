//===- ModelReader.cpp - a verified FlatBuffers model from bytes ----------===//

#include "ModelReader.h"

#include "genrec/Model/Model.h"

#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace genrec;

namespace {

/// A root table of which only the version is verified, as a newer file may have fields that this
/// build's schema would misread.
struct VersionOnly : private flatbuffers::Table {
  uint32_t get() const { return GetField<uint32_t>(schema::Model::VT_VERSION, 1); }
  bool Verify(flatbuffers::Verifier &verifier) const {
    return VerifyTableStart(verifier) &&
           VerifyField<uint32_t>(verifier, schema::Model::VT_VERSION, alignof(uint32_t)) &&
           verifier.EndTable();
  }
};

} // namespace

/// The smallest buffer that holds a root offset and the identifier.
static constexpr size_t kHeaderSize =
    sizeof(flatbuffers::uoffset_t) + flatbuffers::FlatBufferBuilder::kFileIdentifierLength;
/// The deepest nesting is model, op, attribute, tensor, type. The rest is reserved for later
/// versions.
static constexpr flatbuffers::uoffset_t kDeepestTable = 32;
/// More than any model needs (an op takes about a dozen tables); it limits the time of
/// verification.
static constexpr flatbuffers::uoffset_t kMostTables = 1 << 24;

bool genrec::isModelFile(StringRef data) {
  return data.size() >= kHeaderSize && schema::ModelBufferHasIdentifier(data.data());
}

/// The name of the file that is read, as the location of an import has it.
static StringRef fileNameOf(Location location) {
  auto file = dyn_cast<FileLineColLoc>(location);
  return file ? file.getFilename().getValue() : StringRef();
}

ModelReader::ModelReader(const void *data, size_t size)
    : bytes(static_cast<const uint8_t *>(data)), size(size) {
  if (reinterpret_cast<uintptr_t>(data) % alignof(uint64_t) == 0 || size == 0)
    return;
  copy = std::make_unique<uint64_t[]>(size / sizeof(uint64_t) + 1);
  std::memcpy(copy.get(), data, size);
  bytes = reinterpret_cast<const uint8_t *>(copy.get());
}

const schema::Model *ModelReader::read(Location location) {
  if (size == 0) {
    emitError(location) << "the file is empty; record the model again";
    return nullptr;
  }
  StringRef data(reinterpret_cast<const char *>(bytes), size);
  if (!isModelFile(data)) {
    std::optional<ForeignFile> foreign = findForeignFile(data, fileNameOf(location));
    InFlightDiagnostic error = emitError(location) << "not a model file";
    if (foreign)
      error << ", but " << foreign->kind;
    else
      error << ": it does not carry the identifier '" << schema::ModelIdentifier() << "' at byte 4";
    if (foreign)
      error.attachNote() << "help: " << foreign->help;
    return nullptr;
  }
  auto damaged = [&] {
    emitError(location) << "the model file is damaged or cut short (" << size
                        << " bytes); record the model again";
    return nullptr;
  };
  // Writers pad to whole words, so a file of another size is truncated, even if only padding is
  // missing.
  if (size >= FLATBUFFERS_MAX_BUFFER_SIZE || size % sizeof(flatbuffers::uoffset_t) != 0)
    return damaged();
  flatbuffers::Verifier header(bytes, size);
  if (!header.VerifyBuffer<VersionOnly>(schema::ModelIdentifier()))
    return damaged();
  uint32_t version = flatbuffers::GetRoot<VersionOnly>(bytes)->get();
  if (version > kModelFileVersion) {
    InFlightDiagnostic error = emitError(location) << "the model file has version " << version
                                                   << ", this build of genrec reads up to version "
                                                   << kModelFileVersion;
    error.attachNote()
        << "help: update genrec, or record the model again with the Python package of "
           "this build";
    return nullptr;
  }
  if (version == 0) {
    emitError(location)
        << "the model file has version 0, the first version is 1; record the model again";
    return nullptr;
  }
  flatbuffers::Verifier verifier(bytes, size, kDeepestTable, kMostTables);
  if (!schema::VerifyModelBuffer(verifier))
    return damaged();
  return schema::GetModel(bytes);
}

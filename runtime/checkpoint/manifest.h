//===- manifest.h - What a checkpoint says of itself -------------*- C++ -*-===//
//
// Both kinds of manifest are JSON whose first field is the checksum of the whole
// text with zeros in the checksum's place. A text that was changed anywhere, by a
// bit or by its end, is refused before anything of it is used.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_CHECKPOINT_MANIFEST_H
#define GENREC_RT_CHECKPOINT_MANIFEST_H

#include "genrec_rt/checkpoint.h"
#include "genrec_rt/safetensors.h"

#include <optional>
#include <string>
#include <vector>

namespace genrec::rt {

constexpr const char *kManifestFile = "manifest.json";
constexpr const char *kTensorFile = "model.safetensors";

/// What the folder's manifest says of one generation.
struct GenerationEntry {
  std::string name; ///< its folder: "step-1200"
  uint64_t step = 0;
  uint64_t checksum = 0; ///< of its manifest's text
  std::string base = {};      ///< the generation that an incremental one adds to; "" for a full one
};

/// A checkpoint folder's manifest.
struct FolderManifest {
  std::vector<GenerationEntry> generations; ///< the oldest first
  /// Folders of older generations, which a reader had open when they were to be removed.
  std::vector<std::string> retired;
};

/// A generation's manifest.
struct GenerationManifest {
  std::string model, compiler;
  std::string identity; ///< of the model, JSON (checkpoint/identity.h); "" where not known
  TrainingState state;
  bool isFinite = true; ///< whether all tensors and losses are; else it was asked for
  /// Of an incremental generation, the one before, whose state it changes, and the checksum of its manifest's
  /// text. "" for a full one.
  std::string base;
  uint64_t baseChecksum = 0;
  bool isSorted = false; ///< rows of tables, by slice and id: older ones may be in any order
  /// Where the tensors are, from the folder of the manifest.
  std::string tensors = kTensorFile;
  std::optional<TensorDigest> digest; ///< version 1 has none, but
  int64_t tensorBytes = 0;            ///< this
};

std::string toText(const FolderManifest &manifest);
std::string toText(const GenerationManifest &manifest);

/// The version of a manifest's text, whose checksum, from version 2 on, is held to. Error, naming
/// `path`, where it is damaged or of a version that this binary does not read.
int64_t checkManifest(const std::string &text, const std::string &path);

FolderManifest parseFolderManifest(const std::string &text, const std::string &path);
GenerationManifest parseGenerationManifest(const std::string &text, const std::string &path);
/// A checkpoint of version 1: the one generation, its tensors in "step-1200/…".
GenerationManifest parseVersion1(const std::string &text, const std::string &path);

/// Whether a manifest may name such a folder: "step-1200", "step-1200.2", and no path.
bool isGenerationName(const std::string &name);

} // namespace genrec::rt

#endif // GENREC_RT_CHECKPOINT_MANIFEST_H

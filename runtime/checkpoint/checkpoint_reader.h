//===- checkpoint_reader.h - The inside of CheckpointReader ------*- C++ -*-===//

#ifndef GENREC_RT_CHECKPOINT_CHECKPOINT_READER_H
#define GENREC_RT_CHECKPOINT_CHECKPOINT_READER_H

#include "manifest.h"

namespace genrec::rt {

/// One generation's own files.
struct OpenedGeneration {
  std::string generation;
  uint64_t checksum = 0; ///< of the generation's manifest; 0 for version 1
  GenerationManifest manifest;
  std::unique_ptr<SafetensorsReader> tensors;

  GenerationEntry entry() const {
    return {generation, manifest.state.step, checksum, manifest.base};
  }
  /// Throws `Vanished` where the files are not there.
  void open(const std::string &folder, const std::string &manifestText, const std::string &name);
  void openTensors(const std::string &path);
};

struct CheckpointReader::Impl : OpenedGeneration {
  std::string folder;
  std::vector<std::string> others; ///< generations beside this one, the newest first
  /// What an incremental generation is built on: the one before it first, the full one last.
  std::vector<std::unique_ptr<OpenedGeneration>> bases;

  /// The newest generation that the folder's manifest names.
  void findNewest();
  /// The one called `wanted`, whatever the folder's manifest says.
  void find(const std::string &wanted);
  void restore(const CheckpointReader &reader, Session &session, RestoreFor purpose) const;
  Error unlike(const CheckpointReader &reader, const genrec_model_desc &model,
               const std::string &difference, RestoreFor purpose) const;

private:
  void openAll(const std::string &manifestText, const std::string &name);
  void openVersion1(const std::string &text);
  void openNewest(const std::string &text);
};

} // namespace genrec::rt

#endif // GENREC_RT_CHECKPOINT_CHECKPOINT_READER_H

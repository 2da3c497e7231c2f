//===- checkpoint_reader.h - The inside of CheckpointReader ------*- C++ -*-===//

#ifndef GENREC_RT_CHECKPOINT_CHECKPOINT_READER_H
#define GENREC_RT_CHECKPOINT_CHECKPOINT_READER_H

#include "manifest.h"

namespace genrec::rt {

struct CheckpointReader::Impl {
  std::string folder, generation;
  uint64_t checksum = 0; ///< of the generation's manifest; 0 for version 1
  GenerationManifest manifest;
  std::vector<std::string> others; ///< generations beside this one, the newest first
  std::unique_ptr<SafetensorsReader> tensors;

  /// The newest generation that the folder's manifest names.
  void findNewest();
  /// The one called `wanted`, whatever the folder's manifest says.
  void find(const std::string &wanted);
  void restore(const CheckpointReader &reader, Session &session, RestoreFor purpose) const;
  Error unlike(const CheckpointReader &reader, const genrec_model_desc &model,
               const std::string &difference, RestoreFor purpose) const;

private:
  void open(const std::string &manifestText, const std::string &name);
  void openTensors(const std::string &path);
  void openVersion1(const std::string &text);
  void openNewest(const std::string &text);
};

} // namespace genrec::rt

#endif // GENREC_RT_CHECKPOINT_CHECKPOINT_READER_H

//===- output_file.h - What predict writes -----------------------*- C++ -*-===//

#ifndef GENREC_RT_TRAINER_OUTPUT_FILE_H
#define GENREC_RT_TRAINER_OUTPUT_FILE_H

#include "key_columns.h"

#include "genrec_rt/session.h"

#include <memory>
#include <string>
#include <vector>

namespace genrec::rt {

/// A Parquet file with the key columns and one column per output, lists where an
/// output has several values per row. Written to a temporary file, which close renames.
/// On several ranks, rank 0 writes what all give, in the order of portions; all make the same calls.
class OutputFile {
public:
  /// `outputs` are indices of the model's outputs, all of one domain.
  OutputFile(const std::string &path, const genrec_model_desc &model, std::vector<int32_t> outputs,
             std::vector<KeyColumn> keys, Communicator *comm = nullptr);
  ~OutputFile();
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;

  /// Appends the rows that the session's last step gave out, which `report` tells of.
  void append(Session &session, const StepReport &report);
  /// Completes the file; returns the number of rows.
  int64_t close();

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace genrec::rt

#endif // GENREC_RT_TRAINER_OUTPUT_FILE_H

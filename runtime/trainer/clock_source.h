//===- clock_source.h - What gives training steps their times ----*- C++ -*-===//

#ifndef GENREC_RT_TRAINER_CLOCK_SOURCE_H
#define GENREC_RT_TRAINER_CLOCK_SOURCE_H

#include "../data/dataset_files.h"
#include "genrec_rt/abi.h"
#include "genrec_rt/batch.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace genrec::rt {

/// What --clock says: "machine", "steps:60", or a column of the data, "time" or "time:ms".
struct ClockSource {
  enum class Kind { machine, steps, column };
  Kind kind = Kind::machine;
  int64_t secondsPerStep = 0;
  std::string column;
  int64_t unitsPerSecond = 0; ///< of a column of integers; 0: not said

  /// What is neither machine nor steps:<seconds> is a column.
  static ClockSource parse(const std::string &text);

  /// SessionOptions::clock; null of a column.
  std::function<int64_t(uint64_t step)> clock() const;
};

/// A model with a time column as one more feature of its training program, so that it is decoded
/// beside what the model reads. The model's own features keep their numbers.
class TimeColumn {
public:
  /// Error where the first of `files` lacks the column, its values are no times, their unit is not
  /// known, or it is of a list that the program does not read. Collective; `comm` null: this
  /// process alone.
  TimeColumn(const genrec_model_desc &model, const genrec_program_desc &program,
             const ClockSource &source, const FileSpec &files, Communicator *comm);
  TimeColumn(const TimeColumn &) = delete; // descriptions point inside

  const genrec_model_desc &description() const { return extended; }
  const genrec_program_desc &program() const { return extendedProgram; }
  int32_t feature() const { return read.back(); }
  /// `source`, whose batches get Batch::seconds: the latest time that is not null.
  std::unique_ptr<BatchSource> timed(std::unique_ptr<BatchSource> source) const;

private:
  std::string column;
  int64_t unitsPerSecond;
  genrec_model_desc extended;
  genrec_program_desc extendedProgram;
  std::vector<genrec_feature_desc> features;
  std::vector<int32_t> read;
};

} // namespace genrec::rt

#endif // GENREC_RT_TRAINER_CLOCK_SOURCE_H

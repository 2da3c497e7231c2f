//===- arrow_results.h - What calls of Arrow return --------------*- C++ -*-===//

#ifndef GENREC_RT_DATA_ARROW_RESULTS_H
#define GENREC_RT_DATA_ARROW_RESULTS_H

#include "genrec_rt/error.h"

#include <arrow/result.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace genrec::rt {

/// What went wrong, with the system's reason.
inline std::string textOf(const arrow::Status &status) {
  return status.message() + (status.detail() ? " (" + status.detail()->ToString() + ")" : "");
}

/// The value of a call that reads; throws what went wrong, as Parquet's calls do.
template <class T> T valueOf(arrow::Result<T> result) {
  if (!result.ok())
    throw std::runtime_error(textOf(result.status()));
  return std::move(*result);
}

/// Throws an Error that names the file where a call that writes it went wrong.
inline void checkWritten(const arrow::Status &status, const std::string &path) {
  if (status.ok())
    return;
  const std::string text = textOf(status);
  bool isFull = text.find(std::strerror(ENOSPC)) != std::string::npos;
  throw Error(path + ": cannot be written: " + text,
              isFull ? "free some space, or write to another folder" : "");
}

} // namespace genrec::rt

#endif // GENREC_RT_DATA_ARROW_RESULTS_H

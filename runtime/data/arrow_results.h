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

/// The value of a call that reads; throws what went wrong, as Parquet's calls do.
template <class T> T valueOf(arrow::Result<T> result) {
  if (!result.ok())
    throw std::runtime_error(result.status().message());
  return std::move(*result);
}

/// Throws an Error that names the file where a call that writes it went wrong.
inline void checkWritten(const arrow::Status &status, const std::string &path) {
  if (status.ok())
    return;
  std::string detail = status.detail() ? " (" + status.detail()->ToString() + ")" : "";
  bool isFull = detail.find(std::strerror(ENOSPC)) != std::string::npos;
  throw Error(path + ": cannot be written: " + status.message() + detail,
              isFull ? "free some space, or write to another folder" : "");
}

} // namespace genrec::rt

#endif // GENREC_RT_DATA_ARROW_RESULTS_H

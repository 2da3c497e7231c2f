//===- error.h - What the runtime throws on mistakes of its user -*- C++ -*-===//
//
// Exceptions stay inside the runtime: none crosses the C interface of abi.h.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_ERROR_H
#define GENREC_RT_ERROR_H

#include <stdexcept>
#include <string>
#include <utility>

namespace genrec::rt {

/// A mistake in data, files, flags or a model. `what()` is one lower-case
/// sentence with the rule and the values seen; `help()` says what to do and
/// may be empty.
class Error : public std::runtime_error {
public:
  explicit Error(const std::string &message, std::string help = {})
      : std::runtime_error(message), helpText(std::move(help)) {}

  const std::string &help() const { return helpText; }

private:
  std::string helpText;
};

} // namespace genrec::rt

#endif // GENREC_RT_ERROR_H

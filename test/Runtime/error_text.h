//===- error_text.h - What an error says, for tests --------------*- C++ -*-===//

#ifndef GENREC_TEST_RUNTIME_ERROR_TEXT_H
#define GENREC_TEST_RUNTIME_ERROR_TEXT_H

#include "genrec_rt/error.h"

#include <functional>
#include <string>

namespace genrec::rt::test {

inline std::string messageOf(const std::function<void()> &body) {
  try {
    body();
  } catch (const Error &error) {
    return error.what();
  }
  return "no error";
}

inline std::string helpOf(const std::function<void()> &body) {
  try {
    body();
  } catch (const Error &error) {
    return error.help();
  }
  return "no error";
}

} // namespace genrec::rt::test

#endif // GENREC_TEST_RUNTIME_ERROR_TEXT_H

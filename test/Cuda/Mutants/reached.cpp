//===- reached.cpp - Which mutants make a difference in which test ----------===//
//
// Linked with the tests of CUDA code that has mutants (judge.py). GENREC_SIMT_REACHED names
// a file: a line for each test that passed, with its milliseconds and the mutants that it asked
// for.
//
//===----------------------------------------------------------------------===//

#include "mutants.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace {

class Reached : public testing::EmptyTestEventListener {
public:
  explicit Reached(const char *file) : out(file, std::ios::app) {}

private:
  void OnTestStart(const testing::TestInfo &) override { simt::takeReached(); }
  void OnTestEnd(const testing::TestInfo &test) override {
    std::string mutants = simt::takeReached();
    if (test.result()->Passed())
      out << test.test_suite_name() << '.' << test.name() << ' ' << test.result()->elapsed_time()
          << mutants << std::endl;
  }

  std::ofstream out;
};

[[maybe_unused]] const bool isListening = [] {
  if (const char *file = std::getenv("GENREC_SIMT_REACHED"))
    testing::UnitTest::GetInstance()->listeners().Append(new Reached(file));
  return true;
}();

} // namespace

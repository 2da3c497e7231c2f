//===- reached.cpp - Which mutants make a difference in which test ----------===//
//
// Linked with the tests of CUDA code that has mutants (judge.py). GENREC_SIMT_REACHED names
// a file: a line for each test that passed, with its milliseconds and the mutants that it asked
// for.
//
//===----------------------------------------------------------------------===//

#include "mutants.h"
#include "simt.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace {

constexpr int kMostMutants = 1 << 16;
bool reached[kMostMutants];

class Reached : public testing::EmptyTestEventListener {
public:
  explicit Reached(const char *file) : out(file, std::ios::app) {}

private:
  void OnTestStart(const testing::TestInfo &) override {
    for (bool &each : reached)
      each = false;
  }
  void OnTestEnd(const testing::TestInfo &test) override {
    if (!test.result()->Passed())
      return;
    out << test.test_suite_name() << '.' << test.name() << ' ' << test.result()->elapsed_time();
    for (int mutant = 0; mutant < kMostMutants; ++mutant)
      if (reached[mutant])
        out << ' ' << mutant;
    out << std::endl;
  }

  std::ofstream out;
};

[[maybe_unused]] const bool isListening = [] {
  if (const char *file = std::getenv("GENREC_SIMT_REACHED"))
    testing::UnitTest::GetInstance()->listeners().Append(new Reached(file));
  return true;
}();

} // namespace

// Not a kernel's, so that its accesses are nobody's business.
__attribute__((no_sanitize("thread"), disable_sanitizer_instrumentation)) bool
simt::isChosen(int mutant) {
  reached[mutant] = true;
  return mutant == defect;
}

//===- chosen.cpp - Which mutant is chosen, and which make a difference -----===//
//
// Linked with CUDA code that has mutants (judge.py). GENREC_SIMT_REACHED names a file: a program
// that ends leaves a line there, of the mutants that it asked for since somebody took them.
//
//===----------------------------------------------------------------------===//

#include "mutants.h"
#include "simt.h"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

namespace {

constexpr int kMostMutants = 1 << 16;
bool reached[kMostMutants];

struct LeftAtExit {
  ~LeftAtExit() {
    const char *file = std::getenv("GENREC_SIMT_REACHED");
    if (std::string mutants = simt::takeReached(); file && !mutants.empty())
      std::ofstream(file, std::ios::app) << mutants + "\n" << std::flush;
  }
} leftAtExit;

} // namespace

std::string simt::takeReached() {
  std::ostringstream out;
  for (int mutant = 0; mutant < kMostMutants; ++mutant)
    if (std::exchange(reached[mutant], false))
      out << ' ' << mutant;
  return out.str();
}

// Not a kernel's, so that its accesses are nobody's business.
__attribute__((no_sanitize("thread"), disable_sanitizer_instrumentation)) bool
simt::isChosen(int mutant) {
  reached[mutant] = true;
  return mutant == defect;
}

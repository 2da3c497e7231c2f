//===- attention_options.h - Options of attention to test -------*- C++ -*-===//
//
// A kernel takes seconds to compile, and there are 128 for the seven options. No part of a kernel
// asks for more than three of them, so 16 are tested, in which any three options are in every
// combination: an orthogonal array of strength 3, whose rows are words of a Hamming code.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TEST_RUNTIME_ATTENTION_OPTIONS_H
#define GENREC_TEST_RUNTIME_ATTENTION_OPTIONS_H

#include "kernels_testing.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {
namespace test {

struct AttentionOptions {
  bool causal, window, masked, positionBias, timeBias, dropout, softmax;
};

constexpr unsigned kOptionSets = 16, kOptions = 7;

/// The options of a set; number 9 has those of HSTU.
constexpr AttentionOptions attentionOptions(unsigned number) {
  const bool a = number & 1, b = number & 2, c = number & 4, d = number & 8;
  return {a, b, c, d, a != (b != c), a != (b != d), a != (c != d)};
}

constexpr bool everyThreeInEveryCombination() {
  for (unsigned first = 0; first < kOptions; ++first)
    for (unsigned second = 0; second < first; ++second)
      for (unsigned third = 0; third < second; ++third) {
        unsigned seen = 0;
        for (unsigned number = 0; number < kOptionSets; ++number) {
          const AttentionOptions o = attentionOptions(number);
          const bool all[kOptions] = {o.causal,   o.window,  o.masked, o.positionBias,
                                      o.timeBias, o.dropout, o.softmax};
          seen |= 1u << (4 * all[first] + 2 * all[second] + all[third]);
        }
        if (seen != 0xFF)
          return false;
      }
  return true;
}
static_assert(everyThreeInEveryCombination());

} // namespace test
} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_TEST_RUNTIME_ATTENTION_OPTIONS_H

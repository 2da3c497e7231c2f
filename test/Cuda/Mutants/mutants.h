//===- mutants.h - Small changes in CUDA code, of which one is chosen --------===//
//
// What mutants.py writes around the text that it changes. Each function is asked only where
// the change makes a difference, and notes that it was.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TEST_CUDA_MUTANTS_MUTANTS_H
#define GENREC_TEST_CUDA_MUTANTS_MUTANTS_H

#include <string>
#include <type_traits>

namespace simt {

/// Whether the program was started with this mutant (GENREC_SIMT_DEFECT).
bool isChosen(int mutant);

/// Those that were asked for since the last call, with a space before each.
std::string takeReached();

/// Constant expressions have no mutants.
constexpr bool chosen(int mutant) { return !std::is_constant_evaluated() && isChosen(mutant); }

template <typename T> constexpr T dropped(int mutant, T term) {
  if constexpr (std::is_arithmetic_v<T>)
    return term != T(0) && chosen(mutant) ? T(0) : term;
  else
    return term;
}

template <typename T> constexpr T one(int mutant, T factor) {
  if constexpr (std::is_arithmetic_v<T>)
    return factor != T(1) && chosen(mutant) ? T(1) : factor;
  else
    return factor;
}

template <typename T> constexpr T moved(int mutant, T literal, int by) {
  return chosen(mutant) ? T(literal + T(by)) : literal;
}

/// Of the least or greatest of two numbers.
template <typename T, typename U> constexpr T side(int mutant, T result, U one) {
  return result != T(one) && chosen(mutant) ? T(one) : result;
}

} // namespace simt

#endif // GENREC_TEST_CUDA_MUTANTS_MUTANTS_H

//===- Random.h - random words, hashes, initial values ----------*- C++ -*-===//
//
// The reference definitions of random words, identities and hashes. They share no code with the
// runtime's, so that each checks the other.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_LIB_INTERPRETER_RANDOM_H
#define GENREC_LIB_INTERPRETER_RANDOM_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include <array>

namespace genrec::interpreter {

/// The output of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) for state `x`.
uint64_t splitMix(uint64_t x);

/// Identity of the root row at `position` of the dataset.
uint64_t rootIdentity(int64_t position);
/// Identity of child number `ordinal` of a row, or of a row in part number `ordinal` of a
/// concat_domains.
uint64_t childIdentity(uint64_t identity, uint64_t ordinal);

/// Philox4x32-10 (Salmon et al., SC 2011) of one counter.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, uint32_t keyLow, uint32_t keyHigh);

/// The random word of element `element` of the row with identity `row`, in the
/// stream `stream` of one step.
uint32_t randomWord(uint64_t seed, uint64_t step, uint32_t stream, uint64_t row, uint64_t element);

/// Its 16 random bits, of half as many words.
uint16_t randomHalf(uint64_t seed, uint64_t step, uint32_t stream, uint64_t row, uint64_t element);

/// Identity of the row of `id` in the table `name`.
uint64_t tableRowIdentity(llvm::StringRef name, int64_t id);

/// The bfloat16 nearest to the float nearest to `x`, ties to even. A NaN stays one.
double nearestBf16(double x);
/// The float nearest to `x`, rounded to bfloat16: up in magnitude with the probability, in
/// 2^16-ths, of its distance from the smaller one, by 16 random bits.
double stochasticBf16(double x, uint16_t bits);

/// The float nearest to `x`, rounded towards 0 to bfloat16. A NaN stays one.
double truncatedBf16(double x);

/// XXH3_64bits_withSeed, the first half of MurmurHash3_x64_128, or FarmHash's Fingerprint64 (seed
/// 0) or Hash64WithSeed.
uint64_t hashBytes(HashKind kind, llvm::StringRef bytes, uint64_t seed);
/// The hash of the 8 little-endian bytes of `value`.
uint64_t hashInteger(HashKind kind, int64_t value, uint64_t seed);

/// Computes the initial values of row `row` of the parameter or table `name`. Only the Xavier kinds
/// use `fanIn` and `fanOut`.
void fillInitialRow(InitAttr init, uint64_t seed, llvm::StringRef name, uint64_t row, double fanIn,
                    double fanOut, llvm::MutableArrayRef<double> values);

} // namespace genrec::interpreter

#endif // GENREC_LIB_INTERPRETER_RANDOM_H

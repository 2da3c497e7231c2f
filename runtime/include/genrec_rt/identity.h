//===- identity.h - Row identities and name hashes ---------------*- C++ -*-===//
//
// A row's identity is its position in the dataset and its ordinal path, folded
// into 64 bits; random streams are keyed by it (see kernels/shared/random.h), so what
// a row draws does not depend on its batch.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_IDENTITY_H
#define GENREC_RT_IDENTITY_H

#include <cstdint>
#include <string_view>

namespace genrec::rt {

/// The output function of SplitMix64 (Steele et al., OOPSLA 2014).
constexpr uint64_t splitMix64(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

/// The identity of the root row at `position` (from 0) of the dataset: its
/// files in the order given, their row groups, their rows.
constexpr uint64_t rootIdentity(int64_t position) {
  return splitMix64(static_cast<uint64_t>(position));
}

/// The identity of child number `ordinal` (from 0, among the entries that are
/// kept) of a row; also of a row that enters part `ordinal` of a
/// concatenation. Not symmetric in its arguments, so that child 5 of row 3 and
/// child 3 of row 5 differ.
constexpr uint64_t mixIdentity(uint64_t identity, uint64_t ordinal) {
  return splitMix64(identity + 0x9E3779B97F4A7C15ull * (ordinal + 1));
}

/// A word that is another one in every process (of the 16 random bytes that the kernel gives
/// to each). Hash tables over ids from data begin with it: without, ids could be made that
/// all go to one slot, and every search would look at all of them. Nothing that a run writes
/// may depend on it.
uint64_t processHashSeed();

/// FNV-1a, 64 bits: the hash of a table's or parameter's name from which its
/// initial values follow.
constexpr uint64_t nameHash(std::string_view name) {
  uint64_t hash = 0xCBF29CE484222325ull;
  for (char c : name)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  return hash;
}

} // namespace genrec::rt

#endif // GENREC_RT_IDENTITY_H

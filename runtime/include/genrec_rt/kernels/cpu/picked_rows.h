//===- picked_rows.h - Rows that a step picks from a catalogue --*- C++ -*-===//
//
// Draws row numbers, and makes a domain of the distinct rows that numbers name, in
// the order of their source: a bit per row of the source says whether it is picked,
// and the number of bits set before a row's is the row's place. The cost is that of
// the numbers, plus 16 bytes per 64 rows of the source.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CPU_PICKED_ROWS_H
#define GENREC_RT_KERNELS_CPU_PICKED_ROWS_H

#include "genrec_rt/abi.h"
#include "genrec_rt/kernels/cpu/domains.h"
#include "genrec_rt/kernels/cpu/rowbody.h"

#include <string.h>

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

/// `count` row numbers of `source` for each row of `domain`, with the row's identity; once,
/// with identity 0, if `domain` is null.
inline void drawRowNumbers(genrec_step *step, const genrec_domain *source,
                           const genrec_domain *domain, uint32_t stream, int64_t count,
                           int64_t *out) {
  const RandomStream draws = randomStream(step, stream);
  if (!domain)
    return drawRows(draws, 0, source->count, count, out);
  constexpr int64_t kGrain = 64;
  parallelFor(step->pool, domain->count, kGrain, [&](int64_t begin, int64_t end, int64_t) {
    for (int64_t row = begin; row < end; ++row)
      drawRows(draws, domain->identity[row], source->count, count, out + row * count);
  });
}

namespace detail {

inline constexpr int64_t kNumberGrain = 16384;
inline constexpr int64_t kWordGrain = 4096;

/// Which rows of a domain are picked.
struct PickedBits {
  uint64_t *bits;  ///< bit r % 64 of word r / 64 for row r
  int64_t *before; ///< per word, the bits that are set in all words before it
  int64_t words;

  PickedBits(void *memory, int64_t rows) : words((rows + 63) / 64) {
    bits = static_cast<uint64_t *>(memory);
    before = static_cast<int64_t *>(memory) + words;
  }

  void set(int64_t row) const {
    uint64_t bit = uint64_t(1) << (row % 64);
    // Most rows that are named often are set by now; reading does not take the line from others.
    if (!(__atomic_load_n(bits + row / 64, __ATOMIC_RELAXED) & bit))
      __atomic_fetch_or(bits + row / 64, bit, __ATOMIC_RELAXED);
  }
  int64_t place(int64_t row) const {
    uint64_t below = (uint64_t(1) << (row % 64)) - 1;
    return before[row / 64] + __builtin_popcountll(bits[row / 64] & below);
  }
  /// Counts the bits; returns how many there are.
  int64_t count() const {
    int64_t total = 0;
    for (int64_t word = 0; word < words; ++word) {
      before[word] = total;
      total += __builtin_popcountll(bits[word]);
    }
    return total;
  }
};

/// body(part, number of the element) for all elements of all parts.
template <class Body>
inline void forEachNumber(genrec_step *step, int64_t parts, const int64_t *counts,
                          const Body &body) {
  for (int64_t part = 0; part < parts; ++part)
    parallelFor(step->pool, counts[part], kNumberGrain, [&](int64_t begin, int64_t end, int64_t) {
      for (int64_t i = begin; i < end; ++i)
        body(part, i);
    });
}

} // namespace detail

/// Makes `picked` of the rows of `source`, a root, that the `counts[p]` numbers of each part name
/// (-1: none), with their identities. `rows` gets the number of each in `source`, and `to[p]` the
/// numbers in `picked`. `rows` and `identity` have the domain's capacity; `memory` has 16 bytes for
/// each 64 rows of `source`, or part of 64.
inline void pickRows(genrec_step *step, const genrec_domain *source, genrec_domain *picked,
                     int64_t parts, const int64_t *const *numbers, const int64_t *counts,
                     int64_t *const *to, int64_t *rows, uint64_t *identity, void *memory) {
  const detail::PickedBits bits(memory, source->count);
  memset(bits.bits, 0, static_cast<size_t>(bits.words) * 8);
  const int64_t all = source->count;
  // A source without rows has no row for any number.
  detail::forEachNumber(step, all ? parts : 0, counts, [&](int64_t part, int64_t i) {
    if (int64_t row = numbers[part][i]; row >= 0)
      bits.set(row);
  });
  picked->count = picked->max_length = bits.count();
  picked->offsets = nullptr;
  picked->parent = nullptr;
  picked->identity = identity;
  picked->parent_domain = nullptr;
  parallelFor(step->pool, bits.words, detail::kWordGrain, [&](int64_t begin, int64_t end, int64_t) {
    for (int64_t word = begin; word < end; ++word) {
      int64_t place = bits.before[word];
      for (uint64_t left = bits.bits[word]; left; left &= left - 1, ++place) {
        rows[place] = word * 64 + __builtin_ctzll(left);
        identity[place] = source->identity[rows[place]];
      }
    }
  });
  detail::forEachNumber(step, parts, counts, [&](int64_t part, int64_t i) {
    int64_t row = numbers[part][i];
    to[part][i] = row < 0 || !all ? row : bits.place(row);
  });
}

/// Makes `domain` of the lists that `source` has below the rows `parents` of its parent, a child of
/// `above`, the domain of `parents`. `rows` gets the number of each row in `source`. `offsets` has
/// one more entry than `above` has rows; `parent`, `identity` and `rows` have the domain's
/// capacity.
inline void pickLists(genrec_step *step, const genrec_domain *source, const genrec_domain *above,
                      const int64_t *parents, genrec_domain *domain, int64_t *offsets,
                      int64_t *parent, uint64_t *identity, int64_t *rows) {
  detail::layLists(domain, above, above->count, offsets, parent, identity,
                   [&](int64_t list) { return detail::listLength(source, parents[list]); });
  detail::forEachList(step, domain, [&](int64_t list) {
    int64_t from = source->offsets[parents[list]] - offsets[list];
    for (int64_t row = offsets[list]; row < offsets[list + 1]; ++row) {
      parent[row] = list;
      identity[row] = source->identity[from + row];
      rows[row] = from + row;
    }
  });
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_PICKED_ROWS_H

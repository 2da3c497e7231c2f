//===- segments.cpp - Distinct touched rows and their gradients -----------===//

#include "segments.h"

#include "genrec_rt/identity.h"
#include "genrec_rt/kernels/cpu/segments.h"

#include <bit>
#include <cassert>
#include <cstring>

namespace genrec::rt {

namespace {

constexpr int64_t kRunGrain = 1024;
constexpr int64_t kSumGrain = 64;
using kernels::kSegmentPartShift;
constexpr int64_t kRowMask = (int64_t(1) << kSegmentPartShift) - 1;
constexpr int64_t kUntouched = -1;
/// Entries whose slots are on their way while rows are numbered: the table of a step with
/// many lookups is larger than a core's cache.
constexpr int64_t kSlotsAhead = 16;
/// Gradients that are on their way while others are added: columns of a wide row lie far apart.
constexpr int64_t kGradientsAhead = 8;

/// How the scratch is laid out for `total` contributions.
struct Layout : kernels::SegmentArrays {
  int64_t *inverse; ///< total: the distinct row of a contribution
  uint32_t *table;  ///< slots: a distinct row's number plus one
  int64_t slots;

  Layout(void *memory, int64_t total) : SegmentArrays(memory, total) {
    inverse = members + total;
    table = reinterpret_cast<uint32_t *>(inverse + total);
    slots = slotsFor(total);
  }

  static int64_t slotsFor(int64_t total) {
    return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(total) * 2 + 2));
  }
};

/// Whether every float is 0 (of either sign): only the 31 low bits count.
bool isZeroRow(const float *values, int64_t count) {
  constexpr int64_t kBlock = 16;
  int64_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    uint32_t words[kBlock];
    std::memcpy(words, values + i, sizeof words);
    uint32_t any = 0;
    for (uint32_t word : words)
      any |= word;
    if (any << 1)
      return false;
  }
  for (; i < count; ++i) {
    uint32_t word;
    std::memcpy(&word, values + i, sizeof word);
    if (word << 1)
      return false;
  }
  return true;
}

int64_t totalOf(const GradientParts &parts) {
  int64_t total = 0;
  for (int32_t part = 0; part < parts.parts; ++part)
    total += parts.counts[part];
  return total;
}

/// Whether two parts may be columns of one wider gradient: those are read row by row, since the
/// columns of a row lie side by side and those of the next row far away.
bool areColumnsOfOne(const GradientParts &parts, int32_t one, int32_t other) {
  return parts.strides && parts.strides[one] > parts.dim &&
         parts.strides[one] == parts.strides[other] && parts.counts[one] == parts.counts[other];
}

void markTouched(genrec_rt_pool *pool, const GradientParts &parts, const float *untouchable,
                 int64_t *inverse) {
  int64_t starts[kMostParts + 1], firsts[kMostParts + 1];
  int32_t runs = 0, runBegins[kMostParts + 1];
  firsts[0] = 0;
  for (int32_t part = 0; part < parts.parts; ++part) {
    firsts[part + 1] = firsts[part] + parts.counts[part];
    if (part == 0 || !areColumnsOfOne(parts, part - 1, part))
      runBegins[runs++] = part;
  }
  runBegins[runs] = parts.parts;
  parallelParts(
      pool, runs, kRunGrain, starts, [&](int64_t run) { return parts.counts[runBegins[run]]; },
      [&](int64_t run, int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row)
          for (int32_t part = runBegins[run]; part < runBegins[run + 1]; ++part) {
            bool touched =
                parts.handles[part][row] != untouchable &&
                !isZeroRow(parts.gradient(part, parts.gradientRow(part, row)), parts.dim);
            inverse[firsts[part] + row] = touched ? 0 : kUntouched;
          }
      });
}

/// Numbers the distinct rows and counts their members in offsets[n + 1].
int64_t numberRows(const GradientParts &parts, const float *untouchable, float **rows,
                   const Layout &layout) {
  int64_t count = 0, *inverse = layout.inverse, *const offsets = layout.offsets;
  uint32_t *const table = layout.table;
  const int64_t last = layout.slots - 1;
  const bool all = parts.all;
  int64_t *const rowKeys = parts.keys ? parts.rowKeys : nullptr;
  // Rows are 64 bytes apart at least: the low bits of an address say nothing. Fibonacci hashing
  // (Knuth, The Art of Computer Programming, vol. 3, 6.4) spreads what lies at equal distances.
  const int shift = std::countl_zero(static_cast<uint64_t>(last));
  const uint64_t seed = processHashSeed();
  auto slotOf = [=](const float *row) {
    return static_cast<int64_t>((reinterpret_cast<uintptr_t>(row) >> 6 ^ seed) *
                                    0x9E3779B97F4A7C15ull >>
                                shift);
  };
  for (int32_t part = 0; part < parts.parts; ++part) {
    float *const *handles = parts.handles[part];
    const int64_t entries = parts.counts[part];
    for (int64_t i = 0; i < entries; ++i) {
      if (i + kSlotsAhead < entries)
        __builtin_prefetch(table + slotOf(handles[i + kSlotsAhead]), /*rw=*/1);
      float *row = handles[i];
      if (all ? row == untouchable : inverse[i] == kUntouched) {
        inverse[i] = kUntouched;
        continue;
      }
      int64_t at = slotOf(row);
      while (table[at] && rows[table[at] - 1] != row)
        at = (at + 1) & last;
      if (!table[at]) {
        rows[count] = row;
        if (rowKeys)
          rowKeys[count] = parts.keys[part][i];
        table[at] = static_cast<uint32_t>(++count);
        offsets[count] = 0;
      }
      inverse[i] = table[at] - 1;
      ++offsets[inverse[i] + 1];
    }
    inverse += entries;
  }
  return count;
}

void fillMembers(const GradientParts &parts, int64_t count, const Layout &layout) {
  layout.offsets[0] = 0;
  for (int64_t n = 0; n < count; ++n)
    layout.offsets[n + 1] += layout.offsets[n];
  // offsets[n] moves through the members of row n and ends where those of n + 1
  // begin; one shift at the end puts it back.
  const int64_t *inverse = layout.inverse;
  for (int32_t part = 0; part < parts.parts; ++part) {
    for (int64_t i = 0; i < parts.counts[part]; ++i)
      if (inverse[i] != kUntouched)
        layout.members[layout.offsets[inverse[i]]++] =
            static_cast<int64_t>(part) << kSegmentPartShift | parts.gradientRow(part, i);
    inverse += parts.counts[part];
  }
  for (int64_t n = count; n > 0; --n)
    layout.offsets[n] = layout.offsets[n - 1];
  layout.offsets[0] = 0;
}

/// The sums of the distinct rows [begin, end). `Dim` is the width, or 0 for any.
template <int64_t Dim>
void sumRows(const GradientParts &parts, const Layout &layout, int64_t begin, int64_t end,
             float *sums) {
  const int64_t dim = Dim ? Dim : parts.dim;
  const int64_t last = layout.offsets[end];
  auto gradientOf = [&](int64_t member) {
    return parts.gradient(static_cast<int32_t>(member >> kSegmentPartShift), member & kRowMask);
  };
  for (int64_t n = begin; n < end; ++n) {
    float *__restrict__ sum = sums + n * dim;
    for (int64_t m = layout.offsets[n]; m < layout.offsets[n + 1]; ++m) {
      if (m + kGradientsAhead < last)
        __builtin_prefetch(gradientOf(layout.members[m + kGradientsAhead]));
      const float *gradient = gradientOf(layout.members[m]);
      if (m == layout.offsets[n])
        for (int64_t column = 0; column < dim; ++column)
          sum[column] = gradient[column];
      else
        for (int64_t column = 0; column < dim; ++column)
          sum[column] += gradient[column];
    }
  }
}

} // namespace

int64_t segmentBytes(int64_t capacity) {
  return 64 + 8 * (3 * capacity + 1) + 4 * Layout::slotsFor(capacity) + 64;
}

int64_t buildSegments(genrec_rt_pool *pool, const GradientParts &parts, const float *untouchable,
                      float **rows, void *segments) {
  int64_t total = totalOf(parts);
  assert(total <= kMostContributions);
  *static_cast<int64_t *>(segments) = total;
  Layout layout(segments, total);
  std::memset(layout.table, 0, static_cast<size_t>(layout.slots) * 4);
  if (!parts.all)
    markTouched(pool, parts, untouchable, layout.inverse);
  int64_t count = numberRows(parts, untouchable, rows, layout);
  fillMembers(parts, count, layout);
  return count;
}

void sumSegments(genrec_rt_pool *pool, const GradientParts &parts, int64_t count,
                 const void *segments, float *sums) {
  Layout layout(const_cast<void *>(segments), *static_cast<const int64_t *>(segments));
  parallelFor(pool, count, kSumGrain, [&](int64_t begin, int64_t end, int64_t) {
    switch (parts.dim) {
    case 4:
      return sumRows<4>(parts, layout, begin, end, sums);
    case 8:
      return sumRows<8>(parts, layout, begin, end, sums);
    case 16:
      return sumRows<16>(parts, layout, begin, end, sums);
    case 32:
      return sumRows<32>(parts, layout, begin, end, sums);
    case 64:
      return sumRows<64>(parts, layout, begin, end, sums);
    default:
      return sumRows<0>(parts, layout, begin, end, sums);
    }
  });
}

} // namespace genrec::rt

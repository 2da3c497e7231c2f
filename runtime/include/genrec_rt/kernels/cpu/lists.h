//===- lists.h - Lists lengthened, paired, put side by side -----*- C++ -*-===//
//
// Domains of lists with at least so many rows, domains of pairs of two lists, and lists as
// columns of their parents' rows. For lists, roots and capacities see domains.h.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CPU_LISTS_H
#define GENREC_RT_KERNELS_CPU_LISTS_H

#include "genrec_rt/kernels/cpu/domains.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

//===----------------------------------------------------------------------===//
// Lengthened lists
//===----------------------------------------------------------------------===//

namespace detail {
/// Where the rows of `source`'s list begin in the lengthened list.
template <bool Front>
inline int64_t ownBegin(const genrec_domain *source, const genrec_domain *domain, int64_t list) {
  int64_t added = listLength(domain, list) - listLength(source, list);
  return domain->offsets[list] + (Front ? added : 0);
}
} // namespace detail

/// Lists of at least `least` rows: those of `source`, with new rows in front of them or behind.
/// `offsets`, `parent` and `identity` as for truncate; new row i of parent row p has identity
/// mixIdentity(identity of p, 2^32 + i).
template <bool Front>
inline void pad(genrec_step *step, const genrec_domain *source, genrec_domain *domain,
                int64_t least, int64_t *offsets, int64_t *parent, uint64_t *identity) {
  constexpr uint64_t kFirstNewOrdinal = uint64_t(1) << 32;
  detail::layLists(domain, source->parent_domain, detail::listCount(source), offsets, parent,
                   identity, [&](int64_t list) {
                     int64_t length = detail::listLength(source, list);
                     return length > least ? length : least;
                   });
  detail::forEachList(step, source, [&](int64_t list) {
    int64_t own = detail::ownBegin<Front>(source, domain, list);
    int64_t length = detail::listLength(source, list);
    uint64_t above = source->parent_domain->identity[list], added = 0;
    for (int64_t row = offsets[list]; row < offsets[list + 1]; ++row) {
      bool isNew = row < own || row >= own + length;
      parent[row] = list;
      identity[row] = isNew ? mixIdentity(above, kFirstNewOrdinal + added++)
                            : source->identity[source->offsets[list] + row - own];
    }
  });
}

/// Rows of `source` in the lengthened `domain`; 0 in the new rows.
template <bool Front, class T>
inline void derivePadded(genrec_step *step, const genrec_domain *source,
                         const genrec_domain *domain, int64_t width, const T *x, int64_t ldX,
                         T *out) {
  detail::forEachList(step, domain, [&](int64_t list) {
    int64_t length = detail::listLength(source, list);
    int64_t own = detail::ownBegin<Front>(source, domain, list);
    auto clear = [&](int64_t first, int64_t last) {
      for (int64_t i = first * width; i < last * width; ++i)
        out[i] = T();
    };
    clear(domain->offsets[list], own);
    detail::copyRows(x + detail::listBegin(source, list) * ldX, ldX, width, length,
                     out + own * width);
    clear(own + length, domain->offsets[list + 1]);
  });
}

/// The adjoint: rows of the lengthened `domain` back in `source`; the new rows are dropped.
template <bool Front, class T>
inline void derivePaddedGrad(genrec_step *step, const genrec_domain *source,
                             const genrec_domain *domain, int64_t width, const T *x, int64_t ldX,
                             T *out) {
  detail::forEachList(step, domain, [&](int64_t list) {
    detail::copyRows(x + detail::ownBegin<Front>(source, domain, list) * ldX, ldX, width,
                     detail::listLength(source, list),
                     out + detail::listBegin(source, list) * width);
  });
}

//===----------------------------------------------------------------------===//
// Pairs
//===----------------------------------------------------------------------===//

/// Below each row of `first`: the rows of `second` with the same parent row. `offsets` has one
/// more entry than `first` has rows. A pair has identity mixIdentity(identity of its first
/// half, ordinal of the second).
inline void pairDomains(genrec_step *step, const genrec_domain *first, const genrec_domain *second,
                        genrec_domain *domain, int64_t *offsets, int64_t *parent,
                        uint64_t *identity) {
  detail::layLists(domain, first, first->count, offsets, parent, identity, [&](int64_t row) {
    return detail::listLength(second, first->parent[row]);
  });
  detail::forEachList(step, domain, [&](int64_t row) {
    for (int64_t pair = offsets[row]; pair < offsets[row + 1]; ++pair) {
      parent[pair] = row;
      identity[pair] =
          mixIdentity(first->identity[row], static_cast<uint64_t>(pair - offsets[row]));
    }
  });
}

/// Each pair's row of `second`.
template <class T>
inline void pairRows(genrec_step *step, const genrec_domain *second, const genrec_domain *domain,
                     int64_t width, const T *x, int64_t ldX, T *out) {
  const genrec_domain *first = domain->parent_domain;
  detail::forEachList(step, domain, [&](int64_t row) {
    int64_t list = first->parent[row];
    detail::copyRows(x + second->offsets[list] * ldX, ldX, width, detail::listLength(second, list),
                     out + domain->offsets[row] * width);
  });
}

/// Per row of `second` the sum of its pairs, in the order of the rows of `first`.
inline void pairSum(genrec_step *step, const genrec_domain *second, const genrec_domain *domain,
                    int64_t width, const float *x, int64_t ldX, float *out) {
  const genrec_domain *first = domain->parent_domain;
  detail::forEachList(step, second, [&](int64_t list) {
    int64_t length = detail::listLength(second, list);
    float *to = out + second->offsets[list] * width;
    memset(to, 0, static_cast<size_t>(length * width) * sizeof(float));
    for (int64_t row = first->offsets[list]; row < first->offsets[list + 1]; ++row) {
      const float *from = x + domain->offsets[row] * ldX;
      for (int64_t i = 0; i < length; ++i)
        for (int64_t column = 0; column < width; ++column)
          to[i * width + column] += from[i * ldX + column];
    }
  });
}

//===----------------------------------------------------------------------===//
// Side by side
//===----------------------------------------------------------------------===//

/// Up to `count` rows of each list of `lists`, the last (or first) ones, end to end in the row
/// of their parent; 0 behind them.
template <bool Last, class T>
inline void tile(genrec_step *step, const genrec_domain *lists, int64_t count, int64_t width,
                 const T *x, int64_t ldX, T *out) {
  detail::forEachList(step, lists, [&](int64_t list) {
    int64_t length = detail::listLength(lists, list);
    int64_t kept = length < count ? length : count;
    T *to = out + list * count * width;
    detail::copyRows(x + detail::keptBegin<Last>(lists, list, kept) * ldX, ldX, width, kept, to);
    for (int64_t i = kept * width; i < count * width; ++i)
      to[i] = T();
  });
}

/// The adjoint: parts of the parent's row back in the rows of the list, 0 where none was kept.
template <bool Last, class T>
inline void tileGrad(genrec_step *step, const genrec_domain *lists, int64_t count, int64_t width,
                     const T *x, int64_t ldX, T *out) {
  detail::forEachList(step, lists, [&](int64_t list) {
    int64_t begin = detail::listBegin(lists, list), length = detail::listLength(lists, list);
    int64_t kept = length < count ? length : count;
    int64_t from = detail::keptBegin<Last>(lists, list, kept);
    for (int64_t row = begin; row < begin + length; ++row) {
      bool isKept = row >= from && row < from + kept;
      for (int64_t i = 0; i < width; ++i)
        out[row * width + i] = isKept ? x[list * ldX + (row - from) * width + i] : T();
    }
  });
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_LISTS_H

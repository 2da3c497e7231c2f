//===- domains.h - Derived domains and moves between domains ----*- C++ -*-===//
//
// Truncated and joined lists, and the copies that bring values into them and
// back. A list of domain d is the range of its rows below one parent row; a
// root has no offsets, and each of its rows is a list of its own. Calls that fill a
// domain leave its capacity alone: the runtime has set it.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CPU_DOMAINS_H
#define GENREC_RT_KERNELS_CPU_DOMAINS_H

#include "genrec_rt/abi.h"
#include "genrec_rt/identity.h"
#include "genrec_rt/kernels/cpu/launch.h"

#include <string.h>

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {
namespace detail {

/// Lists per chunk of the parallel-for.
inline constexpr int64_t kListGrain = 256;
inline constexpr int64_t kRowGrainOfCopies = 4096;

inline int64_t listCount(const genrec_domain *domain) {
  return domain->offsets ? domain->parent_domain->count : domain->count;
}
inline int64_t listBegin(const genrec_domain *domain, int64_t list) {
  return domain->offsets ? domain->offsets[list] : list;
}
inline int64_t listLength(const genrec_domain *domain, int64_t list) {
  return domain->offsets ? domain->offsets[list + 1] - domain->offsets[list] : 1;
}

/// Runs body(list) for every list.
template <class Body>
inline void forEachList(genrec_step *step, const genrec_domain *domain,
                        const Body &body) {
  parallelFor(step->pool, listCount(domain), kListGrain,
              [&](int64_t begin, int64_t end, int64_t) {
                for (int64_t list = begin; list < end; ++list)
                  body(list);
              });
}

/// Gives `domain` one list of length(list) rows per row of its parent domain `above`. `offsets` has one
/// more entry than there are `lists`; the caller fills `parent` and `identity`.
template <class Length>
inline void layLists(genrec_domain *domain, const genrec_domain *above, int64_t lists,
                     int64_t *offsets, int64_t *parent, uint64_t *identity, const Length &length) {
  int64_t longest = 0;
  offsets[0] = 0;
  for (int64_t list = 0; list < lists; ++list) {
    int64_t rows = length(list);
    longest = rows > longest ? rows : longest;
    offsets[list + 1] = offsets[list] + rows;
  }
  domain->count = offsets[lists];
  domain->offsets = offsets;
  domain->parent = parent;
  domain->identity = identity;
  domain->parent_domain = above;
  domain->max_length = longest;
}

/// `count` rows of `width` elements, each `ld` after the last, to rows that
/// lie one behind another.
template <class T>
inline void copyRows(const T *from, int64_t ld, int64_t width, int64_t count,
                     T *to) {
  if (count == 0)
    return; // empty lists may have no buffer at all
  if (ld == width) {
    memcpy(static_cast<void *>(to), from, static_cast<size_t>(count * width) * sizeof(T));
    return;
  }
  for (int64_t row = 0; row < count; ++row)
    for (int64_t i = 0; i < width; ++i)
      to[row * width + i] = from[row * ld + i];
}

/// The first row of `source`'s list that a truncated list of `length` keeps.
template <bool Last>
inline int64_t keptBegin(const genrec_domain *source, int64_t list,
                         int64_t length) {
  int64_t begin = listBegin(source, list);
  return Last ? begin + listLength(source, list) - length : begin;
}

} // namespace detail

//===----------------------------------------------------------------------===//
// Making domains
//===----------------------------------------------------------------------===//

/// A domain of one list of `count` rows.
inline void fixedRows(genrec_domain *domain, int64_t count) {
  domain->count = count;
  domain->offsets = nullptr;
  domain->parent = nullptr;
  domain->identity = nullptr;
  domain->parent_domain = nullptr;
  domain->max_length = count;
}

/// The rows of parameter `number` that this rank updates, as a domain.
inline void parameterRows(const genrec_step *step, int32_t number, genrec_domain *domain) {
  fixedRows(domain, step->parameters[number].own_rows);
}

/// Where they begin in `all`, which has a row of `width` values per row of the parameter.
template <class T>
inline T *ownRows(const genrec_step *step, int32_t number, int64_t width, T *all) {
  return all + step->parameters[number].first_row * width;
}

/// At most `most` rows of each list of `source`, the last (or first) ones, with
/// their identities. `offsets` has one more entry than `source` has lists; `parent`
/// and `identity` have the domain's capacity.
template <bool Last>
inline void truncate(genrec_step *step, const genrec_domain *source,
                     genrec_domain *domain, int64_t most, int64_t *offsets,
                     int64_t *parent, uint64_t *identity) {
  detail::layLists(domain, source->parent_domain, detail::listCount(source), offsets, parent,
                   identity, [&](int64_t list) {
                     int64_t length = detail::listLength(source, list);
                     return length < most ? length : most;
                   });
  detail::forEachList(step, source, [&](int64_t list) {
    int64_t length = offsets[list + 1] - offsets[list];
    int64_t from = detail::keptBegin<Last>(source, list, length);
    for (int64_t i = 0; i < length; ++i) {
      parent[offsets[list] + i] = list;
      identity[offsets[list] + i] = source->identity[from + i];
    }
  });
}

/// Joins lists per row of `above`: a source is a child of `above` or `above` itself,
/// which gives its row. Part p's row with identity r gets mixIdentity(r, p).
template <class... Sources>
inline void concatDomains(genrec_step *step, const genrec_domain *above,
                          genrec_domain *domain, int64_t *offsets,
                          int64_t *parent, uint64_t *identity,
                          Sources *...sources) {
  const genrec_domain *parts[] = {sources...};
  auto begin = [&](const genrec_domain *part, int64_t list) {
    return part == above ? list : part->offsets[list];
  };
  auto length = [&](const genrec_domain *part, int64_t list) {
    return part == above ? 1 : detail::listLength(part, list);
  };
  detail::layLists(domain, above, above->count, offsets, parent, identity, [&](int64_t list) {
    int64_t rows = 0;
    for (const genrec_domain *part : parts)
      rows += length(part, list);
    return rows;
  });
  detail::forEachList(step, domain, [&](int64_t list) {
    int64_t row = offsets[list];
    uint64_t number = 0;
    for (const genrec_domain *part : parts) {
      for (int64_t i = 0; i < length(part, list); ++i, ++row) {
        parent[row] = list;
        identity[row] =
            mixIdentity(part->identity[begin(part, list) + i], number);
      }
      ++number;
    }
  });
}

/// The rows of `count` parts end to end; `offsets` gets where each begins, and the end.
inline void stackDomains(genrec_domain *domain, int64_t *offsets, int64_t count,
                         const genrec_domain *const *parts) {
  offsets[0] = 0;
  for (int64_t part = 0; part < count; ++part)
    offsets[part + 1] = offsets[part] + parts[part]->count;
  domain->count = offsets[count];
  domain->offsets = offsets;
  domain->parent = nullptr;
  domain->identity = nullptr;
  domain->parent_domain = nullptr;
  domain->max_length = offsets[count];
}

/// Shared tensors, one behind the other: sizes[i] floats of parts[i].
inline void concatShared(float *to, int64_t count, const float *const *parts,
                         const int64_t *sizes) {
  for (int64_t part = 0; part < count; ++part) {
    memcpy(to, parts[part], static_cast<size_t>(sizes[part]) * sizeof(float));
    to += sizes[part];
  }
}

//===----------------------------------------------------------------------===//
// Moving values
//===----------------------------------------------------------------------===//

/// Rows of `domain`, made by truncate<Last>, back in `source`, 0 elsewhere: the adjoint of what row
/// kernels read of a truncated list.
template <bool Last, class T>
inline void deriveGrad(genrec_step *step, const genrec_domain *source,
                       const genrec_domain *domain, int64_t width, const T *x,
                       int64_t ldX, T *out) {
  detail::forEachList(step, domain, [&](int64_t list) {
    int64_t length = detail::listLength(domain, list);
    int64_t begin = detail::listBegin(source, list);
    int64_t end = begin + detail::listLength(source, list);
    int64_t from = detail::keptBegin<Last>(source, list, length);
    auto clear = [&](int64_t first, int64_t last) {
      for (int64_t i = first * width; i < last * width; ++i)
        out[i] = T();
    };
    clear(begin, from);
    detail::copyRows(x + domain->offsets[list] * ldX, ldX, width, length,
                     out + from * width);
    clear(from + length, end);
  });
}

/// Values of the parts of a joined domain; `parts` is, per part, its domain, its
/// values and their leading dimension.
template <class T, class... Parts>
inline void concatRows(genrec_step *step, const genrec_domain *domain,
                       int64_t width, T *out, Parts... parts) {
  static_assert(sizeof...(Parts) % 3 == 0);
  const detail::Slot slots[] = {detail::Slot(parts)...};
  constexpr int64_t kParts = sizeof...(Parts) / 3;
  const genrec_domain *above = domain->parent_domain;
  detail::forEachList(step, domain, [&](int64_t list) {
    T *to = out + domain->offsets[list] * width;
    for (int64_t p = 0; p < kParts; ++p) {
      auto *part = static_cast<const genrec_domain *>(slots[3 * p].pointer);
      auto *x = static_cast<const T *>(slots[3 * p + 1].pointer);
      int64_t ldX = slots[3 * p + 2].size;
      int64_t begin = part == above ? list : part->offsets[list];
      int64_t length = part == above ? 1 : detail::listLength(part, list);
      detail::copyRows(x + begin * ldX, ldX, width, length, to);
      to += length * width;
    }
  });
}

/// Part `number` out of a joined value; `sources` are the domains of all parts.
template <class T, class... Sources>
inline void splitRows(genrec_step *step, const genrec_domain *domain,
                      int64_t width, const T *x, int64_t ldX, T *out,
                      int64_t number, Sources *...sources) {
  const genrec_domain *parts[] = {sources...};
  const genrec_domain *above = domain->parent_domain;
  const genrec_domain *own = parts[number];
  auto length = [&](const genrec_domain *part, int64_t list) {
    return part == above ? 1 : detail::listLength(part, list);
  };
  detail::forEachList(step, domain, [&](int64_t list) {
    int64_t from = domain->offsets[list];
    for (int64_t p = 0; p < number; ++p)
      from += length(parts[p], list);
    int64_t to = own == above ? list : own->offsets[list];
    detail::copyRows(x + from * ldX, ldX, width, length(own, list),
                     out + to * width);
  });
}

/// The value `distance` rows later (earlier: negative) in the same list, and
/// whether there is one; 0 where not.
template <class T>
inline void shiftRows(genrec_step *step, const genrec_domain *domain,
                      int64_t distance, int64_t width, const T *x, int64_t ldX,
                      T *out, bool *valid) {
  detail::forEachList(step, domain, [&](int64_t list) {
    int64_t begin = detail::listBegin(domain, list);
    int64_t end = begin + detail::listLength(domain, list);
    for (int64_t row = begin; row < end; ++row) {
      int64_t from = row + distance;
      valid[row] = from >= begin && from < end;
      for (int64_t i = 0; i < width; ++i)
        out[row * width + i] = valid[row] ? x[from * ldX + i] : T();
    }
  });
}

/// Each row's ordinal in its list, from 0; from its end with FromEnd.
template <bool FromEnd>
inline void positions(genrec_step *step, const genrec_domain *domain,
                      int64_t *out) {
  detail::forEachList(step, domain, [&](int64_t list) {
    int64_t begin = detail::listBegin(domain, list);
    int64_t length = detail::listLength(domain, list);
    for (int64_t i = 0; i < length; ++i)
      out[begin + i] = FromEnd ? length - 1 - i : i;
  });
}

/// The number of rows of each list of `count` domains, which have one parent.
inline void lengths(genrec_step *step, int64_t count, const genrec_domain *const *children,
                    int64_t *const *out) {
  const int64_t lists = detail::listCount(children[0]);
  parallelFor(step->pool, count * lists, detail::kListGrain,
              [=](int64_t begin, int64_t end, int64_t) {
                for (int64_t i = begin; i < end; ++i)
                  out[i / lists][i % lists] = detail::listLength(children[i / lists], i % lists);
              });
}

enum class PoolChoice { max, first, last };

/// Per element, the parent's gradient where a row is the one that the pool chose
/// (max: the first of the greatest), 0 elsewhere.
template <PoolChoice Choice>
inline void poolGrad(genrec_step *step, const genrec_domain *domain,
                     int64_t width, const float *x, int64_t ldX,
                     const float *gradient, int64_t ldGradient, float *out) {
  detail::forEachList(step, domain, [&](int64_t list) {
    int64_t begin = detail::listBegin(domain, list);
    int64_t length = detail::listLength(domain, list);
    if (length == 0)
      return;
    memset(out + begin * width, 0, static_cast<size_t>(length * width) * sizeof(float));
    for (int64_t i = 0; i < width; ++i) {
      int64_t chosen = Choice == PoolChoice::last ? length - 1 : 0;
      if (Choice == PoolChoice::max)
        for (int64_t row = 1; row < length; ++row)
          if (x[(begin + row) * ldX + i] > x[(begin + chosen) * ldX + i])
            chosen = row;
      out[(begin + chosen) * width + i] = gradient[list * ldGradient + i];
    }
  });
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_DOMAINS_H

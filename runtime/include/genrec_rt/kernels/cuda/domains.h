//===- domains.h - Domains as emitted stages make them ------------*- C++ -*-===//
//
// The calls of cpu/domains.h: they take the step, and read counts on the device (step.h).
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_DOMAINS_H
#define GENREC_RT_KERNELS_CUDA_DOMAINS_H

#include "genrec_rt/kernels/cuda/concat.h"
#include "genrec_rt/kernels/cuda/list_rows.h"
#include "genrec_rt/kernels/cuda/step.h"
#include "genrec_rt/kernels/shared/described_rows.h"

namespace genrec::rt::kernels {

/// A domain of lists below `above` that a call makes: the host knows its arrays and that no list
/// has more than `longest` rows, not how many there are.
inline cuda::NewLists newLists(genrec_step *step, genrec_domain *domain, const genrec_domain *above,
                               int64_t longest, int64_t *offsets, int64_t *parent,
                               uint64_t *identity) {
  domain->count = -1;
  domain->max_length = longest < domain->capacity ? longest : domain->capacity;
  domain->offsets = offsets;
  domain->parent = parent;
  domain->identity = identity;
  domain->parent_domain = above;
  return {domain->device,
          domain->capacity,
          above->capacity,
          offsets,
          parent,
          identity,
          scratchOf(step, cuda::kListScratchBytes)};
}

/// Lists of a domain, at most: a root's rows are lists of their own.
inline int64_t mostLists(const genrec_domain *domain) {
  return domain->parent_domain ? domain->parent_domain->capacity : domain->capacity;
}

/// A root of `count` rows.
inline void fixedRows(genrec_step *step, genrec_domain *domain, int64_t count) {
  // The runtime describes it as it was in the step before.
  if (domain->count == count)
    return;
  describeRows(domain, count);
  cuda::makeFixedRows(domain->device, count, streamOf(step));
}

/// The rows of a parameter that this rank updates.
inline void parameterRows(genrec_step *step, int32_t number, genrec_domain *domain) {
  fixedRows(step, domain, step->parameters[number].own_rows);
}

/// Where they begin in `all`, which has a row of `width` values per row of the parameter.
template <class T>
inline T *ownRows(const genrec_step *step, int32_t number, int64_t width, T *all) {
  return all + step->parameters[number].first_row * width;
}

/// The rows of all parts end to end. Each part has room for its capacity, which the host knows, so
/// the domain has rows of no part between them: what is written there is no key (fillKeys), and
/// readers of a part stop at its count. Where parts begin nobody reads on a device.
inline void stackDomains(genrec_step *step, genrec_domain *domain, int64_t * /*offsets*/,
                         int64_t count, const genrec_domain *const *parts) {
  int64_t rows = 0;
  for (int64_t part = 0; part < count; ++part)
    rows += parts[part]->capacity;
  fixedRows(step, domain, rows);
}

/// Shared tensors, one behind the other: sizes[i] floats of parts[i].
inline void concatShared(genrec_step *step, float *to, int64_t count, const float *const *parts,
                         const int64_t *sizes) {
  cuda::concat(to, count, parts, sizes, streamOf(step));
}

//===----------------------------------------------------------------------===//
// Lists that are made
//===----------------------------------------------------------------------===//

template <bool Last>
void truncate(genrec_step *step, const genrec_domain *source, genrec_domain *domain, int64_t most,
              int64_t *offsets, int64_t *parent, uint64_t *identity) {
  cuda::truncateLists(
      source->device, most, Last,
      newLists(step, domain, source->parent_domain, most, offsets, parent, identity),
      streamOf(step));
}

template <class... Sources> cuda::JoinedDomains joinedDomains(Sources *...sources) {
  static_assert(sizeof...(Sources) <= cuda::JoinedDomains::kMost);
  const genrec_domain *parts[] = {sources->device...};
  cuda::JoinedDomains joined;
  for (const genrec_domain *part : parts)
    joined.parts[joined.count++] = part;
  return joined;
}

template <class... Sources>
void concatDomains(genrec_step *step, const genrec_domain *above, genrec_domain *domain,
                   int64_t *offsets, int64_t *parent, uint64_t *identity, Sources *...sources) {
  const int64_t longest = (0 + ... + (sources == above ? 1 : sources->max_length));
  cuda::joinLists(above->device, joinedDomains(sources...),
                  newLists(step, domain, above, longest, offsets, parent, identity),
                  streamOf(step));
}

//===----------------------------------------------------------------------===//
// Moving values
//===----------------------------------------------------------------------===//

template <bool Last, class T>
void deriveGrad(genrec_step *step, const genrec_domain *source, const genrec_domain *domain,
                int64_t width, const T *x, int64_t ldX, T *out) {
  cuda::deriveRowsGradient(source->device, domain->device, Last, cuda::rowsIn(x, ldX),
                           cuda::rowsOut(out, source->capacity, width), streamOf(step));
}

inline void addParts(cuda::JoinedRows &) {}
/// Triples of a part's domain, its values and their stride.
template <class T, class... Rest>
void addParts(cuda::JoinedRows &rows, const genrec_domain *domain, const T *values, int64_t ld,
              Rest... rest) {
  rows.domains[rows.count] = domain->device;
  rows.values[rows.count++] = cuda::rowsIn(values, ld);
  addParts(rows, rest...);
}

template <class T, class... Parts>
void concatRows(genrec_step *step, const genrec_domain *domain, int64_t width, T *out,
                Parts... parts) {
  static_assert(sizeof...(Parts) % 3 == 0 && sizeof...(Parts) / 3 <= cuda::JoinedDomains::kMost);
  cuda::JoinedRows rows;
  addParts(rows, parts...);
  cuda::joinRows(domain->device, rows, cuda::rowsOut(out, domain->capacity, width), streamOf(step));
}

/// Part `number` of a joined value.
template <class T, class... Sources>
void splitRows(genrec_step *step, const genrec_domain *domain, int64_t width, const T *x,
               int64_t ldX, T *out, int64_t number, Sources *...sources) {
  const int64_t capacities[] = {sources->capacity...};
  cuda::splitJoinedRows(domain->device, joinedDomains(sources...), static_cast<int>(number),
                        cuda::rowsIn(x, ldX), cuda::rowsOut(out, capacities[number], width),
                        streamOf(step));
}

template <class T>
void shiftRows(genrec_step *step, const genrec_domain *domain, int64_t distance, int64_t width,
               const T *x, int64_t ldX, T *out, bool *valid) {
  cuda::shiftListRows(domain->device, distance, cuda::rowsIn(x, ldX),
                      cuda::rowsOut(out, domain->capacity, width), valid, streamOf(step));
}

template <bool FromEnd>
void positions(genrec_step *step, const genrec_domain *domain, int64_t *out) {
  cuda::listPositions(domain->device, FromEnd, out, domain->capacity, streamOf(step));
}

inline void lengths(genrec_step *step, int64_t count, const genrec_domain *const *children,
                    int64_t *const *out) {
  cuda::CountedLists lists;
  int added = 0;
  for (int64_t i = 0; i < count; ++i) {
    lists.children[added] = children[i]->device;
    lists.out[added++] = out[i];
    if (added < cuda::CountedLists::kMost && i + 1 < count)
      continue;
    cuda::listLengths(lists, added, mostLists(children[0]), streamOf(step)); // of one parent
    added = 0;
  }
}

using PoolChoice = cuda::ListChoice;
template <PoolChoice Choice>
void poolGrad(genrec_step *step, const genrec_domain *domain, int64_t width, const float *x,
              int64_t ldX, const float *gradient, int64_t ldGradient, float *out) {
  cuda::listPoolGradient(Choice, domain->device, mostLists(domain), width, x, ldX, gradient,
                         ldGradient, out, domain->capacity, streamOf(step));
}

} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CUDA_DOMAINS_H

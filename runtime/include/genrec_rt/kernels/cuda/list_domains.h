//===- list_domains.h - Making domains on the device --------------*- C++ -*-===//
//
// What kernels/cpu/domains.h, lists.h and picked_rows.h say of domains that are made,
// to the bit. Domains are described in device memory (domain_view.h); their counts are
// read there and the new one's is written there, so that the host waits for nothing. `capacity` is
// that of the new domain; `lists` bounds the lists that it has. Lengths of lists are added up in
// two passes: blocks of lists, then within blocks.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_LIST_DOMAINS_H
#define GENREC_RT_KERNELS_CUDA_LIST_DOMAINS_H

#include "genrec_rt/abi.h"
#include "genrec_rt/device_limits.h"

#include <cstdint>
#include <cuda_runtime.h>

namespace genrec::rt::cuda {

/// Blocks that add up lengths of lists.
constexpr int64_t kLengthBlocks = 512;
/// Bytes of scratch of the functions here: a sum and a maximum per block.
constexpr int64_t kListScratchBytes = 2 * 8 * kLengthBlocks;

/// What a new domain of lists is made of: where its arrays go, on the device.
struct NewLists {
  genrec_domain *domain = nullptr;
  int64_t capacity = 0;         ///< rows
  int64_t lists = 0;            ///< capacity of the domain above
  int64_t *offsets = nullptr;   ///< [lists + 1]
  int64_t *parent = nullptr;    ///< [capacity]
  uint64_t *identity = nullptr; ///< [capacity]
  void *scratch = nullptr;      ///< kListScratchBytes
};

/// A root of `count` rows.
void makeFixedRows(genrec_domain *domain, int64_t count, cudaStream_t stream);

/// At most `most` rows of each list of `source`, its last ones or its first.
void truncateLists(const genrec_domain *source, int64_t most, bool last, const NewLists &made,
                   cudaStream_t stream);

/// Lists of at least `least` rows, with new rows in front of those of `source` or behind.
void lengthenLists(const genrec_domain *source, int64_t least, bool front, const NewLists &made,
                   cudaStream_t stream);

/// Domains that are joined, in device memory: arguments of kernels.
struct JoinedDomains {
  static constexpr int kMost = kMostJoinedParts;
  const genrec_domain *parts[kMost];
  int count = 0;
};

/// Lists of `parts` end to end per row of `above`; a part that is `above` gives its row.
void joinLists(const genrec_domain *above, const JoinedDomains &parts, const NewLists &made,
               cudaStream_t stream);

/// Below each row of `first`: the rows of `second` with the same parent row.
void pairLists(const genrec_domain *first, const genrec_domain *second, const NewLists &made,
               cudaStream_t stream);

/// The lists of `source` below the rows `parents` [rows of `above`] of its parent; `rows`
/// [capacity] gets their numbers in `source`.
void takeLists(const genrec_domain *source, const genrec_domain *above, const int64_t *parents,
               int64_t *rows, const NewLists &made, cudaStream_t stream);

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_LIST_DOMAINS_H

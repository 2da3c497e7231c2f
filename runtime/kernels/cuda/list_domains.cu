//===- list_domains.cu - Making domains on the device ---------------------===//

#include "genrec_rt/kernels/cuda/list_domains.h"

#include "genrec_rt/identity.h"
#include "genrec_rt/kernels/cuda/offsets.h"
#include "genrec_rt/kernels/shared/described_rows.h"
#include "length_scan.h"

namespace genrec::rt::cuda {

namespace {

//===----------------------------------------------------------------------===//
// What lists of a new domain are: how many, how long, which rows
//===----------------------------------------------------------------------===//

struct Truncated {
  const genrec_domain *source, *above;
  int64_t most;
  bool last;

  __device__ int64_t lists() const { return listCount(source); }
  __device__ int64_t length(int64_t list) const { return min(listLength(source, list), most); }
  __device__ uint64_t identity(int64_t list, int64_t ordinal, int64_t) const {
    const int64_t skipped = last ? listLength(source, list) - length(list) : 0;
    return source->identity[listBegin(source, list) + skipped + ordinal];
  }
};

struct Lengthened {
  static constexpr uint64_t kFirstNewOrdinal = uint64_t(1) << 32;
  const genrec_domain *source, *above;
  int64_t least;
  bool front;

  __device__ int64_t lists() const { return listCount(source); }
  __device__ int64_t length(int64_t list) const { return max(listLength(source, list), least); }
  __device__ uint64_t identity(int64_t list, int64_t ordinal, int64_t) const {
    const int64_t own = listLength(source, list), begin = front ? length(list) - own : 0;
    if (ordinal >= begin && ordinal < begin + own)
      return source->identity[listBegin(source, list) + ordinal - begin];
    const int64_t added = ordinal < begin ? ordinal : ordinal - own;
    return mixIdentity(source->parent_domain->identity[list],
                       kFirstNewOrdinal + static_cast<uint64_t>(added));
  }
};

struct Joined {
  const genrec_domain *source, *above;
  JoinedDomains parts;

  __device__ int64_t lists() const { return above->count; }
  __device__ int64_t lengthOf(int part, int64_t list) const {
    return parts.parts[part] == above ? 1 : listLength(parts.parts[part], list);
  }
  __device__ int64_t length(int64_t list) const {
    int64_t rows = 0;
    for (int part = 0; part < parts.count; ++part)
      rows += lengthOf(part, list);
    return rows;
  }
  __device__ uint64_t identity(int64_t list, int64_t ordinal, int64_t) const {
    int part = 0;
    for (int64_t rows; ordinal >= (rows = lengthOf(part, list)); ++part)
      ordinal -= rows;
    const genrec_domain *from = parts.parts[part];
    const int64_t begin = from == above ? list : listBegin(from, list);
    return mixIdentity(from->identity[begin + ordinal], static_cast<uint64_t>(part));
  }
};

struct Paired {
  const genrec_domain *source, *above; ///< the second halves, the first

  __device__ int64_t lists() const { return above->count; }
  __device__ int64_t length(int64_t row) const { return listLength(source, above->parent[row]); }
  __device__ uint64_t identity(int64_t row, int64_t ordinal, int64_t) const {
    return mixIdentity(above->identity[row], static_cast<uint64_t>(ordinal));
  }
};

struct Taken {
  const genrec_domain *source, *above;
  const int64_t *parents;
  int64_t *rows;

  __device__ int64_t lists() const { return above->count; }
  __device__ int64_t length(int64_t list) const { return listLength(source, parents[list]); }
  __device__ uint64_t identity(int64_t list, int64_t ordinal, int64_t row) const {
    const int64_t from = listBegin(source, parents[list]) + ordinal;
    rows[row] = from;
    return source->identity[from];
  }
};

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// The end of the last list, and the domain.
struct Describe {
  NewLists made;
  const genrec_domain *source; ///< of lists below the rows of its parent, or
  const genrec_domain *above;  ///< what they are below

  __device__ void operator()(int64_t lists, int64_t total, int64_t longest) const {
    made.offsets[lists] = total;
    made.domain->count = total;
    made.domain->offsets = made.offsets;
    made.domain->parent = made.parent;
    made.domain->identity = made.identity;
    made.domain->parent_domain = above ? above : source->parent_domain;
    made.domain->max_length = longest;
  }
};

/// Parents and identities of the new rows.
template <class Lists>
__global__ void __launch_bounds__(kThreads) writeRows(Lists from, NewLists made) {
  const int64_t lists = from.lists(), count = made.domain->count;
  for (int64_t row = threadInGrid(); row < count; row += threadsInGrid()) {
    const int64_t list = lastAtMost(made.offsets, lists, row);
    made.parent[row] = list;
    made.identity[row] = from.identity(list, row - made.offsets[list], row);
  }
}

template <class Lists> void make(const Lists &from, const NewLists &made, cudaStream_t stream) {
  scan::run(from, made.lists, made.offsets, Describe{made, from.source, from.above}, made.scratch,
            stream);
  if (made.capacity > 0)
    GENREC_CUDA_LAUNCH(stream, shapeOfThreads(made.capacity, kThreads), writeRows<Lists>, from,
                       made);
}

__global__ void describeRoot(genrec_domain *domain, int64_t count) {
  kernels::describeRows(domain, count);
}

} // namespace

void makeFixedRows(genrec_domain *domain, int64_t count, cudaStream_t stream) {
  GENREC_CUDA_LAUNCH(stream, (LaunchShape{1, 1}), describeRoot, domain, count);
}

void truncateLists(const genrec_domain *source, int64_t most, bool last, const NewLists &made,
                   cudaStream_t stream) {
  make(Truncated{source, nullptr, most, last}, made, stream);
}

void lengthenLists(const genrec_domain *source, int64_t least, bool front, const NewLists &made,
                   cudaStream_t stream) {
  make(Lengthened{source, nullptr, least, front}, made, stream);
}

void joinLists(const genrec_domain *above, const JoinedDomains &parts, const NewLists &made,
               cudaStream_t stream) {
  make(Joined{nullptr, above, parts}, made, stream);
}

void pairLists(const genrec_domain *first, const genrec_domain *second, const NewLists &made,
               cudaStream_t stream) {
  make(Paired{second, first}, made, stream);
}

void takeLists(const genrec_domain *source, const genrec_domain *above, const int64_t *parents,
               int64_t *rows, const NewLists &made, cudaStream_t stream) {
  make(Taken{source, above, parents, rows}, made, stream);
}

} // namespace genrec::rt::cuda

//===- row_kernels.h - Kernels of a row exchange on a device ----*- C++ -*-===//
//
// A section is what one rank asks another for; one more, behind those of all ranks, is of rows
// whose sums go to all ranks: of replicas. A cell is what a section has of one store. Positions
// number the distinct keys of a rank, cell by cell: by section, then by store. Messages of values
// have rows as stores have them; those of sums have floats, and end with a byte per row that says
// whether it has one.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_RANKS_CUDA_ROW_KERNELS_H
#define GENREC_RT_RANKS_CUDA_ROW_KERNELS_H

#include "genrec_rt/abi.h"

#include <cstdint>
#include <cuda_runtime.h>

namespace genrec::rt::cuda {

/// What stands for no key among keys that are numbered.
constexpr int64_t kNoKey = INT64_MIN;

/// Where the rows of cells are; arrays of the device.
struct RowCells {
  const int64_t *firsts = nullptr;    ///< [cells + 1] the position of a cell's first row
  const int64_t *values = nullptr;    ///< [cells] the float where its value begins
  const int64_t *rowFloats = nullptr; ///< [stores] of a value
  const int64_t *begins = nullptr;    ///< [cells] the float where its sum begins
  const int64_t *flags = nullptr;     ///< [cells] the byte that is its flag
  const int64_t *dims = nullptr;      ///< [stores] floats of a sum
  int64_t cells = 0, stores = 0;      ///< cell c is of store c % stores
  int64_t rows = 0;
  int64_t widest = 0; ///< of `dims`
};

/// Who owns the keys of stores; arrays of the device.
struct KeyOwners {
  const uint64_t *members = nullptr;     ///< of all stores
  const int32_t *sections = nullptr;     ///< by member: of its replicas; -1: owners have its rows
  const int64_t *firstMembers = nullptr; ///< [stores + 1]
  const int64_t *keyBits = nullptr;      ///< [stores]
  int32_t ranks = 1;
};

/// The distinct keys of all stores, store by store, as Unique leaves them.
struct DistinctKeys {
  const int64_t *keys = nullptr;
  const int64_t *firsts = nullptr; ///< [stores + 1]
  const uint32_t *total = nullptr;
  int64_t stores = 0;
};

/// Negative keys become kNoKey; *keysThere = how many others there are.
void markNone(int64_t *keys, int64_t count, int64_t *keysThere, cudaStream_t stream);

/// cellOf[u] = the cell of distinct key u: section * stores + store; that behind the last for what
/// is no key, and for u that is none, up to `count`.
void findCells(const DistinctKeys &distinct, int64_t count, const KeyOwners &owners,
               uint32_t *cellOf, cudaStream_t stream);

/// Brings distinct keys, of which `order` has those of the first cell first, into this order:
/// positions[u], grouped[position], and where each of `cells` cells begins, one more at the end.
void groupKeys(const DistinctKeys &distinct, int64_t count, const uint32_t *cellOf,
               const uint32_t *order, int64_t cells, uint32_t *positions, int64_t *grouped,
               int64_t *firsts, cudaStream_t stream);

/// Keys that came rank by rank, store by store: `from` and `to` are where each of `cells` cells
/// begins, `from` with one more at the end.
void reorderKeys(const int64_t *keys, const int64_t *from, const int64_t *to, int64_t cells,
                 int64_t count, int64_t *out, cudaStream_t stream);

/// rows[i] = the address in `values` of the row that entry i of a request asks for, `numbers[i]`
/// being its distinct key.
void giveAddresses(const RowCells &cells, const uint32_t *numbers, int64_t count,
                   const uint32_t *cellOf, const uint32_t *positions, float *values, float *zeros,
                   float **rows, cudaStream_t stream);

/// Copies the sums of touched rows of a store whose addresses are among the `valueCount` floats of
/// `values` to their places in `node`.
void placeSums(const RowCells &cells, int64_t store, const genrec_domain *touched, int64_t capacity,
               float *const *rows, const float *values, int64_t valueCount, const float *sums,
               int64_t dim, float *node, cudaStream_t stream);

/// left = left + right, row by row; what only one has is kept as it is.
void mergeSums(const RowCells &cells, float *left, const float *right, cudaStream_t stream);

/// A node of the tree of portions whose sums a rank has sent.
struct LeafNode {
  /// Of the rank to this one: of rows that this rank owns, and of replicas.
  const float *messages[2] = {};
  int32_t firstPortion = 0;
};

/// Who asks for a row, and which one of those of its cell it is.
struct AskedRow {
  int32_t asker, place;
};

/// The rows that ranks ask this one for. Asker r is rank r, of rows that this rank owns; asker
/// ranks + r is that rank, of replicas. A cell is store * askers + asker.
struct AskedCells {
  const int64_t *firsts = nullptr; ///< [cells + 1] of the device
  int64_t stores = 0;
  int32_t ranks = 1, askers = 1;
  int64_t asked = 0; ///< rows
};

/// from[k] = who asks for the row order[k].
void findAskers(const AskedCells &cells, const uint32_t *order, AskedRow *from,
                cudaStream_t stream);

/// *found = the distinct keys of rows that somebody asks this rank for, replicas of other ranks
/// left out; `numbers` has the distinct key of each row, seen[asked] is scratch.
void countFound(const AskedCells &cells, const uint32_t *numbers, int32_t rank, uint32_t *seen,
                int64_t *found, cudaStream_t stream);

/// The same rows by distinct key, and the sums that leaves have of them; arrays of the device.
struct OwnedRows {
  AskedCells cells;
  DistinctKeys distinct;             ///< `keys` are those of all rows that are asked for
  const uint32_t *order = nullptr;   ///< [asked] rows by distinct key, of each by asker
  const int64_t *segments = nullptr; ///< [distinct keys + 1] where those of a key begin in `order`
  const AskedRow *from = nullptr;    ///< [asked] in that order
  float *const *rows = nullptr;      ///< by row that is asked for: where the store has it
  const int64_t *begins = nullptr;   ///< [askers * stores] of sums in the message of an asker
  const int64_t *flags = nullptr;    ///< likewise
  const int64_t *dims = nullptr;     ///< [stores]
  const LeafNode *leaves = nullptr;  ///< in the order of portions
  const int32_t *leafFirsts = nullptr; ///< [ranks + 1] where those of a rank begin
  int64_t widest = 0;
};

/// What is updated. Rows of a store lie one behind another from its place on, as their sums do.
struct OwnedUpdates {
  const int64_t *firsts = nullptr; ///< [stores] the row where those of a store begin
  const int64_t *begins = nullptr; ///< [stores] the float of `sums` where those of a store begin
  float **rows = nullptr;
  float *sums = nullptr;
  int64_t *counts = nullptr; ///< [stores] how many there are
  float *isOwned = nullptr;  ///< by row: whether this rank is the owner; null where all are its own
};

/// touched[u]: whether any node has a sum of distinct key u.
void findTouched(const OwnedRows &owned, uint8_t *touched, cudaStream_t stream);

/// Adds the nodes' sums of touched rows in the tree of portions; several that one node has of a key
/// from left to right. `before` and `total` are ranks and number of the flags `touched`.
void addLeaves(const OwnedRows &owned, const KeyOwners &owners, int32_t rank,
               const uint8_t *touched, const uint32_t *before, const uint32_t *total,
               const OwnedUpdates &updates, cudaStream_t stream);

/// A domain of counts[0] rows that has no lists.
void describeRows(genrec_domain *domain, const int64_t *count, cudaStream_t stream);

/// to[i] = i.
template <class T> void fillNumbers(T *to, int64_t count, cudaStream_t stream);

/// to[i] += from[i].
void addFloats(float *to, const float *from, int64_t count, cudaStream_t stream);

} // namespace genrec::rt::cuda

#endif // GENREC_RT_RANKS_CUDA_ROW_KERNELS_H

//===- row_picks.h - Rows that a step picks, on the device --------*- C++ -*-===//
//
// What kernels/cpu/picked_rows.h says, to the bit: draws, and a domain of the distinct
// rows that numbers name; and rows of a catalogue by id.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ROW_PICKS_H
#define GENREC_RT_KERNELS_CUDA_ROW_PICKS_H

#include "genrec_rt/abi.h"
#include "genrec_rt/kernels/shared/catalogue_slots.h"

#include <cuda_runtime.h>

namespace genrec::rt::cuda {

/// What draws come from: op `op` of a step in device memory, of which seed and step are read.
struct DrawStream {
  const genrec_step *step = nullptr;
  uint32_t op = 0;
};

/// `count` row numbers of `source` for each row of `domain`, below `capacity`, with the row's
/// identity; once, with identity 0, if `domain` is null. Rows past the last are zeros.
void drawNumbers(const genrec_domain *source, const genrec_domain *domain, int64_t capacity,
                 const DrawStream &stream, int64_t count, int64_t *out, cudaStream_t on);

/// Numbers of rows, -1 for none: `width` for each row of `domain`, below `capacity`; `width` in
/// all where that is null.
struct PickedNumbers {
  const int64_t *numbers = nullptr;
  int64_t *places = nullptr; ///< gets the numbers in the picked domain
  const genrec_domain *domain = nullptr;
  int64_t capacity = 0, width = 0;
};

/// Lists of numbers that emitted code picks by at once.
constexpr int64_t kMostPickedParts = 64;

/// Bytes of memory for picking of a source of up to `capacity` rows.
int64_t pickMemoryBytes(int64_t capacity);

/// A domain of picked rows, its arrays in device memory; its capacity is not below the numbers'.
struct PickedRows {
  genrec_domain *domain = nullptr;
  int64_t *rows = nullptr;      ///< [its capacity] the number of each in the source
  uint64_t *identity = nullptr; ///< [its capacity]
  void *memory = nullptr;       ///< pickMemoryBytes
};

/// Makes `picked` of the rows of `source`, a root of up to `capacity` rows, that `parts` lists of
/// numbers name, in the order of the source. `numbers` is an array of the host.
void pickNumberedRows(const genrec_domain *source, int64_t capacity, int64_t parts,
                      const PickedNumbers *numbers, const PickedRows &picked, cudaStream_t stream);

/// rows[r] = the catalogue's row of ids[r], -1 where valid[r] (may be null) is 0, where there is
/// none, and past the last row. The first row of an id that there is none of is noted in
/// `missing`, with the id (null: it may be missing). `slots` are in device memory.
void resolveRows(const genrec_domain *domain, int64_t capacity, const int64_t *ids,
                 const uint8_t *valid, const CatalogueSlots &slots, int64_t *rows,
                 genrec_row_note *missing, cudaStream_t stream);

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ROW_PICKS_H

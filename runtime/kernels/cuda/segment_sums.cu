//===- segment_sums.cu - Sums of the gradients of distinct rows -----------===//

#include "genrec_rt/kernels/cuda/segment_sums.h"
#include "genrec_rt/kernels/shared/described_rows.h"

#include "segment_pieces.h"

namespace genrec::rt::cuda {

namespace {

/// As an argument of a kernel, what the host knows needs no memory of the host that stays.
__global__ void describeSums(SegmentSums from, SegmentSums *to, const uint32_t *used,
                             genrec_domain *rows) {
  *to = from;
  if (rows != nullptr)
    kernels::describeRows(rows, *used);
}

} // namespace

void SegmentReduction::run(int64_t count, const uint32_t *used, int64_t dim,
                           const SegmentTerms &terms, const int64_t *offsets, int64_t occurrences,
                           SegmentSums *made, genrec_domain *rows, cudaStream_t stream) {
  Pieces pieces = {};
  if (Pieces::levelsOf(occurrences) > 0) {
    const int64_t most = Pieces::mostOf(occurrences, occurrences);
    static_assert(sizeof(Piece) == 2 * sizeof(int64_t));
    pieces = {reinterpret_cast<Piece *>(bounds.ensure(2 * most, stream)),
              partSums.ensure(most * dim, stream), firstOf.ensure(count, stream),
              counts.ensure(Pieces::kMostLevels + 1, stream)};
  }
  const SegmentSums result =
      sumGiants(count, used, dim, terms, offsets, occurrences, occurrences, pieces, stream);
  GENREC_CUDA_LAUNCH(stream, (LaunchShape{1, 1}), describeSums, result, made, used, rows);
}

} // namespace genrec::rt::cuda

//===- segment_sums.cu - Sums of the gradients of distinct rows -----------===//

#include "genrec_rt/kernels/cuda/segment_sums.h"

#include "segment_pieces.h"

namespace genrec::rt::cuda {

namespace {

template <int kEach>
__global__ void __launch_bounds__(kPieceThreads)
    sumSegmentPieces(SegmentTerms terms, int64_t dim, Pieces pieces) {
  sumLevel<kEach>(1, 0, dim, pieces, [&](const Piece &piece, int64_t base, float (&total)[kEach]) {
    detail::addTerms(terms, piece.begin, piece.end, base, dim, total);
  });
}

/// As an argument of a kernel, what the host knows needs no memory of the host that stays.
__global__ void copySums(SegmentSums from, SegmentSums *to) { *to = from; }

} // namespace

const SegmentSums *SegmentReduction::run(int64_t count, const uint32_t *used, int64_t dim,
                                         const SegmentTerms &terms, const int64_t *offsets,
                                         int64_t occurrences, cudaStream_t stream) {
  const int levels = Pieces::levelsOf(occurrences);
  Pieces pieces = {};
  if (levels > 0) {
    const int64_t most = Pieces::mostOf(occurrences);
    static_assert(sizeof(Piece) == 2 * sizeof(int64_t));
    pieces = {reinterpret_cast<Piece *>(bounds.ensure(2 * most, stream)),
              partSums.ensure(most * dim, stream), firstOf.ensure(count, stream),
              counts.ensure(Pieces::kMostLevels + 1, stream)};
    sumPieces(count, used, dim, offsets, occurrences, pieces, stream, [&](int64_t mostPieces) {
      GENREC_CUDA_LAUNCH(stream, shapeOfPieces(mostPieces, kPieceWarps),
                         dim <= kWarp ? sumSegmentPieces<1> : sumSegmentPieces<kPieceColumns>,
                         terms, dim, pieces);
    });
  }
  const SegmentSums result{terms, offsets, pieces.firstOf, pieces.sums, dim, levels};
  SegmentSums *onDevice = sums.ensure(1, stream);
  GENREC_CUDA_LAUNCH(stream, (LaunchShape{1, 1}), copySums, result, onDevice);
  return onDevice;
}

} // namespace genrec::rt::cuda

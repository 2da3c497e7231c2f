# ruff: noqa: E501 -- a defect per line
"""Defects of sums: of terms that an index scatters, of pooled lists, of the gradients of distinct rows, and their pieces."""

from planting import Defect

KERNELS, HEADERS = "kernels/cuda/", "include/genrec_rt/kernels/cuda/"
SCATTERED, PIECES = KERNELS + "scattered_sums.cu", KERNELS + "segment_pieces.h"
SEGMENTS, LANE_SEGMENTS = HEADERS + "segments_warp.h", HEADERS + "segments.h"
POOLED, POOLS = KERNELS + "pools.cu", HEADERS + "pools.h"
GATHERED = HEADERS + "gathered_rows.h"
PIECES_TESTS, LENGTH_TESTS = "ScatteredSums.OfPiecesOfPieces", "ScatteredSums.OfRowsOfEveryLength"
WARP_SUM_TESTS, LANE_SUM_TESTS = "SegmentSums.OfWarps*", "SegmentSums.OfLanes*"

SUMS = [
    Defect("rows that are not there leave terms", SCATTERED, "ScatteredSums.RowsThatAreNotThere*",
           "GENREC_CUDA_CHECK(\n        cudaMemsetAsync(sum.terms.keys, 0xFF, static_cast<size_t>(sum.count()) * 4, stream));"),
    Defect("terms are added as of one vector", SCATTERED, "ScatteredSums.OfSeveral*", "inRow >= shape.firstTerms[v]", "false"),
    Defect("terms of the first lanes are added again", SCATTERED, LENGTH_TESTS, "begin + first + lane()", "begin + lane()"),
    Defect("the last terms are read from the front", SCATTERED, LENGTH_TESTS, "k += count & 4;", ";"),
    Defect("one of the last terms is left out", SCATTERED, LENGTH_TESTS, "count & 1", "count == 1"),
    Defect("a row is looked for behind the last of a part", SCATTERED, LENGTH_TESTS, "(Lookers::lane() + 1) * part - 1", "(Lookers::lane() + 1) * part"),
    Defect("all slices are the first", SCATTERED, LENGTH_TESTS, "static_cast<int64_t>(blockIdx.y) * L", "0"),
    Defect("coefficients of slices are read by term", SCATTERED, LENGTH_TESTS, "coefficients[at]", "coefficients[term]"),
    Defect("lanes wait for those of another sum", SCATTERED, LENGTH_TESTS,
           "cuda::kAllLanes >> (cuda::kWarp - L) << cuda::laneOf() / L * L", "cuda::kAllLanes"),
    Defect("the first piece of a list has the slot of another", POOLS, "Pools.PiecesThatBegin*",
           "return 2 * (begin / kPoolPiece) + (isFirst ? 1 : 0);", "return 2 * (begin / kPoolPiece);"),
    Defect("a first piece is that of two slots", POOLS, "Pools.PiecesThatBegin*", "unit.first >= begin && unit.first < known", "unit.first >= begin"),
    Defect("a long list is pooled as a whole, too", POOLS, "Pools.ListsOfEverySize", "parts && end - begin > kPoolPiece", "false"),
    Defect("the greatest of a piece begins with 0", POOLS, "Pools.RandomLists", "unit.begin == unit.first", "unit.begin >= unit.first", behind="template <class T> __device__ inline T poolStart(const PoolUnit &unit) {"),
    Defect("a mean divides its pieces, too", POOLS, "Pools.RandomLists", "unit.slot < 0 ? unit.end - unit.begin : 1", "unit.end - unit.begin"),
    Defect("a warp pools its first list for all", POOLED, "Pools.RandomLists", "__shfl_sync(0xFFFFFFFFu, first, lane)",
           "__shfl_sync(0xFFFFFFFFu, first, 0)"),
    Defect("long sums are added one by one", SEGMENTS, "DistinctRows.Sums*", "size <= kMostSummed", "true"),
    Defect("a warp begins anew with each of its rounds", SEGMENTS, WARP_SUM_TESTS, "first == begin", "true"),
    Defect("a warp adds the first of a row to a zero", SEGMENTS, WARP_SUM_TESTS, "isFirst && i == 0", "false"),
    Defect("a warp looks up the terms of its first round", SEGMENTS, WARP_SUM_TESTS, "terms.row(first + lane, ownShare)",
           "terms.row(begin + lane, ownShare)"),
    Defect("a warp reads some of the last terms twice", SEGMENTS, WARP_SUM_TESTS, "at += 2;", ";"),
    Defect("lanes begin anew with each of their rounds", LANE_SEGMENTS, LANE_SUM_TESTS, "first == 0", "true"),
    Defect("lanes add the first of a row to a zero", LANE_SEGMENTS, LANE_SUM_TESTS, "isFirst && k == 0", "false"),
    Defect("lanes read some of the last terms twice", LANE_SEGMENTS, LANE_SUM_TESTS, "i += 4;", ";"),
    Defect("pieces of a level are put over those below", PIECES, PIECES_TESTS, "levelBegin += 2 * levelTerms;", ";"),
    Defect("pieces of pieces begin where the terms do", PIECES, PIECES_TESTS, "from = begin + upTo - cut;", ";"),
    Defect("a piece is of the lane before its own", PIECES, LENGTH_TESTS, "__shfl_sync(kAllLanes, upTo, owner + by - 1) <= at",
           "__shfl_sync(kAllLanes, upTo, owner + by - 1) < at"),
    Defect("pieces of lanes begin where those of the first do", PIECES, LENGTH_TESTS, "at - __shfl_sync(kAllLanes, upTo - cut, owner)", "at"),
    Defect("keys of a row's first term alone are cleared", SCATTERED, "ScatteredSums.RowsThatAreNotThere*",
           "GENREC_CUDA_CHECK(\n        cudaMemsetAsync(sum.terms.keys, 0xFF, static_cast<size_t>(sum.count()) * 4, stream));",
           "GENREC_CUDA_CHECK(cudaMemsetAsync(sum.terms.keys, 0xFF, static_cast<size_t>(sum.leaving) * 4, stream));"),
    Defect("terms of no row are ordered among those of the last", SCATTERED, "ScatteredSums.AreThose*", "sum.rows + 1", "sum.rows", behind="cuda::orderStably(sum.terms.keys, count,"),
    Defect("a result is taken for aligned", SCATTERED, "ScatteredSums.AreThose*", "reinterpret_cast<uintptr_t>(sum.to) / sizeof(float)", "0"),
    Defect("pieces of the last call are counted", PIECES, LENGTH_TESTS,
           "GENREC_CUDA_CHECK(\n      cudaMemsetAsync(pieces.counts, 0, sizeof(uint32_t) * (Pieces::kMostLevels + 1), stream));", ";"),
    Defect("vectors of bfloat16 lie as far apart as of floats", SCATTERED, "ScatteredSums.OfSeveralRounded*",
           "shape.isRounded ? shape.width / 2 : shape.width", "shape.width"),
    Defect("columns of bfloat16 are read where those of floats lie", SCATTERED, "ScatteredSums.OfRounded*",
           "reinterpret_cast<const Element *>(vector) + own", "reinterpret_cast<const Element *>(vector + own)"),
    Defect("rounded vectors of any width are read eight columns at a time", SCATTERED, "ScatteredSums.OfRounded*", "both % 8 == 0", "width % 8 == 0"),
    Defect("of two bfloat16 the first is read twice", GATHERED, "GatheredRows.SoftmaxOfRounded*", "slot % 2 ? pair & 0xFFFF0000U : pair << 16", "pair << 16"),
    Defect("a sum in shared memory is read before it is there", LANE_SEGMENTS, LANE_SUM_TESTS, "meetAfterWriting<L, Sum>();", ";"),
    Defect("coefficients of terms that no row left are read", SCATTERED, "ScatteredSums.RowsThatAreNotThere*", "begins[rows]", "begins[rows] + 64", behind="orderCoefficients("),
    Defect("later results are added where the first ones are", KERNELS + "row_sums.cu", "RowSums.ChunksAreAdded*", "sums += width;"),
]  # fmt: skip

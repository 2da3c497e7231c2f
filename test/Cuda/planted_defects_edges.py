# ruff: noqa: E501 -- a defect per line
"""Defects that only show at edges: more items than a grid has threads, what is not aligned, signs of zero, scores far away."""

from planting import Defect

KERNELS, HEADERS = "kernels/cuda/", "include/genrec_rt/kernels/cuda/"
CROSS, PAIRS, POOLS, PIECES = (
    HEADERS + "cross_attention.h",
    HEADERS + "interaction.h",
    HEADERS + "pools.h",
    KERNELS + "segment_pieces.h",
)
POOLED, LINEAR, SCATTERED = KERNELS + "pools.cu", KERNELS + "linear_products.cu", KERNELS + "scattered_sums.cu"
SCAN, MOVED, ROWS, SETS = (
    KERNELS + "length_scan.h",
    KERNELS + "list_rows.cu",
    KERNELS + "rows.cu",
    KERNELS + "item_sets.h",
)
RANK, TOP, IN_BATCH, SIZED = (
    KERNELS + "rank.cu",
    KERNELS + "top_items.cu",
    KERNELS + "in_batch_softmax.cu",
    KERNELS + "sized_products.cu",
)
PICKS, CACHE = KERNELS + "row_picks.cu", "include/genrec_rt/cuda/cache_table.h"
PAIR_TESTS, LINEAR_TESTS = "LinearProducts.PairsOf*", "LinearProducts.RowsTimes*"
GIANT_TESTS, SCAN_TESTS, MOVE_TESTS = "SegmentSums.OfGiants*", "LengthScan.Begins*", "ListDomains.Truncated"

EDGES = [
    Defect("keys below lists of queries meet those of the list", CROSS, "CrossAttention.KeysBelow*",
           "a.keys->parent_domain == a.queries ? query : listOfRow(a.queries, query)", "listOfRow(a.queries, query)"),
    Defect("a score of a row that is not there is the greatest", CROSS, "CrossAttention.ScoresFar*", "mostOfLanes(counts ? score : -__builtin_inff())", "mostOfLanes(score)"),
    Defect("weights of a forward pass are not rounded", CROSS, "CrossAttention.WeightsAre*", "factor<Bf16>(weight)", "weight", behind="attended.add("),
    Defect("a vector ends with its second 32 columns", CROSS, "CrossAttention.HeadsWider*",
           "for (int e = laneOf(); e < Size; e += kWarp)\n    to[e] = factor<Bf16>(from[e]);",
           "for (int e = laneOf(); e < Size && e < 2 * kWarp; e += kWarp) to[e] = factor<Bf16>(from[e]);"),
    Defect("gradients of pairs lie one behind another", PAIRS, PAIR_TESTS, "cuda::factor<Bf16>(gradient[row * ldGradient + i])",
           "cuda::factor<Bf16>(gradient[row * Rows::kPairs + i])"),
    Defect("a product of a vector with itself counts once", PAIRS, PAIR_TESTS, "2 * shares[Rows::place(i, i)]", "shares[Rows::place(i, i)]"),
    Defect("a thread has one pair", PAIRS, PAIR_TESTS, "pair += Rows::kThreads", "pair += Rows::kPairs"),
    Defect("the host asks how many rows have pairs", PAIRS, PAIR_TESTS, "domain->capacity > 0", "domain->count > 0", behind="void dotInteraction(genrec_step *step, const genrec_domain *domain, const float *x, int64_t ldX,"),
    Defect("the greatest of a piece begins with the least float", POOLS, "Pools.TheFirst*", "return -__builtin_inff();", "return -3.402823466e38f;"),
    Defect("a list of lists is as long as its longest one", POOLS, "Pools.ShortListsOf*", "longest * at->max_length", "at->max_length"),
    Defect("the last of equal pieces is the greatest", POOLED, "Pools.TheFirst*", "part > before ? part : before", "part >= before ? part : before"),
    Defect("what is no greater than a NaN replaces it", POOLED, "Pools.ANaN*", "part > before ? part : before", "before > part ? before : part"),
    Defect("a lane has one column of a pooled list", POOLED, "Pools.Wide*", "column += cuda::kWarp", "column = result.width"),
    Defect("warps look for long lists once", POOLED, "Pools.LongListsBehind*", "base += warps * cuda::kWarp", "base = rows"),
    Defect("rows that are not in use are cut", PIECES, GIANT_TESTS, "used ? min(count, static_cast<int64_t>(*used)) : count", "count"),
    Defect("a warp cuts 32 rows", PIECES, GIANT_TESTS, "base += pieceWarps() * kWarp", "base = present"),
    Defect("pieces are taken without an atomic", PIECES, GIANT_TESTS, "before = atomicAdd(taken, all);", "{ before = *taken; *taken = before + all; }"),
    Defect("values before the activation lie as results do", LINEAR, LINEAR_TESTS, "p.pre[(row + i) * p.ldPre + column + j] = t;", "p.pre[(row + i) * p.ldY + column + j] = t;"),
    Defect("a block has one tile of rows", LINEAR, LINEAR_TESTS, "first += static_cast<int64_t>(gridDim.x) * kTile", "first = rows"),
    Defect("a row is looked for where nothing is left", SCATTERED, "ScatteredSums.OfEveryNumber*", "parts < kLookers && left >= part", "parts < kLookers"),
    Defect("the longest list is that of the last round", SCAN, SCAN_TESTS, "most = max(most, length);", "most = length;", behind="before += total;"),
    Defect("a lane moves one word of a row", MOVED, MOVE_TESTS, "u += lanes", "u = units"),
    Defect("rows of any width are moved as they begin", MOVED, MOVE_TESTS, "static_cast<uint64_t>(out.bytes) | reinterpret_cast<uintptr_t>(out.values)",
           "reinterpret_cast<uintptr_t>(out.values)"),
    Defect("a result of moved rows is taken for aligned", MOVED, MOVE_TESTS, "static_cast<uint64_t>(out.bytes) | reinterpret_cast<uintptr_t>(out.values)",
           "static_cast<uint64_t>(out.bytes)"),
    Defect("a matrix of rows begins where 16 bytes do", ROWS, "Rows/0.Gather*",
           "bytes % 16 == 0 && step % 16 == 0 && reinterpret_cast<uintptr_t>(matrix) % 16 == 0", "bytes % 16 == 0 && step % 16 == 0"),
    Defect("warps pool once", ROWS, "Rows.ManyLists*", "parent += warpsInGrid() * each", "parent = parents"),
    Defect("an item that there is not has a NaN", RANK, "Rank.AnInfinite*", "exists && score != score", "score != score"),
    Defect("blocks count one tile of items", RANK, "Rank.OfTargets", "static_cast<int64_t>(itemBlocks) * kProductTile", "items"),
    Defect("-0 is less than 0", TOP, "Rank.Zeros*", "__float_as_uint(score + 0.0f)", "__float_as_uint(score)"),
    Defect("a set ends in the next one", SETS, "Rank.ExcludedItems*", "at + 1 < size ? at + 1 : 0", "at + 1 <= size ? at + 1 : 0"),
    Defect("small losses are differences", IN_BATCH, "InBatchSoftmax.ARowFar*", "own == most ? kernels::log1p(ofOthers) : (most - own) + kernels::log(sum)",
           "(most - own) + kernels::log(sum)"),
    Defect("what a product is added onto lies as the result does", SIZED, "SizedProducts.SizesBelow*", "p.onto ? p.onto[row * p.ldOnto + column] + sum : sum",
           "p.onto ? p.onto[row * p.ldResult + column] + sum : sum"),
    Defect("numbers of a source without rows are marked", PICKS, "RowPicks.Picked", "picked.source->count > 0 ? numberCount(part) : 0", "numberCount(part)"),
    Defect("chunks are taken to ascend", "embedding/cuda/store.cu", "Addresses/StoreChunks.*/1", "chunkPlaces.insert(at, last);", "chunkPlaces.insert(chunkPlaces.end(), last);"),
    Defect("scores of many occurrences begin again", CACHE, "CudaCache.ScoresOf*", "score < 255 ? score : 255", "score & 255"),
]  # fmt: skip

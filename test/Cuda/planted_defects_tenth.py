# ruff: noqa: E501 -- a defect per line
"""What mutants of the tenth seed, and some written by hand, showed that tests had no input for."""

from planting import Defect

PLAIN = "include/genrec_rt/kernels/cuda/attention/plain_tiles.h"
DISTINCT, ATTENTION = "kernels/cuda/distinct.cu", "include/genrec_rt/kernels/cuda/attention"
PRODUCTS, SIZED, PLANS = (
    "kernels/cuda/library_products.cu",
    "kernels/cuda/library_sized_products.cu",
    "kernels/cuda/library_plans.cu",
)
ROWS_TIMES, ADDED_ONTO = "LibraryProducts.RowsTimesAWeight", "LibraryProducts.LargeChunks*"
DISTINCT_FAR, INTERACTION = "ProductsPerDistinctRow", "include/genrec_rt/kernels/cuda/interaction.h"


def far(what: str, file: str, test: str, place: str, behind: str = "") -> Defect:
    """Places of these have 32 bits."""
    return Defect(
        f"places of {what} have 32 bits", file, f"LargeSizes.{test}", place, f"static_cast<int32_t>({place})", behind
    )


TENTH = [
    Defect("squares that are too small for a float are none", "kernels/cuda/score_bounds.cu", "Rank.ByTheLibrary", "norms[row] = sqrtf(sum + lost);", "norms[row] = sqrtf(sum);"),
    Defect("a column by itself is not read", "embedding/cuda/store_export.cu", "Cuda/StoreConformance/0.ColumnsOfRows*", "count == 0 || width == 0", "count == 0 || width == 1", behind="float *to) const {\n  if ("),
    Defect("gradients of distinct rows have 64 columns", DISTINCT, "DistinctProducts.AreThose*", "static_cast<int64_t>(blockIdx.y) * kProductTile", "static_cast<int64_t>(blockIdx.y)", behind="multiplySums(__grid_constant__ const Window w, const float *sums) {"),
    Defect("what is not finite in a later tile is noted in the first", f"{ATTENTION}/hopper_backward.h", "AttentionHopper.WhatIsNotFinite*", "terms.first + columnBegin + row", "terms.first + row", behind="int columnBegin, float factor, Between between) {"),
    Defect("columns behind the last unit are not finished", PRODUCTS, ROWS_TIMES, "p.n % 4 == 0 && isAligned(sumsOf(p), ldOfSums(p))", "isAligned(sumsOf(p), ldOfSums(p))"),
    Defect("a norm is read without an atomic while it becomes NaN", f"{ATTENTION}/tile_terms.h", "AttentionHopper.WhatIsNotFinite*", "loadRelaxed(space.rowNorm + at)", "space.rowNorm[at]"),
    # Of no drawn mutant: what is an argument, an argument of a macro, or behind an operator that they did not change.
    Defect("products with few bits lose none", "kernels/cuda/score_bounds.h", "Rank.ByTheLibrary", "scale * queryNorms[query] * itemNorms[item] + kLeast", "scale * queryNorms[query] * itemNorms[item]"),
    Defect("windows of gradients are as large as those of products", DISTINCT, "DistinctProducts.*", "gradientFloats(product)", "productFloats(product)", behind="columns = mostColumns(product);\n  forWindows(product, "),
    Defect("rows that count in part are left out of an exact sum", "kernels/cuda/exact_sum.cu", "ExactSum.HasTheBits*", "counts && counts[row] == 0", "counts && counts[row] < 1"),
    Defect("more blocks add up lengths than have room for their sums", "kernels/cuda/length_scan.h", "LengthScan.OfMoreBlocks*", "std::min<int64_t>(kLengthBlocks, blocksFor(most, 4 * kThreads))", "blocksFor(most, 4 * kThreads)"),
    Defect("joined rows are aligned as those of the last part", "kernels/cuda/list_rows.cu", "ListDomains.Joined", "places |= placesOf(parts.values[part]);", "places = placesOf(parts.values[part]);"),
    Defect("all devices have the handle of the first", PLANS, "LibraryProducts.EachDevice*", "handles[device]", "handles[0]"),
    Defect("a residual is aligned as the result", PLANS, ROWS_TIMES, "shape.addsC ? shape.alignC : shape.alignD", "shape.alignD"),
    Defect("a weight is taken for aligned", PRODUCTS, ROWS_TIMES, "s.alignA = alignmentOf(p.weight), s.alignB = alignmentOf(p.x);", "s.alignB = alignmentOf(p.x);"),
    Defect("a bias is aligned to two floats", PRODUCTS, ROWS_TIMES, "alignmentOf(p.bias) < 16", "alignmentOf(p.bias) < 8"),
    Defect("sums that chunks are added onto are taken for aligned", PRODUCTS, ADDED_ONTO, "s.alignC = s.alignD = alignmentOf(c.out);", "s.alignD = alignmentOf(c.out);"),
    Defect("a left factor is taken for aligned", SIZED, "LibraryProducts.OfSizes*", "s.alignA = alignmentOf(p.right), s.alignB = alignmentOf(p.left);", "s.alignA = alignmentOf(p.right);"),
    Defect("any number of blocks adds up an element of the library's", PLANS, "LibraryProducts.OfSizes*", "set(Library::kReductionSchemes, uint32_t(0));", ";"),
    # Of matrices whose rows lie far apart (large_sizes_test.cpp).
    far("vectors of a batch", "kernels/cuda/in_batch_softmax.cu", "InBatchSoftmax", "row * ld"),
    far("values of distinct rows", DISTINCT, DISTINCT_FAR, "row * ldValues"),
    far("steps of distinct rows", DISTINCT, DISTINCT_FAR, "step * ldValues"),
    far("gradients of distinct rows", "include/genrec_rt/kernels/cuda/segments_warp.h", DISTINCT_FAR, "parent * ld"),
    far("products of distinct rows", DISTINCT, DISTINCT_FAR, "row * ldY"),
    far("parts that are copied", "kernels/cuda/part_copies.cu", "CopiesOfParts", "row * c.ldFrom"),
    far("copies of parts", "kernels/cuda/part_copies.cu", "CopiesOfParts", "row * c.ldTo"),
    far("pairs of rows", "kernels/cuda/list_rows.cu", "SumsOfPairs", "(domain->offsets[other] + ordinal) * ldX"),
    far("vectors of pairs", INTERACTION, "PairsOfVectors", "row * ldX", behind="interact(const genrec_domain *domain, const float *x, int64_t ldX, float *products) {"),
    far("sums of the library", PRODUCTS, "ProductsOfTheLibrary", "row * ldSums"),
    far("finished products", PRODUCTS, "ProductsOfTheLibrary", "row * p.ldY"),
    # Words of four neighbours.
    Defect("rows of products are taken for aligned", DISTINCT, "DistinctProducts.*", "columns % 4 == 0", "true"),
    Defect("four columns are stored of the last three", PLAIN, "AttentionPlain.*", "first + 4 <= Size", "first < Size"),
    Defect("rows of results are taken for aligned", PLAIN, "AttentionPlain.*", "to.takesWords()", "true"),
    Defect("vectors of a row have no room between them", INTERACTION, "LinearProducts.PairsOf*", "Count * Rows::kApart + Rows::kPairs", "Rows::kFloats + Rows::kPairs"),
]  # fmt: skip

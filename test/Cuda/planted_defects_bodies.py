# ruff: noqa: E501 -- a defect per line
"""Defects of what bodies of row kernels call: gathers, reductions, sums of chunks, and the terms that they leave."""

from planting import Defect

HEADERS = "include/genrec_rt/kernels/cuda/"
GATHERED, BODIES, TERMS, LANES = (
    HEADERS + f"{name}.h" for name in ("gathered_rows", "rowbody", "scattered_terms", "lanes")
)
SOFTMAX_TESTS, PRODUCT_TESTS = "GatheredRows.Softmax*", "GatheredRows.Products*"
REDUCTION_TESTS, CHUNK_TESTS = "RowBodies.Reductions*", "RowBodies.SumsOf*"
ADD_TESTS, TERM_TESTS = "RowBodies.RowsAre*", "RowBodies.Terms*"

BODY_DEFECTS = [
    Defect("weights before a larger logit stay", GATHERED, SOFTMAX_TESTS, "exp(before - largest)", "1.0f"),
    Defect("logits of rows at once are those of the first", GATHERED, SOFTMAX_TESTS, "logits.of(j + static_cast<int64_t>(k), totals[k])", "logits.of(j, totals[k])"),
    Defect("what is hit has its own logit", GATHERED, SOFTMAX_TESTS, "index[j] == hit", "false"),
    Defect("half of the lanes of a row are added up", GATHERED, SOFTMAX_TESTS, "cuda::sumOfLanes<L>(totals[k], laneMask<L>())",
           "cuda::sumOfLanes<(L + 1) / 2>(totals[k], laneMask<L>())", behind="held[k].keep(slot, values[k]);"),
    Defect("rows at once run beyond the last", GATHERED, PRODUCT_TESTS, "j + (kAtOnce - 1) * kGroups < n", "j + (kAtOnce - 2) * kGroups < n"),
    Defect("warps of a row have all rows", GATHERED, PRODUCT_TESTS, "lane<L>() / kGroup", "0"),
    Defect("rows at once have the coefficient of the first", GATHERED, PRODUCT_TESTS, "coefficients[j + static_cast<int64_t>(k)]", "coefficients[j]"),
    Defect("dot products are read before they are there", GATHERED, PRODUCT_TESTS, "meet<L>();", ";", behind="detail::gatherDots<D, kGroup, kPack, 1>(base, ld, index, j, kGroups, q, out);"),
    Defect("rows that are not valid have a sum", GATHERED, PRODUCT_TESTS, "valid ? elementOf(mix, slot, element) * by : 0", "elementOf(mix, slot, element) * by"),
    Defect("a weighted sum is not scaled", GATHERED, PRODUCT_TESTS, "factor * exp(maximum(most, detail::kLowest) - largest)", "exp(maximum(most, detail::kLowest) - largest)"),
    Defect("all multiples go to the first row", GATHERED, PRODUCT_TESTS, "static_cast<int64_t>(index[j]) * ld", "static_cast<int64_t>(index[0]) * ld"),
    Defect("memory of a reduction is overwritten", BODIES, REDUCTION_TESTS, "meet<L>(); // the last", "; // the last"),
    Defect("memory of a reduction is read too early", BODIES, REDUCTION_TESTS, "meet<L>();", ";", behind="[&](int64_t slot, int64_t element) { memory[element] = elementOf(x, slot, element); });"),
    Defect("upper lanes combine in another order", BODIES, REDUCTION_TESTS, "isUpper ? combine(other, totals[c]) : combine(totals[c], other)", "combine(totals[c], other)"),
    Defect("the greatest forgets a NaN", BODIES, REDUCTION_TESTS, "a > b || a != a ? a : b", "a > b ? a : b"),
    Defect("the last of a row's columns are those of its begin", BODIES, REDUCTION_TESTS, "lane<L>() % kLanesOfColumns + round * kLanesOfColumns", "lane<L>() % kLanesOfColumns"),
    Defect("a row is added to what is no row", BODIES, ADD_TESTS, "if (index < 0)\n    return;"),
    Defect("all lanes add a number", BODIES, ADD_TESTS, "index >= 0 && isFirstLane<L>()", "index >= 0"),
    Defect("sums of a chunk begin with what is there", BODIES, CHUNK_TESTS, "first == begin ? 0 : sums[i]", "sums[i]"),
    Defect("rows behind a chunk are added", BODIES, CHUNK_TESTS, "left < teamRows<L>() ? left : teamRows<L>()", "teamRows<L>()"),
    Defect("all warps of a block have its first chunk", LANES, CHUNK_TESTS, "threadIdx.x / teamSize<L>()", "0"),
    Defect("rows of a warp's chunk do not meet", LANES, CHUNK_TESTS, "__syncwarp();", ";"),
    Defect("a bucket begins behind its edge", BODIES, "RowBodies.Buckets*", "edges[next - 1] <= value", "edges[next - 1] < value"),
    Defect("a row's term has no coefficient", TERMS, TERM_TESTS, "*to.coefficients = 1;", ";", behind="detail::storeVector<D, L, V>(to.vector, value);"),
    Defect("terms of later vectors are those of the first", TERMS, TERM_TESTS, "row * Terms + First", "row * Terms"),
    Defect("vectors of a row lie in one place", TERMS, TERM_TESTS, "Vector * Width", "0"),
    Defect("the last term of a row has no key", TERMS, TERM_TESTS, "j < n", "j < n - 1"),
    Defect("terms of a row lie where those of the row before do", TERMS, TERM_TESTS, "row * valueFloats(Terms, Vectors, Width, IsScaled, IsRounded)", "(row > 0 ? row - 1 : 0) * valueFloats(Terms, Vectors, Width, IsScaled, IsRounded)"),
]  # fmt: skip

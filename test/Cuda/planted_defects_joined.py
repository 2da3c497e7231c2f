# ruff: noqa: E501 -- a defect per line
"""Defects of attention's gradients that go on to what q, k and v are the silu of."""

from planting import Defect

_HEADERS = "include/genrec_rt/kernels/cuda/attention"
ROWS, JOINED, PREPARE = f"{_HEADERS}/result_rows.h", f"{_HEADERS}/joined_gradients.h", f"{_HEADERS}/prepare.h"
CLEARED = "include/genrec_rt/kernels/cuda/rounded_factors.h"
STORES, CALL = f"{_HEADERS}/row_stores.h", f"{_HEADERS}/bf16_attention.h"
BEHIND, ELSEWHERE, WIDE = (
    "AttentionJoined.BehindTheRest",
    "AttentionJoined.BehindARest*",
    "AttentionJoined.WideHeadsOfHopper",
)

JOINED_GRADIENTS = [
    Defect("silu grows as its sigmoid does", ROWS, ELSEWHERE, "s * (1.0f + x * (1.0f - s))", "s * (1.0f - s)"),
    Defect("both of a pair are of the first one's x", ROWS, BEHIND, "packFactors(gradientOfSilu(low, of[0]), gradientOfSilu(high, of[1]))", "packFactors(gradientOfSilu(low, of[0]), gradientOfSilu(high, of[0]))"),
    Defect("gradients below the least normal number stay in pairs", ROWS, BEHIND, "packFactors(gradientOfSilu(low, of[0]), gradientOfSilu(high, of[1]))", "packBf16(gradientOfSilu(low, of[0]), gradientOfSilu(high, of[1]))"),
    Defect("x is of the first columns", ROWS, ELSEWHERE, "loadWhole<uint4>(x + row * ldX + column)", "loadWhole<uint4>(x + row * ldX)"),
    Defect("rows of x are as wide as those of their gradient", ROWS, BEHIND, "x + row * ldX + column", "x + row * ld + column", behind="return {to + row * ld + column, ld,"),
    Defect("halves of a word that leave are of one x", ROWS, WIDE, "gradient(values.z, of.z)", "gradient(values.z, of.x)"),
    Defect("x is of the columns that left first", STORES, WIDE, "to.ahead(row, begin + column)", "to.ahead(row, column)"),
    Defect("x is of rows behind the list", STORES, WIDE, "row < inside && hasColumn", "hasColumn", behind="typename Rows::Ahead ahead[kRows / kAtOnce] = {};"),
    Defect("gradients of queries are of the first row's x", PREPARE, BEHIND, "normalOrZero(gradientOfSilu(values[e], x[r][p][e]))", "normalOrZero(gradientOfSilu(values[e], x[0][p][e]))"),
    Defect("gradients of queries below the least normal number stay", PREPARE, BEHIND, "normalOrZero(gradientOfSilu(values[e], x[r][p][e]))", "gradientOfSilu(values[e], x[r][p][e])"),
    Defect("the last row that there is room for is not cleared", CLEARED, ELSEWHERE, "rows->capacity * words", "(rows->capacity - 1) * words"),
    Defect("the rest is as wide as what it is joined in", JOINED, ELSEWHERE, "row * joined.ldRest", "row * joined.width"),
    Defect("a rest that is elsewhere stays there", JOINED, ELSEWHERE, "joined.rest == nullptr || joined.rest == joined.dx", "true"),
    Defect("keys are silu of the queries' x", CALL, BEHIND, "joined.x + joined.k", "joined.x + joined.q"),
    Defect("gradients of values are those of keys", CALL, BEHIND, "joined.dx + joined.v", "joined.dx + joined.k"),
    Defect("x lies as its gradient does", CALL, ELSEWHERE, "joined.ldX", "joined.width"),
    Defect("nothing is joined behind attention", CALL, ELSEWHERE, "finishJoined(args.domain, args.rows, joined, stream);"),
]  # fmt: skip

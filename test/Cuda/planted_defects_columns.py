# ruff: noqa: E501 -- a defect per line
"""Defects of the tiles in which columns are computed, and of the softmax over a batch's items."""

from planting import Defect

COLUMNS, IN_BATCH = "include/genrec_rt/kernels/cuda/columns.h", "kernels/cuda/in_batch_softmax.cu"

COLUMN_DEFECTS = [
    Defect("columns of groups before have no tiles", COLUMNS, "Columns.TwoThousand*", "before + exclusiveBlockSum<kColumnThreads>(own.tiles, sum)",
           "exclusiveBlockSum<kColumnThreads>(own.tiles, sum)"),
    Defect("a tile's column is read before it is known", COLUMNS, "Columns.Uncut*", "__syncthreads(); // the tile is", "; // the tile is"),
    Defect("the next tile's column is known too early", COLUMNS, "Columns.Uncut*", "__syncthreads(); // all have", "; // all have"),
    Defect("a column without values has no tile", COLUMNS, "Columns.Uncut*", "int64_t(1)", "int64_t(0)"),
    Defect("later rounds of a column begin at nothing", COLUMNS, "Columns.ALong*", "before += total;", ";"),
    Defect("rows of a part of a column begin where those of the whole do", COLUMNS, "Columns.Uncut*", "own[d] - begin", "own[d]"),
    Defect("a part of a column has the values of the whole", COLUMNS, "Columns.Uncut*", "tile.begin + first + threadIdx.x",
           "first + threadIdx.x"),
    Defect("an uncut column ends without an offset", COLUMNS, "Columns.Uncut*", "column.rows + 1", "column.rows", behind="for (int64_t left = min((tile.number + 1) * each,"),
    Defect("values kept of a row's end lie where it begins", COLUMNS, "Columns.*", "column.keepsFirst ? 0 : 1", "0", behind="const int64_t *nearOffsets = offsets + ("),
]  # fmt: skip

IN_BATCH_DEFECTS = [
    Defect("coefficients of a tile are read too early", IN_BATCH, "InBatchSoftmax.*", "__syncthreads(); // others", "; // others"),
    Defect("rows with one item are compared", IN_BATCH, "InBatchSoftmax.*", "a.id[row] != a.id[other]", "true"),
    Defect("rows without an item are negatives", IN_BATCH, "InBatchSoftmax.*", "(!a.valid || a.valid[row])", "true"),
    Defect("sums of exp are not rescaled", IN_BATCH, "InBatchSoftmax.*", "total * kernels::detail::expNegative(before - greatest)", "total"),
    Defect("lanes of a row have maxima of their own", IN_BATCH, "InBatchSoftmax.*", "mostOfLanes<kProductLanes>(most)", "most"),
    Defect("an item is corrected by the query's frequency", IN_BATCH, "InBatchSoftmax.*", "inBatchLogit(a, score, item)", "inBatchLogit(a, score, query)"),
]  # fmt: skip

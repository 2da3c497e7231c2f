# ruff: noqa: E501 -- a defect per line
"""Defects of launches of many columns, and of the softmax over a batch's items."""

from planting import Defect

HEADERS = "include/genrec_rt/kernels/cuda/"
BODIES, LAUNCH, LANES, POOLS = (f"{HEADERS}{name}.h" for name in ("column_bodies", "launch", "lanes", "pools"))
IN_BATCH = "kernels/cuda/in_batch_softmax.cu"
COLUMN_TESTS, POOL_TESTS = "ColumnBodies.*", "Pools.Columns*"

COLUMN_DEFECTS = [
    Defect("a block's first rows are the column's before", BODIES, COLUMN_TESTS, "columns.firstBlock[middle] <= block", "columns.firstBlock[middle] < block"),
    Defect("a column's blocks are counted from the first column's", BODIES, COLUMN_TESTS, "(block - columns.firstBlock[column])", "block"),
    Defect("a column's last block is full", BODIES, COLUMN_TESTS, "begin + shape.rows < rows ? begin + shape.rows : rows", "begin + shape.rows"),
    Defect("all columns have the arguments of the first", BODIES, COLUMN_TESTS, "columns.pointers + columns.firstPointer[column]", "columns.pointers"),
    Defect("all columns run the first program", BODIES, COLUMN_TESTS, "program++ == shape.program", "program++ == 0"),
    Defect("all columns have as many rows a block", BODIES, COLUMN_TESTS, "static_cast<int64_t>(shape.rows)", "int64_t{1024}"),
    Defect("columns of several threads a row have too few blocks", LAUNCH, COLUMN_TESTS, "column.rows", "kColumnRows"),
    Defect("all threads begin with the block's first row", LANES, COLUMN_TESTS, "static_cast<int64_t>(threadIdx.x) / L", "int64_t(0)"),
    Defect("a block goes on by its threads, not by its rows", LANES, COLUMN_TESTS, "static_cast<int64_t>(blockDim.x) / L", "static_cast<int64_t>(blockDim.x)"),
    Defect("all columns have the rows of the first domain", BODIES, COLUMN_TESTS, "step->domains[shape.domain]", "step->domains[0]"),
    Defect("a column has the blocks of the first domain", LAUNCH, COLUMN_TESTS, "step->domains[columns[i].domain].capacity", "step->domains[0].capacity"),
    Defect("the next column's arguments are not sought", LAUNCH, COLUMN_TESTS, "      pointers += column.pointers;", "      ;"),
    Defect("columns' arguments lie on each other", LAUNCH, COLUMN_TESTS, "      pointer += column.pointers;", "      ;"),
    Defect("columns that are missing begin with the first block", LAUNCH, COLUMN_TESTS, "std::fill(launched.firstBlock + count, launched.firstBlock + Room + 1, blocks);", "std::fill(launched.firstBlock + count, launched.firstBlock + Room + 1, 0);"),
    Defect("a launch counts the lists of its first domain alone", "kernels/cuda/list_rows.cu", "ListRows.PositionsAndLengths", "lists.children[blockIdx.y]", "lists.children[0]"),
    Defect("lengths of all domains go to the first one's place", "kernels/cuda/list_rows.cu", "ListRows.PositionsAndLengths", "lists.out[blockIdx.y]", "lists.out[0]"),
    Defect("the lists of one domain are counted", "kernels/cuda/list_rows.cu", "ListRows.PositionsAndLengths", "static_cast<unsigned>(count)", "1u", behind="void listLengths("),
    Defect("pieces of columns have no units", BODIES, POOL_TESTS, "shape.parts >= 0", "false"),
    Defect("units of a column are counted by the first column's leaves", BODIES, POOL_TESTS, "&step->domains[shape.leaves]", "&step->domains[1]"),
    Defect("a body has the first domain for every one", BODIES, POOL_TESTS, "reinterpret_cast<intptr_t>(pointers[number])", "0"),
    Defect("columns have the memory of the first one's parts", LAUNCH, POOL_TESTS, "parts[next]", "parts[0]"),
    Defect("parts of columns lie on each other", POOLS, POOL_TESTS, "memory += taken.floats[i++]", "memory += 0 * taken.floats[i++]"),
    Defect("a column has no blocks for its pieces", POOLS, POOL_TESTS, "domain->capacity > 0 ? domain->capacity + slots : 0", "domain->capacity"),
    Defect("columns have as many slots as the first", POOLS, POOL_TESTS, "slotsOf(domain, &step->domains[columns[i].leaves])", "slotsOf(domain, &step->domains[columns[0].leaves])"),
    Defect("parts of all columns go into the first one's results", POOLS, POOL_TESTS, "pointers += columns[i++].pointers", "pointers += 0 * columns[i++].pointers"),
    Defect("parts are of the first column's leaves", POOLS, POOL_TESTS, "&step->domains[columns[i].leaves]", "&step->domains[columns[0].leaves]", behind="pooled[added++] = "),
    Defect("parts of a launch are those of its first column", "kernels/cuda/pools.cu", POOL_TESTS, "pooled.of[blockIdx.y]", "pooled.of[0]"),
    Defect("parts of one column are pooled", "kernels/cuda/pools.cu", POOL_TESTS, "static_cast<unsigned>(count)", "1u", behind="void launchLists("),
    Defect("parts of the last columns are not pooled", POOLS, POOL_TESTS, "added > 0 && i + 1 == Count", "false"),
    Defect("columns are pooled again with those behind them", POOLS, POOL_TESTS, "added = 0;", ";", behind="poolParts(streamOf(step), pools, pooled, added);"),
    Defect("a second launch pools the first columns again", "kernels/cuda/pools.cu", "Pools.PartsOfManyColumns", "lists + begin", "lists"),
]  # fmt: skip

IN_BATCH_DEFECTS = [
    Defect("coefficients of a tile are read too early", IN_BATCH, "InBatchSoftmax.*", "__syncthreads(); // others", "; // others"),
    Defect("rows with one item are compared", IN_BATCH, "InBatchSoftmax.*", "a.id[row] != a.id[other]", "true"),
    Defect("rows without an item are negatives", IN_BATCH, "InBatchSoftmax.*", "(!a.valid || a.valid[row])", "true"),
    Defect("sums of exp are not rescaled", IN_BATCH, "InBatchSoftmax.*", "total * kernels::detail::expNegative(before - greatest)", "total"),
    Defect("lanes of a row have maxima of their own", IN_BATCH, "InBatchSoftmax.*", "mostOfLanes<kProductLanes>(most)", "most"),
    Defect("an item is corrected by the query's frequency", IN_BATCH, "InBatchSoftmax.*", "inBatchLogit(a, score, item)", "inBatchLogit(a, score, query)"),
]  # fmt: skip

# ruff: noqa: E501 -- a defect per line
"""Defects of calls as a whole: the stream they are queued in, sizes beyond 32 bits and grids, rows in the host's memory on ranks.

The first kind races with the rest of its call, because tests queue calls in a stream of their own (`testStream` of
device_copy.h). A call that is in the default stream as a whole is not seen: tests wait for the device before and behind it.
"""

from planting import Defect

KERNELS, STORES = "kernels/cuda/", "embedding/cuda/"
CACHED = STORES + "cached_store.cu"
CONCAT = "Concat.*"
HOST_ROWS = "Seeds/DeviceRanks.OwnersBringRowsOfTheHostsMemory/0"

MOVED = (
    "if (placement.leaving[i])\n      copyRow(cached.row(slot), cached.hostRows[slot], cached.words);\n"
    "    copyRow(batchRows[i], cached.row(slot),\n            cached.words);"
)


def default_stream(name: str, file: str, tests: str, old: str, behind: str = "") -> Defect:
    """The call's `stream` (or `queue`) is the default one."""
    which = "stream" if "stream" in old else "queue"
    begin, end = old.rsplit(which, 1)
    return Defect(f"{name} in the default stream", file, tests, old, f"{begin}nullptr{end}", behind)


def narrow(name: str, file: str, test: str, old: str, new: str, behind: str = "") -> Defect:
    return Defect(f"{name} in 32 bits", file, f"LargeSizes.{test}", old, new, behind)


CALLS = [
    default_stream("ranks are cleared", KERNELS + "rank.cu", "LargeGrids.RanksOfTargets",
                   "fillWords(ranks, targets.capacity, 0, stream);"),
    default_stream("the best of a chunk are cleared", KERNELS + "top_items.cu", "LargeSizes.RankedItems",
                   "GENREC_CUDA_CHECK(cudaMemsetAsync(s.sizes, 0, rows * sizeof(int64_t), stream));"),
    default_stream("picked rows are listed", KERNELS + "row_picks.cu", "RowPicks.Picked",
                   "GENREC_CUDA_LAUNCH(stream, shapeOfThreads(words, kThreads), listRows, bits, picked);"),
    default_stream("gradients of columns are added up", KERNELS + "linear_products.cu", "LargeSizes.ProductsOfRows",
                   "GENREC_CUDA_LAUNCH(stream, shape, contractChunks, contraction, parts);"),
    default_stream("the store's answer is cleared", STORES + "store.cu", "Seeds/StoreOrders.GiveTheSameRows/0",
                   "GENREC_CUDA_CHECK(cudaMemsetAsync(&counters.data()->unresolved, 0, sizeof(uint32_t), stream));"),
    default_stream("parts are put one behind the other", KERNELS + "concat.cu", CONCAT,
                   "GENREC_CUDA_LAUNCH(stream, shape, concatKernel, table, to);"),
    Defect("parts of a second launch overwrite the first's", KERNELS + "concat.cu", CONCAT, "to += table.begins[here];", ";"),
    Defect("a thread copies one float of a part", KERNELS + "concat.cu", CONCAT,
           "i += threadsInGrid()", "i += floats"),
    # Grids.
    Defect("rows of a product are blocks in y", KERNELS + "sized_products.cu", "LargeGrids.SizedProducts",
           "(LaunchShape{grid, dim3(kProductThreads)})", "(LaunchShape{dim3(tilesAcross(product), down, grid.z), dim3(kProductThreads)})"),
    # Sizes and flags that tests once left out.
    Defect("a NaN of a long contraction is not noted", KERNELS + "sized_products.cu", "SizedProducts.NaNOfALong*",
           "if (writeElement(p, rows, columns, row, column, sum) && p.nanNote)\n      noteRow(p.nanNote, nullptr, 0);",
           "writeElement(p, rows, columns, row, column, sum);"),
    Defect("invalid entries are found in the cache", CACHED, "CudaCached/StoreConformance/0.InvalidEntries*",
           "i < count && (!valid || valid[i])", "i < count"),
    # Places of elements.
    narrow("rows are gathered", KERNELS + "rows.cu", "GatherScatterPool", "matrix + i * ld", "matrix + static_cast<int>(i * ld)"),
    narrow("rows are read to scatter them", KERNELS + "rows.cu", "GatherScatterPool", "matrix + (first + r * groups) * ld",
           "matrix + static_cast<int>((first + r * groups) * ld)"),
    narrow("pools are written", KERNELS + "rows.cu", "GatherScatterPool", "out + parent * ldOut",
           "out + static_cast<uint32_t>(parent * ldOut)"),
    narrow("the left factor is read", KERNELS + "sized_products.cu", "SizedProducts", "p.left[row * p.ldLeft + step]",
           "p.left[static_cast<int>(row * p.ldLeft + step)]"),
    narrow("the right factor is read", KERNELS + "sized_products.cu", "SizedProducts", "p.right[step * p.ldRight + column]",
           "p.right[static_cast<uint32_t>(step * p.ldRight + column)]"),
    narrow("a target is scored", KERNELS + "ranked_scores.h", "RankedItems", "r.ldItem", "static_cast<int>(r.ldItem)"),
    # Rows of host memory on ranks.
    Defect("a row that leaves an owner's cache is lost", CACHED, HOST_ROWS, MOVED, "copyRow(batchRows[i], cached.row(slot), cached.words);"),
    Defect("an owner's cache keeps the values that it had", CACHED, HOST_ROWS, MOVED,
           "if (placement.leaving[i]) copyRow(cached.row(slot), cached.hostRows[slot], cached.words);"),
    Defect("a row leaves an owner's cache to where another belongs", CACHED, HOST_ROWS, "cached.hostRows[slot] = batchRows[i];"),
]  # fmt: skip

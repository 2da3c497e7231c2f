# ruff: noqa: E501 -- a defect per line
"""What drawn mutants (Mutants/judge.py) showed that tests had no input for."""

from planting import Defect

CACHED, PRODUCTS, DOMAINS = (
    "embedding/cuda/cached_store.cu",
    "kernels/cuda/library_products.cu",
    "kernels/cuda/list_domains.cu",
)
ATTENTION = "include/genrec_rt/kernels/cuda/attention"
ONE_ID, EPILOGUE = "CudaCached/StoreConformance/0.OneIdByItself", "LibraryProducts.RowsTimesAWeight"

DRAWN = [
    Defect("a single id is not searched in the cache", CACHED, ONE_ID, "table.find(on, ids, valid, count, rows, missing);\n  if (count > 0)\n    pointToCached(ids, valid, count, rows, streamOf(on));", "table.find(on, ids, valid, count, rows, missing);\n  if (count > 1)\n    pointToCached(ids, valid, count, rows, streamOf(on));"),
    Defect("a single row is exported without its id", CACHED, ONE_ID, "rows && !ids && count > 0", "false"),
    Defect("an activation is left out where a residual is added", PRODUCTS, EPILOGUE, "p.residual && !p.pre && p.activation == Activation::none", "p.residual && !p.pre"),
    Defect("an activation is left out where nobody keeps its sums", PRODUCTS, EPILOGUE, "p.activation != Activation::none", "false"),
    Defect("cut lists are below nothing", DOMAINS, "ListDomains.Truncated", "above ? above : source->parent_domain", "above"),
    Defect("dQ of softmax has finer quanta where there are more tiles", f"{ATTENTION}/fixed_point.h", "AttentionMma.SumsCome*", "tiles > 1 && bits < kLongBits", "tiles > 1"),
    Defect("what is not finite in a lane's second row is lost", f"{ATTENTION}/bias_gradient.h", "AttentionTimes.NaN*", "fabsf(totals.sum[1])", "0"),
    Defect("what is not finite in a lane's first row is lost", f"{ATTENTION}/bias_gradient.h", "AttentionTimes.NaN*", "fabsf(totals.sum[0])", "0"),
    Defect("a row behind those that are stored is read", f"{ATTENTION}/row_stores.h", "AttentionJoined.WithoutARest", "row < inside && hasColumn", "row <= inside && hasColumn", behind="Rows::Ahead ahead[kRows / kAtOnce] = {};"),
    Defect("scratch of an order has no key for terms of no row", "kernels/cuda/scattered_sums.cu", "ScatteredSums.IntoAPowerOfTwo*", "cuda::orderScratchBytes(count, sum.rows + 1)", "cuda::orderScratchBytes(count, sum.rows)"),
    Defect("the keys of a table are not counted beside those of its cache", "embedding/cuda/cached_store.cu", "CudaCachedStore.Bytes*", "table.keyBytes() + cache.bytes()", "cache.bytes()"),
    Defect("all portions of a rank are its first", "ranks/cuda/portion_sums.cu", "Seeds/DeviceRowExchanges.SumsOfVectorsAreThoseOfTheHost/*", "own.first + sum.given++", "own.first"),
    Defect("ids of one table are cut to a table's bits", "ranks/cuda/row_kernels.cu", "Seeds/DeviceRowExchanges.Rows*OfTheHost/*", "isOne ? key : key & ((int64_t(1) << owners.keyBits[store]) - 1)", "key & ((int64_t(1) << owners.keyBits[store]) - 1)"),
    Defect("sums of rows beyond a grid's threads are not placed", "ranks/cuda/row_kernels.cu", "Seeds/DeviceRowExchanges.MoreRowsThanThreads*/*", "threadsInGrid() >> shift", "threadsInGrid()", behind="placeKernel("),
    Defect("a device's number begins without a dash", "core/cuda/find_device.cu", "DevicePromises.ADeviceIs*", "i == 0 || i == 4", "i == 4"),
    Defect("the first of tables that share a store has no bound", "embedding/cuda/store.cu", "DevicePromises.BoundsHold*", "largestBound = answeredRows(0) + asked;", "largestBound = answeredRows(countsMembers() ? 1 : 0) + asked;"),
    Defect("values behind the 4,032nd have words of later ones", "embedding/cuda/store_kernels.h", "Cuda/StoreConformance/0.InitialValuesDepend*", "base / 64 * 16", "base / 63 * 16"),
    Defect("a fourth word of a counter is its third", "include/genrec_rt/kernels/cuda/random.h", "RowBodies.RandomWords*", "block.word[3]", "block.word[2]"),
    Defect("pieces lie behind the end of pinned memory", "session/device_memory.h", "DevicePromises.PinnedPieces*", "used + bytes > blocks[at]->bytes()", "false"),
]  # fmt: skip

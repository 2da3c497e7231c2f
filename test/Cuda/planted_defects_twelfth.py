# ruff: noqa: E501 -- a defect per line
"""What mutants of the twelfth seed showed that tests had no input for."""

from planting import Defect, seen

TWELFTH = [
    Defect("spans of rows are as far apart as if a list took no block", "include/genrec_rt/kernels/cuda/attention/row_spans.h", "AttentionPrepare.*", "static_cast<uint32_t>(threadsInGrid() - before)", "static_cast<uint32_t>(threadsInGrid())"),
    Defect("counts of distinct ids are left out where nobody asks for their numbers", "kernels/cuda/unique.cu", "Unique.EveryChoice*", "!result.inverse && !result.counts", "!result.inverse"),
    Defect("bytes of cached rows are those of one float", "include/genrec_rt/cuda/cached_store.h", "CudaCachedStore.Bytes*", "cachedRows.capacity() * 4", "4"),
    Defect("a last chunk of one row is not added up", "kernels/cuda/library_products.cu", "LibraryProducts.ContractionsOfRounded*", "cut.last > 0", "cut.last > 1"),
    Defect("who owns rows is written where replicas are gone", "ranks/cuda/exchanged_sums.cu", "Seeds/DeviceRowExchanges.TablesMayBecomeReplicas/*", "askers > ranks", "askers >= ranks", behind="counts.ensure(storeCount() + 1, queue),"),
    Defect("a slice of a sum is all of it, of the first rank", "ranks/cuda/portion_sums.cu", "Seeds/DeviceRowExchanges.SumsOfVectorsAreThoseOfTheHost/*", "((sum.length + ranks - 1) / ranks + 15) / 16 * 16", "sum.length"),
    seen("profiled", "domains of which all is fetched are counted alone, too", "session/device_reports.cpp", "batch.isMade(i) && !isFetched[i]", "batch.isMade(i)"),
]  # fmt: skip

# ruff: noqa: E501 -- a defect per line
"""Defects for the host execution of CUDA kernels, and of the hosts that launch them, to catch.

`planted_defects.py <source folder> <folder>` writes the runtime's headers and CUDA sources, and a test, with all defects in them;
`simt::defect` chooses one when a program starts (GENREC_SIMT_DEFECT), 0 none. So all are compiled once.
"""

import shutil
import sys
from pathlib import Path

from planted_defects_attention import ATTENTION
from planted_defects_bodies import BODY_DEFECTS
from planted_defects_calls import CALLS
from planted_defects_checks import CHECKED
from planted_defects_columns import COLUMN_DEFECTS, IN_BATCH_DEFECTS
from planted_defects_demands import DEMANDS
from planted_defects_drawn import DRAWN
from planted_defects_edges import EDGES
from planted_defects_eleventh import ELEVENTH
from planted_defects_groups import GROUPS
from planted_defects_held import HELD
from planted_defects_hot_rows import HOT_ROWS
from planted_defects_joined import JOINED_GRADIENTS
from planted_defects_later import LATER
from planted_defects_library import LIBRARY_DEFECTS
from planted_defects_models import MODELS
from planted_defects_promises import PROMISES
from planted_defects_steps import STEPS_AND_EXCHANGES
from planted_defects_sums import SUMS
from planted_defects_tenth import TENTH
from planted_defects_thirteenth import THIRTEENTH
from planted_defects_twelfth import TWELFTH
from planted_defects_unique import LATER_UNIQUE_DEFECTS, LOOK_BACK, UNIQUE, UNIQUE_DEFECTS
from planted_defects_waits import WAITS
from planting import Defect, planted

SCAN = "include/genrec_rt/kernels/cuda/block_scan.h"
KEYS, CACHE = "include/genrec_rt/cuda/key_table.h", "include/genrec_rt/cuda/cache_table.h"
KERNELS, CROSS = "kernels/cuda/", "include/genrec_rt/kernels/cuda/cross_attention.h"
SCAN_LENGTHS, ROWS, SETS = KERNELS + "length_scan.h", KERNELS + "list_rows.cu", KERNELS + "item_sets.h"
INTERACTION = "include/genrec_rt/kernels/cuda/interaction.h"
TOP, PICKS, TILE = KERNELS + "top_items.cu", KERNELS + "row_picks.cu", "include/genrec_rt/kernels/cuda/product_tile.h"
STORE, STORE_KERNELS = "embedding/cuda/store.cu", "embedding/cuda/store_kernels.h"
SEARCH, ERASE = "include/genrec_rt/cuda/bucket_search.h", "embedding/cuda/store_erase.cu"
CACHE_KERNELS = "embedding/cuda/cache_kernels.h"
PIPELINE = "test/Cuda/pipeline_test.cpp"  # a host
FIND_DEVICE = "core/cuda/find_device.cu"
DEVICE = "embedding/cuda/device.cu"  # what a session's steps are queued by
DISTINCT, LOOKUPS, TOUCHED = (
    KERNELS + "distinct.cu",
    "embedding/cuda/distinct_lookups.cu",
    "embedding/cuda/distinct_rows.cu",
)
DOMAINS, CACHED = KERNELS + "list_domains.cu", "embedding/cuda/cached_store.cu"
EXCHANGE, EXCHANGED, PORTIONS = "ranks/cuda/row_exchange.cu", "ranks/cuda/row_kernels.cu", "ranks/cuda/portion_sums.cu"
EXCHANGED_SUMS = "ranks/cuda/exchanged_sums.cu"
SESSION, SLOT = "session/device_", "session/step_slot.cpp"  # .cpp files
HOST_PARTS = (SESSION, SLOT, "session/ranks.cpp", "session/session_steps.cpp")
NCCL_COMM = "comm_nccl/nccl_comm.cu"
MARKED = KERNELS + "marked.h"
ORDER, LOWEST = "kernels/cuda/order.cu", "embedding/cuda/lowest_rows.cu"
KEY_RANKS = KERNELS + "key_ranks.h"

ORDER_TESTS = "BlockScan.*:StableOrder.*"
LOOK_BACK_TESTS, MARKED_TESTS = "PrefixSums.*:FlagRanks.*", "FlagRanks.*"
CACHE_TESTS = "CudaCache.TheLeast*"
STORE_TESTS = "Seeds/StoreOrders.GiveTheSameRows/0:CudaStore.AgreesWithAMap"
HOST_TESTS, RANK_TESTS = "HostPipeline.GivesTheLossesOfTheSteps", "HostPipeline.RanksExchangeRows"
STEP_TESTS = "Seeds/DeviceSteps.HaveTheBitsOfTheHost/0"
EXCHANGE_TESTS = "Seeds/DeviceRowExchanges.Rows*OfTheHost/*"
REPLICA_TESTS = "Seeds/DeviceRowExchanges.ReplicasAreThoseOfTheHost/0"
EQUAL_TESTS = "Seeds/DeviceRowExchanges.EqualKeysThatTravelAreThoseOfTheHost/0"
EXACT_TESTS = "Seeds/DeviceRowExchanges.ExactSumsAreOfRowsThatCount/0"
SUM_TESTS = "Seeds/DeviceRowExchanges.SumsOfVectorsAreThoseOfTheHost/*"
CACHED_TESTS = "CudaCachedStore.IsATableWhateverTheCacheHolds"
PRODUCT_TESTS, LOOKUP_TESTS = "DistinctProducts.AreThoseOfTheCpu", "DistinctLookups.*"
WINDOW_TESTS = "DistinctProducts.LongSumsAreCutAsOnTheCpu"
GROW_TESTS = "Seeds/DeviceRanks.GrowBeside*/0"
SESSION_RANK_TESTS = "Seeds/DeviceRanks.HaveTheBitsOfOne/0"
RULE_TESTS = "CudaRowRules.*:Cuda/RowRulesConformance/0.TheLeastRecently*"


def host(name: str, old: str, new: str = "", behind: str = "", tests: str = HOST_TESTS) -> Defect:
    return Defect(name, PIPELINE, tests, old, new, behind)


def step(name: str, old: str, new: str = "") -> Defect:
    return Defect(name, DEVICE, STEP_TESTS, old, new)


def session(
    name: str, file: str, old: str, new: str = "", behind: str = "", tests: str = "HaveTheBitsOfTheHost"
) -> Defect:
    return Defect(name, SESSION + file, f"Seeds/DeviceSteps.{tests}/0", old, new, behind)


def copies(name: str, old: str, new: str = ";") -> Defect:
    return Defect(name, "session/host_copies.cpp", "Seeds/DeviceSteps.CopiesShareAndFillPieces/0", old, new)


def ranks(name: str, file: str, old: str, new: str = "", behind: str = "") -> Defect:
    return Defect(name, file, SESSION_RANK_TESTS, old, new, behind)


def replicas(name: str, old: str, new: str = "", behind: str = "", file: str = EXCHANGE) -> Defect:
    return Defect(name, file, REPLICA_TESTS, old, new, behind)


def equal(name: str, old: str, new: str = "", behind: str = "", file: str = EXCHANGE) -> Defect:
    return Defect(name, file, EQUAL_TESTS, old, new, behind)


def early(name: str, old: str, new: str = "", behind: str = "") -> Defect:
    return Defect(name, SESSION + "ranks.cpp", "Seeds/DeviceRanks.HaveTheseBitsWithEarlyGradients/0", old, new, behind)


def graphs(name: str, old: str, new: str = "", behind: str = "") -> Defect:
    return Defect(name, SESSION + "step.cpp", "Seeds/DeviceRanks.LaunchComputeStagesAsGraphs/0", old, new, behind)


def updated(name: str, file: str, old: str, new: str = "", behind: str = "") -> Defect:
    return Defect(name, file, "Seeds/DeviceRanks.LaunchUpdateStagesAsGraphs/0", old, new, behind)


def later(name: str, file: str, old: str, new: str = "", behind: str = "") -> Defect:
    return Defect(name, file, "Seeds/DeviceRanks.LookUpIdsThatTheComputeStageMakes/0", old, new, behind)


DEFECTS = [
    *ATTENTION,
    # Plain kernels, scans, sorting.
    Defect("the block scan reads sums too early", SCAN, ORDER_TESTS, "__syncthreads();", behind="sums[warpOf()] = inclusive;"),
    Defect("the block scan's sums are overwritten", SCAN, ORDER_TESTS, "__syncthreads(); // the next", "; // the next"),
    Defect("a histogram is not cleared before it counts", ORDER, ORDER_TESTS, "__syncthreads();", behind="mine[digit] = 0;"),
    Defect("a histogram is read before it is whole", ORDER, ORDER_TESTS, "__syncthreads();", behind="atomicAdd(mine + pass.digit(items[round].x), 1u);"),
    Defect("counts of warps are not cleared before they count", KEY_RANKS, ORDER_TESTS, "__syncwarp(); // counts", "; // counts"),
    Defect("a warp's count is raised before all have read it", KEY_RANKS, ORDER_TESTS, "__syncwarp(); // all", "; // all"),
    Defect("a warp's count is read before it is raised", KEY_RANKS, ORDER_TESTS, "__syncwarp(); // the next", "; // the next"),
    Defect("counts of warps are added up too early", ORDER, ORDER_TESTS, "__syncthreads(); // warps", "; // warps"),
    Defect("a pass forgets what the last one placed", ORDER, "StableOrder.IsThat*", "now.placed = placed;", ";"),
    Defect("whole warps look for no end behind the last key", ORDER, "StableOrder.Segments*", "first <= count", "first < count"),
    Defect("a warp's first key is taken for that of another", ORDER, "StableOrder.Segments*", "laneOf() == 0 && at > 0 ? keyAt(at - 1) : 0", "0u"),
    Defect("sums of the warps before are read too early", ORDER, ORDER_TESTS, "__syncthreads(); // sums", "; // sums"),
    Defect("items of a tile are placed over counts that are read", ORDER, ORDER_TESTS, "__syncthreads(); // items", "; // items"),
    Defect("a tile is written before it is in order", ORDER, ORDER_TESTS, "__syncthreads(); // the tile", "; // the tile"),
    Defect("later digits of a tile begin as the first do", ORDER, ORDER_TESTS, "begin += all;", ";"),
    Defect("a tile is taken before its number is there", LOOK_BACK, LOOK_BACK_TESTS, "__syncthreads();", behind="__threadfence(); // and clears behind what others looked at"),
    Defect("the sum of the tiles before is read too early", LOOK_BACK, LOOK_BACK_TESTS, "__syncthreads(); // the sum", "; // the sum"),
    Defect("a tile shows its own sum as that of all", LOOK_BACK, LOOK_BACK_TESTS, "storeRelaxed(shownOf(sum) + tile, (tile == 0 ? kAll : kOwn) | own);",
           "storeRelaxed(shownOf(sum) + tile, kAll | own);"),
    Defect("a tile shows its sum without an atomic", LOOK_BACK, LOOK_BACK_TESTS, "storeRelaxed(shown + tile, kAll | (before + own));",
           "shown[tile] = kAll | (before + own);"),
    Defect("a tile is read without an atomic", LOOK_BACK, LOOK_BACK_TESTS, "at >= 0 ? loadRelaxed(shown + at) : kAll", "at >= 0 ? shown[at] : kAll"),
    Defect("the tiles before those of a round are left out", LOOK_BACK, "LookBack.*", "behind -= kDepth * kWarp", "behind = 0"),
    Defect("a round looks at one word of a lane", LOOK_BACK, "LookBack.*", "behind - 1 - d * kWarp - laneOf()", "behind - 1 - laneOf()", behind="Word state[kDepth];"),
    Defect("tiles before the first whole one are added, too", LOOK_BACK, "LookBack.*", "if (isWhole)\n          break;", ";"),
    Defect("sums of lanes are not added up", LOOK_BACK, LOOK_BACK_TESTS, "inclusiveWarpSum(before)", "before"),
    Defect("states are cleared while tiles look at them", LOOK_BACK, LOOK_BACK_TESTS, "tile == count + gridDim.x - 1", "tile == count"),
    Defect("states are cleared before others have left", LOOK_BACK, LOOK_BACK_TESTS, "__threadfence(); // the block", "; // the block"),
    Defect("states of the last call are left", LOOK_BACK, LOOK_BACK_TESTS, "states[at] = 0;", ";"),
    Defect("marks of a round are counted with those behind", MARKED, MARKED_TESTS, "(1u << laneOf()) - 1", "(2u << laneOf()) - 1"),
    Defect("marks of earlier rounds are left out", MARKED, MARKED_TESTS, "__shfl_sync(kAllLanes, before, round)",
           "__shfl_sync(kAllLanes, before, 0)"),
    *SUMS,
    Defect("bytes are counted before they are cleared", LOWEST, RULE_TESTS, "__syncthreads();", behind="mine[threadIdx.x] = 0;"),
    Defect("byte counts are read too early", LOWEST, RULE_TESTS, "__syncthreads();", behind="atomicAdd(mine + (rank.word(word) >> shift & 0xFF), 1u);"),
    # Lists, products, top-k.
    Defect("the greatest of warps is read too early", SCAN_LENGTHS, "ListDomains.Taken", "__syncthreads();", behind="greatest[warpOf()] = value;"),
    Defect("chosen rows are read too early", ROWS, "ListRows.PoolGradients", "__syncthreads();", behind="rows[thread] = chosen;"),
    Defect("chosen rows are overwritten", ROWS, "ListRows.PoolGradients", "__syncthreads(); // the next", "; // the next"),
    Defect("a bit is set without an atomic", PICKS, "RowPicks.Picked", "atomicOr(word, bit);",
           "storeRelaxed(word, loadRelaxed(word) | bit);"),
    Defect("a tile is read before it is there", TILE, "SizedProducts.*", "__syncthreads();", behind="load<RightAcross>(rights, first, end, right);"),
    Defect("a tile is overwritten", TILE, "SizedProducts.*", "__syncthreads(); // the next", "; // the next"),
    Defect("digits are counted before they are cleared", TOP, "Rank.TopItems", "__syncthreads();", behind="shared.digits[threadIdx.x] = 0;"),
    Defect("digits are read too early", TOP, "Rank.TopItems", "__syncthreads();", behind="atomicAdd(shared.digits + (word >> shift & (kDigitValues - 1)), 1u);"),
    Defect("candidates are counted too early", TOP, "Rank.TopItems", "__syncthreads();", behind="better[atomicAdd(&shared.found, 1u)] = candidate;"),
    Defect("an item is excluded twice", SETS, "Rank.OfTargets", "atomicCAS(slot, kFree, wanted)",
           "(storeRelaxed(slot, wanted), kFree)"),
    Defect("rows are read before they are there", CROSS, "CrossAttention.*", "__syncwarp();", behind="row < count && column < Size ? factor<Bf16>(rows[row * ld + column]) : 0.0f;"),
    Defect("rows are overwritten", CROSS, "CrossAttention.*", "__syncwarp(); // the next columns", "; // the next columns"),
    Defect("vectors of a row are read too early", INTERACTION, "LinearProducts.PairsOf*", "__syncthreads();", behind="interact(const genrec_domain *domain, const float *x, int64_t ldX, float *products) {"),
    Defect("vectors of a row are overwritten", INTERACTION, "LinearProducts.PairsOf*", "__syncthreads(); // the next", "; // the next"),
    Defect("shares of products are read too early", INTERACTION, "LinearProducts.PairsOf*", "__syncthreads();", behind="shares[i] = cuda::factor<Bf16>(gradient[row * ldGradient + i]);"),
    Defect("shares of products are overwritten", INTERACTION, "LinearProducts.PairsOf*", "__syncthreads();", behind="dx[row * Rows::kFloats + element] = sum;"),
    # Tables.
    Defect("a key is placed while lanes read its bucket", CACHE, CACHE_TESTS, "__syncwarp(); // all", "; // all"),
    Defect("a placed key is read without __syncwarp", CACHE, CACHE_TESTS, "__syncwarp();\n  return", ";\n  return"),
    Defect("a digest is shown before its key", KEYS, STORE_TESTS, "__threadfence(); // the digest", "; // the digest"),
    Defect("a slot is claimed without an atomic", KEYS, STORE_TESTS,
           "if (atomicCAS(word, before, before | kBusy << shift) != before)\n    return kNoSlot;",
           "storeRelaxed(word, before | kBusy << shift);"),
    Defect("a home that was full has an empty slot", ERASE, "CudaStore.ErasingFromAFullHome*", "isNear && hasZero(digests)",
           "hasZero(digests)"),
    Defect("keys are put anywhere in their bucket", KEYS, "CudaStore.KeysAreAtHome*", "detail::firstFromHome(lanes, table.home(hash))",
           "detail::firstFromHome(lanes, 0)"),
    Defect("what is not at home is nowhere", SEARCH, "CudaCache.KeysThatHaveNoRoom*:CudaStore.ErasingFromAFullHome*",
           "detail::searchBuckets<Concurrent>(table, tileOf(), hash, own);", "break;"),
    Defect("a lane takes what others found for another key", SEARCH, "CudaStore.AgreesWithAMap", "laneOf() / kKeys != round", "false"),
    Defect("keys of one digest are one", SEARCH, "CudaCache.KeysThatHaveNoRoom*", "matches && slot.key != key", "false"),
    Defect("an empty slot at home ends a search of a cache", SEARCH, "CudaCache.KeysThatHaveNoRoom*",
           "Table::kGoesOn ? __ballot_sync(kAllLanes, hasZero(probes[round].digests)) : 0",
           "__ballot_sync(kAllLanes, hasZero(probes[round].digests))"),
    Defect("the least position is set without an atomic", STORE_KERNELS, STORE_TESTS,
           "atomicMin(&table.keys[entry.slot].row, Word(pending));", "storeRelaxed(&table.keys[entry.slot].row, Word(pending));"),
    Defect("an id of this batch has a row before that is made", STORE_KERNELS, STORE_TESTS, "entry.row < kPending", "entry.row != pending"),
    Defect("ids that a cache forgets twice are two", CACHE_KERNELS, "CudaCache.KeysThatHaveNoRoom*",
           "(atomicAnd(word, ~own) & own) && rows", "(atomicAnd(word, ~own) | 1) && rows"),
    Defect("a warp makes one row of those it looks at", STORE_KERNELS, STORE_TESTS, "made &= made - 1", "made = 0"),
    *UNIQUE_DEFECTS,
    # Hosts: streams, events, pinned memory.
    host("a batch is computed on before it is copied", "wait(computes, copied[slot]);"),
    host("a copy is not recorded again", "record(copied[slot], copies);"),
    host("a batch is overwritten while it is computed on", "wait(copies, consumed[slot]);"),
    host("consumption is recorded before the work",
         "launch(computes, copyInts, batches[slot]->data, scratch, kValues);\n    record(consumed[slot], computes);",
         "record(consumed[slot], computes);\n    launch(computes, copyInts, batches[slot]->data, scratch, kValues);"),
    host("a pinned slot is filled while it is copied", "GENREC_CUDA_CHECK(cudaEventSynchronize(read[slot]));"),
    host("a pinned result is read early", "GENREC_CUDA_CHECK(cudaEventSynchronize(reported[entry]));"),
    host("a result is recorded before it is copied", "copyLoss(entry);\n    record(reported[entry], computes);",
         "record(reported[entry], computes);\n    copyLoss(entry);"),
    host("the host asks whether a result is there and goes on", "GENREC_CUDA_CHECK(cudaEventSynchronize(reported[entry]));",
         "(void)cudaEventQuery(reported[entry]);"),
    host("memory is freed in another stream", "GENREC_CUDA_CHECK(cudaFreeAsync(scratch, computes));",
         "GENREC_CUDA_CHECK(cudaFreeAsync(scratch, copies));"),
    host("memory is used in another stream than it is allocated in",
         "GENREC_CUDA_CHECK(cudaMallocAsync(&scratch, kValues * 4, computes));",
         "GENREC_CUDA_CHECK(cudaMallocAsync(&scratch, kValues * 4, sides));"),
    host("a kernel is in the default stream", "launch(computes, accumulate, scratch, state.data, kValues);",
         "launch(nullptr, accumulate, scratch, state.data, kValues);"),
    host("a kernel is in the stream of copies", "launch(computes, fillWith, a, kSize * kSize, 1.0f);",
         "launch(copies, fillWith, a, kSize * kSize, 1.0f);"),
    host("two products have one workspace", "otherSpace", "space", behind="products.multiply(a, second,"),
    host("a product does not wait for its matrix", "wait(sides, forked); // the matrix", "; // the matrix"),
    host("the next step does not wait for a product", "wait(computes, joined); // before the next", "; // before the next"),
    # Graphs.
    host("a graph has no edge to a branch",
         "launch(computes, addTo, state.data, kValues, 1);\n    record(forked, computes);",
         "record(forked, computes);\n    launch(computes, addTo, state.data, kValues, 1);"),
    host("a graph has no edge from a branch", "wait(computes, joined); // before the last", "; // before the last"),
    host("a branch of a graph ends too early",
         "launch(computes, copyInts, state.data, copy.data, kValues);\n    record(joined, sides);",
         "launch(computes, copyInts, state.data, copy.data, kValues);"),
    host("a graph runs in another stream", "GENREC_CUDA_CHECK(cudaGraphLaunch(exec, computes));",
         "GENREC_CUDA_CHECK(cudaGraphLaunch(exec, sides));"),
    # NCCL.
    host("ranks send outside of a group", "ncclGroupStart();\n      swap();\n      ncclGroupEnd();", "swap();", tests=RANK_TESTS),
    host("communicators are used in two orders", "swapRows();\n    addUp();",
         "if (rank == 1) addUp(); swapRows(); if (rank == 0) addUp();", tests=RANK_TESTS),
    host("rows are sent before they are there", "wait(comms, ready);", tests=RANK_TESTS),
    host("rows are read before they are received", "wait(computes, received);", tests=RANK_TESTS),
    # The queues of a session's steps.
    step("compute does not wait for dispatch", "GENREC_CUDA_CHECK(cudaStreamWaitEvent(at(which), followed, 0));"),
    step("what is waited for is noted too early", "GENREC_CUDA_CHECK(cudaEventRecord(followed, at(before)));"),
    step("dispatch does not wait for its batch", "GENREC_CUDA_CHECK(cudaStreamWaitEvent(queue, copied, 0));"),
    step("nobody waits for the end of a step", "waitForEvent(static_cast<CudaMark &>(mark).event);"),
    step("a captured step runs beside the next", "GENREC_CUDA_CHECK(cudaGraphLaunch(static_cast<CudaGraph &>(graph).exec, queue));",
         "GENREC_CUDA_CHECK(cudaGraphLaunch(static_cast<CudaGraph &>(graph).exec, copies));"),
    # Distinct rows of lookups, and of gradients.
    Defect("products of a later window are looked for in the first", DISTINCT, WINDOW_TESTS, "(w.lookups.numbers[part * rows + row] - origin)",
           "(w.lookups.numbers[part * rows + row])"),
    Defect("a later window of lookups starts anew", DISTINCT, WINDOW_TESTS, "w.first == 0 ? 0.0f : *to", "0.0f"),
    Defect("the last chunk runs into the next lookup", DISTINCT, PRODUCT_TESTS, "min(own.size, begin + grain)", "begin + grain"),
    Defect("chunks are added up that nobody wrote", DISTINCT, PRODUCT_TESTS, "chunk < chunks", "chunk <= chunks"),
    Defect("places without a row are left as they are", LOOKUPS, LOOKUP_TESTS, "ids[i] = 0;"),
    Defect("entries that touch nothing have a row", TOUCHED, STEP_TESTS,
           "isTouched ? static_cast<int64_t>(reinterpret_cast<uintptr_t>(row)) : 0",
           "static_cast<int64_t>(reinterpret_cast<uintptr_t>(row))"),
    Defect("the last segment has what is skipped", ORDER, "Unique.ZeroIsNone", "min(keys[order[at]], keysThere)", "keys[order[at]]"),
    Defect("what is skipped has the number of an id", UNIQUE, "Unique.ZeroIsNone", "static_cast<uint32_t>(batch.count)", "0u", behind="result.inverse[first + item] = isNone ?"),
    # Lists.
    Defect("later rounds of a scan begin at nothing", SCAN_LENGTHS, "ListDomains.*", "before += total;"),
    Defect("a block's lists begin behind its own", SCAN_LENGTHS, "ListDomains.*", "block < blockIdx.x", "block <= blockIdx.x"),
    Defect("the last list has no end", DOMAINS, "ListDomains.*", "made.offsets[lists] = total;"),
    Defect("rows are compared too early", ROWS, "ListRows.PoolGradients", "__syncthreads();", behind="values[thread] = other, rows[thread] = rows[thread + by];"),
    Defect("rows in front of a truncated list are read", ROWS, "ListDomains.Truncated", "ordinal >= 0 && ordinal < length", "ordinal < length"),
    Defect("rows beyond the domain are read", ROWS, "ListDomains.Truncated", "if (row >= source->count)\n      return nullptr;", behind="struct ToTruncated {"),
    Defect("all lanes note a row", ROWS, "ListRows.Shifted", "if (first == 0)\n        from.note(row, source != nullptr);",
           "from.note(row, source != nullptr);"),
    # Rows and sums of portions and ranks.
    Defect("what aligns messages is not written", EXCHANGE, EXCHANGE_TESTS,
           "GENREC_CUDA_CHECK(cudaMemsetAsync(message, 0, static_cast<size_t>(floats) * 4, queue));", ";"),
    Defect("values of bf16 are as wide as floats", EXCHANGE, EXCHANGE_TESTS, "rowFloats.push_back(store.valueFloats());",
           "rowFloats.push_back(store.dim);"),
    Defect("values of bf16 are rounded", EXCHANGE, EXCHANGE_TESTS, "(isBf16 ? layout.others : layout.values)", "layout.values"),
    Defect("all nodes are received in one place", EXCHANGED_SUMS, EXCHANGE_TESTS, "received[number].ensure(roomFor(floats), queue)",
           "received[0].ensure(roomFor(floats), queue)"),
    Defect("flags are merged before sums", EXCHANGED, EXCHANGE_TESTS,
           "GENREC_CUDA_LAUNCH(stream, shapeOfRows(cells.rows, shift), mergeKernel, cells, left, right,\n                     shift);\n"
           "  GENREC_CUDA_LAUNCH(stream, shapeOfThreads(cells.rows, kThreads), mergeFlagsKernel, cells, left,\n                     right);",
           "GENREC_CUDA_LAUNCH(stream, shapeOfThreads(cells.rows, kThreads), mergeFlagsKernel, cells, left, right);\n"
           "  GENREC_CUDA_LAUNCH(stream, shapeOfRows(cells.rows, shift), mergeKernel, cells, left, right, shift);"),
    Defect("rows that are asked for are not ordered", EXCHANGE, EXCHANGE_TESTS,
           "stableOrder.run(ownedNumbers.data(), asked, room, ownedOrder.ensure(room, queue), queue);",
           "ownedOrder.ensure(room, queue);"),
    Defect("all lanes flag a row", EXCHANGED, EXCHANGE_TESTS, "if (lane != 0)\n      continue;", behind="to[c] = sums[i * dim + c];"),
    Defect("a cell begins where the last one does", EXCHANGED, EXCHANGE_TESTS, "cell <= here", "cell < here"),
    Defect("one key too many has an owner", EXCHANGED, EXCHANGE_TESTS, "u < *distinct.total", "u <= *distinct.total"),
    Defect("rows that nobody touched are updated", EXCHANGED, EXCHANGE_TESTS, "if (!touched[u])\n      continue;"),
    Defect("exact sums of all values are that of the first", PORTIONS, EXACT_TESTS, "all + i * kBytes", "all"),
    Defect("a rank leaves out its own slice", PORTIONS, SUM_TESTS, "copyFloats(sum.total + slice.begin, mine, slice.count, queue);"),
    Defect("all nodes of a rank are taken for its first", PORTIONS, SUM_TESTS, "static_cast<int64_t>(i) * slice.count", "0"),
    # Tables in host memory behind a cache.
    Defect("a row's place is overwritten while lanes read it", CACHED, CACHED_TESTS, "__syncwarp();"),
    Defect("a row leaves when the new one is there", CACHED, CACHED_TESTS,
           "if (placement.leaving[i])\n      copyRow(cached.row(slot), cached.hostRows[slot], cached.words);\n"
           "    copyRow(batchRows[i], cached.row(slot),\n            cached.words);",
           "copyRow(batchRows[i], cached.row(slot), cached.words); if (placement.leaving[i])\n      copyRow(cached.row(slot), cached.hostRows[slot], cached.words);"),
    Defect("rows without room have no address", CACHED, CACHED_TESTS, "rows[i] = batchRows[i];", ";"),
    Defect("the count of what was refused begins anywhere", CACHED, CACHED_TESTS,
           "GENREC_CUDA_CHECK(cudaMemsetAsync(refused.data(), 0, sizeof(uint32_t), stream));"),
    Defect("cached rows are read in host memory", CACHED, CACHED_TESTS,
           "table.find(on, ids, valid, count, rows, missing);\n  if (count > 0)\n    pointToCached(ids, valid, count, rows, streamOf(on));",
           "if (count > 0)\n    pointToCached(ids, valid, count, rows, streamOf(on));\n  table.find(on, ids, valid, count, rows, missing);"),
    # A session's steps.
    Defect("places behind a batch look up their id", DEVICE, "Seeds/DeviceSteps.RowsOfTheNext*/0",
           "from.domain ? from.domain->count : from.count", "from.count"),
    step("copies are noted in the wrong queue", "cudaEventRecord(copied, copies)", "cudaEventRecord(copied, queue)"),
    step("a store's memory is made in the other queue", "at(DeviceQueue::dispatch)", "at(DeviceQueue::compute)"),
    session("a batch that never ran is overwritten", "batch.cpp", "if (isCopying && !isAhead) // of a batch that never ran\n    device.synchronize();",
            tests="MayEndWhileTheNextOneIsQueued"),
    session("a session ends while the next step is queued", "state.cpp", "owned->synchronize();", behind="owned->joinCopies();",
            tests="ASessionMayEndWhileTheNextStepIsQueued"),
    session("a session ends while a batch is copied", "state.cpp", "owned->joinCopies();", tests="ASessionMayEndWhileTheNextStepIsQueued"),
    session("a step does not wait for its batch", "batch.cpp", "if (isCopying)\n    device.joinCopies();"),
    session("dispatch does not wait for late lookups", "step.cpp",
            "if (state.takeLookedUp() || (state.lookupsFollow() && !slot.rankStep))\n    device.follow(DeviceQueue::dispatch, DeviceQueue::compute);",
            tests="ALookupBehindDispatchIsNotCaptured"),
    session("stages do not wait for dispatch", "step.cpp", "device.follow(DeviceQueue::compute, DeviceQueue::dispatch);", behind="void DeviceStep::runStages() {"),
    session("a graph has the rate of its first step", "step.cpp", "*scalar.pinned = slot.stepScalar(scalar.kind, scalar.argument);", ";"),
    session("a parameter that was read is the host's", "state.cpp", "copyOut(parameter);",
            "{\n      copyOut(parameter);\n      parameter.isGiven = true;\n    }", behind="void DeviceState::readParameters() {", tests="ParametersAreBroughtWhole"),
    session("the end of a step is placed before its reports", "step.cpp", "leaving.fetchNotes();\n  device.place(*end);",
            "device.place(*end); leaving.fetchNotes();"),
    session("a table of a step is used before it is made", "step.cpp", "device.follow(DeviceQueue::compute, DeviceQueue::dispatch);",
            behind="if (!isDispatching) // where it may have been made just now", tests="ALookupBehindDispatchIsNotCaptured"),
    session("steps of other capacities have one graph", "step.cpp", "key.add(domain.capacity);", tests="MoreItemsAndLongerLists*"),
    session("steps of longer lists have the graph of shorter ones", "step.cpp", "key.add(domain.max_length);", tests="MoreItemsAndLongerLists*"),
    Defect("programs have one graph", SLOT, "Seeds/DeviceSteps.EachProgram*/0", "static_cast<const void *>(plan->program)",
           "static_cast<const void *>(nullptr)"),
    Defect("the longest list has no capacity", SLOT, "Seeds/DeviceSteps.MoreItemsAndLongerLists*/0",
           "raise(plan.maxLengths[i], capacityBucket(domainTable[i].max_length));", ";"),
    session("the graph that was used last makes room", "graphs.cpp", "kept.pop_back();", "kept.erase(kept.begin());", tests="MoreSteps*"),
    session("notes are not cleared", "notes.cpp", "device.fill(memory.data(), GENREC_NO_PLACE & 0xFF, kBytes);"),
    *LIBRARY_DEFECTS,
    # Rows and sums that ranks exchange, beside a step and behind it.
    ranks("compute does not wait for the rows of other ranks", DEVICE,
          "GENREC_CUDA_CHECK(cudaEventRecord(followed, at(before)));"),
    ranks("ranks stay on the device that is current", FIND_DEVICE, "GENREC_CUDA_CHECK(cudaSetDevice(number));"),
    ranks("counts of keys are read before they are there", EXCHANGE, "waitForStream(queue);", behind="GENREC_CUDA_CHECK(cudaMemcpyAsync(firstsOnHost, cellFirsts.data(), (size + 2) * sizeof(int64_t),"),
    ranks("a message of keys is one short", EXCHANGE, "(positions[cell(section + 1, 0)] - first) * 8",
          "(positions[cell(section + 1, 0)] - first) * 8 - 8 * (positions[cell(section + 1, 0)] > first)"),
    ranks("keys of ranks change places", EXCHANGE, "to.push_back(firstWanted(store, asker));",
          "to.push_back(firstWanted(store, ranks - 1 - asker));"),
    ranks("a message is written over another one before that is sent", EXCHANGE, "message += servedValues[other].floats();"),
    ranks("addresses of a portion are written over those of another", EXCHANGE, "first += request.count;"),
    ranks("a node has sums of the step before", EXCHANGED_SUMS,
          "GENREC_CUDA_CHECK(cudaMemsetAsync(node, 0, static_cast<size_t>(floats) * 4, queue));"),
    ranks("the sums of a portion are left out", EXCHANGED_SUMS, "mergeSums(cells, left.sums, nodes.back().sums, queue);"),
    ranks("the memory of a node is given back twice", EXCHANGED_SUMS, "freeNodes.push_back(nodes.back().sums);",
          "freeNodes.push_back(nodes.back().sums); freeNodes.push_back(nodes.back().sums);"),
    ranks("sums of the step before are added once more", EXCHANGED_SUMS, "leafMessages.assign(askers, {});",
          "leafMessages.resize(askers);"),
    ranks("sums travel without the flags of their rows", EXCHANGED_SUMS, "send[other] = askedSums[section].part(nodes[number].sums + sumBegins[section]);",
          "send[other] = askedSums[section].part(nodes[number].sums + sumBegins[section]), send[other].others = 0;"),
    ranks("a row is not marked that the right portion alone touches", EXCHANGED,
          "reinterpret_cast<uint8_t *>(left)[flag] = 1;"),
    ranks("a total is that of the step before", PORTIONS, "sum.total = nullptr;"),
    ranks("gradients of parameters of a portion are left out", PORTIONS,
          "addFloats(left.values, sum.nodes.back().values, sum.length, queue);"),
    ranks("sums of ranks come to one place", PORTIONS,
          "to += other == rank ? 0 : static_cast<int64_t>(covers[other].size()) * mine.count;"),
    # Rows that every rank has, and equal keys that travel one by one.
    replicas("replicas of a table of several are the owners'", "sections[firstMembers.back() + member] = sharesReplicas(store) ? ranks : rank;"),
    replicas("keys of replicas stay where they are", "exchangeKeys(on, true, std::span(places).last(ranks));"),
    replicas("keys of replicas of ranks change places", "to.push_back(firstWanted(store, asker));",
             "to.push_back(firstWanted(store, asker < ranks ? asker : 3 * ranks - 1 - asker));"),
    replicas("values of replicas are left out",
             "gatherValues(ranks + rank, askedValues[ranks], values.data() + valueBegins[ranks]);"),
    replicas("sums of replicas stay where they are", "exchangeNode(number, true, to);", file=EXCHANGED_SUMS),
    replicas("sums of replicas come to where others do", "to = exchangeNode(number, false, to);", "exchangeNode(number, false, to);", file=EXCHANGED_SUMS),
    replicas("a rank counts what others have of replicas", "continue; // replicas", "; // replicas"),
    replicas("what the device finds is left out", "traffic.found += *foundOnHost;"),
    replicas("what other ranks find of replicas is counted", "asker < cells.ranks || asker == cells.ranks + rank", "true", file=EXCHANGED),
    replicas("every rank says that it owns a replica", "asker < owned.cells.ranks", "true", file=EXCHANGED),
    replicas("nobody says who owns a replica",
             "updates.isOwned[to] =\n          isOwnedBy(owned, owners, rank, owned.from[k].asker, store, owned.distinct.keys[row]);",
             file=EXCHANGED),
    replicas("sums of replicas are looked for among others", "row.asker >= owned.cells.ranks", "0", file=EXCHANGED),
    equal("equal keys are found once all the same", "!travel.requestersDeduplicate", "false"),
    equal("keys without numbers are grouped", "fillNumbers(numbers.data(), entries, queue);"),
    equal("one sum of equal keys is added", "k < last", "k <= first", file=EXCHANGED),
    equal("who asks for a row is not told", "findAskers(askedCells, ownedOrder.data(), askedRows.ensure(roomFor(asked), queue), queue);",
          "askedRows.ensure(roomFor(asked), queue);"),
    equal("a key has a row that was found before", "GENREC_CUDA_CHECK(cudaMemsetAsync(seen, 0, static_cast<size_t>(cells.asked) * 4, stream));",
          file=EXCHANGED),
    equal("a count begins with what is there", "GENREC_CUDA_CHECK(cudaMemsetAsync(keysThere, 0, sizeof(int64_t), stream));", file=EXCHANGED),
    equal("a block counts before its sum is zero", "__syncthreads();", file=EXCHANGED, behind="ofBlock = 0;"),
    equal("a block's count is read before all have added", "__syncthreads(); // all", "; // all", file=EXCHANGED),
    Defect("rows that others count are in an exact sum", KERNELS + "exact_sum.cu", EXACT_TESTS, "counts && counts[row] == 0", "false"),
    early("sums travel before they are there", "device.follow(DeviceQueue::sums, DeviceQueue::compute);"),
    early("sums that have travelled are not waited for", "device.follow(DeviceQueue::compute, DeviceQueue::sums);"),
    graphs("a stage gives to sums before it has computed", "device.launch(*piece.graph);\n    if (piece.then)\n      piece.then();",
           "if (piece.then) piece.then(); device.launch(*piece.graph);"),
    updated("nobody counts the rows to update", EXCHANGED,
            "GENREC_CUDA_LAUNCH(stream, shapeOfThreads(owned.cells.stores, kThreads), countKernel, owned,\n                     before, total, updates.counts);", ";"),
    updated("capacities are how many rows there are", EXCHANGED_SUMS,
            "capacity = std::max(capacity, capacityBucket(firstWanted(store + 1) - firstWanted(store)));",
            "capacity = firstWanted(store + 1) - firstWanted(store);"),
    Defect("sums of a portion that waits are overwritten", SESSION + "step.cpp",
           "Seeds/DeviceRanks.KeepSumsOfAPortionUntilItGivesThem/0", "from.reader = slot.portion;", ";"),
    later("rows of another fetch are placed among those of one", EXCHANGED,
          "if (rows[i] < values || rows[i] >= values + valueCount) // of another fetch\n      continue;", ";"),
    later("sums of a later fetch are left out", SESSION + "updates.cpp", "from.parts = static_cast<int32_t>(parts);", "from.parts = 1;"),
    later("rows of the first fetch alone are updated", SESSION + "updates.cpp", "device.sumSegments(&joined, segments, dim, store.rows.sums);",
          "device.sumSegments(&joined, segments, dim, store.rows.sums); fetches[0]->describe(number, joined.device);"),
    Defect("each portion fetches its later rows alone", SESSION + "ranks.cpp", "Seeds/DeviceRanks.LookUpLaterInHostMemory/0",
           "turns.meet([this] { fetchLate(); });", "fetchLate();"),
    later("rows of a later fetch give no sums", SESSION + "ranks.cpp", "fetch.rows->contribute(slot.portion, tables.storeOf[table], touched->device, touched->capacity,\n                           of, rowSums);",
          "if (&fetch == &begun().front()) fetch.rows->contribute(slot.portion, tables.storeOf[table], touched->device, touched->capacity, of, rowSums);"),
    Defect("places behind a portion ask for their id", DEVICE, GROW_TESTS, "from.domain->count", "from.count", behind="keyKernel(DeviceIds from, int64_t key, int64_t *keys, RowNote *beyond) {"),
    Defect("the update's buffers have room for one portion's rows", SLOT, GROW_TESTS,
           "plan->update.layout = layOut(plan->update.buffers, plan->capacities);", ";"),
    Defect("the device has room for one portion's rows", SLOT, GROW_TESTS, "onDevice->setCapacity(i, plan->capacities[i]);", ";"),
    Defect("sums of segments have room for a float each", SESSION + "ranks.cpp", GROW_TESTS,
           "touched->capacity * dim * static_cast<int64_t>(sizeof(float))", "touched->capacity * static_cast<int64_t>(sizeof(float))"),
    Defect("rows of all fetches have the room of the last one's", SESSION + "updates.cpp",
           "Seeds/DeviceRanks.LookUpLaterInHostMemory/0", "store.capacity += update.capacity;", "store.capacity = update.capacity;"),
    Defect("capacities of joined fetches add up from step to step", SESSION + "updates.cpp",
           "Seeds/DeviceRanks.LaunchStagesThatLookUpAsGraphs/0", "store.capacity = 0;", ";"),
    updated("an update stage waits for sums that travel early", SESSION + "ranks.cpp", "joinAhead();", behind="void DeviceRanks::exchangeSums(bool isUpdated) {"),
    Defect("a later lookup is made while it is captured", SESSION + "step.cpp", "Seeds/DeviceRanks.LaunchStagesThatLookUpAsGraphs/0",
           "callBetween(request);", "request();"),
    ranks("an exchange is no group", NCCL_COMM, 'check(nccl.groupStart(), "cannot begin an exchange");'),
    *HOT_ROWS,
    *COLUMN_DEFECTS,
    # The store's answer in pinned memory.
    Defect("the store's answer is read early", STORE, STORE_TESTS, "waitForStream(stream);"),
    *CALLS,
    *STEPS_AND_EXCHANGES,
    *MODELS,
    *BODY_DEFECTS,
    *PROMISES,
    # Behind the others, whose numbers stay.
    *IN_BATCH_DEFECTS,
    *JOINED_GRADIENTS,
    *LATER_UNIQUE_DEFECTS,
    *EDGES,
    *LATER,
    *DRAWN,
    *CHECKED,
    *WAITS,
    *DEMANDS,
    *TENTH,
    *ELEVENTH,
    *TWELFTH,
    *THIRTEENTH,
    *GROUPS,
    *HELD,
]  # fmt: skip


def main(source: Path, target: Path) -> None:
    """Copies headers, CUDA sources and the steps on a device of runtime/, and the test of a host, and plants all defects."""
    runtime = source / "runtime"
    for path in [*runtime.rglob("*"), source / PIPELINE]:
        name = path.relative_to(source if path == source / PIPELINE else runtime).as_posix()
        if path.suffix not in (".h", ".cu") and path != source / PIPELINE and not name.startswith(HOST_PARTS):
            continue
        defects = [(i, d) for i, d in enumerate(DEFECTS, 1) if d.file == name]
        text = planted(path.read_text(), defects)
        include = '#include "simt.h"\n' if defects and (path.suffix == ".cpp" or name.startswith(SESSION)) else ""
        text = f'{include}#line 1 "{path}"\n{text}'  # what an accusation names
        to = target / name
        if not to.exists() or to.read_text() != text:
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_text(text)
            shutil.copystat(path, to) if not defects else None
    (target / "stamp").write_text(str(len(DEFECTS)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

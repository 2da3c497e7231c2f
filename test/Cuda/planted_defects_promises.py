# ruff: noqa: E501 -- a defect per line
"""Defects that results of whole steps seldom show: memory that grows, bounds that lag behind, what only a promise forbids."""

from planting import Defect

DEVICE, STORE, ERASE = "embedding/cuda/device.cu", "embedding/cuda/store.cu", "embedding/cuda/store_erase.cu"
STORE_KERNELS, MEMORY, NCCL_COMM = "embedding/cuda/store_kernels.h", "core/cuda/memory.cu", "comm_nccl/nccl_comm.cu"
SUMS, SCORES = "kernels/cuda/row_sums.cu", "kernels/cuda/item_scores.cu"
DOMAINS, ROWS = "kernels/cuda/list_domains.cu", "kernels/cuda/list_rows.cu"
COPIES, PICKS, CHECKS = "kernels/cuda/part_copies.cu", "kernels/cuda/row_picks.cu", "kernels/cuda/row_checks.cu"
TOUCHED, CHUNKS = "embedding/cuda/distinct_rows.cu", "embedding/cuda/host_chunks.cu"
EXPORT, RULES, CACHE_KEYS = (
    "embedding/cuda/store_export.cu",
    "embedding/cuda/row_rules.cu",
    "embedding/cuda/cache_keys.cu",
)
RULED = "Cuda/RowRulesConformance/0."


def promised(name: str, file: str, tests: str, old: str, new: str = ";", behind: str = "") -> Defect:
    return Defect(name, file, f"DevicePromises.{tests}", old, new, behind)


def late(name: str, old: str, new: str = ";", file: str = STORE) -> Defect:
    return promised(name, file, "NewIdsHaveRows*", old, new)


def erased(name: str, file: str, old: str, new: str = ";") -> Defect:
    return promised(name, file, "NumbersOfErasedRows*", old, new)


def counted(name: str, old: str, behind: str) -> Defect:
    return promised(name, MEMORY, "MemoryIsCounted*", old, ";", behind)


def joined(name: str, file: str, old: str, new: str = ";") -> Defect:
    return promised(name, file, "RowsOfTwoFetches*", old, new)


def nccl(name: str, tests: str, old: str, new: str = ";", behind: str = "") -> Defect:
    return Defect(name, NCCL_COMM, f"Seeds/NcclComm.{tests}/0", old, new, behind)


def failing(name: str, file: str, tests: str, old: str, new: str = ";", behind: str = "") -> Defect:
    return Defect(name, f"session/{file}", f"Seeds/DeviceRanksThatFail.{tests}/0", old, new, behind)


PROMISES = [
    # What a device promises a session.
    joined("a row whose joined sum is 0 is not updated", "session/device_updates.cpp", "from.all = true;"),
    joined("all entries count, but those without a gradient", TOUCHED, "isTouched && !kAll", "isTouched"),
    promised("stores wait in the first step alone", DEVICE, "StoresKeep*", "storeStep.hasWaited = false;"),
    promised("all steps of stores have one number", DEVICE, "RowsAreCached*", "++storeStep.number;"),
    promised("each lookup of a step begins one", "embedding/cuda/cached_store.cu", "RowsAreCached*",
             "std::exchange(lastStep, now) != now", "true"),
    promised("graphs outlive memory that a device gave back", DEVICE, "MemoryThatIsGivenBack*",
             "++memoryMoves();", ";", behind="void release(void *memory) noexcept override {"),
    promised("steps that are captured give memory back", DEVICE, "MemoryDoesNotMove*", "isCapturing = true;", ";"),
    Defect("a graph has the scalars of the one before it, too", "session/device_step.cpp", "Seeds/DeviceSteps.MoreSteps*/0", "scalars.clear();", ";"),
    Defect("what a failed capture has reported stays", "session/device_reports.cpp", "Seeds/DeviceSteps.ALookup*/0",
           "reports.erase(reports.begin() + static_cast<ptrdiff_t>(reportsBefore), reports.end());", ";"),
    promised("the last list of a catalogue has no end", "session/device_state.cpp", "CataloguesAre*",
             "host.parent_domain ? host.parent_domain->count + 1 : 0", "host.parent_domain ? host.parent_domain->count : 0"),
    Defect("an id beyond its table is looked up as none", DEVICE, "Seeds/DeviceSteps.AnId*/0", "noteRow(beyond, from.domain, i);", ";", behind="isChosen = false;"),
    Defect("the id of a note is not kept", DEVICE, "Seeds/DeviceSteps.AnId*/0", "keepNotedValue(beyond, ids.ids, sizeof *ids.ids, queue);", ";", behind="rows, beyond);"),
    Defect("sums of one portion are read where another has its own", DEVICE, "Seeds/DeviceRanks.KeepSumsOfAPortionUntilItGivesThem/0",
           "gradients.reader", "0"),
    Defect("what went wrong ahead is not told", "session/device_ahead.cpp", "Seeds/DeviceRanksThatFail.HearWhat*/0",
           "if (error)\n    std::rethrow_exception(std::exchange(error, nullptr));", ";"),
    failing("what goes wrong between two steps is not told", "session_steps.cpp", "TellWhatABatch*", "state.ranks->abort(reasonOf(error));", behind="Impl::runRanksOnDevices("),
    failing("a rank tells what it has heard, and not its own", "device_ahead.h", "TellTheirOwn*", "throwOwnFirst(std::current_exception(), error);", "throw;"),
    failing("threads of portions do not watch", "ranks.cpp", "AreWatched*", "comm.enter();"),
    failing("runs have duplicates of their own", "ranks.cpp", "DispatchAhead*", "!ofDispatch", "true"),
    failing("what nobody took ends the next run", "device_ahead.cpp", "ForgetWhat*", "ranks.dropDispatchComm();"),
    # What the host knows of a store.
    late("rows asked for since the answer are not counted", "rowsBound = answer->rows + asked;", "rowsBound = answer->rows;"),
    late("slots asked for since the answer are not counted", "usedBound = answer->used + asked;", "usedBound = answer->used;"),
    late("there is room for the rows of the batch before", "rowsBound + count > static_cast<int64_t>(chunks.size()) * addresses.chunkRows",
         "rowsBound > static_cast<int64_t>(chunks.size()) * addresses.chunkRows"),
    late("rows that made the store grow are not counted", "rowsBound += fresh;"),
    late("rows that found room are not counted", "rowsBound += count;"),
    late("slots that a batch may take are not counted", "usedBound += count;"),
    promised("rows asked for since the answer are not of the bound", STORE, "BoundsHold*", "largestBound = answeredRows(0) + asked;",
             "largestBound = answeredRows(0);"),
    promised("the first of several tables is the largest", STORE, "BoundsHold*", "std::max(largestBound, answeredRows(member) + asked)", "largestBound"),
    promised("a chunk's place is written where a step searches", STORE, "GrowthWaits*",
             "if (chunkPlaces.front().number > 1)\n    waitForQueues();"),
    promised("rows that were listed are there when a store was cleared", STORE, "ClearForgets*", "++version;", behind="void EmbeddingStore::clear(const StoreStream &on) {"),
    promised("ids that wait are there when a store was cleared", STORE, "ClearForgets*", "waitingIds->clear(on);"),
    promised("pinned memory grows where nobody watches", "core/cuda/memory.cu", "PinnedMemoryIs*", "if (watching)\n    waitForQueues();"),
    Defect("a cache that was cleared finds its rows", STORE, "CudaCache.ClearForgets*", "cache->clear(stream);", ";"),
    late("stores wait as often as they like", "options.step = &storeStep;", file=DEVICE),
    erased("numbers of erased rows are lost where a store grows", ERASE, "freedNumbers.ensureKept(numbers, stream);",
           "freedNumbers.ensure(numbers, stream);"),
    erased("numbers are freed over those of earlier calls", ERASE, "counters->freed + ranks[i]", "ranks[i]"),
    erased("rows that were freed before are forgotten", ERASE, "counters->freed += counters->fresh;", "counters->freed = counters->fresh;"),
    erased("the row that was erased first comes first", STORE_KERNELS, "freedNumbers[freed - 1 - rank]", "freedNumbers[rank]"),
    erased("numbers that are used again stay free", STORE_KERNELS, "counters->freed -= reused;"),
    counted("pinned memory that is freed still counts", "forget(memory);", behind="void freeNamedHost(void *memory) noexcept {"),
    counted("memory that is freed still counts", "forget(memory);", behind="void freeNamed(void *memory, cudaStream_t stream) noexcept {"),
    counted("memory that is freed behind all work still counts", "forget(memory);", behind="void freeNamedAfterAll(void *memory) noexcept {"),
    counted("allocations of a device are not counted", "++all.allocations[name];", behind="all.entries[memory] = {name, bytes, MemoryKind::device};"),
    counted("allocations of pinned memory are not counted", "++all.allocations[name];", behind="all.entries[memory] = {name, bytes, MemoryKind::pinned};"),
    erased("rows of later chunks have no number of their own", ERASE, "static_cast<int64_t>(chunks.size()) * addresses.chunkRows",
           "addresses.chunkRows"),
    erased("rows of later chunks are those of the first", EXPORT, "(chunk.number << addresses.chunkShift) + inChunk", "inChunk"),
    promised("erased slots are not counted", ERASE, "ErasedSlots*", "atomicAdd(&counters->erased, 1u);"),
    promised("erased slots are still counted where keys have moved", STORE, "ErasedSlots*",
             "GENREC_CUDA_CHECK(cudaMemsetAsync(&counters.data()->erased, 0, sizeof(uint32_t), stream));"),
    promised("erased keys are moved", STORE_KERNELS, "ErasedSlots*", "digest == kEmpty || digest == kErased", "digest == kEmpty"),
    promised("the last slot is not moved", STORE_KERNELS, "ErasedSlots*", "at < from.slots()", "at < from.slots() - 1"),
    promised("ids of a call that no answer counts are not of the bound", STORE, "BoundsHold*", "largestBound += count;"),
    promised("a list of what was cleared is kept", EXPORT, "ClearForgets*", "listing.count = 0;"),
    # What stores have in common.
    Defect("ids that wait are not erased", ERASE, RULED + "IdsAreAdmitted*", "waitingIds->eraseValid(ids, nullptr, count, stream);", ";"),
    Defect("entries that are not valid wait", RULES, RULED + "Invalid*", "(!valid || valid[i]) && !rows[i]", "!rows[i]"),
    Defect("rows that no step has seen stay", RULES, RULED + "RowsNot*", "latest >= 0", "latest > 0"),
    Defect("the upper half of an id draws nothing", STORE_KERNELS, "Cuda/StoreConformance/0.InitialValues*",
           "static_cast<uint32_t>(id >> 32)", "0u"),
    Defect("rows are exported from the first on", EXPORT, "Cuda/StoreConformance/0.TablesThatShareAStoreAreExported*", "from + first", "from"),
    Defect("an id that is refused keeps its row", STORE_KERNELS, "CudaCache.WhatACall*", "placeOf[i] == kNoRoom", "false", behind="else if ("),
    Defect("the last float of a row that leaves is lost", STORE_KERNELS, "CudaCache.WhatLeaves*", "c < addresses.stride", "c < addresses.stride - 1"),
    Defect("rows of a cache are those of every table", EXPORT, "CudaCache.TablesThat*", "member < 0 || table.keys[slot] >> keyBits == member", "true"),
    Defect("marks of calls long ago stay", CACHE_KEYS, "CudaCache.MarksOfCalls*",
           "GENREC_CUDA_CHECK(cudaMemsetAsync(cache.marks, 0, static_cast<size_t>(cache.slots()), stream));", ";"),
    Defect("a call has the mark of the one before it", CACHE_KEYS, "CudaCache.MarksOfCalls*", "cache.call = kFirstCallAnew;",
           "cache.call = kFirstCallAnew - 1;"),
    # Communicators that come to their end.
    nccl("communicators are not destroyed", "Conforms", "(void)nccl.commDestroy(comm);"),
    nccl("calls that have no end are not aborted", "AnAbort*", "(void)nccl.commAbort(comm);"),
    nccl("what is aborted is destroyed, too", "AnAbort*", "isStopped = true;"),
    nccl("who leaves behind an abort waits for its exchanges", "WhoLeavesBehind*", "stop(); // destroying", "; // destroying"),
    nccl("who leaves by an exception waits for others", "WhoLeavesBy*", "std::uncaught_exceptions() > exceptions", "false"),
    nccl("communicators end one after another", "AllThat*", "std::thread(std::move(end)).detach();", "end();"),
    nccl("exchanges go on behind an abort", "NobodyExchanges*", "throwOthersError();", behind="const auto on = static_cast<cudaStream_t>(stream);"),
    nccl("nobody asks NCCL for errors", "WhatNccl*", "askState()", "int(NcclLibrary::kSuccess)", "const int state ="),
    nccl("the first communicator alone is watched", "EachComm*", "for (NcclComm *comm : comms)\n      comm->look(waited);", "comms.front()->look(waited);"),
    # Ranks that do not agree.
    nccl("a rank sends itself more than it expects", "ARank*", "send[self].bytes != receive[self].bytes", "false"),
    nccl("who noticed an error is not told", "ARank*", "error.isOwn = true;"),
    nccl("purposes of exchanges are not compared", "RanksThat*", "std::strcmp(other.purpose, own.purpose) != 0", "false"),
    nccl("bytes of exchanges are not compared", "RanksThat*", "other.bytes != receive[peer].bytes", "false"),
    nccl("what a rank sends itself stays where it was", "Conforms", "send[self].bytes > 0", "false"),
    # Kernels.
    Defect("sums behind the last chunk are added", SUMS, "RowSums.Chunks*", "(part + by) * each < chunks", "true"),
    Defect("the float behind a result is written", SUMS, "RowSums.Chunks*", "column < result.size", "column <= result.size"),
    Defect("scores of long vectors are cut", SCORES, "Rank.Scores", "p.inOrder = true;", ";"),
    Defect("a part that is the domain above has as many rows as its list", DOMAINS, "ListDomains.JoinedBelow*",
           "parts.parts[part] == above ? 1 : listLength(parts.parts[part], list)", "listLength(parts.parts[part], list)"),
    Defect("rows of the domain above are looked for in their lists", ROWS, "ListDomains.JoinedBelow*",
           "own == above ? row : listOfRow(own, row)", "listOfRow(own, row)"),
    Defect("the last of equal values is the greatest", ROWS, "ListRows.Pool*", "chosen < 0 || value > most", "chosen < 0 || value >= most"),
    Defect("a copy has all rows that there are", COPIES, "PartCopies.*", "left < 0 ? 0 : left < c.capacity ? left : c.capacity", "left"),
    Defect("rows are aligned as their first one is", COPIES, "PartCopies.*", "c.ldTo % unit == 0", "true"),
    Defect("no row is marked as the last of a word", PICKS, "RowPicks.Picked", "if (row < 0)\n      continue;", ";"),
    Defect("numbers of no rows have places", PICKS, "RowPicks.Picked", "i < count && row >= 0 && bits.source->count > 0", "i < count && row >= 0"),
    Defect("contractions have as many chunks as they like", "kernels/cuda/linear_products.cu", "LinearProducts.ContractionsHave*",
           "even < kLeastChunk ? kLeastChunk : even", "kLeastChunk"),
    Defect("a catalogue's rows are the only bound", CHECKS, "RowChecks.ACatalogue*", "last < c.high ? last : c.high", "last"),
    Defect("gradients of a domain above are read row by row", TOUCHED, "DistinctRows.Sums*", "part.parents ? part.parents[i] : i", "i"),
    Defect("chunks that are pinned at once are one", CHUNKS, "HostChunks.*", "static_cast<char *>(block) + chunk * bytes", "static_cast<char *>(block)"),
    Defect("pinned blocks are not given back", CHUNKS, "HostChunks.*", "blocks.push_back(block);"),
    Defect("chunks that are not used yet are not counted", CHUNKS, "HostChunks.*", "pinned += count * bytes;", "pinned += bytes;"),
    Defect("as many chunks are pinned as there was no memory for", CHUNKS, "HostChunks.*", "(count = 1) * bytes", "bytes"),
]  # fmt: skip

# ruff: noqa: E501 -- a defect per line
"""Defects of a session's steps and of what ranks exchange: stale state, flags and sizes that are left out, wrong owners.

Those in the default stream as a whole do no harm to any value where a test waits before and behind; the emulated device accuses them
(Options::mayUseDefaultStream of simt.h).
"""

from planting import Defect

SESSION, RANKS, KERNELS = "session/device_", "ranks/cuda/", "kernels/cuda/"
EXCHANGE, SUMS = RANKS + "row_exchange.cu", RANKS + "portion_sums.cu"
ROWS = "Seeds/DeviceRowExchanges.*/0:Seeds/DeviceRowExchanges.*/1:Seeds/DeviceRowExchanges.*/2"
OF_ONE = "Seeds/DeviceRanks.HaveTheBitsOfOne/0:Seeds/DeviceRanks.HaveTheseBitsWithoutOverlap/0"
STEPS = "Seeds/DeviceSteps.*/0"


def step(name: str, old: str, new: str = "", nth: int = 1, file: str = "step.cpp", tests: str = STEPS) -> Defect:
    return Defect(name, SESSION + file, tests, old, new, nth)


def exchange(name: str, old: str, new: str = "", nth: int = 1, file: str = EXCHANGE, tests: str = ROWS) -> Defect:
    return Defect(name, file, tests, old, new, nth)


STEPS_AND_EXCHANGES = [
    # In the default stream as a whole.
    step("a compute stage is in the default stream", "slot.stream = device.stream();", "slot.stream = nullptr;", nth=3),
    step("what ranks look up is in the default stream", "slot.stream = device.stream();", "slot.stream = nullptr;", nth=2, tests=OF_ONE),
    step("a dispatch stage is in the default stream", "slot.stream = device.stream();", "slot.stream = nullptr;", nth=1),
    Defect("rows are copied in the default stream", KERNELS + "rows.cu", "Rows.*:LargeSizes.GatherScatterPool",
           "GENREC_CUDA_LAUNCH(stream, shapeOf(blocksFor(blocksFor(count, kRows) << shift, kWarp)), kernel,\n                       rows, count, units, shift, matrix, ld);",
           "GENREC_CUDA_LAUNCH(nullptr, shapeOf(blocksFor(blocksFor(count, kRows) << shift, kWarp)), kernel,\n                       rows, count, units, shift, matrix, ld);"),
    Defect("ranges are checked in the default stream", KERNELS + "row_checks.cu", "RowChecks.*",
           "GENREC_CUDA_LAUNCH(stream, shape, findBeyond<float>, range, note);",
           "GENREC_CUDA_LAUNCH(nullptr, shape, findBeyond<float>, range, note);"),
    Defect("lists are pooled in the default stream", KERNELS + "pools.cu", "Pools.RandomLists",
           "GENREC_CUDA_LAUNCH(stream, cuda::shapeOfThreads(domain->capacity, kThreads), poolLists,\n                     domain->device, leaves->device, shape, all, parts);",
           "GENREC_CUDA_LAUNCH(nullptr, cuda::shapeOfThreads(domain->capacity, kThreads), poolLists,\n                     domain->device, leaves->device, shape, all, parts);"),
    Defect("a table is cleared in the default stream", "embedding/cuda/store.cu", "Cuda/StoreConformance/0.Clear*", "streamOf(on)", "nullptr", nth=4),
    exchange("keys travel in the default stream", "return on.exchange(send, receive, onDevice());",
             "return on.exchange(send, receive, {CommMemory::Kind::device, nullptr});"),
    # Captured steps.
    step("steps of other counts have one graph", "add(batch.isMade(static_cast<ptrdiff_t>(i)) ? domain.count : 0);", ";"),
    step("columns of other places have one graph", "add(column.values);", ";"),
    step("a graph's steps keep the domains of the step before", "if (batch.isMade(static_cast<ptrdiff_t>(i)))\n      batch.domains[i] = graph.domains[i];", ";"),
    step("a graph's steps report nothing", "leaving.replay(graph.reported);"),
    step("memory that has moved is no reason to capture anew", "graph.memoryVersion == device.memoryVersion()", "graph.memoryVersion != 0"),
    step("scratch of dispatch is that of compute", "isDispatching ? 1 : 0", "0"),
    step("fixed rows are forgotten", "batch.keepFixedRows();"),
    # Lookups of a step.
    step("an evaluation inserts rows", "slot.mode == static_cast<int32_t>(Mode::train)", "(slot.mode >= 0)"),
    step("a row is admitted by the step before", "static_cast<int64_t>(slot.step)", "(static_cast<int64_t>(slot.step) - 1)"),
    step("temporary rows stay", "usesTemporary[table] = 1;", ";"),
    step("gradients of nothing go anywhere", "from.zeros = state.zeroRow(from.table);", ";"),
    step("merged ids have all bits", "from.idBits = table.id_bits;", ";"),
    step("merged ids that are null count", "from.valid = valid[part];", ";"),
    step("tables that share a store have one key", "device.writeKeys(from, table.key, keys,\n                     leaving.note({NoteSubject::Kind::idBeyondTable, tables[part], of[part]}));",
         "device.writeKeys(from, 0, keys,\n                     leaving.note({NoteSubject::Kind::idBeyondTable, tables[part], of[part]}));"),
    step("ids that are null are looked up", "from.valid = valid;", ";"),
    step("rounded rows have no identity", "shared.model.tables[table].rounding != GENREC_ROW_STOCHASTIC", "true"),
    # Batches.
    step("a batch has the seed of the first", "mirrorStep.seed = slot.seed;", ";", file="batch.cpp"),
    step("a batch has the number of no step", "mirrorStep.step = slot.step;", ";", file="batch.cpp"),
    step("what lies behind a batch is of the one before", "std::memset(to + bytes, 0, static_cast<size_t>(piece.room) - bytes);", ";", file="batch.cpp"),
    step("a batch is copied ahead to where there is no room", "layout->bytes > memory.bytes() || layout->bytes > staging.bytes()", "false", file="batch.cpp"),
    step("what has no nulls is null", "std::memset(to, 1, bytes);", "std::memset(to, 0, bytes);", file="batch.cpp"),
    step("lists of a batch have the length of the first", "kind == GENREC_DOMAIN_CATALOGUE ? from.max_length : batch.longest[i]", "from.max_length", file="batch.cpp"),
    # Parameters.
    step("states of optimizers are not brought", "copyIn(parameter.device.states, parameter.host.states,\n             parameter.stateFloats * static_cast<int64_t>(sizeof(float)));", ";", file="state.cpp"),
    step("a parameter is brought before every step", "parameter.isGiven = false;", ";", file="state.cpp"),
    step("a parameter that was fetched is not brought again", "parameter.isGiven = true;", ";", file="state.cpp"),
    step("states of optimizers are fetched from the values", "std::memcpy(parameter.host.states, pinned + values, static_cast<size_t>(states));",
         "std::memcpy(parameter.host.states, pinned, static_cast<size_t>(states));", file="state.cpp"),
    step("arrays of a catalogue are one", "array.kind == kind", "true", file="state.cpp"),
    # Sums of portions.
    exchange("slices leave out the last floats", "((sum.length + ranks - 1) / ranks + 15) / 16 * 16", "(sum.length / ranks + 15) / 16 * 16", file=SUMS),
    exchange("portions have numbers of the step before", "sum.given = 0;", ";", file=SUMS),
    exchange("another program's sums have the lengths of the first", "!std::ranges::equal(sum.floats, floats)", "sum.floats.empty()", file=SUMS),
    exchange("what does not travel is added up of all ranks", "any && of[i].travels ? ranks : 1", "any ? ranks : 1", file=SUMS),
    exchange("sums that do not travel count all rows", "of[i].counts", "static_cast<const float *>(nullptr)", file=SUMS),
    exchange("a node is taken for one of another level", "covers[from][i].first == first && covers[from][i].level == level", "covers[from][i].first == first", file=SUMS),
    # Rows of ranks.
    exchange("replicas are still owned", "noteReplicas();", nth=2),
    exchange("flags of a message are cut", "aligned((flag + 3) / static_cast<int64_t>(sizeof(float)))", "aligned(flag / static_cast<int64_t>(sizeof(float)))"),
    exchange("sums that were left open are given twice", "open.assign(portions.count, nullptr);", "open.resize(portions.count);"),
    exchange("rows of replicas are not asked for by all", "asker / ranks * storeCount()", "0"),
    exchange("found rows are those of a step before", "isFoundTold = true;", ";"),
    exchange("a store's values lie where another's do", "layout.begins[store] = layout.floats();", "layout.begins[store] = layout.values;"),
    exchange("own rows are received as well", "if (isOwn)\n      continue;", ";"),
    exchange("the last store's rows are not brought", "if (count > 0)\n      find(static_cast<int32_t>(store), wantedInOrder + first, count, to + first);",
             "if (count > 0 && store + 1 < storeCount())\n      find(static_cast<int32_t>(store), wantedInOrder + first, count, to + first);"),
    step("fetches of the step before are counted", "fetchCount = 0;", ";", file="ranks.cpp", tests=OF_ONE),
    step("sums of dispatch are left out", "sums->reduce(on);", ";", file="ranks.cpp", tests=OF_ONE),
    step("an id beyond a table of ranks is not noted", "device.writeKeys(lookup.ids, 0, keys, lookup.beyond);", "device.writeKeys(lookup.ids, 0, keys, nullptr);", file="ranks.cpp", tests=OF_ONE),
    step("a norm counts parameters of one rank", "!ofParameters[i] || shards.areShared()", "!ofParameters[i]", file="ranks.cpp", tests=OF_ONE),
    step("a norm counts parameters of all ranks", "!ofParameters[i] || shards.areShared()", "true", file="ranks.cpp", tests=OF_ONE),
    step("shared parameters come from one rank", "rowsOf + begins[other]", "rowsOf + begins[other == 0 ? 0 : other - 1]", nth=2, file="ranks.cpp", tests=OF_ONE),
    step("shared parameters lack the last float", "device.copyWithin(rows, from, floats * 4);", "device.copyWithin(rows, from, floats * 4 - 4);", file="ranks.cpp", tests=OF_ONE),
    step("shared parameters travel in the default stream", "device.stream()", "static_cast<void *>(nullptr)", file="ranks.cpp", tests=OF_ONE),
    step("sums of segments have room for one float of a row", "touched->capacity * dim * static_cast<int64_t>(sizeof(float))", "touched->capacity * static_cast<int64_t>(sizeof(float))", file="ranks.cpp", tests=OF_ONE),
    step("dispatch ahead uses one slot", "turn = 1 - turn;", ";", file="ahead.cpp", tests=OF_ONE),
    step("rows of which there is room are those of the last fetch", "stores[store].most += update.most;", "stores[store].most = update.most;", file="updates.cpp", tests="Seeds/DeviceRanks.LookUpIdsThatTheComputeStageMakes/0"),
    step("later fetches have no room", "domains.front().capacity += domain.capacity;", "domains.front().capacity = domain.capacity;", file="updates.cpp", tests="Seeds/DeviceRanks.LookUpIdsThatTheComputeStageMakes/0"),
]  # fmt: skip

# ruff: noqa: E501 -- a defect per line
"""Defects of a session's steps and of what ranks exchange: stale state, flags and sizes that are left out, wrong owners.

Those in the default stream as a whole do no harm to any value where a test waits before and behind; the emulated device accuses them
(Options::mayUseDefaultStream of simt.h).
"""

from planting import Defect

SESSION, RANKS, KERNELS = "session/device_", "ranks/cuda/", "kernels/cuda/"
EXCHANGE, SUMS = RANKS + "row_exchange.cu", RANKS + "portion_sums.cu"
ROWS = "Seeds/DeviceRowExchanges.RowsAndSumsAreThoseOfTheHost/0"
OF_ONE = "Seeds/DeviceRanks.HaveTheBitsOfOne/0"
STEPS = "Seeds/DeviceSteps.HaveTheBitsOfTheHost/0"


def step(name: str, old: str, new: str = "", behind: str = "", file: str = "step.cpp", tests: str = STEPS) -> Defect:
    return Defect(name, SESSION + file, tests, old, new, behind)


def exchange(name: str, old: str, new: str = "", behind: str = "", file: str = EXCHANGE, tests: str = ROWS) -> Defect:
    return Defect(name, file, tests, old, new, behind)


STEPS_AND_EXCHANGES = [
    # In the default stream as a whole.
    step("a compute stage is in the default stream", "slot.stream = device.stream();", "slot.stream = nullptr;", behind="void DeviceStep::runStages() {"),
    step("scratch of dispatch is that of compute", "isDispatching ? 1 : 0", "0"),
    Defect("rows are copied in the default stream", KERNELS + "rows.cu", "Rows.*:LargeSizes.GatherScatterPool",
           "GENREC_CUDA_LAUNCH(stream, shapeOf(blocksFor(blocksFor(count, kRows) << shift, kWarp)), kernel,\n                       rows, count, units, shift, matrix, ld);",
           "GENREC_CUDA_LAUNCH(nullptr, shapeOf(blocksFor(blocksFor(count, kRows) << shift, kWarp)), kernel,\n                       rows, count, units, shift, matrix, ld);"),
    Defect("ranges are checked in the default stream", KERNELS + "row_checks.cu", "RowChecks.*",
           "GENREC_CUDA_LAUNCH(stream, shape, findBeyond<float>, range, note);",
           "GENREC_CUDA_LAUNCH(nullptr, shape, findBeyond<float>, range, note);"),
    Defect("lists are pooled in the default stream", KERNELS + "pools.cu", "Pools.RandomLists",
           "GENREC_CUDA_LAUNCH(stream, blocks, poolLists<Room>, shape, pooled);",
           "GENREC_CUDA_LAUNCH(nullptr, blocks, poolLists<Room>, shape, pooled);"),
    Defect("a table is cleared in the default stream", "embedding/cuda/store.cu", "Cuda/StoreConformance/0.Clear*", "streamOf(on)", "nullptr", behind="void EmbeddingStore::clear(const StoreStream &on) {"),
    exchange("keys travel in the default stream", "return on.exchange(send, receive, onDevice());",
             "return on.exchange(send, receive, {CommMemory::Kind::device, nullptr});"),
    # Captured steps.
    step("a graph's steps report nothing", "leaving.replay(graph.reported);"),
    step("memory that has moved is no reason to capture anew", "graph.memoryVersion == device.memoryVersion()", "graph.memoryVersion != 0"),
    # Lookups of a step.
    # Batches.
    step("a batch is copied ahead to where there is no room", "layout->bytes > memory.bytes() || layout->bytes > staging.bytes()", "false", file="batch.cpp"),
    # Parameters.
    step("states of optimizers are not brought", "copies->in(parameter.device.states, parameter.host.states, parameter.stateFloats * kFloat);", ";", file="state.cpp", tests="Seeds/DeviceSteps.ParametersAreBroughtWhole/0"),
    step("a parameter is brought before every step", "parameter.isGiven = false;", ";", file="state.cpp"),
    step("states of optimizers are fetched from the values", "copies->out(parameter.host.states, parameter.device.states, parameter.stateFloats * kFloat);", "copies->out(parameter.host.states, parameter.device.value, parameter.stateFloats * kFloat);", file="state.cpp", tests="Seeds/DeviceSteps.ParametersAreBroughtWhole/0"),
    # Sums of portions.
    exchange("slices leave out the last floats", "((sum.length + ranks - 1) / ranks + 15) / 16 * 16", "(sum.length / ranks + 15) / 16 * 16", file=SUMS, tests="Seeds/DeviceRowExchanges.SumsOfVectorsAreThoseOfTheHost/0"),
    exchange("portions have numbers of the step before", "sum.given = 0;", ";", file=SUMS, tests="Seeds/DeviceRowExchanges.SumsOfVectorsAreThoseOfTheHost/0"),
    exchange("another program's sums have the lengths of the first", "!std::ranges::equal(sum.floats, floats)", "sum.floats.empty()", file=SUMS, tests="Seeds/DeviceRowExchanges.SumsOfVectorsAreThoseOfTheHost/0"),
    exchange("what does not travel is added up of all ranks", "any && of[i].travels", "any", file=SUMS, tests="Seeds/DeviceRowExchanges.ExactSumsAreOfRowsThatCount/0"),
    exchange("sums that do not travel count all rows", "each.counts", "static_cast<const float *>(nullptr)", file=SUMS, tests="Seeds/DeviceRowExchanges.ExactSumsAreOfRowsThatCount/0"),
    exchange("a node is taken for one of another level", "covers[from][i].first == first && covers[from][i].level == level", "covers[from][i].first == first", file=SUMS, tests="Seeds/DeviceRowExchanges.SumsOfVectorsAreThoseOfTheHost/0"),
    # Rows of ranks.
    exchange("flags of a message are cut", "aligned((flag + 3) / static_cast<int64_t>(sizeof(float)))", "aligned(flag / static_cast<int64_t>(sizeof(float)))", tests="Seeds/DeviceRowExchanges.RowsThatTravelRoundedAreThoseOfTheHost/2"),
    exchange("rows of replicas are not asked for by all", "asker / ranks * storeCount()", "0", tests="Seeds/DeviceRowExchanges.ReplicasAreThoseOfTheHost/0"),
    exchange("found rows are those of a step before", "isFoundTold = true;", ";"),
    exchange("own rows are received as well", "if (isOwn)\n      continue;", ";"),
    exchange("the last store's rows are not brought", "if (count > 0)\n      find(static_cast<int32_t>(store), wantedInOrder + first, count, to + first);",
             "if (count > 0 && store + 1 < storeCount())\n      find(static_cast<int32_t>(store), wantedInOrder + first, count, to + first);"),
    step("fetches of the step before are counted", "fetchCount = 0;", ";", file="ranks.cpp", tests=OF_ONE),
    step("an id beyond a table of ranks is not noted", "device.writeKeys(lookup.ids, 0, keys, lookup.beyond);", "device.writeKeys(lookup.ids, 0, keys, nullptr);", file="ranks.cpp", tests=OF_ONE),
    step("dispatch ahead uses one slot", "turn = 1 - turn;", ";", file="ahead.cpp", tests=OF_ONE),
]  # fmt: skip

# ruff: noqa: E501 -- a defect per line
"""Memory, events and graphs that are never given back: held_test.cpp looks behind every test. And drawn mutants."""

from planting import Defect

STORE, DEVICE = "embedding/cuda/store.cu", "embedding/cuda/device.cu"
STEPS, RANKS = "Seeds/DeviceSteps.HaveTheBitsOfTheHost/0", "Seeds/DeviceRowExchanges.Rows*OfTheHost/0"

HELD = [
    Defect("a store keeps its pinned counters", STORE, "CudaStore.OutOfMemory*", "(void)cudaFreeHost(answer);", ";"),
    Defect("a store keeps the counters of its members", STORE, "Cuda/RowRules*:CudaRowRules*", "(void)cudaFreeHost(memberAnswer);", ";"),
    Defect("a store keeps its event", STORE, "CudaStore.OutOfMemory*", "(void)cudaEventDestroy(answered);", ";"),
    Defect("a store keeps its last chunk", STORE, "CudaStore.AgreesWithAMap", "freeNamedAfterAll(chunk);", "if (chunk != chunks.back()) freeNamedAfterAll(chunk);"),
    Defect("lower halves keep their chunks", "embedding/cuda/lower_halves.cu", "*HotRows*", "freeNamedAfterAll(chunk);", ";"),
    Defect("chunks of the host's memory are kept", "embedding/cuda/host_chunks.cu", "Cuda*HostValues*", "freeNamedHost(block);", ";"),
    Defect("an array that is left is kept", "include/genrec_rt/cuda/memory.h", "CudaStore.AgreesWithAMap", "freeNamed(memory, stream);", ";"),
    Defect("an executable graph is kept", DEVICE, STEPS, "(void)cudaGraphExecDestroy(exec);", ";"),
    Defect("a captured graph is kept", DEVICE, STEPS, "(void)cudaGraphDestroy(graph);", ";"),
    Defect("a device keeps its streams", DEVICE, STEPS, "(void)cudaStreamDestroy(stream);", ";"),
    Defect("an exchange keeps its counts", "ranks/cuda/row_exchange.cu", RANKS, "freeNamedHost(firstsOnHost);", ";"),
    Defect("a step's tables keep their pinned pieces", "ranks/cuda/tables.h", RANKS, "freeNamedHost(block.pinned);", ";"),
    Defect("a communicator keeps its event", "comm_nccl/nccl_comm.cu", "Seeds/NcclComm.*/0", "(void)cudaEventDestroy(lastEnd);", ";"),
    Defect("a preference of cuBLAS is kept", "kernels/cuda/library_plans.cu", "LibraryProducts.RowsTimes*", 'library.check(library.preferenceDestroy(preference), "cublasLtMatmulPreferenceDestroy");', ";"),
    Defect("memory that is released while a step is captured is kept", DEVICE, "DevicePromises.MemoryDoes*", "freeNamed(memory, queue);", ";", behind="std::exchange(releasedMeanwhile, {})"),
    # Mutants of the fifteenth seed.
    Defect("graphs are never dropped", "session/device_graphs.cpp", "DevicePromises.GraphsThat*", "kept.size() == most", "false"),
    Defect("one list has no pools", "include/genrec_rt/kernels/cuda/pools.h", "Pools.One*", "domain->capacity == 0", "domain->capacity == 1"),
    Defect("a pack in memory is its first element", "include/genrec_rt/kernels/cuda/rowbody.h", "RowBodies.Reductions*", "elementOf(x, slot + c, first + c)", "elementOf(x, slot + c, first)"),
]

# ruff: noqa: E501 -- a defect per line
"""Defects of what CUDA and its libraries demand beyond the order of work: sizes, alignments, memory that others reach, codes, calls
that NCCL is not done with when they return."""

from planting import Defect

NCCL_COMM = "comm_nccl/nccl_comm.cu"
MEMORY, ATTENTION = "core/cuda/memory.cu", "include/genrec_rt/kernels/cuda/attention/attention.h"


def connecting(name: str, tests: str, old: str, new: str = ";", behind: str = "") -> Defect:
    return Defect(name, NCCL_COMM, f"Seeds/NcclConnecting.{tests}/0", old, new, behind)


DEMANDS = [
    Defect("lists that are cut, of which none has a row, are attended to", ATTENTION, "Attention*.NoRows", "args.rows > 0", "true"),
    Defect("a bias is multiplied where it is", "kernels/cuda/library_products.cu", "LibraryProducts.RowsTimesAWeight",
           "alignmentOf(p.bias) < 16", "false"),
    Defect("NCCL reads the memory of other devices of the process", "comm_nccl/nccl_library.cu",
           "Seeds/DeviceRanks.OwnersBringRowsOfTheHostsMemory/0",
           '(void)setenv("NCCL_P2P_DIRECT_DISABLE", "1", /*overwrite=*/0);', ";"),
    Defect("who gives memory back keeps others from taking some", MEMORY, "Seeds/Nccl.ARankGivesMemoryBack*/0",
           "(void)cudaDeviceSynchronize();",
           "const std::lock_guard<std::mutex> lock(ledger().mutex); (void)cudaDeviceSynchronize();"),
    Defect("nobody looks while a store grows", MEMORY, "DevicePromises.GrowthIsWatched",
           "waitForEvent(event);", "GENREC_CUDA_CHECK(cudaEventSynchronize(event));", behind="cudaStreamLegacy));"),
    Defect("memory of sums waits for the device where another program runs", "ranks/cuda/portion_sums.cu", "DevicePromises.SumsOfAnother*",
           "memory.release(queue);", ";"),
    Defect("a kernel that is not there has one code", "core/cuda/find_device.cu", "Seeds/DeviceRanks.AreRefusedWithoutCodeForTheDevice/1",
           "status == cudaErrorInvalidDeviceFunction", "false"),
    connecting("a communicator is used while it is made", "ALateRank*", 'finish(result, "cannot connect GPUs");', 'check(result, "cannot connect GPUs");'),
    connecting("work goes on while NCCL connects", "ALateRank*", 'finish(nccl.groupEnd(), "an exchange failed");', 'check(nccl.groupEnd(), "an exchange failed");'),
    connecting("who connects does not hear that others fail", "ARankThatFails*", "ofAll || isOver", "false"),
    connecting("a duplicate's abort ends what was sent before", "WhatWasSent*", "waited - *heard > kSoon", "true"),
    connecting("who connects has all patience", "ARankThatStalls*", "waited > getPatience()", "false", "isOver = own"),
    connecting("who connects goes on when another thread has ended that", "AnAbortOfTheSame*", "throwOthersError();", "break;", "if (isStopped) // by another thread\n"),
    connecting("what NCCL connects is not ended", "ADuplicateHears*", "stop();", ";", "nothing is queued behind"),
]  # fmt: skip

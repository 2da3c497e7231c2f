# ruff: noqa: E501 -- a defect per line
"""Defects of a communicator that waits (whose patience, whose error, who is watched), and of what hot rows leave behind; tiles of mma.sync."""

from planting import Defect

NCCL, LOWER, TILE = (
    "comm_nccl/nccl_comm.cu",
    "embedding/cuda/lower_halves.cu",
    "include/genrec_rt/kernels/cuda/tensor/tile.h",
)
MMA = "include/genrec_rt/kernels/cuda/tensor/mma.h"
AGREED = "Seeds/NcclComm.RanksThatDoNotAgree*/0"


def nccl(name: str, tests: str, old: str, new: str = ";", behind: str = "") -> Defect:
    return Defect(name, NCCL, tests if tests == AGREED else f"Seeds/NcclComm.{tests}/0", old, new, behind)


def hot(name: str, tests: str, old: str, new: str = ";") -> Defect:
    return Defect(name, LOWER, tests, old, new)


WAITS = [
    nccl("a wait for anything loses patience", "PatienceIs*", "!isUnderWay()", "false"),
    nccl("what NCCL says is the reason", "TheReasonIs*", "throwOthersError(); // the reason", "; // the reason"),
    nccl("who stays is not watched where another one leaves", "WhoStays*", "std::erase(comms, &comm);", "comms.clear();"),
    nccl("what others failed with is not looked for in a wait", "WhatAHost*", "if (error)\n      throw CommError(*error);"),
    nccl("long purposes have no end", AGREED, "sizeof mine[peer].purpose - 1", "sizeof mine[peer].purpose"),
    nccl("ranks announce what they expect", AGREED, "mine[peer] = {announced, send[peer].bytes, purpose.step, {}};", "mine[peer] = {announced, receive[peer].bytes, purpose.step, {}};"),
    hot("chunks of blocks are never freed", "CudaHotRows.LeaveNoMemory*", "freeNamedAfterAll(chunk);"),
    hot("halves are written when they will be", "CudaHotRows.HalvesAreWritten*", "waitForStream(stream);"),
    hot("positions behind a batch take blocks", "Cuda/HotRowsConformance/0.TheAddress*", "own < count && flags[own]", "flags[own]"),
    hot("one block more comes back than there is", "Cuda/HotRowsConformance/0.TheAddress*", "rank < freed", "rank <= freed"),
    hot("rows that stay hot give back their blocks", "Cuda/HotRowsConformance/0.Settle*", "(inAnyCase || !hot.isHot(rows[i]))", "true"),
    hot("rows that are cold again keep their blocks", "Cuda/HotRowsConformance/0.Settle*", "(inAnyCase || !hot.isHot(rows[i]))", "inAnyCase"),
    hot("upper halves of hot rows are rounded", "Cuda/HotRowsConformance/0.SplitAndJoin*", "kernels::upperHalf(from[i], isHot)", "kernels::upperHalf(from[i], false)"),
    Defect("columns behind a head are the next head's", TILE, "AttentionMma.Sizes", "row < inside && c * 8 < Size", "row < inside"),
    Defect("the last chunk of a tile is not copied", TILE, "AttentionMma.Masks", "at < Rows * kUsed", "at < Rows * kUsed - 1"),
    Defect("a quarter of a fragment is not cleared", MMA, "AttentionMma.Masks", "d[n][i] = 0;", "d[n][i] = i < 3 ? 0 : d[n][i];"),
]  # fmt: skip

# ruff: noqa: E501 -- a defect per line
"""Defects of hot rows: the blocks of their lower halves, and when a row is one."""

from planting import Defect

STORE, ERASE = "embedding/cuda/store.cu", "embedding/cuda/store_erase.cu"
RULES, LOWER = "embedding/cuda/row_rules.cu", "embedding/cuda/lower_halves.cu"
HOT_TESTS = "Cuda/HotRowsConformance/0.*:CudaHotRows.B*:CudaHotRows.C*:CudaHotRows.AStep*-*AgreeWith*"


def hot(name: str, old: str, new: str = "", behind: str = "", file: str = LOWER) -> Defect:
    return Defect(name, file, HOT_TESTS, old, new, behind)


HOT_ROWS = [
    hot("a block is not cleared", "storeWhole(block + 8 * at, uint4{0, 0, 0, 0});", ";"),
    hot("half of a block is cleared", "at < blocks.bytes / 16", "at < blocks.bytes / 32"),
    hot("new rows of a batch share a block", "used + rank - freed", "used"),
    hot("blocks that come back are taken from the wrong end", "blocks.freed[freed - 1 - rank]", "blocks.freed[rank]"),
    hot("a block that came back is given twice", "counters->freed -= again;"),
    hot("blocks that are taken again are counted as new", "counters->used += counters->moving - again;",
        "counters->used += counters->moving;"),
    hot("each position of a row takes a block", "*hot.lower(rows[i]) == claimOf(i)", "isClaim(*hot.lower(rows[i]))"),
    hot("positions claim beside one another", "atomicMax(lower, claimOf(i));", "*lower = claimOf(i);"),
    hot("a step sees a row more than once", "atomicExch(sighting, step) != step", "true", file=RULES),
    hot("rows become hot a step late", "reinterpret_cast<const Word *>(row + sightingOffset)[1] >= hotAfter",
        "reinterpret_cast<const Word *>(row + sightingOffset)[1] > hotAfter"),
    hot("rows that leave keep their blocks", "if (lowerHalves.room() > 0)\n    giveBackErased(count, stream);", ";",
        file=ERASE),
    hot("an id that is erased twice gives its block back twice", "erased[i] ? addresses.row(table.row(slotOf[i])) : nullptr",
        "slotOf[i] >= 0 ? addresses.row(table.row(slotOf[i])) : nullptr"),
    hot("blocks come back over one another", "blocks.counters->freed + ranks[i]", "blocks.counters->freed"),
    hot("what comes back is not counted", "counters->freed += counters->moving;"),
    hot("a row keeps the address of a block that it gave back", "*lower = 0;"),
    hot("blocks that came back are forgotten when there are more", "freed.ensureKept(room(), stream);", "freed.ensure(room(), stream);"),
    hot("nobody makes room for blocks", "if (isFull)\n    lowerHalves.makeRoom(\n"
        "        lowerBound + std::max(options.step ? 2 * count : 0, lowerHalves.chunkBlocks()), stream);", ";"),
    hot("the host forgets what it has asked for", "lowerBound += taken;", ";"),
    hot("an answer has blocks that were asked for later", "hotSinceRequest += taken;", ";"),
    hot("a step waits for each table", "isFull && mayWait()", "isFull"),
    hot("states begin where the address of lower halves is", "config.stateOffset()", "config.valueFloats()", file=STORE),
]  # fmt: skip

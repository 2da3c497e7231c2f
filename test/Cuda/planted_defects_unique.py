# ruff: noqa: E501 -- a defect per line
"""Defects of distinct ids: placing them, numbering them, and grouping them by owner."""

from planting import Defect

UNIQUE, UNIQUE_TABLE = "kernels/cuda/unique.cu", "kernels/cuda/unique_table.h"
UNIQUE_NUMBERS, LOOK_BACK = "kernels/cuda/unique_numbers.h", "kernels/cuda/look_back.h"

UNIQUE_DEFECTS = [
    Defect("an id is placed without an atomic", UNIQUE_TABLE, "Unique.*", "found = atomicCAS(batch.slots + at, kFree, word);",
           "found = kFree; storeRelaxed(batch.slots + at, word);"),
    Defect("the slot of another id is taken for one's own", UNIQUE_TABLE, "Unique.*", "other[round] != ids[Marked::place(round)]", "false"),
    Defect("who comes late is the least", UNIQUE_TABLE, "Unique.*",
           "there[round] != kFree && there[round] > own[round]", "false"),
    Defect("who is no more the least is first, too", UNIQUE_TABLE, "Unique.*", "Notes::turnOver(batch, there[round] & batch.positions);", ";"),
    Defect("who becomes the least writes over what others turned", UNIQUE_TABLE, "Unique.*", "atomicXor(&batch.firsts[word], least);",
           "batch.firsts[word] = least;"),
    Defect("slots of the last batch are left", UNIQUE, "Unique.*", "storeWhole(batch.slots + 4 * i, free);"),
    Defect("the last slots of an odd batch are left", UNIQUE, "Unique.*", "storeWhole(batch.slots + 4 * i, uint2{kFree, kFree});"),
    Defect("notes of the last batch are left", UNIQUE, "Unique.*", "batch.firsts[i] = 0;"),
    Defect("a number is shown without an atomic", UNIQUE, "Unique.Owners*", "storeRelaxed(batch.slots + placed.slot[round], there[round]);",
           "batch.slots[placed.slot[round]] = there[round];"),
    Defect("a position is taken for a number", UNIQUE, "Unique.Owners*", "!(there[round] & kNumbered)", "false"),
    Defect("items are looked for before ids are there", UNIQUE, "Unique.*", "__syncthreads(); // ids are", "; // ids are"),
    Defect("items are read before the first of an id is known", UNIQUE_TABLE, "Unique.*", "__syncthreads(); // the first item", "; // the first item"),
    Defect("ids of a tile are written over those that are read", UNIQUE, "Unique.*", "__syncthreads(); // nobody", "; // nobody"),
    Defect("the first item is set without an atomic", UNIQUE_TABLE, "Unique.*", "atomicMin(tile.items + slot[round], item);",
           "storeRelaxed(tile.items + slot[round], item);"),
    Defect("ids of one part of a hash are one", UNIQUE_TABLE, "Unique.*", "id == tile.ids[item]", "true"),
    Defect("the first of an id repeats it", UNIQUE_TABLE, "Unique.*", "slot[round] != item", "true"),
    Defect("an id where a segment begins is of the one before", UNIQUE_TABLE, "Unique.ManyWords*",
           "static_cast<uint32_t>(Marked::place(round)) >= ofSegment", "static_cast<uint32_t>(Marked::place(round)) > ofSegment"),
    Defect("equal ids of two segments are one in a tile", UNIQUE_TABLE, "Unique.Segments*", "repeats & isBeyond", "0u"),
    Defect("repetitions in a tile are not counted", UNIQUE, "Unique.*", "atomicAdd(ofTile.repetitions + placed.slot[round], 1u);", ";"),
    Defect("repetitions are counted before they are cleared", UNIQUE, "Unique.*", "__syncthreads(); // no repetitions", "; // no repetitions"),
    Defect("repetitions are read before all are counted", UNIQUE, "Unique.*", "__syncthreads(); // numbers and", "; // numbers and"),
    Defect("numbers of a tile are read too early", UNIQUE, "Unique.Owners*", "__syncthreads(); // numbers are", "; // numbers are"),
    Defect("an id's own position is ranked, not its first", UNIQUE, "Unique.*", "from[round] = batch.slots[placed.slot[round]] & batch.positions;"),
    Defect("a position counts among those before it", UNIQUE_NUMBERS, "Unique.*", "(1u << position % kWarp) - 1", "(2u << position % kWarp) - 1"),
    Defect("words before a block's part are not counted", UNIQUE, "Unique.BatchesOfMany*", "before = sumOfBits(batch.firsts, begin);", "before = 0;"),
    Defect("words before are counted one load a thread", UNIQUE, "Unique.ManyWords*", "base + d * kRankThreads < count / 4", "base < count / 4 && d == 0"),
    Defect("a search goes on where the batch begins", UNIQUE_TABLE, "Unique.AllIdsEqual*", "2 * from", "0", behind="return static_cast<uint32_t>(slot + 1 < 2 * to ? slot + 1 :"),
    Defect("words before are counted to the part's end", UNIQUE, "Unique.BatchesOfMany*", "before = sumOfBits(batch.firsts, begin);",
           "before = sumOfBits(batch.firsts, end);"),
    Defect("counts of the last batch are left", UNIQUE, "Unique.*", "result.counts[number] = 0;", ";"),
    Defect("an empty segment behind all ids begins at nothing", UNIQUE, "Unique.*", "*result.total", "0u", behind="? rankIn(batch.ranks[at / kWarp], static_cast<uint32_t>(at))"),
    Defect("a block's distinct ids are read before all are counted", UNIQUE, "Unique.Owners*", "__syncthreads(); // distinct", "; // distinct"),
    Defect("a block's distinct ids are not those of all", UNIQUE, "Unique.Owners*", "atomicAdd(owners.totals + owner, distinct[owner]);",
           "owners.totals[owner] = distinct[owner];"),
    Defect("ids of the last call are counted for owners", UNIQUE, "Unique.OwnersOfManyTiles", "owners.totals[i] = 0;"),
    Defect("a tile's ids of an owner are added up too early", UNIQUE_NUMBERS, "Unique.Owners*", "__syncthreads(); // warps", "; // warps"),
    Defect("numbers of owners are read too early", UNIQUE_NUMBERS, "Unique.Owners*", "__syncthreads(); // numbers", "; // numbers"),
    Defect("owners of later warps begin at nothing", UNIQUE_NUMBERS, "Unique.Owners*", "owner += kThreads / kWarp", "owner += kThreads"),
    Defect("sums of all owners are that of the first", LOOK_BACK, "Unique.OwnersOfManyTiles", "states + 1 + sum * count", "states + 1"),
    Defect("sums of the last call are those of this one", UNIQUE, "Unique.OwnersOfManyTiles", "tiles.states[i] = 0;"),
]  # fmt: skip

# Behind all others, whose numbers stay.
LATER_UNIQUE_DEFECTS = [
    Defect("parts before a block's are not counted", UNIQUE, "Unique.ManyWords*", "threadIdx.x < blockIdx.x", "false"),
    Defect("a block's own part is before it", UNIQUE, "Unique.ManyWords*", "threadIdx.x < blockIdx.x", "threadIdx.x <= blockIdx.x"),
    Defect("ids of one mark are one", UNIQUE_TABLE, "Unique.*", "batch.ids[position] == ids[Marked::place(round)]", "true"),
    Defect("ids are placed before slots are clear", UNIQUE, "Unique.*", "awaitLaunchBefore(); // slots", "; // slots"),
    Defect("parts are counted before ids are placed", UNIQUE, "Unique.ManyWords*", "awaitLaunchBefore(); // who", "; // who", behind="countFirsts(Batch batch, int words, int part, uint32_t *ofParts) {"),
    Defect("ids are ranked before they are placed", UNIQUE, "Unique.*", "awaitLaunchBefore(); // who", "; // who", behind="rankFirsts(Batch batch, int words, int part, const uint32_t *ofParts, UniqueResult result) {"),
    Defect("numbers are read before ids are ranked", UNIQUE, "Unique.*", "awaitLaunchBefore(); // first", "; // first"),
    Defect("owners' ids are numbered before they are placed", UNIQUE, "Unique.Owners*", "awaitLaunchBefore(); // ids", "; // ids"),
    Defect("a mark is of the position", UNIQUE_TABLE, "Unique.*", "(hash >> 1 & ~positions)", "(position << 29)"),
]  # fmt: skip

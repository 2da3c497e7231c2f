# ruff: noqa: E501 -- a defect per line
"""Defects of files that had none, or few: messages of floats, bounds of scores, exact sums, rows that leave."""

from planting import Defect

MESSAGES, BOUNDS, RANKS = "ranks/cuda/float_messages.cu", "kernels/cuda/score_bounds.cu", "kernels/cuda/ranks.cu"
SCORES, EXACT, LOWEST = "kernels/cuda/item_scores.cu", "kernels/cuda/exact_sum.cu", "embedding/cuda/lowest_rows.cu"
SUMS, LOOKUPS = "kernels/cuda/row_sums.cu", "embedding/cuda/distinct_lookups.cu"

ROUNDED_TESTS, LIBRARY_TESTS = "Seeds/DeviceRowExchanges.RowsThatTravelRounded*/0", "Rank.ByTheLibrary"
CHUNK_TESTS, SCORE_TESTS, EXACT_TESTS = "Rank.TopItemsOfChunks", "Rank.Scores", "ExactSum.*"
LOWEST_TESTS = "Cuda/RowRulesConformance/0.AgreesWithTheRulesAsTheyRead"

LATER = [
    Defect("floats that stay have half the room", MESSAGES, ROUNDED_TESTS, "(part.values + 2 * part.others + kAlign - 1) / kAlign * kAlign", "(part.values + part.others + kAlign - 1) / kAlign * kAlign"),
    Defect("floats that stay are read where rounded ones are", MESSAGES, ROUNDED_TESTS, "from + part.values", "from"),
    Defect("half of the floats that stay are counted", MESSAGES, "Seeds/DeviceRanks.GrowBesideTheStepBefore/0", "part.others * 4", "part.others * 2"),
    Defect("messages lie as those that are received", MESSAGES, ROUNDED_TESTS, "to += narrowRoom(send[peer]);", "to += narrowRoom(receive[peer]);"),
    Defect("received messages lie as those that are sent", MESSAGES, ROUNDED_TESTS, "from += narrowRoom(receive[peer]);", "from += narrowRoom(send[peer]);"),
    Defect("bytes that are sent are counted", MESSAGES, ROUNDED_TESTS, "bytes += in.back().bytes;", "bytes += out.back().bytes;"),
    Defect("a bound is of squares", BOUNDS, LIBRARY_TESTS, "norms[row] = sqrtf(sum + lost);", "norms[row] = sum;"),
    Defect("queries behind the first ones are taken for dense", BOUNDS, CHUNK_TESTS, "chunk.firstQuery * r.ldQuery", "chunk.firstQuery * r.dim"),
    Defect("a row's bound is of dense rows", BOUNDS, LIBRARY_TESTS, "rows[row * ld + c]", "rows[row * dim + c]", behind="sum = fmaf("),
    Defect("all items that there is room for are there", BOUNDS, "Rank.TopItems", "r.areItemsKnown ? nullptr : r.items", "nullptr"),
    Defect("items behind the first ones are taken for dense", BOUNDS, CHUNK_TESTS, "chunk.firstItem * r.ldItem", "chunk.firstItem * r.dim"),
    Defect("the total lacks the last tile", RANKS, "FlagRanks.OfEveryNumberOfTiles", "*total = before + sum;", "*total = before;"),
    Defect("as many items as there is room for are too many", SCORES, SCORE_TESTS, "items->count > most", "items->count >= most"),
    Defect("gradients of queries forget what was there", SCORES, SCORE_TESTS, "p.onto = g.ontoQuery, p.ldOnto = r.dim;"),
    Defect("places of no query have no score", SCORES, SCORE_TESTS, "row < queries->count ? kNoScore : 0.0f", "kNoScore"),
    Defect("gradients of items that are not there go on", SCORES, SCORE_TESTS, "from && i < count ? from[i] : 0.0f", "from ? from[i] : 0.0f"),
    Defect("halves are rounded up", EXACT, EXACT_TESTS, "isMore || mantissa % 2", "true"),
    Defect("the last bits are not seen", EXACT, EXACT_TESTS, "bit + 1 < cut", "bit + 2 < cut"),
    Defect("limbs of the last rank are left out", EXACT, "Seeds/DeviceRowExchanges.ExactSumsAreOfRowsThatCount/0", "rank < of.ranks", "rank + 1 < of.ranks"),
    Defect("infinities of both signs are one", EXACT, EXACT_TESTS, "words[positive] && words[negative]", "false"),
    Defect("exact sums of a launch are of the first one's rows", EXACT, EXACT_TESTS, "terms.of[blockIdx.y]", "terms.of[0]"),
    Defect("later launches of exact sums add to the first one's limbs", EXACT, EXACT_TESTS, "first * kSumWords", "0"),
    Defect("rows with all bytes of the last are chosen by chance", LOWEST, LOWEST_TESTS, "isFound ? (Word(1) << shift) - 1 : 0", "0"),
    Defect("ids are in the order of unsigned ones", LOWEST, LOWEST_TESTS, "static_cast<Word>(*addresses.id(row)) ^ Word(1) << 63", "static_cast<Word>(*addresses.id(row))"),
    Defect("ids of other steps are counted", LOWEST, LOWEST_TESTS, "(word < 2 || rank.lastStep == known.lastStep)", "true"),
    Defect("steps of other counts are counted", LOWEST, LOWEST_TESTS, "(word < 1 || rank.steps == known.steps)", "true"),
    Defect("byte counts are of all bytes so far", LOWEST, LOWEST_TESTS, "byteCounts[threadIdx.x] = 0;"),
    Defect("rows whose count is found need a step", LOWEST, "Cuda/RowRulesConformance/0.TheLeastOften*", "rank.lastStep = ~Word(0);"),
    Defect("rows whose step is found need an id", LOWEST, LOWEST_TESTS, "rank.id = ~Word(0);"),
    Defect("a batch adds what is behind its end", SUMS, "RowSums.ChunksAreAdded*", "i + by < count", "true"),
    Defect("lists of later groups are written to the first one's places", LOOKUPS, "DistinctLookups.RowsAre*", "part * count + i", "blockIdx.y * count + i"),
]  # fmt: skip

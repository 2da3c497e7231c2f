# ruff: noqa: E501 -- a defect per line
"""Defects of attention: its rings of tiles, its list of tiles, its three levels."""

from planting import Defect

FOLDER = "include/genrec_rt/kernels/cuda/attention/"
FORWARD, BACKWARD = FOLDER + "hopper_forward.h", FOLDER + "hopper_backward.h"
BACKWARD_TILES, STORES = FOLDER + "hopper_backward_tiles.h", FOLDER + "row_stores.h"
TILE_LIST, CALLS = FOLDER + "tile_list.h", FOLDER + "attention.h"
MMA_FORWARD, MMA_BACKWARD = FOLDER + "mma_forward.h", FOLDER + "mma_backward.h"
PLAIN_TILES = FOLDER + "plain_tiles.h"
PLAIN, BIAS, TERMS = FOLDER + "plain.h", FOLDER + "bias_gradient.h", FOLDER + "tile_terms.h"
BUCKETS, FIXED = FOLDER + "time_buckets.h", FOLDER + "fixed_point.h"
UNIT, WEIGHTS, PREPARE = FOLDER + "unit.h", FOLDER + "weights.h", FOLDER + "prepare.h"
SPACE, SPANS = FOLDER + "backward_space.h", FOLDER + "row_spans.h"
MASK = FOLDER + "mask.h"

HOPPER_TESTS = "AttentionHopper.StagesAreUsedAgain:AttentionHopper.BiasesAndDropout"
# Of both directions: forward alone has barriers for what tiles bring along.
TERMS_WAIT = "waitForPhase(&turns.empty, ring.parity ^ 1);"
WIDE_TESTS = "AttentionHopper.StagesAreUsedAgainByWideHeads"
EARLY_TESTS, LATE_TESTS = "AttentionHopper.ScoresAreStartedEarly", "AttentionHopper.PositionSumsAreAddedLate"
CONTEXT_TESTS = "AttentionHopper.PositionSumsInContext"
LIST_TESTS = "AttentionHopper.TilesAndMasks:AttentionList.*"
MMA_TESTS = "AttentionMma.BiasesAndDropout"
TIME_TESTS = "AttentionTimes.AnyTimesMma"
PREPARE_TESTS = "AttentionPrepare.*"
WIDE_MASK_TESTS, BOUND_TESTS = "AttentionMma.WideMasks", "AttentionMma.SumsComeClose*"
HIDE = "hideUnseen(scores, terms, rows, warpBegin, column, kHiddenScore<C>);"
FITS = "tile.isShort() && most[0] < INT32_MAX && most[1] < INT32_MAX"
TABLE_TESTS = "AttentionTimes.TableHasTheDefinitionsBuckets"
PLAIN_TESTS = "AttentionPlain.EveryThreeOptionsInEveryCombination"


def hopper(name: str, file: str, old: str, new: str = "", behind: str = "") -> Defect:
    return Defect(name, file, HOPPER_TESTS, old, new, behind)


LET_GO = "release(&shared.keys[keys.stage].empty);"
SCORES = "waitForProducts<1>();\n    keepInRegisters(scores);\n    letGo(isLast);"
KEPT = "keepInRegisters(out);\n    keepInRegisters(weights[Now]);"
OUT = f"waitForProducts<0>();\n    {KEPT}\n    release(&shared.values[values.stageBefore()].empty);"
COUNT = "GENREC_CUDA_LAUNCH(stream, shape, (attentionCountTiles<C, What, Rows, Columns>), args, list);"
PLACE = "GENREC_CUDA_LAUNCH(stream, shape, (attentionPlaceTiles<C, What, Rows, Columns>), args, list);"

ATTENTION = [
    # Biases of tiles.
    hopper("far tiles have no position bias", TERMS, "rowBias[h] = plus(tile.band[0][0], h);", ";"),
    hopper("tiles on the diagonal have one position bias", TERMS, "positionBucket(args, away - kOrigin + kBand - 1)",
           "positionBucket(args, away - kOrigin)"),
    # Time buckets.
    Defect("a cell has one bucket", BUCKETS, TABLE_TESTS, "return ticks >= change[cell] ? cell + 1 : cell;", "return cell;"),
    Defect("a long difference has the bucket of its cell's begin", BUCKETS, TABLE_TESTS,
           "return ticks >= begins.firstTick[b + 1] ? bucketAt[cell + 1] : b;", "return b;"),
    Defect("the last cell has no end", BUCKETS, TABLE_TESTS, "c <= kCells", "c < kCells"),
    Defect("begins of buckets run over", BUCKETS, TABLE_TESTS, "seconds <= INT64_MAX / ticksPerSecond", "true"),
    Defect("buckets are read before all are there", BUCKETS, TABLE_TESTS, "__syncthreads(); // every", "; // every"),
    Defect("long differences are looked up in short cells", TERMS, TIME_TESTS, FITS, "true"),
    Defect("times far apart are taken for ascending", TERMS, TIME_TESTS, "ascends = __all_sync(kAllLanes, ascends);", "ascends = true;"),
    Defect("a lane's second row is taken for near", TERMS, TIME_TESTS, FITS, "tile.isShort() && most[0] < INT32_MAX"),
    Defect("times are ranked before they are there", TERMS, TIME_TESTS, "__syncwarp(); // all have"),
    Defect("a row's last bucket loses its gradients", BIAS, TIME_TESTS, "atomicAdd(&histogram.ofTile[bucket], sum);", ";", behind="sum += quantum.of(gradients.d[n][i]);"),
    Defect("gradients are added without an atomic", BIAS, TIME_TESTS, "atomicAdd(&histogram.ofTile[bucket], sum);",
           "histogram.ofTile[bucket] += sum;", behind="sum += quantum.of(gradients.d[n][i]);"),
    Defect("a pair whose gradient is NaN has an integer", BIAS, "AttentionTimes.NaN*",
           "histogram.add(low, totals.sum[0] + totals.sum[1]);\n    return;", ";"),
    Defect("the tile's gradients are read before all have added", BIAS, TIME_TESTS, "__syncwarp(); // all have"),
    Defect("the tile's gradients stay for the next tile", BIAS, TIME_TESTS, "histogram.ofTile[b] = 0;", ";"),
    # Rings of tiles, forward.
    hopper("keys are copied over those that are read", FORWARD, "waitForPhase(&keys.empty, keyRing.parity ^ 1);"),
    hopper("values are copied over those that are read", FORWARD, "waitForPhase(&values.empty, valueRing.parity ^ 1);"),
    hopper("queries are copied over those that are read", FORWARD, "waitForPhase(&shared.queries.empty, parity ^ 1);"),
    hopper("biases are written over those that are read", FORWARD, TERMS_WAIT,
           f"if constexpr (!requires {{ shared.terms; }}) {TERMS_WAIT}"),
    hopper("a tile of the list is written over one that is read", FORWARD,
           "waitForPhase(&shared.unit[units.stage].empty, units.parity ^ 1);"),
    hopper("a tile of the list is read before it is there", FORWARD, "waitForPhase(&shared.unit[units.stage].full, units.parity);"),
    hopper("queries are not waited for", FORWARD, "waitForPhase(&shared.queries.full, state.parity);"),
    hopper("the first keys are not waited for", FORWARD, "waitForTile();", behind="waitForPhase(&shared.queries.full, state.parity);"),
    hopper("later keys are not waited for", FORWARD, "waitForTile();", behind="template <int Now> __device__ __forceinline__ void add(int column, bool isLast) {"),
    hopper("values are not waited for", FORWARD, "waitForPhase(&shared.values[values.stage].full, values.parity);"),
    hopper("biases are not waited for", FORWARD, "waitForPhase(&shared.terms[tiles.stage].full, tiles.parity);"),
    hopper("keys are let go before their scores are there", FORWARD, SCORES,
           "letGo(isLast); waitForProducts<1>(); keepInRegisters(scores);"),
    hopper("scores are read while products run", FORWARD, SCORES, "keepInRegisters(scores); letGo(isLast);"),
    hopper("values are let go while they are multiplied", FORWARD, "waitForProducts<1>();", behind="if constexpr (!C::Softmax) {"),
    Defect("the last values are let go while they are multiplied", FORWARD, "AttentionHopper.BlocksTakeSeveralTilesOfWideHeads", OUT,
           "release(&shared.values[values.stageBefore()].empty); waitForProducts<0>(); keepInRegisters(out);"),
    hopper("the last products are not awaited", FORWARD, OUT,
           "keepInRegisters(out); release(&shared.values[values.stageBefore()].empty);"),
    hopper("keys are never let go", FORWARD, LET_GO),
    hopper("values are never let go", FORWARD, "release(&shared.values[values.stageBefore()].empty, hasLast);"),
    hopper("values that nobody has read are let go", FORWARD, "release(&shared.values[values.stageBefore()].empty, hasLast);",
           "release(&shared.values[values.stageBefore()].empty);"),
    hopper("queries are never let go", FORWARD, "release(&shared.queries.empty, queriesAsWell);"),
    hopper("queries are let go behind any scores", FORWARD, "release(&shared.queries.empty, queriesAsWell);",
           "release(&shared.queries.empty);"),
    hopper("no __syncwarp before a release", FORWARD, "__syncwarp();"),
    Defect("sums are rescaled while weights are multiplied", FORWARD, "AttentionHopper.SoftmaxOverManyTiles",
           "waitForProducts<0>();\n      finishOut<1 - Now>();", "finishOut<1 - Now>();"),
    hopper("the first scores are not awaited", FORWARD, "waitForProducts<0>();", behind="waitForPhase(&shared.queries.full, state.parity);"),
    hopper("no fence before products", FORWARD, "startProducts();", behind="waitForPhase(&shared.values[values.stage].full, values.parity);"),
    hopper("a group of products is not closed", FORWARD, "commitProducts();", behind="startWeights(out, weights[Now], shared.v[values.stage]);"),
    hopper("copies do not see that barriers were initialised", FORWARD, "fenceBarrierInit();"),
    hopper("threads go on before barriers are initialised", FORWARD, "__syncthreads();"),
    hopper("too few arrivals are expected", FORWARD, "keys.init(1, kConsumerWarps);", "keys.init(1, kConsumers);"),
    hopper("half of the bytes are expected", FORWARD, "arriveExpecting(&values.full, Shape::ValueTile::kBytes);",
           "arriveExpecting(&values.full, Shape::ValueTile::kBytes / 2);"),
    # Turns of the warpgroups.
    hopper("nobody has the first turn", FORWARD, "pass();", behind="if (group == 1)"),
    hopper("a warpgroup passes the turn to itself", FORWARD, "namedBarrierArrive(kFirstTurn + 1 - group, 2 * kWarpgroup);",
           "namedBarrierArrive(kFirstTurn + group, 2 * kWarpgroup);"),
    hopper("a warpgroup awaits the turn of the other", FORWARD, "namedBarrierSync(kFirstTurn + group, 2 * kWarpgroup);",
           "namedBarrierSync(kFirstTurn + 1 - group, 2 * kWarpgroup);"),
    hopper("the turn is passed in the first tile only", FORWARD, "state.turns.pass();", behind="if constexpr (!C::Softmax) {"),
    # The list of tiles.
    Defect("a tile is taken twice", TILE_LIST, LIST_TESTS, "atomicAdd(list.taken, 1)", "atomicAdd(list.taken, 1) / 2"),
    Defect("a tile is taken by nobody", TILE_LIST, LIST_TESTS, "atomicAdd(list.taken, 1)", "atomicAdd(list.taken, 1) * 2"),
    Defect("tiles are taken without an atomic", TILE_LIST, LIST_TESTS, "atomicAdd(list.taken, 1)", "(*list.taken)++"),
    Defect("tiles are counted without an atomic", TILE_LIST, LIST_TESTS, "atomicAdd(list.counts + bin, 1);", "++list.counts[bin];"),
    Defect("one block counts tiles without an atomic", TILE_LIST, LIST_TESTS, "atomicAdd(next + bin, 1)", "++next[bin]", behind="__syncthreads(); // all are 0"),
    Defect("tiles are counted before bins are 0", TILE_LIST, LIST_TESTS, "__syncthreads(); // all are 0", "; // all are 0"),
    Defect("begins of bins are found before all are counted", TILE_LIST, LIST_TESTS, "__syncthreads(); // all are counted", "; // all"),
    Defect("a second launch finds all tiles taken", CALLS, "AttentionHopper.WideHeadsTakeTwoLaunches", "++again.taken;", ";"),
    Defect("begins of bins are read too early", TILE_LIST, LIST_TESTS, "__syncthreads(); // every", "; // every"),
    Defect("tiles are placed before they are counted", CALLS, LIST_TESTS, f"{COUNT}\n  {PLACE}", f"{PLACE} {COUNT}"),
    Defect("the list is read before it is written", CALLS, LIST_TESTS, "makeTileList<C, Over::keys, kRows, kColumns>(args, layout.list, stream);"),
    # Backward.
    hopper("tiles are copied over those that are read, backward", BACKWARD_TILES, "waitForPhase(&queries.empty, ring.parity ^ 1);"),
    hopper("terms are written over those that are read, backward", FORWARD, TERMS_WAIT,
           f"if constexpr (requires {{ shared.terms; }}) {TERMS_WAIT}"),
    hopper("keys are copied over those that are read, backward", BACKWARD_TILES, "waitForPhase(&shared.keys.empty, parity ^ 1);"),
    hopper("keys are never let go, backward", BACKWARD, "release(&shared.keys.empty);"),
    hopper("keys and values are not waited for, backward", BACKWARD, "waitForPhase(&shared.keys.full, state.parity);"),
    hopper("queries are not waited for, backward", BACKWARD, "waitForPhase(&shared.queries[at.stage].full, at.parity);"),
    hopper("a stage is let go before it is read, backward", BACKWARD,
           "add(state.queries, next, column);\n      release(&shared.queries[state.queries.stage].empty);",
           "release(&shared.queries[state.queries.stage].empty); add(state.queries, next, column);"),
    hopper("scores are not awaited, backward", BACKWARD, "waitForProducts<kAwaitsBoth ? 0 : 1>();"),
    Defect("the first scores are not awaited, backward", BACKWARD, EARLY_TESTS, "waitForProducts<0>();\n      keepInRegisters(early);"),
    Defect("scores of the next tile are not waited for", BACKWARD, EARLY_TESTS, "waitForProducts<0>();\n    keepInRegisters(left);"),
    Defect("scores of this tile are started once more", BACKWARD, EARLY_TESTS, "startScores(nextScores, next);", "startScores(nextScores, state.queries);"),
    Defect("diagonals are added before all are written", BACKWARD_TILES, LATE_TESTS, "waitForPhase(&turns.full, ring.parity);"),
    Defect("diagonals are written over those that are added", BACKWARD, LATE_TESTS, "waitForPhase(&turns.empty, state.positions.parity ^ 1);"),
    Defect("diagonals are let go before they are added", BACKWARD_TILES, LATE_TESTS, "sums.add(ring.stage, column - unit.begin);\n      release(&turns.empty);",
           "release(&turns.empty); sums.add(ring.stage, column - unit.begin);"),
    Defect("diagonals that run on are never added", BACKWARD_TILES, LATE_TESTS, "sums.flush();", ";"),
    Defect("diagonals that end stay for others", BIAS, LATE_TESTS, "held = leaves ? float2{0, 0} : sum;", "held = sum;"),
    Defect("diagonals run on where tiles are left out", BIAS, CONTEXT_TESTS, "if (away != last + N)\n      flush();", ";"),
    Defect("tiles with one bias are never added", BACKWARD, CONTEXT_TESTS, "far.flush(factor, shared.quantum, space.positionSums);", ";"),
    Defect("a tile with one bias loses those of another bias", BIAS, CONTEXT_TESTS, "flush(factor, quantum, sums);", ";"),
    Defect("dQ of the last tile is never sent", BACKWARD, EARLY_TESTS, "sendStaged();", behind="column = after;"),
    hopper("results are staged while the last part of dQ leaves", BACKWARD, "waitForBulkReads(); // the last", "; // the last", behind="if constexpr (Shape::kStagesRows) {"),
    hopper("results are staged over those that are read", STORES, "__syncwarp(); // what was", "; // what was"),
    hopper("results leave before they are staged", STORES, "__syncwarp();", behind=".storePair(0, 0, d.d[n][2 * h] * factor[h], d.d[n][2 * h + 1] * factor[h]);"),
    hopper("warps stage results in one place", FORWARD, "shared.staged[warpRow / 16]", "shared.staged[0]"),
    Defect("a tile adds to dQ as one key does", FIXED, BOUND_TESTS, "keys / kTileKeys", "keys"),
    hopper("histograms are cleared while others read them", BACKWARD, "syncConsumers(kHistogramsWritten); // nobody", "; // nobody"),
    hopper("dOut . v is not awaited", BACKWARD, "waitForProducts<Shape::kValues ? 1 : 0>();"),
    hopper("dQ is read while its product runs", BACKWARD, "waitForProducts<1>();"),
    hopper("the last products are not awaited, backward", BACKWARD, "waitForProducts<0>();\n    keepInRegisters(left);"),
    hopper("gradients are multiplied before all are written", BACKWARD, "syncConsumers(kGradientsWritten);"),
    hopper("gradients of all tiles have one buffer", BACKWARD, "buffer ^= 1;"),
    hopper("gradients are written without a proxy fence", BACKWARD, "fenceAsyncProxy();", behind="storeGradients(left, gradients, warpRow);"),
    hopper("dQ is staged without a proxy fence", BACKWARD, "fenceAsyncProxy();", behind="const QuerySquare<Shape> &square, int columnBegin) {"),
    hopper("dQ is staged while the last part leaves", BACKWARD, "waitForBulkReads(); // the last", "; // the last", behind="const QuerySquare<Shape> &square, int columnBegin, float factor, Between between) {"),
    hopper("dQ is staged while lane 0 waits for the last part", BACKWARD, "__syncwarp();", behind="const QuerySquare<Shape> &square, int columnBegin, float factor, Between between) {"),
    hopper("dQ is sent before all lanes have staged it", BACKWARD, "__syncwarp();", behind="const QuerySquare<Shape> &square, int columnBegin) {"),
    Defect("a stage is let go while dQ is sent from it", BACKWARD, WIDE_TESTS, "waitForBulkReads(); // before", "; // before"),
    hopper("reductions are not committed", BACKWARD, "commitBulk();"),
    Defect("a warp's histogram is cleared without __syncwarp", BIAS, "AttentionTimes.AnyTimesHopper", "__syncwarp();", behind="if constexpr (ByPair)"),
    # mma.sync.
    Defect("values are copied over those that are read, mma", MMA_FORWARD, MMA_TESTS, "__syncthreads(); // nobody", "; // nobody"),
    Defect("cp.async is never awaited", MMA_FORWARD, MMA_TESTS, "waitForCopies<1>();", behind="shared->tile.fill(terms, {}, static_cast<int>(unit.list), unit.begin, column);"),
    Defect("values are not awaited", MMA_FORWARD, MMA_TESTS, "waitForCopies<1>();", behind="dropWeights<C>(scores, kept);"),
    Defect("no barrier before keys are read", MMA_FORWARD, MMA_TESTS, "__syncthreads();", behind="shared->tile.fill(terms, {}, static_cast<int>(unit.list), unit.begin, column);"),
    Defect("keys are copied over those that are read, mma", MMA_FORWARD, MMA_TESTS, "__syncthreads(); // nor", "; // nor"),
    Defect("no barrier before values are read", MMA_FORWARD, MMA_TESTS, "__syncthreads();", behind="dropWeights<C>(scores, kept);"),
    Defect("a tile is copied over the last, backward", MMA_BACKWARD, MMA_TESTS, "__syncthreads(); // nobody", "; // nobody"),
    Defect("cp.async is never awaited, backward", MMA_BACKWARD, MMA_TESTS, "waitForCopies<0>();"),
    Defect("no barrier before dQ", MMA_BACKWARD, MMA_TESTS, "__syncthreads();", behind="multiplyWeights(dK, dots, shared->q);"),
    # Plain kernels.
    Defect("keys are loaded over those that are read", PLAIN, PLAIN_TESTS, "__syncthreads();", behind="RowRange keys) {"),
    Defect("keys are read before they are there", PLAIN, PLAIN_TESTS, "__syncthreads();", behind="v.load(args.v, args.ldV, first, head, keys);"),
    Defect("weights are read before they are there", PLAIN, PLAIN_TESTS, "__syncthreads();", behind="shared->weights.at(row, column) = keep ? weight : 0.0f;"),
    Defect("gradients are read before they are there", PLAIN, PLAIN_TESTS, "__syncthreads();", behind="quantum.add(space.timeSums, terms.time(query, key), dScore);"),
    Defect("gradients of keys are read before they are there", PLAIN, PLAIN_TESTS, "__syncthreads();", behind="shared->gradients.at(row, column) = pair.dScore;"),
    Defect("the last four of a row has the next head's columns", PLAIN_TILES, PLAIN_TESTS, "isRow && column < Size", "isRow"),
    Defect("the row behind the last list is read", PLAIN_TILES, "AttentionPlain.ManyLists", "rows.begin + row < rows.end", "rows.begin + row <= rows.end"),
    Defect("a part of a diagonal is added twice", PLAIN, PLAIN_TESTS, "part * kRowsOfPart", "0"),
    Defect("sums are not scaled where a row has a new maximum", PLAIN, PLAIN_TESTS, "out.multiply(factors);", ";"),
    # Windows wider than tiles, and counts of rows beyond 32 bits.
    Defect("windows have 32 bits", UNIT, WIDE_MASK_TESTS, "clipped(args.window)", "static_cast<int>(args.window)"),
    Defect("counts of context rows have 32 bits", UNIT, WIDE_MASK_TESTS, "clipped(args.contextual)", "static_cast<int>(args.contextual)"),
    Defect("a warp of a later tile hides what one of the first does, mma", MMA_FORWARD, WIDE_MASK_TESTS, HIDE, HIDE.replace("warpBegin", "warpRow")),
    Defect("a warp of a later tile hides what one of the first does", FORWARD, "AttentionHopper.SoftmaxOverManyTiles", HIDE, HIDE.replace("warpBegin", "warpRow")),
    Defect("rows that see nothing of a tile are NaN", WEIGHTS, WIDE_MASK_TESTS, "most == -INFINITY ? 0.0f : most * kLog2e", "most * kLog2e"),
    # Sizes, distances and numbers at which two rules meet.
    Defect("columns of dQ belong to two warps", MMA_BACKWARD, "AttentionMma.Sizes", "column + 16 * n < Shape::kQk && column + 16 * n < end", "column + 16 * n < Shape::kQk"),
    Defect("a tile has one position bias, but for its nearest pair", BIAS, MMA_TESTS, "warpBegin + 15 - columnBegin", "warpBegin + 14 - columnBegin"),
    Defect("a tile has one position bias, but for its furthest pair", BIAS, MMA_TESTS, "warpBegin - (columnBegin + N - 1)", "warpBegin - (columnBegin + N - 2)"),
    Defect("a gradient of a query that is NaN has an integer, mma", MMA_BACKWARD, "AttentionMma.WhatIsNot*",
           "if (!quanta.finite())\n      storeRelaxed(space.rowNorm + terms.head * terms.args.rows + first + row,\n                   __uint_as_float(kNaNBits));", ";"),
    # Bounds of sums in fixed point.
    Defect("rows have the bounds of the list before theirs", PREPARE, BOUND_TESTS, "list.advance(span.row(i + r)) || (i == 0 && r == 0)", "i == 0 && r == 0"),
    Defect("the greatest of a list counts for the one before", PREPARE, BOUND_TESTS, "cursor.advance(span.row(i + r));", ";"),
    Defect("the greatest of a list is lost where the next one begins", PREPARE, BOUND_TESTS, "note();", ";", behind="if (span.row(i + r) >= cursor.end) {"),
    Defect("of a span the last rows count", PREPARE, PREPARE_TESTS, "greaterOf(most[n], bits[r][n])", "bits[r][n]"),
    Defect("of a list the last row of a span counts", PREPARE, PREPARE_TESTS, "greaterOf(most[n], ofRow[n])", "ofRow[n]"),
    Defect("a sum over a list is bounded by one of its terms", SPACE, BOUND_TESTS, "fabsf(args.scale) * static_cast<float>(rows)", "fabsf(args.scale)"),
    Defect("bounds have the sign of the scale", SPACE, BOUND_TESTS, "fabsf(args.scale) * static_cast<float>(rows)", "args.scale * static_cast<float>(rows)"),
    Defect("the bound of biases is found before all lists are done", PREPARE, PREPARE_TESTS, "atomicAdd(space.ready, 1u) == gridDim.x - 1", "atomicAdd(space.ready, 1u) == 0"),
    Defect("sums of dQ are not cleared", PREPARE, BOUND_TESTS, "clearSums<C>(args, space, span.head, span.row(i + r));", ";"),
    Defect("rows belong to the block that lists tiles", SPANS, LIST_TESTS, "threadInGrid() - before", "threadInGrid()"),
    Defect("biases are summed over rows, not pairs", CALLS, BOUND_TESTS, "bitsOfCount(args.rows * args.maxLength * args.heads)", "bitsOfCount(args.rows * args.heads)"),
    Defect("grids of more blocks than there are are cut", CALLS, "LargeSizes.AttentionHas*", "blocks > INT32_MAX", "false"),
]  # fmt: skip

# ruff: noqa: E501 -- a defect per line
"""Several in one launch: lookups of several widths in a product per distinct row, parts of gradients, copies."""

from planting import Defect

DISTINCT, LOOKUPS, TOUCHED = "kernels/cuda/distinct.cu", "embedding/cuda/distinct_lookups.cu", "embedding/cuda/distinct_rows.cu"
PRODUCTS, CHUNKS, FOUND = "DistinctProducts.GroupsHaveAWidth*", "DistinctProducts.GroupsHaveChunks*", "DistinctLookups.GroupsHave*"
PARTS = "DistinctRows.OfMoreParts*"
COPIES, TOGETHER = "kernels/cuda/part_copies.cu", "PartCopies.Several*"

GROUPS = [
    Defect("rows of a later group are counted among those of all", DISTINCT, PRODUCTS, "starts[w.parts[part].group]", "starts[0]"),
    Defect("rows of a group are counted among those of the window", DISTINCT, PRODUCTS, "starts[w.parts[part].group]", "w.origin()"),
    Defect("a window's partial sums begin behind the last one's", DISTINCT, PRODUCTS, "window.count = partials = 0;", "window.count = 0;"),
    Defect("gradients of a weight begin anew with each window", DISTINCT, PRODUCTS, "window.count = partials = 0;", "window.count = partials = weightRow = 0;"),
    Defect("all lookups have the width of the first group", DISTINCT, PRODUCTS, "static_cast<int32_t>(of.d)", "static_cast<int32_t>(p.groups[0].d)", behind="of.ldValues,"),
    Defect("chunks are counted for the first group", DISTINCT, CHUNKS, "mostOf(p, [&](const DistinctGroup &group) { return chunksOf(p, group); })", "chunksOf(p, p.groups[0])"),
    Defect("tiles of columns are those of the first group", DISTINCT, PRODUCTS, "mostOf(p, [](const DistinctGroup &group) { return group.d; })", "p.groups[0].d"),
    Defect("partial sums have room for those of the first group", DISTINCT, PRODUCTS, "mostOf(p, [&](const DistinctGroup &group) { return chunksOf(p, group) * group.d * p.n; })", "chunksOf(p, p.groups[0]) * p.groups[0].d * p.n"),
    Defect("the last window is left out", DISTINCT, PRODUCTS, "window.count > 0", "window.count == each"),
    Defect("gradients of rows go to the first group", DISTINCT, PRODUCTS, "dvalues[group]", "dvalues[0]"),
    Defect("each group has the rows of the first", LOOKUPS, FOUND, "found[begin + i]", "found[i]"),
    Defect("a group has the rows of those before, too", LOOKUPS, FOUND, "starts[groups.begins[blockIdx.y + 1]] - begin", "starts[groups.begins[blockIdx.y + 1]]"),
    Defect("groups of a later launch are added to the first", LOOKUPS, FOUND, "count = most = 0;", "most = 0;"),
    Defect("distinct rows of the last group alone are counted", LOOKUPS, FOUND, "threadInGrid() == 0", "threadInGrid() == 0 && blockIdx.y + 1 == gridDim.y", behind="rows[i] = found[begin + i];"),
    Defect("parts of a later launch are added to the first", TOUCHED, PARTS, "count = most = 0;", "most = 0;"),
    Defect("the last parts are left out", TOUCHED, PARTS, "part + 1 < from.parts", "true"),
    Defect("parts of a later launch begin anew", TOUCHED, PARTS, "count = most = 0;", "count = most = first = 0;"),
    Defect("an entry's address comes from another lane", TOUCHED, PARTS, "!kAll && laneOf() != 0", "laneOf() != 0"),
    Defect("all copies of a launch are the first", COPIES, TOGETHER, "copies.of[blockIdx.z]", "copies.of[0]"),
    Defect("copies are aligned as the last one is", COPIES, TOGETHER, "haveUnits && hasUnits(c, kUnit)", "hasUnits(c, kUnit)"),
    Defect("copies are loaded as the last one is", COPIES, TOGETHER, "std::gcd(floats, floatsAtOnce(c))", "floatsAtOnce(c)"),
    Defect("touched rows are not counted", "kernels/cuda/segment_sums.cu", "DistinctRows.*", "rows != nullptr", "false"),
    # Mutants of the fourteenth seed.
    Defect("a warp's last row is not asked what it sees", "include/genrec_rt/kernels/cuda/attention/tile_terms.h", "AttentionMma.WideMasks", "warpBegin + 16", "warpBegin + 15", behind="hideUnseen("),
    Defect("a column of pools by itself is not put together", "include/genrec_rt/kernels/cuda/pools.h", "Pools.*", "added > 0 && i + 1 == Count", "added > 1 && i + 1 == Count"),
]

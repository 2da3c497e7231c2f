# ruff: noqa: E501 -- a defect per line
"""Sums of gradients of rows that many rows of a batch find, and what mutants of the thirteenth seed showed."""

from planting import Defect

DISTINCT, GIANTS = "kernels/cuda/distinct.cu", "DistinctProducts.AddGradients*"

THIRTEENTH = [
    Defect("places of distinct rows are taken for rows", DISTINCT, "DistinctProducts.*", "order[i] %= rows;", ""),
    Defect("a warp adds the first columns of sums of distinct rows", DISTINCT, GIANTS, "static_cast<int64_t>(blockIdx.y) * kWarp * kEach", "static_cast<int64_t>(blockIdx.y) * kWarp", behind="sumGradients(__grid_constant__ const Window w"),
    Defect("distinct rows have one level of pieces", DISTINCT, GIANTS, "capacity", "std::min<int64_t>(capacity, 257)", behind="terms, scratch.begins,"),
    Defect("no distinct row is a giant", DISTINCT, GIANTS, "capacity", "1", behind="terms, scratch.begins,"),
    Defect("pieces of distinct rows are those of one lookup", DISTINCT, GIANTS, "places", "p.lookups.capacity", behind="Pieces::in(cursor, places, p.n, "),
    Defect("windows of gradients have room for partial sums alone", DISTINCT, "DistinctProducts.WindowsBound*", "productFloats(p) + partialFloats(p)", "partialFloats(p)"),
]  # fmt: skip

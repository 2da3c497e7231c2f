# ruff: noqa: E501 -- a defect per line
"""Defects of products through cuBLASLt, of the factors that they read, and of what ranks make of their scores."""

from planting import Defect

LIBRARY, SIZED = "kernels/cuda/library_products.cu", "kernels/cuda/library_sized_products.cu"
RANK, TOP = "kernels/cuda/rank.cu", "kernels/cuda/top_items.cu"
LIBRARY_TESTS = "Seeds/LibraryStreams.*/0:LibraryProducts.ContractionsOfFewRows"
ROUNDED_TESTS = "LibraryProducts.ContractionsOfRoundedRows"

LIBRARY_DEFECTS = [
    Defect("a product does not wait for its factors", LIBRARY, LIBRARY_TESTS,
           "plans.multiply(shape, operands, scratch.workspace, stream);",
           "plans.multiply(shape, operands, scratch.workspace, nullptr);"),
    Defect("the workspace is where rounded factors are", LIBRARY, LIBRARY_TESTS,
           "plans.multiply(shape, operands, scratch.workspace, stream);",
           "plans.multiply(shape, operands, p.bf16 ? scratch.x : scratch.workspace, stream);"),
    Defect("sums read rows that are not there", LIBRARY, LIBRARY_TESTS, "c.rows", "nullptr", behind="copies[count++] = {"),
    Defect("sums of rounded rows read behind the capacity", LIBRARY, ROUNDED_TESTS,
           "isCopied ? kernels::roundUp(c.capacity, kChunkStep) : c.capacity", "kernels::roundUp(c.capacity, kChunkStep)"),
    Defect("a factor that was rounded before begins with each chunk", LIBRARY, ROUNDED_TESTS, "side.rounded + first * side.ld", "side.rounded"),
    Defect("later groups of chunks have the first rows", LIBRARY, "LibraryProducts.LaterGroups*", "first", "0", behind="/*clearsRest=*/true,"),
    Defect("factors keep denormals", "include/genrec_rt/kernels/cuda/factors.h", "Arithmetic.FactorsHaveNoDenormals",
           "x < kLeastNormal && x > -kLeastNormal", "false"),
    Defect("factors lose the sign of denormals", "include/genrec_rt/kernels/cuda/factors.h",
           "Arithmetic.FactorsHaveNoDenormals", "__builtin_copysignf(0.0f, x)", "0.0f"),
    Defect("rows behind a rounded factor stay", "include/genrec_rt/kernels/cuda/rounded_factors.h", "PartCopies.RowsBehindFactorsAreCleared",
           "rows->count * words", "(rows->count + 1) * words"),
    Defect("rows that are not there are added up", SIZED, "LibraryProducts.OfSizesOnTheDevice", "clearRest(p.k, p.left, p.ldLeft, p.m.most, stream);"),
    Defect("scores behind the last query stay", SIZED, "LibraryProducts.OfSizesOnTheDevice", "clearRest(p.m, p.result, p.ldResult, p.n.most, stream);"),
    Defect("the last piece of a sum is all of it", SIZED, "LibraryProducts.LongContractions*AnyRoom", "!isFirst", "false"),
    Defect("the library's ties are counted", RANK, "Rank.ByTheLibrary", "exact >= toBeat", "score >= toBeat"),
    Defect("the best have the library's scores", TOP, "Rank.ByTheLibrary", "scoreOf(r, query, item)", "score"),
    Defect("a NaN of the library is none", TOP, "Rank.NaNIsSeen", "exact != exact", "false", behind="const float exact = scoreOf(r, query, item);"),
    Defect("chunks without rows are added up", LIBRARY, LIBRARY_TESTS,
           "min(chunks, (rows + chunk - 1) / chunk)", "chunks + 1"),
]  # fmt: skip

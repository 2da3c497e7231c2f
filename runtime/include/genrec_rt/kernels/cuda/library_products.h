//===- library_products.h - Products through cuBLASLt -------------*- C++ -*-===//
//
// The products of linear_products.h and sized_products.h by cuBLASLt where the process has it
// (runtime/kernels/cuda/cublaslt_library.h), both sizes of the weight are kLeastLibrarySize or
// more, and the library has an algorithm; by our tiles otherwise. fp32 is CUBLAS_COMPUTE_32F, never
// TF32; factors of bfloat16 are rounded into scratch, with rows of whole multiples of 8, unless
// they were rounded before (rounded_factors.h), and added up in fp32. The library adds the bias,
// and a residual onto sums that have no activation. Activations, and residuals behind them, are
// ours, in one more pass: its GELU is the approximation with tanh, and it does not say what its
// ReLU makes of NaN.
//
// The number of rows lies in device memory, so a product runs over the capacity's rows: behind the
// last row y is written from whatever x holds there, which nobody reads. A contraction over rows
// reads copies, or what was rounded before, whose rows behind the last one are zeros, in chunks of
// chunkRows (batches of products, or one by one where they are large) whose sums are added in
// order.
//
// The same bits in every run: without split-K (no reduction scheme is allowed), and with one
// algorithm per shape at any number of rows, which is chosen once for kPlannedRows: an element
// depends on its own row alone, a contraction on the rows that there are.
//
// Of sized products the library takes those with as many columns as the host knows (the items of a
// catalogue), and as many steps, or a contraction over rows of both sides. Their padding, the rows
// behind the last one up to the bound, is cleared where it lies. A contraction of more than 4,096
// steps, all known, is cut into pieces of so many, whose sums are added in order.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_LIBRARY_PRODUCTS_H
#define GENREC_RT_KERNELS_CUDA_LIBRARY_PRODUCTS_H

#include "genrec_rt/kernels/cuda/linear_products.h"
#include "genrec_rt/kernels/cuda/sized_products.h"
#include "genrec_rt/library_size.h"

namespace genrec::rt::cuda {

constexpr int64_t kPlannedRows = 4096;

/// Whether cuBLASLt runs the product. Makes its plan (descriptors and algorithm), once per shape.
bool libraryTakes(const LinearProduct &product);
bool libraryTakes(const RowContraction &contraction);
bool libraryTakes(const SizedProduct &product);

/// Rows that the library adds up in one sum. It follows from the sizes alone, so that neither the
/// capacity nor the batch changes how sums are cut: a large result has enough tiles for a device,
/// and long chunks write it less often; a small one needs many chunks at once. fp32 has shorter
/// ones, as a product's time is that of its steps one after another where tiles are few.
int64_t chunkRows(const RowContraction &contraction);

/// Bytes of scratch, aligned to 256, of the functions below, which use cuBLASLt or tiles.
int64_t fastestScratchBytes(const LinearProduct &product);
int64_t fastestScratchBytes(const RowContraction &contraction);
int64_t fastestScratchBytes(const SizedProduct &product);
void multiplyFastest(const LinearProduct &product, void *scratch, cudaStream_t stream);
void contractFastest(const RowContraction &contraction, void *scratch, cudaStream_t stream);
void multiplyFastest(const SizedProduct &product, void *scratch, cudaStream_t stream);

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_LIBRARY_PRODUCTS_H

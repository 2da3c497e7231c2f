//===- wgmma_instructions.h - The instructions behind wgmma.h ------*- C++ -*-===//
//
// Only wgmma.h includes this. d is 64 rows by 64 or 128 columns of a warpgroup, in
// fragments of its warps; `add` 0 overwrites it. A matrix given by a descriptor lies
// with its columns (the dimension that is summed over) along rows of memory, or
// across them where Columns is true.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_TENSOR_WGMMA_INSTRUCTIONS_H
#define GENREC_RT_KERNELS_CUDA_TENSOR_WGMMA_INSTRUCTIONS_H

namespace genrec::rt::cuda::detail {

// The registers of d by number, and the variables that they stand for.
#define GENREC_NAMES_64                                                                            \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "     \
  "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define GENREC_NAMES_128                                                                           \
  GENREC_NAMES_64                                                                                  \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, "   \
  "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define GENREC_FOUR(n) "+f"(d[n][0]), "+f"(d[n][1]), "+f"(d[n][2]), "+f"(d[n][3])
#define GENREC_SIXTEEN(n) GENREC_FOUR(n), GENREC_FOUR(n + 1), GENREC_FOUR(n + 2), GENREC_FOUR(n + 3)
#define GENREC_VALUES_64 GENREC_SIXTEEN(0), GENREC_SIXTEEN(4)
#define GENREC_VALUES_128 GENREC_VALUES_64, GENREC_SIXTEEN(8), GENREC_SIXTEEN(12)

// d (+)= Left * Right for `Columns` columns; operands behind d's are named by their numbers, the
// inputs follow them in that order.
#define GENREC_WGMMA(Columns, Left, Right, Add, Across, ...)                                       \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " Add ", 0;\n"                                    \
               "wgmma.mma_async.sync.aligned.m64n" #Columns "k16.f32.bf16.bf16 "                   \
               "{" GENREC_NAMES_##Columns "}, " Left ", " Right ", p, 1, 1, " Across ";\n}"        \
               : GENREC_VALUES_##Columns                                                           \
               : __VA_ARGS__)

template <bool LeftColumns, bool RightColumns>
__device__ __forceinline__ void wgmma64(float (*d)[4], uint64_t left, uint64_t right, int add) {
  GENREC_WGMMA(64, "%32", "%33", "%34", "%35, %36", "l"(left), "l"(right), "r"(add),
               "n"(LeftColumns), "n"(RightColumns));
}
template <bool RightColumns>
__device__ __forceinline__ void wgmma64(float (*d)[4], const uint32_t (&a)[4], uint64_t right,
                                        int add) {
  GENREC_WGMMA(64, "{%32, %33, %34, %35}", "%36", "%37", "%38", "r"(a[0]), "r"(a[1]), "r"(a[2]),
               "r"(a[3]), "l"(right), "r"(add), "n"(RightColumns));
}

template <bool LeftColumns, bool RightColumns>
__device__ __forceinline__ void wgmma128(float (*d)[4], uint64_t left, uint64_t right, int add) {
  GENREC_WGMMA(128, "%64", "%65", "%66", "%67, %68", "l"(left), "l"(right), "r"(add),
               "n"(LeftColumns), "n"(RightColumns));
}
template <bool RightColumns>
__device__ __forceinline__ void wgmma128(float (*d)[4], const uint32_t (&a)[4], uint64_t right,
                                         int add) {
  GENREC_WGMMA(128, "{%64, %65, %66, %67}", "%68", "%69", "%70", "r"(a[0]), "r"(a[1]), "r"(a[2]),
               "r"(a[3]), "l"(right), "r"(add), "n"(RightColumns));
}

#undef GENREC_WGMMA
#undef GENREC_VALUES_128
#undef GENREC_VALUES_64
#undef GENREC_SIXTEEN
#undef GENREC_FOUR
#undef GENREC_NAMES_128
#undef GENREC_NAMES_64

} // namespace genrec::rt::cuda::detail

#endif // GENREC_RT_KERNELS_CUDA_TENSOR_WGMMA_INSTRUCTIONS_H

// The tests of kernels_gemm_test.cpp, compiled for AVX-512 (see kernels_testing.h).

#include "kernels_gemm_test.cpp"

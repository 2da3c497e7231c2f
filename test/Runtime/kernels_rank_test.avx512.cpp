// The tests of kernels_rank_test.cpp, compiled for AVX-512 (see kernels_testing.h).

#include "kernels_rank_test.cpp"

// The tests of kernels_distinct_test.cpp, compiled for AVX512-BF16 (see kernels_testing.h).

#include "kernels_distinct_test.cpp"

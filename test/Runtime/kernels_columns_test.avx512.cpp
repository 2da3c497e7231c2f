// The tests of kernels_columns_test.cpp, compiled for AVX-512 (see kernels_testing.h).

#include "kernels_columns_test.cpp"

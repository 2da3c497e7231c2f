// The tests of kernels_rows_test.cpp, compiled for AVX-512 (see kernels_testing.h).

#include "kernels_rows_test.cpp"

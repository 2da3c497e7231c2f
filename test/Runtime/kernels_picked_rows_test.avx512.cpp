// The tests of kernels_picked_rows_test.cpp, compiled for AVX-512 (see kernels_testing.h).

#include "kernels_picked_rows_test.cpp"

// The tests of kernels_random_test.cpp, compiled for AVX-512 (see kernels_testing.h).

#include "kernels_random_test.cpp"

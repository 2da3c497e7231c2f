// The tests of kernels_math_test.cpp, compiled for AVX-512 (see kernels_testing.h).

#include "kernels_math_test.cpp"

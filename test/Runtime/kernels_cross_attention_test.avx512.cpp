// The tests of kernels_cross_attention_test.cpp, compiled for AVX-512 (see kernels_testing.h).

#include "kernels_cross_attention_test.cpp"

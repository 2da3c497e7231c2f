// The tests of kernels_interaction_test.cpp, compiled for AVX-512 (see kernels_testing.h).

#include "kernels_interaction_test.cpp"

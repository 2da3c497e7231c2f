// The tests of kernels_in_batch_softmax_test.cpp, compiled for AVX-512 (see kernels_testing.h).

#include "kernels_in_batch_softmax_test.cpp"

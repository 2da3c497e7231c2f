// The tests of kernels_domains_test.cpp, compiled for AVX-512 (see kernels_testing.h).

#include "kernels_domains_test.cpp"

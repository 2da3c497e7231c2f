// The tests of kernels_attention_bf16_test.cpp, compiled for AVX512-BF16 (see kernels_testing.h).

#include "kernels_attention_bf16_test.cpp"

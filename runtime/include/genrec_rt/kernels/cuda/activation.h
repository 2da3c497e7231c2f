//===- activation.h - Activations behind a product, on the device -*- C++ -*-===//

#ifndef GENREC_RT_KERNELS_CUDA_ACTIVATION_H
#define GENREC_RT_KERNELS_CUDA_ACTIVATION_H

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/linear_products.h"
#include "genrec_rt/kernels/shared/math.h"

namespace genrec::rt::cuda {

__device__ inline float activate(Activation activation, float x) {
  switch (activation) {
  case Activation::none:
    return x;
  case Activation::relu:
    return x <= 0 ? 0.0f : x; // keeps NaN
  case Activation::silu:
    return kernels::silu(x);
  case Activation::gelu:
    return kernels::gelu(x);
  case Activation::sigmoid:
    return kernels::sigmoid(x);
  case Activation::tanh:
    return kernels::tanh(x);
  }
  return x;
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ACTIVATION_H

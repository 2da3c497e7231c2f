//===- sizes.h - Sizes that bound what kernels do at once --------*- C++ -*-===//

#ifndef GENREC_RT_CUDA_SIZES_H
#define GENREC_RT_CUDA_SIZES_H

#include <cuda_runtime.h> // an emulated device's defines GENREC_SIMT

namespace genrec::rt::cuda {

/// `device`, and where the device is emulated `emulated`: so little that tests see what lies
/// beyond. A build with the option GENREC_SIMT_DEVICE_SIZES has `device` there, too: what a kernel
/// does is counted in that.
template <class T> constexpr T deviceSize([[maybe_unused]] T device, [[maybe_unused]] T emulated) {
#if defined(GENREC_SIMT) && !defined(GENREC_SIMT_DEVICE_SIZES)
  return emulated;
#else
  return device;
#endif
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_CUDA_SIZES_H

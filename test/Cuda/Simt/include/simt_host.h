//===- simt_host.h - What of CUDA's host interface is a template -*- C++ -*-===//

#ifndef GENREC_TEST_CUDA_SIMT_HOST_H
#define GENREC_TEST_CUDA_SIMT_HOST_H

template <class T> cudaError_t cudaMalloc(T **memory, size_t bytes) {
  return cudaMalloc(reinterpret_cast<void **>(memory), bytes);
}
template <class T> cudaError_t cudaMallocAsync(T **memory, size_t bytes, cudaStream_t stream) {
  return cudaMallocAsync(reinterpret_cast<void **>(memory), bytes, stream);
}
template <class T> cudaError_t cudaMallocHost(T **memory, size_t bytes) {
  return cudaMallocHost(reinterpret_cast<void **>(memory), bytes);
}
template <class T> cudaError_t cudaHostAlloc(T **memory, size_t bytes, unsigned flags) {
  return cudaHostAlloc(reinterpret_cast<void **>(memory), bytes, flags);
}

template <class... P>
cudaError_t cudaFuncSetAttribute(void (*kernel)(P...), cudaFuncAttribute, int bytes) {
  return simt::setMostDynamicBytes(reinterpret_cast<const void *>(kernel), bytes);
}

template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(P...),
                               A &&...arguments) {
  struct Call {
    void (*kernel)(P...);
    std::tuple<std::remove_cvref_t<P>...> arguments;
  } call{kernel, {static_cast<A &&>(arguments)...}};
  static_assert((std::is_trivially_copyable_v<std::remove_cvref_t<P>> && ...));
  simt::Launch launch{config->gridDim,
                      config->blockDim,
                      config->dynamicSmemBytes,
                      0,
                      [](void *argument) {
                        Call &call = *static_cast<Call *>(argument);
                        std::apply(call.kernel, call.arguments);
                      },
                      &call,
                      sizeof(Call)};
  return simt::enqueueLaunch(launch, reinterpret_cast<const void *>(kernel), config->stream);
}

#endif // GENREC_TEST_CUDA_SIMT_HOST_H

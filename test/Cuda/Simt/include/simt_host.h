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

namespace simt {

// Not a std::tuple, which took 40% of the time that a unit of many kernels is compiled in.
template <size_t I, class T> struct Argument {
  T value;
};
template <class Indices, class... P> struct KernelCall;
template <size_t... I, class... P>
struct KernelCall<std::index_sequence<I...>, P...> : Argument<I, std::remove_cvref_t<P>>... {
  void (*kernel)(P...);

  static void run(void *memory) {
    auto &call = *static_cast<KernelCall *>(memory);
    call.kernel(static_cast<Argument<I, std::remove_cvref_t<P>> &>(call).value...);
  }
};

/// What an implicit conversion makes of an argument.
template <class T> T converted(T value) { return value; }

} // namespace simt

template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(P...),
                               A &&...arguments) {
  static_assert((std::is_trivially_copyable_v<std::remove_cvref_t<P>> && ...));
  using Call = simt::KernelCall<std::index_sequence_for<P...>, P...>;
  Call call{{simt::converted<std::remove_cvref_t<P>>(static_cast<A &&>(arguments))}..., kernel};
  simt::Launch launch{config->gridDim, config->blockDim, config->dynamicSmemBytes, 0, Call::run,
                      &call,           sizeof(Call)};
  for (unsigned i = 0; i < config->numAttrs; ++i)
    launch.beginsEarly = config->attrs[i].val.programmaticStreamSerializationAllowed;
  return simt::enqueueLaunch(launch, reinterpret_cast<const void *>(kernel), config->stream);
}

#endif // GENREC_TEST_CUDA_SIMT_HOST_H

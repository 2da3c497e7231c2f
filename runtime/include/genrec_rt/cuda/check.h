//===- check.h - Every CUDA call is checked ----------------------*- C++ -*-===//

#ifndef GENREC_RT_CUDA_CHECK_H
#define GENREC_RT_CUDA_CHECK_H

#include "genrec_rt/error.h"

#include <cuda_runtime.h>

namespace genrec::rt::cuda {

/// A CUDA call that failed. `what()` names the call, the function that made it
/// and where, and what CUDA said.
class CudaError : public Error {
public:
  CudaError(cudaError_t status, const std::string &message)
      : Error(message, "after a failed launch nothing more runs in this process; "
                       "compute-sanitizer names the access of a kernel that failed"),
        status(status) {}

  const cudaError_t status;
};

namespace detail {

[[noreturn]] inline void throwCudaError(cudaError_t status, const char *call, const char *caller,
                                        const char *file, int line) {
  const std::string path = file;
  // Asked before anything else runs: it also forgets errors that are not sticky.
  const std::string name = cudaGetErrorName(status), text = cudaGetErrorString(status);
  (void)cudaGetLastError();
  throw CudaError(status, std::string(call) + " failed in " + caller + " (" +
                              path.substr(path.rfind('/') + 1) + ":" + std::to_string(line) +
                              "): " + name + ", " + text);
}

} // namespace detail
} // namespace genrec::rt::cuda

/// Evaluates a CUDA call; throws CudaError where it does not return cudaSuccess.
#define GENREC_CUDA_CHECK(...)                                                                     \
  do {                                                                                             \
    const cudaError_t genrecStatus = (__VA_ARGS__);                                                \
    if (genrecStatus != cudaSuccess)                                                               \
      ::genrec::rt::cuda::detail::throwCudaError(genrecStatus, #__VA_ARGS__, __func__, __FILE__,   \
                                                 __LINE__);                                        \
  } while (false)

#endif // GENREC_RT_CUDA_CHECK_H

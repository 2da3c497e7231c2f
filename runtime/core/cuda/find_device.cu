//===- find_device.cu - The CUDA device of this process -------------------===//

#include "find_device.h"

#include "../../comm/rank_devices.h"
#include "genrec_rt/cuda/check.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <vector>

namespace genrec::rt::cuda {

namespace {

/// Compiled for what all kernels are compiled for.
__global__ void anyKernel() {}

std::vector<cudaDeviceProp> visibleDevices() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0)
    throw Error(std::string("the model was compiled for CUDA, and there is no device: ") +
                    (status == cudaSuccess ? "none was found" : cudaGetErrorString(status)),
                "run it where a driver and a GPU are, or compile it with --target=cpu");
  std::vector<cudaDeviceProp> devices(count);
  for (int number = 0; number < count; ++number)
    GENREC_CUDA_CHECK(cudaGetDeviceProperties(&devices[number], number));
  return devices;
}

DeviceUuid uuidOf(const cudaDeviceProp &device) {
  DeviceUuid uuid;
  static_assert(sizeof uuid == sizeof device.uuid);
  std::memcpy(uuid.data(), &device.uuid, sizeof uuid);
  return uuid;
}

/// As nvidia-smi and CUDA_VISIBLE_DEVICES have it: "GPU-5b02a7a2-…".
std::string textOf(const DeviceUuid &uuid) {
  std::string text = "GPU";
  for (size_t i = 0; i < uuid.size(); ++i) {
    char digits[8];
    const bool begins = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
    std::snprintf(digits, sizeof digits, "%s%02x", begins ? "-" : "", uuid[i]);
    text += digits;
  }
  return text;
}

std::string capability(int tens) {
  return std::to_string(tens / 10) + "." + std::to_string(tens % 10);
}

/// Compute capabilities of the code in this program: "8.0, 9.0".
std::string compiledCapabilities() {
#if defined(__CUDA_ARCH_LIST__)
  const int compiled[] = {__CUDA_ARCH_LIST__};
#else
  const int compiled[] = {900}; // emulated
#endif
  std::string text;
  for (const int of : compiled)
    text += (text.empty() ? "" : ", ") + capability(of / 10);
  return text;
}

void requireCode(const cudaDeviceProp &device) {
  cudaFuncAttributes attributes;
  const cudaError_t status =
      cudaFuncGetAttributes(&attributes, reinterpret_cast<const void *>(&anyKernel));
  // By its documentation the call has only the other code for a kernel that is not there.
  const bool isMissing =
      status == cudaErrorNoKernelImageForDevice || status == cudaErrorInvalidDeviceFunction;
  if (!isMissing) {
    GENREC_CUDA_CHECK(status);
    return;
  }
  (void)cudaGetLastError();
  const int found = device.major * 10 + device.minor;
  // From 9.0 on, tensor cores need the architecture's own instructions: 90a.
  const std::string architecture = std::to_string(found) + (found >= 90 ? "a" : "");
  throw Error(std::string("the GPU '") + device.name + "' has compute capability " +
                  capability(found) + ", and the model was compiled for " + compiledCapabilities(),
              "build genrec for this GPU (cmake -DGENREC_CUDA_ARCHITECTURES=" + architecture +
                  " build, then ninja -C build), and compile the model with it");
}

} // namespace

DeviceInfo findDevice(Communicator *comm) {
  std::vector<cudaDeviceProp> seen;
  runTogether(comm, [&] { seen = visibleDevices(); });
  int number = 0;
  if (comm && comm->getSize() > 1) {
    std::vector<DeviceUuid> uuids;
    std::ranges::transform(seen, std::back_inserter(uuids), uuidOf);
    number = static_cast<int>(takeDevice(*comm, uuids));
  } else {
    GENREC_CUDA_CHECK(cudaGetDevice(&number));
  }
  runTogether(comm, [&] {
    GENREC_CUDA_CHECK(cudaSetDevice(number));
    requireCode(seen[number]);
  });
#if defined(GENREC_SIMT)
  constexpr bool kIsEmulated = true;
#else
  constexpr bool kIsEmulated = false;
#endif
  return {number, seen[number].name, textOf(uuidOf(seen[number])), kIsEmulated};
}

} // namespace genrec::rt::cuda

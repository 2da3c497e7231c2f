//===- devices.cpp - Which devices there are ------------------------------===//
//
// A process has options().devices of its own. With GENREC_SIMT_DEVICES=<n>, so many belong to the
// machine, and every process sees the same.
//
//===----------------------------------------------------------------------===//

#include "arena.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

using namespace simt;

namespace {

thread_local int current = 0;

const char *devicesOfMachine() { return std::getenv("GENREC_SIMT_DEVICES"); }

int countDevices() { return std::min(options().devices, kMostDevices); }

cudaError_t requireDevice(int number) {
  if (number >= 0 && number < countDevices())
    return cudaSuccess;
  return refuse(cudaErrorInvalidDevice,
                "device " + std::to_string(number) + " of " + std::to_string(countDevices()));
}

} // namespace

namespace simt {

int defaultDevices() {
  const char *text = devicesOfMachine();
  return text ? std::max(1, std::atoi(text)) : 1;
}

int defaultCapability() {
  const char *text = std::getenv("GENREC_SIMT_CAPABILITY");
  return text ? std::atoi(text) : kCapability;
}

bool areDevicesShared() { return devicesOfMachine() != nullptr; }

int currentDevice() { return current; }

} // namespace simt

cudaError_t cudaGetDevice(int *number) {
  *number = current;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int number) {
  Lock lock;
  if (cudaError_t error = requireDevice(number); error != cudaSuccess)
    return error;
  current = number;
  return status();
}
cudaError_t cudaGetDeviceCount(int *count) {
  *count = countDevices();
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int number) {
  Lock lock;
  if (cudaError_t error = requireDevice(number); error != cudaSuccess)
    return error;
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "emulated device");
  const int owner = areDevicesShared() ? 0 : static_cast<int>(getpid());
  std::memcpy(properties->uuid.bytes, &owner, sizeof owner);
  std::memcpy(properties->uuid.bytes + 8, &number, sizeof number);
  properties->major = options().capability / 10;
  properties->minor = options().capability % 10;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
  case cudaDevAttrMultiProcessorCount:
    *value = 3;
    return cudaSuccess;
  case cudaDevAttrComputeCapabilityMajor:
    *value = options().capability / 10;
    return cudaSuccess;
  case cudaDevAttrComputeCapabilityMinor:
    *value = options().capability % 10;
    return cudaSuccess;
  case cudaDevAttrMaxSharedMemoryPerBlockOptin:
    *value = static_cast<int>(options().mostSharedBytes);
    return cudaSuccess;
  }
  return refuse(cudaErrorInvalidValue, "an attribute that is not emulated");
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *) {
  Lock lock;
  *attributes = {};
  if (options().capability / 10 != kCapability / 10)
    return refuse(
        options().seed % 2 ? cudaErrorNoKernelImageForDevice : cudaErrorInvalidDeviceFunction, "");
  attributes->binaryVersion = kCapability;
  return cudaSuccess;
}

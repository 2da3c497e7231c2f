//===- find_device.h - The CUDA device of this process ----------*- C++ -*-===//

#ifndef GENREC_RT_CORE_CUDA_FIND_DEVICE_H
#define GENREC_RT_CORE_CUDA_FIND_DEVICE_H

#include "genrec_rt/comm.h"
#include "genrec_rt/device.h"

namespace genrec::rt::cuda {

/// Makes a device the calling thread's current one: of several ranks, one that no other has
/// (comm/rank_devices.h); of one rank, or where `comm` is null, that which is current. Throws Error
/// where there is none, or where this program has no code for it. Collective.
DeviceInfo findDevice(Communicator *comm);

} // namespace genrec::rt::cuda

#endif // GENREC_RT_CORE_CUDA_FIND_DEVICE_H

//===- rank_devices.h - Which rank takes which device -----------*- C++ -*-===//

#ifndef GENREC_RT_COMM_RANK_DEVICES_H
#define GENREC_RT_COMM_RANK_DEVICES_H

#include "genrec_rt/comm.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace genrec::rt {

/// What tells a device from all others, of whatever machine.
using DeviceUuid = std::array<uint8_t, 16>;

/// The place in `seen`, the devices that this rank sees, of the one that it takes: the first that
/// no lower rank takes. So ranks that see the devices of their machine take one after another, and
/// ranks that were given a device each take that. Throws Error on all ranks where a rank has none
/// left. Collective.
size_t takeDevice(Communicator &comm, std::span<const DeviceUuid> seen);

} // namespace genrec::rt

#endif // GENREC_RT_COMM_RANK_DEVICES_H

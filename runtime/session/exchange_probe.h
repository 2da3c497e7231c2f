//===- exchange_probe.h - What a round and a byte take ----------*- C++ -*-===//

#ifndef GENREC_RT_SESSION_EXCHANGE_PROBE_H
#define GENREC_RT_SESSION_EXCHANGE_PROBE_H

#include "genrec_rt/comm.h"
#include "genrec_rt/device.h"

namespace genrec::rt {

/// Bytes to each other rank in a round that tells the bandwidth: one that brings 256 KiB to a rank.
int64_t probeBytes(const Communicator &comm);

/// What rounds between ranks take, of the memory that rows are in: of `device`, or of the host
/// where that is null. Medians of some. Collective.
struct RoundTimes {
  double small = 0; ///< seconds, without bytes worth mentioning
  double large = 0; ///< with probeBytes to each other rank
};
RoundTimes timeRounds(Communicator &comm, Device *device);

/// Bytes that a device reads or writes per second in a copy within its memory.
double measureCopyRate(Device &device);

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_EXCHANGE_PROBE_H

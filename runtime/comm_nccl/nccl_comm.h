//===- nccl_comm.h - Ranks with a GPU each, over NCCL -----------*- C++ -*-===//

#ifndef GENREC_RT_COMM_NCCL_NCCL_COMM_H
#define GENREC_RT_COMM_NCCL_NCCL_COMM_H

#include "genrec_rt/comm.h"

#include <memory>

namespace genrec::rt::cuda {

/// A communicator of the ranks of `host`, which outlives it, that also carries memory of the
/// current device: by ncclSend and ncclRecv in a group for each exchange. Memory of the host,
/// aborts and reasons go through `host`. A wait for a stream (waitForStream) of a thread that has
/// called exchanges notices peers that are gone, have aborted or stall, names the reason and ends
/// NCCL's calls under way, those of duplicates, too; so does an abort, and so do an exchange, and
/// this call, while NCCL connects ranks. An abort of a duplicate is told by calls of that one only,
/// and what was sent before it arrives. With GENREC_COMM_CHECK=1, ranks compare number, purpose and
/// sizes of exchanges before each. Collective.
std::unique_ptr<Communicator> makeNcclComm(Communicator &host);

} // namespace genrec::rt::cuda

#endif // GENREC_RT_COMM_NCCL_NCCL_COMM_H

//===- nccl.h - NCCL for the emulated devices --------------------*- C++ -*-===//
//
// The toolkit's names and values. Ranks are threads, each with a device of its own, one thread
// for all, or, where the process has one device, processes of one machine. Those send and receive
// only, and a group of theirs is over when its call returns: what its stream had before is run.
// Calls of threads are operations of their streams; data moves when both sides are there. As the
// library's documentation asks, what a device was given by several communicators runs in the order
// of the calls: ranks that call in different orders wait for ever, which is found.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TEST_CUDA_SIMT_NCCL_H
#define GENREC_TEST_CUDA_SIMT_NCCL_H

#include "cuda_runtime_api.h"

#include <climits>
#include <cstdint>

// NOLINTBEGIN: the toolkit's names
#define NCCL_MAJOR 2
#define NCCL_MINOR 28
#define NCCL_PATCH 9
#define NCCL_VERSION_CODE 22809
#define NCCL_UNIQUE_ID_BYTES 128
#define NCCL_CONFIG_UNDEF_INT INT_MIN

struct ncclComm;
using ncclComm_t = ncclComm *;
struct ncclUniqueId {
  char internal[NCCL_UNIQUE_ID_BYTES];
};
enum ncclResult_t {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
};
enum ncclDataType_t {
  ncclInt8 = 0,
  ncclChar = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclInt = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclFloat32 = 7,
  ncclFloat = 7,
  ncclFloat64 = 8,
  ncclDouble = 8,
  ncclBfloat16 = 9,
};
enum ncclRedOp_t { ncclSum = 0, ncclProd = 1, ncclMax = 2, ncclMin = 3, ncclAvg = 4 };
struct ncclConfig_t {
  int blocking = NCCL_CONFIG_UNDEF_INT;
};
#define NCCL_CONFIG_INITIALIZER                                                                    \
  {                                                                                                \
  }

const char *ncclGetErrorString(ncclResult_t result);
/// What the last call of this thread that failed did wrong; empty without one.
const char *ncclGetLastError(ncclComm_t comm);
ncclResult_t ncclGetVersion(int *version);
ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
/// Waits for all ranks, at ncclGroupEnd within a group. The device is the current one.
ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank);
/// Where config->blocking is 0, and NCCL_COMM_BLOCKING is not 1, this and groups of the
/// communicator may return ncclInProgress. What they asked for is queued, and other calls may
/// follow, when ncclCommGetAsyncError says ncclSuccess: not before the peers have come.
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config);
ncclResult_t ncclCommInitAll(ncclComm_t *comms, int devices, const int *list);
ncclResult_t ncclCommFinalize(ncclComm_t comm);
/// Waits for the calls of this rank.
ncclResult_t ncclCommDestroy(ncclComm_t comm);
/// Calls under way end without data; peers find ncclRemoteError in ncclCommGetAsyncError.
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error);
ncclResult_t ncclCommCount(const ncclComm_t comm, int *count);
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device);
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank);

ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();
ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream);
ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream);
/// Sums in the order of ranks.
ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream);
// NOLINTEND

namespace simt {
/// Communicators that the process has neither destroyed nor aborted.
int64_t communicatorCount();
/// From now on ncclCommGetAsyncError says of each that a peer is gone, as where the network fails.
void failCommunicators();
/// The group number `which` from now on of a device's rank fails, counted from 1; the others of the
/// rank do not.
void failGroup(int device, int which);
} // namespace simt

#endif // GENREC_TEST_CUDA_SIMT_NCCL_H

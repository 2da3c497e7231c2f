//===- nccl_library.h - NCCL, loaded where it is asked for ------*- C++ -*-===//
//
// The few calls of NCCL's interface that a communicator needs, as version 2.7 and later have them:
// nothing of NCCL is needed to build, and a model that runs on one GPU needs no NCCL at all.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_COMM_NCCL_NCCL_LIBRARY_H
#define GENREC_RT_COMM_NCCL_NCCL_LIBRARY_H

#include <climits>
#include <cstddef>
#include <cuda_runtime.h>
#include <string>

namespace genrec::rt::cuda {

struct NcclLibrary {
  using Comm = void *;
  /// ncclUniqueId.
  struct UniqueId {
    char bytes[128];
  };
  /// ncclResult_t.
  enum Result { kSuccess = 0, kInProgress = 7 };
  static constexpr int kBytes = 0; ///< ncclInt8
  /// ncclConfig_t of 2.14: later versions take what it does not have as not said.
  struct Config {
    size_t size = sizeof(Config);
    unsigned magic = 0xcafebeef;
    unsigned version = 21400;
    int blocking = 0;
    int notSaid = INT_MIN; ///< later versions have a member there
  };
  /// Calls of communicators that do not block are used from here on: versions before have said too
  /// early that they are done, or mixed up those of several communicators.
  static constexpr int kFirstToPoll = 22602;

  const char *(*getErrorString)(int result);
  const char *(*getLastError)(Comm comm);
  int (*getVersion)(int *version);
  int (*getUniqueId)(UniqueId *id);
  int (*commInitRank)(Comm *comm, int ranks, UniqueId id, int rank);
  /// The same without waiting for others; null where NCCL cannot, or is older than kFirstToPoll.
  int (*commInitRankConfig)(Comm *comm, int ranks, UniqueId id, int rank, Config *config);
  int (*commDestroy)(Comm comm);
  int (*commAbort)(Comm comm);
  int (*commGetAsyncError)(Comm comm, int *result);
  int (*groupStart)();
  int (*groupEnd)();
  int (*send)(const void *from, size_t count, int type, int peer, Comm comm, cudaStream_t stream);
  int (*receive)(void *to, size_t count, int type, int peer, Comm comm, cudaStream_t stream);

  /// GENREC_NCCL_LIBRARY, else libnccl.so.2 where the loader looks. Throws Error where there is
  /// none. Of the emulated device, its own.
  static const NcclLibrary &get();

  /// "unhandled system error (socketAccept failed)".
  std::string describe(int result, Comm comm) const;
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_COMM_NCCL_NCCL_LIBRARY_H

//===- nccl_library.cu - NCCL, loaded where it is asked for ---------------===//

#include "nccl_library.h"

#include "genrec_rt/error.h"

#include <cstdlib>

#if defined(GENREC_SIMT)
#include <nccl.h>
#else
#include <dlfcn.h>
#endif

namespace genrec::rt::cuda {

std::string NcclLibrary::describe(int result, Comm comm) const {
  std::string text = getErrorString(result);
  const char *last = getLastError(comm);
  return last && *last ? text + " (" + last + ")" : text;
}

namespace {

/// What NCCL reads of the environment once it is loaded, unless somebody has said otherwise.
void setEnvironment() {
  // Several communicators may be at work at once: their kernels begin in the order of the host's
  // calls, which is that of all ranks (since 2.26).
  (void)setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", /*overwrite=*/0);
  // Ranks that are threads of a process would read the buffers of each other's devices, which
  // memory of cudaMallocAsync is not open to.
  (void)setenv("NCCL_P2P_DIRECT_DISABLE", "1", /*overwrite=*/0);
}

} // namespace

#if defined(GENREC_SIMT)

const NcclLibrary &NcclLibrary::get() {
  setEnvironment();
  static_assert(kSuccess == int(ncclSuccess) && kInProgress == int(ncclInProgress) &&
                kBytes == int(ncclInt8) && sizeof(UniqueId) == sizeof(ncclUniqueId));
  static const NcclLibrary library = {
      [](int result) { return ncclGetErrorString(static_cast<ncclResult_t>(result)); },
      [](Comm comm) { return ncclGetLastError(static_cast<ncclComm_t>(comm)); },
      [](int *version) -> int { return ncclGetVersion(version); },
      [](UniqueId *id) -> int { return ncclGetUniqueId(reinterpret_cast<ncclUniqueId *>(id)); },
      [](Comm *comm, int ranks, UniqueId id, int rank) -> int {
        ncclComm_t made = nullptr;
        const int result =
            ncclCommInitRank(&made, ranks, reinterpret_cast<const ncclUniqueId &>(id), rank);
        *comm = made;
        return result;
      },
      [](Comm *comm, int ranks, UniqueId id, int rank, Config *config) -> int {
        ncclConfig_t its = NCCL_CONFIG_INITIALIZER;
        its.blocking = config->blocking;
        ncclComm_t made = nullptr;
        const int result = ncclCommInitRankConfig(
            &made, ranks, reinterpret_cast<const ncclUniqueId &>(id), rank, &its);
        *comm = made;
        return result;
      },
      [](Comm comm) -> int { return ncclCommDestroy(static_cast<ncclComm_t>(comm)); },
      [](Comm comm) -> int { return ncclCommAbort(static_cast<ncclComm_t>(comm)); },
      [](Comm comm, int *result) -> int {
        ncclResult_t error = ncclSuccess;
        const int status = ncclCommGetAsyncError(static_cast<ncclComm_t>(comm), &error);
        *result = error;
        return status;
      },
      []() -> int { return ncclGroupStart(); },
      []() -> int { return ncclGroupEnd(); },
      [](const void *from, size_t count, int type, int peer, Comm comm,
         cudaStream_t stream) -> int {
        return ncclSend(from, count, static_cast<ncclDataType_t>(type), peer,
                        static_cast<ncclComm_t>(comm), stream);
      },
      [](void *to, size_t count, int type, int peer, Comm comm, cudaStream_t stream) -> int {
        return ncclRecv(to, count, static_cast<ncclDataType_t>(type), peer,
                        static_cast<ncclComm_t>(comm), stream);
      },
  };
  return library;
}

#else

namespace {

NcclLibrary load() {
  const char *given = std::getenv("GENREC_NCCL_LIBRARY");
  const char *name = given ? given : "libnccl.so.2";
  setEnvironment();
  void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    throw Error(std::string("cannot load NCCL, which ranks on several GPUs need: ") + dlerror(),
                "install it (apt install libnccl2, or pip install nvidia-nccl-cu13), or name the "
                "file: GENREC_NCCL_LIBRARY=<folder>/libnccl.so.2");
  NcclLibrary library{};
  auto find = [&](auto &function, const char *symbol, bool isNeeded = true) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, symbol));
    if (!function && isNeeded)
      throw Error(std::string("'") + name + "' has no " + symbol,
                  "install NCCL 2.7 or a later one");
  };
  find(library.getErrorString, "ncclGetErrorString");
  find(library.getLastError, "ncclGetLastError", false); // since 2.13
  find(library.getVersion, "ncclGetVersion");
  find(library.getUniqueId, "ncclGetUniqueId");
  find(library.commInitRank, "ncclCommInitRank");
  find(library.commInitRankConfig, "ncclCommInitRankConfig", false); // since 2.14
  find(library.commDestroy, "ncclCommDestroy");
  find(library.commAbort, "ncclCommAbort");
  find(library.commGetAsyncError, "ncclCommGetAsyncError");
  find(library.groupStart, "ncclGroupStart");
  find(library.groupEnd, "ncclGroupEnd");
  find(library.send, "ncclSend");
  find(library.receive, "ncclRecv");
  if (!library.getLastError)
    library.getLastError = [](NcclLibrary::Comm) { return ""; };
  int version = 0;
  if (library.getVersion(&version) != NcclLibrary::kSuccess || version < NcclLibrary::kFirstToPoll)
    library.commInitRankConfig = nullptr;
  return library;
}

} // namespace

const NcclLibrary &NcclLibrary::get() {
  static const NcclLibrary library = load();
  return library;
}

#endif

} // namespace genrec::rt::cuda

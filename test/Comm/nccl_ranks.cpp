//===- nccl_ranks.cpp - a rank with a device, for test_cuda_ranks_failures -===//
//
// nccl_ranks <libgenrec-comm-mpi.so> conform | abort | differ | stall
//
// The device is the emulated one; bytes go from process to process (Simt/nccl_processes.h).
//
//===----------------------------------------------------------------------===//

#include "../../runtime/comm_nccl/nccl_comm.h"
#include "device_memory.h"

#include <cstdio>
#include <thread>

using namespace genrec::rt;

namespace {

/// Rank 1 ends; the others wait for what it does not send.
void abortOne(Communicator &comm, conformance::DeviceMemory &memory) {
  if (comm.getRank() == 1) {
    comm.abort("no rows in part-7.parquet");
    return;
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  conformance::checkExchange(comm, 40, memory);
}

/// Rank 1 is a step ahead: found with GENREC_COMM_CHECK=1.
void differ(Communicator &comm, conformance::DeviceMemory &memory) {
  comm.setPurpose({"the keys", 36 + static_cast<uint64_t>(comm.getRank())});
  conformance::checkExchange(comm, 40, memory);
}

/// Rank 1 does what all do before NCCL connects them, and no more.
void stall(Communicator &host) {
  char id[128];
  runTogether(&host, [] {});
  host.broadcast(id, sizeof id, 0);
  for (int i = 0; i < 500 && !host.getError(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

/// Ends without MPI, for which mpirun ends all others: they have time to say what they know before.
[[noreturn]] void leave(int status) {
  std::fflush(stdout);
  std::this_thread::sleep_for(std::chrono::seconds(5));
  std::_Exit(status);
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 3)
    return 2;
  const std::string task = argv[2];
  try {
    std::unique_ptr<Communicator> host = loadMpiComm(argv[1]);
    if (task == "stall") {
      host->setPatience(std::chrono::milliseconds(500));
      if (host->getRank() == 1) {
        stall(*host);
        leave(0);
      }
    }
    std::unique_ptr<Communicator> comm = cuda::makeNcclComm(*host);
    {
      conformance::DeviceMemory memory;
      if (task == "conform")
        conformance::checkAll(*comm, &memory);
      else if (task == "abort")
        abortOne(*comm, memory);
      else
        differ(*comm, memory);
    }
    std::printf("rank %d of %d: done\n", comm->getRank(), comm->getSize());
    if (task != "conform") // MPI is in no state to be ended
      leave(0);
  } catch (const std::exception &error) {
    std::printf("error: %s\n", error.what());
    leave(1);
  }
}

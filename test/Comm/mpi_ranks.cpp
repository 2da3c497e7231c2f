//===- mpi_ranks.cpp - a rank under mpirun, for test_ranks.py -------------===//
//
// mpi_ranks <libgenrec-comm-mpi.so> conform | stall | untaken | mismatch | abort |
//           abort-before-duplicate | abort-under-way
//
//===----------------------------------------------------------------------===//

#include "conformance.h"

#include <csignal>
#include <cstdio>
#include <thread>

using namespace genrec::rt;
using namespace std::chrono_literals;

namespace {

/// Rank 1 does not come.
void stall(Communicator &comm) {
  comm.barrier(); // ranks may start at different times
  comm.setPatience(1000ms);
  comm.setPurpose({"the rows", 37});
  if (comm.getRank() == 1)
    std::this_thread::sleep_for(5s);
  comm.barrier();
}

/// Rank 1 stops when its own part has left, before it takes that of rank 0.
void leaveUntaken(Communicator &comm) {
  comm.barrier();
  comm.setPatience(1000ms);
  comm.setPurpose({"the rows", 37});
  std::vector<char> data(size_t(64) << 20);
  std::vector<SendPart> send(comm.getSize());
  std::vector<ReceivePart> receive(comm.getSize());
  if (comm.getRank() == 0) {
    send[1] = {data.data(), static_cast<int64_t>(data.size())};
    receive[1] = {data.data(), 1};
    std::this_thread::sleep_for(1s);
  }
  if (comm.getRank() == 1) {
    send[0] = {data.data(), 1};
    receive[0] = {data.data(), static_cast<int64_t>(data.size())};
    std::thread([] {
      std::this_thread::sleep_for(500ms);
      std::raise(SIGSTOP);
    }).detach();
  }
  comm.exchange(send, receive);
}

/// Rank 0 sends more than rank 1 expects.
void mismatch(Communicator &comm) {
  std::vector<char> data(64);
  std::vector<SendPart> send(comm.getSize());
  std::vector<ReceivePart> receive(comm.getSize());
  if (comm.getRank() == 0)
    send[1] = {data.data(), 32};
  if (comm.getRank() == 1)
    receive[0] = {data.data(), 16};
  comm.exchange(send, receive);
  comm.barrier();
}

/// Rank 1, while others come to what `call` does.
template <class Call> void abortOne(Communicator &comm, const Call &call) {
  if (comm.getRank() == 1) {
    comm.abort("no rows in part-7.parquet");
    std::this_thread::sleep_for(2s);
    return;
  }
  call();
}

/// Rank 2, while the others exchange something large, whose memory they give back then.
void abortUnderWay(Communicator &comm) {
  std::unique_ptr<Communicator> endings = comm.duplicate();
  std::vector<SendPart> send(comm.getSize());
  std::vector<ReceivePart> receive(comm.getSize());
  const int64_t bytes = int64_t(64) << 20;
  for (int i = 0; i < 6; ++i) {
    std::unique_ptr<Communicator> steps = endings->duplicate();
    if (steps->getRank() == 2) {
      std::this_thread::sleep_for(i * 1ms);
      steps->abort("no rows in part-7.parquet");
    } else {
      std::vector<char> from(bytes), to(bytes);
      const int32_t other = 1 - steps->getRank();
      send[other] = {from.data(), bytes};
      receive[other] = {to.data(), bytes};
      try {
        while (true)
          steps->exchange(send, receive);
      } catch (const CommError &) {
      }
    }
    endings->barrier();
    (void)steps.release(); // freeing it is collective, which it is in no state for
  }
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 3)
    return 2;
  std::string task = argv[2];
  try {
    std::unique_ptr<Communicator> comm = loadMpiComm(argv[1]);
    if (task == "conform")
      conformance::checkAll(*comm);
    else if (task == "stall")
      stall(*comm);
    else if (task == "untaken")
      leaveUntaken(*comm);
    else if (task == "mismatch")
      mismatch(*comm);
    else if (task == "abort-under-way")
      abortUnderWay(*comm);
    else if (task == "abort-before-duplicate")
      abortOne(*comm, [&] { (void)comm->duplicate(); });
    else
      abortOne(*comm, [&] { comm->barrier(); });
    std::printf("rank %d of %d: done\n", comm->getRank(), comm->getSize());
  } catch (const std::exception &error) {
    std::printf("error: %s\n", error.what());
    std::fflush(stdout);
    std::_Exit(1); // MPI is in no state to be ended
  }
}

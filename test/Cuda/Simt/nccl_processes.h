//===- nccl_processes.h - NCCL between processes of one machine --*- C++ -*-===//
//
// Ranks that are processes, each with one emulated device: bytes go through sockets. What a rank
// sends names its calls, which the receiver compares with its own.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TEST_CUDA_SIMT_NCCL_PROCESSES_H
#define GENREC_TEST_CUDA_SIMT_NCCL_PROCESSES_H

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace simt {

/// A send to or a receive from a peer.
struct Transfer {
  int peer = 0;
  bool isSend = false;
  char *memory = nullptr;
  size_t bytes = 0;
};

class ProcessRanks {
public:
  /// Meets the other ranks of clique `id`. Null and a reason where they do not come, or nobody
  /// waits for them any more.
  static std::unique_ptr<ProcessRanks> meet(const std::string &id, int ranks, int rank,
                                            std::string &problem,
                                            const std::atomic<bool> &isCancelled);
  ~ProcessRanks();
  ProcessRanks(const ProcessRanks &) = delete;

  /// Makes the transfers of a group; those with one peer are matched in their order. What is wrong,
  /// or empty.
  std::string exchange(std::span<const Transfer> transfers);

private:
  ProcessRanks(int ranks, int rank)
      : sockets(ranks, -1), sentTo(ranks), receivedFrom(ranks), rank(rank) {}

  std::vector<int> sockets; ///< by rank; -1: this one
  /// How many groups had sends to a rank, and receives from it. NCCL orders calls by pair of ranks:
  /// a rank that has nothing for some exchange may make fewer groups than others.
  std::vector<uint64_t> sentTo, receivedFrom;
  int rank;
};

} // namespace simt

#endif // GENREC_TEST_CUDA_SIMT_NCCL_PROCESSES_H

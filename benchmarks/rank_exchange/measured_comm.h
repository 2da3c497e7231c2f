//===- measured_comm.h - What an exchange sends -----------------*- C++ -*-===//

#ifndef GENREC_BENCHMARKS_RANK_EXCHANGE_MEASURED_COMM_H
#define GENREC_BENCHMARKS_RANK_EXCHANGE_MEASURED_COMM_H

#include "../common/clock.h"

#include "genrec_rt/forwarding_comm.h"

#include <mpi.h>

#include <vector>

namespace bench {

/// Counts rounds and bytes to other ranks. With `isAlone`, all ranks begin an exchange together and
/// its time counts: what carrying the bytes takes, without the work before that makes ranks late.
class MeasuredComm final : public genrec::rt::ForwardingComm {
public:
  explicit MeasuredComm(genrec::rt::Communicator &inner)
      : ForwardingComm(inner), sent(inner.getSize()) {}

  void begin() {
    rounds = 0;
    carrying = 0;
    std::fill(sent.begin(), sent.end(), 0);
  }

  int64_t rounds = 0;
  std::vector<int64_t> sent; ///< bytes, by rank; to itself: none
  bool isAlone = false;
  double carrying = 0; ///< seconds in exchanges

protected:
  void doExchange(std::span<const genrec::rt::SendPart> send,
                  std::span<const genrec::rt::ReceivePart> receive) override {
    measure(send, [&] { ForwardingComm::doExchange(send, receive); });
  }
  void doExchangeUpTo(std::span<const genrec::rt::SendPart> send,
                      std::span<const genrec::rt::ReceivePart> receive,
                      std::span<int64_t> received) override {
    measure(send, [&] { ForwardingComm::doExchangeUpTo(send, receive, received); });
  }

private:
  template <class Body>
  void measure(std::span<const genrec::rt::SendPart> send, const Body &exchange) {
    ++rounds;
    for (int32_t rank = 0; rank < getSize(); ++rank)
      if (rank != getRank())
        sent[rank] += send[rank].bytes;
    if (!isAlone)
      return exchange();
    MPI_Barrier(MPI_COMM_WORLD);
    carrying += secondsOf(/*threads=*/2, exchange);
  }
};

} // namespace bench

#endif // GENREC_BENCHMARKS_RANK_EXCHANGE_MEASURED_COMM_H

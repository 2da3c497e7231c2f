//===- measured_comm.h - What an exchange sends -----------------*- C++ -*-===//

#ifndef GENREC_BENCHMARKS_RANK_EXCHANGE_MEASURED_COMM_H
#define GENREC_BENCHMARKS_RANK_EXCHANGE_MEASURED_COMM_H

#include "../common/clock.h"

#include "genrec_rt/comm.h"

#include <mpi.h>

#include <vector>

namespace bench {

/// Counts rounds and bytes to other ranks. With `isAlone`, all ranks begin an exchange together and
/// its time counts: what carrying the bytes takes, without the work before that makes ranks late.
class MeasuredComm final : public genrec::rt::Communicator {
public:
  explicit MeasuredComm(genrec::rt::Communicator &inner) : sent(inner.getSize()), inner(inner) {}
  std::string getName() const override { return inner.getName(); }
  int32_t getRank() const override { return inner.getRank(); }
  int32_t getSize() const override { return inner.getSize(); }
  void abort(const std::string &why) noexcept override { inner.abort(why); }
  std::optional<std::string> getError() override { return inner.getError(); }
  std::unique_ptr<Communicator> duplicate() override { return inner.duplicate(); }

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
    measure(send, [&] { inner.exchange(send, receive); });
  }
  void doExchangeUpTo(std::span<const genrec::rt::SendPart> send,
                      std::span<const genrec::rt::ReceivePart> receive,
                      std::span<int64_t> received) override {
    measure(send, [&] { inner.exchangeUpTo(send, receive, received); });
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

  genrec::rt::Communicator &inner;
};

} // namespace bench

#endif // GENREC_BENCHMARKS_RANK_EXCHANGE_MEASURED_COMM_H

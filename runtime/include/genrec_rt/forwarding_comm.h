//===- forwarding_comm.h - a communicator before another one ----*- C++ -*-===//

#ifndef GENREC_RT_FORWARDING_COMM_H
#define GENREC_RT_FORWARDING_COMM_H

#include "genrec_rt/comm.h"

namespace genrec::rt {

/// Passes all calls on to another communicator, which outlives it: for those that delay, count or
/// measure exchanges. Patience and purpose go along with each exchange.
class ForwardingComm : public Communicator {
public:
  explicit ForwardingComm(Communicator &inner) : inner(inner) { setPatience(inner.getPatience()); }

  std::string getName() const override { return inner.getName(); }
  int32_t getRank() const override { return inner.getRank(); }
  int32_t getSize() const override { return inner.getSize(); }
  void abort(const std::string &why) noexcept override { inner.abort(why); }
  std::optional<std::string> getError() override { return inner.getError(); }
  std::unique_ptr<Communicator> duplicate() override {
    prepare();
    return inner.duplicate();
  }

protected:
  void doExchange(std::span<const SendPart> send, std::span<const ReceivePart> receive) override {
    prepare();
    inner.exchange(send, receive);
  }
  void doExchangeUpTo(std::span<const SendPart> send, std::span<const ReceivePart> receive,
                      std::span<int64_t> received) override {
    prepare();
    inner.exchangeUpTo(send, receive, received);
  }

private:
  void prepare() {
    inner.setPatience(getPatience());
    inner.setPurpose(getPurpose());
  }

  Communicator &inner;
};

/// How much longer exchanges between processes are to take: GENREC_COMM_LATENCY_US, or 0.
std::chrono::microseconds askedLatency();

} // namespace genrec::rt

#endif // GENREC_RT_FORWARDING_COMM_H

//===- delayed_comm.cpp - a communicator with a latency -------------------===//

#include "genrec_rt/forwarding_comm.h"

#include <cstdlib>
#include <thread>
#include <utility>

using namespace genrec::rt;

namespace {
class DelayedComm final : public ForwardingComm {
public:
  DelayedComm(std::unique_ptr<Communicator> inner, std::chrono::microseconds latency)
      : ForwardingComm(*inner), inner(std::move(inner)), latency(latency) {}

  std::unique_ptr<Communicator> duplicate() override {
    return std::make_unique<DelayedComm>(ForwardingComm::duplicate(), latency);
  }

protected:
  void doExchange(std::span<const SendPart> send, std::span<const ReceivePart> receive) override {
    ForwardingComm::doExchange(send, receive);
    std::this_thread::sleep_for(latency);
  }
  void doExchangeUpTo(std::span<const SendPart> send, std::span<const ReceivePart> receive,
                      std::span<int64_t> received) override {
    ForwardingComm::doExchangeUpTo(send, receive, received);
    std::this_thread::sleep_for(latency);
  }

private:
  std::unique_ptr<Communicator> inner;
  std::chrono::microseconds latency;
};
} // namespace

std::unique_ptr<Communicator> genrec::rt::delayExchanges(std::unique_ptr<Communicator> comm,
                                                         std::chrono::microseconds latency) {
  return std::make_unique<DelayedComm>(std::move(comm), latency);
}

std::chrono::microseconds genrec::rt::askedLatency() {
  const char *latency = std::getenv("GENREC_COMM_LATENCY_US");
  return std::chrono::microseconds(latency ? std::atoll(latency) : 0);
}

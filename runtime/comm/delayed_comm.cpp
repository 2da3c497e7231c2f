//===- delayed_comm.cpp - a communicator with a latency -------------------===//

#include "genrec_rt/comm.h"

#include <thread>
#include <utility>

using namespace genrec::rt;

namespace {
class DelayedComm final : public Communicator {
public:
  DelayedComm(std::unique_ptr<Communicator> inner, std::chrono::microseconds latency)
      : inner(std::move(inner)), latency(latency) {
    setPatience(this->inner->getPatience());
  }

  std::string getName() const override { return inner->getName(); }
  int32_t getRank() const override { return inner->getRank(); }
  int32_t getSize() const override { return inner->getSize(); }
  void abort(const std::string &why) noexcept override { inner->abort(why); }
  std::optional<std::string> getError() override { return inner->getError(); }
  std::unique_ptr<Communicator> duplicate() override {
    inner->setPatience(getPatience());
    inner->setPurpose(getPurpose());
    return std::make_unique<DelayedComm>(inner->duplicate(), latency);
  }

protected:
  void doExchange(std::span<const SendPart> send, std::span<const ReceivePart> receive) override {
    inner->setPatience(getPatience());
    inner->setPurpose(getPurpose());
    inner->exchange(send, receive);
    std::this_thread::sleep_for(latency);
  }
  void doExchangeUpTo(std::span<const SendPart> send, std::span<const ReceivePart> receive,
                      std::span<int64_t> received) override {
    inner->setPatience(getPatience());
    inner->setPurpose(getPurpose());
    inner->exchangeUpTo(send, receive, received);
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

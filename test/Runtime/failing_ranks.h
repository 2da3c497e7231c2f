//===- failing_ranks.h - Ranks that fail, and that are late ------*- C++ -*-===//

#ifndef GENREC_TEST_RUNTIME_FAILING_RANKS_H
#define GENREC_TEST_RUNTIME_FAILING_RANKS_H

#include "genrec_rt/forwarding_comm.h"
#include "genrec_rt/session.h"

#include <chrono>
#include <thread>

namespace genrec::rt::test {

/// Another source, of which one batch cannot be read: the one behind `whole` others. It takes so
/// long to find that out.
class TornSource final : public BatchSource {
public:
  TornSource(BatchSource &inner, int64_t whole, std::chrono::milliseconds time = {})
      : inner(inner), left(whole), time(time) {}
  bool next(Batch &batch) override {
    if (left-- != 0)
      return inner.next(batch);
    std::this_thread::sleep_for(time);
    throw Error("the file is torn", "mend it");
  }

private:
  BatchSource &inner;
  int64_t left;
  std::chrono::milliseconds time;
};

/// Of a rank that may be late in leaving exchanges: it hears what ends others meanwhile.
class LateComm : public ForwardingComm {
public:
  using ForwardingComm::ForwardingComm;
  /// From now on.
  void linger() { isLate = true; }

protected:
  void doExchange(std::span<const SendPart> send, std::span<const ReceivePart> receive) override {
    ForwardingComm::doExchange(send, receive);
    leave();
  }
  void doExchangeUpTo(std::span<const SendPart> send, std::span<const ReceivePart> receive,
                      std::span<int64_t> received) override {
    ForwardingComm::doExchangeUpTo(send, receive, received);
    leave();
  }

private:
  void leave() {
    for (int i = 0; isLate && i < 20; ++i) {
      if (std::optional<std::string> why = getError())
        throw CommError(*why);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }

  bool isLate = false;
};

} // namespace genrec::rt::test

#endif // GENREC_TEST_RUNTIME_FAILING_RANKS_H

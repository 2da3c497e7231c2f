//===- portion_turns.h - Portions of a rank, one at a time -------*- C++ -*-===//
//
// The portions of a rank compute one after another. Where the compute stage needs what all portions
// give before it can go on (rows by ids that it makes, a sum over portions), it meets the others: a
// portion stops there, the next one goes on, and the last one to come does for all what they wait
// for. Then they go on in their order.
//
// A portion that stopped keeps its thread, so the others run on threads of their own, of which one
// works at a time. Portions that do not meet run on the calling thread.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_SESSION_PORTION_TURNS_H
#define GENREC_RT_SESSION_PORTION_TURNS_H

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace genrec::rt {

class PortionTurns {
public:
  /// `enter` is called by each further thread before it computes; may be empty.
  explicit PortionTurns(std::function<void()> enter) : enter(std::move(enter)) {}
  ~PortionTurns();
  PortionTurns(const PortionTurns &) = delete;
  PortionTurns &operator=(const PortionTurns &) = delete;

  /// Runs body(0), body(1), … up to `count`, and throws what the first of them threw.
  void run(size_t count, const std::function<void(size_t)> &body);
  /// Called within `run`, by each portion as often: returns once all have come here and one has
  /// called `together`. Throws what that threw, or why another portion has not come. Elsewhere, or
  /// where there is one portion, calls `together`.
  void meet(const std::function<void()> &together);

private:
  static constexpr size_t kNobody = SIZE_MAX;

  void compute(size_t portion);
  void work(size_t portion);
  // The mutex is held for these.
  void pass(size_t to);
  void begin(size_t portion);
  void stop(std::unique_lock<std::mutex> &lock, size_t portion);
  size_t findStopped(size_t behind) const;
  void fail(std::exception_ptr why);
  void failToMeet();

  const std::function<void()> enter;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::thread> threads; ///< of portions 1, 2, …
  const std::function<void(size_t)> *body = nullptr;
  size_t count = 0;
  size_t turn = kNobody;       ///< the portion that computes
  size_t starting = kNobody;   ///< a portion that its thread is to begin
  size_t begun = 0;            ///< portions
  size_t arrived = 0;          ///< portions that have come to the meeting
  std::vector<char> isStopped; ///< by portion: at a meeting
  bool hasEnded = false;       ///< some portion: no meeting is complete any more
  bool isOver = false;         ///< threads end
  std::exception_ptr error;
};

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_PORTION_TURNS_H

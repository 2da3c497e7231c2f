//===- profile.h - When the ops of steps run ---------------------*- C++ -*-===//
//
// With --profile each step notes when its phases and ops begin and end; a
// profile adds that up per op, beside what each op had to do at least, and keeps
// the spans of some steps for a trace.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_SESSION_PROFILE_H
#define GENREC_RT_SESSION_PROFILE_H

#include "genrec_rt/abi.h"
#include "genrec_rt/roofline.h"

#include <array>
#include <cstdint>
#include <vector>

namespace genrec::rt {

/// What a step goes through, beside the ops of its stages.
enum class Phase : int32_t {
  read = -1, ///< rows of the data to columns, on the reading thread
  copy = -2, ///< the stages; copy on the reading thread
  dispatch = -3,
  compute = -4,
  update = -5,
  exchange = -6,     ///< with other ranks, between stages
  wait = -7,         ///< for the reading thread
  exchangeAhead = -8 ///< of keys and early rows, beside the step before
};
inline constexpr int32_t kPhases = 8;
const char *nameOf(Phase phase);

/// Nanoseconds of a clock that never goes back.
int64_t profileClock();

/// From when to when something ran. `what`: an op's number, or a Phase.
struct Span {
  int32_t what;
  int64_t begin, end;
};

/// The spans of one batch, noted by the thread that works on it. Ops lie
/// within phases and do not overlap.
class SpanRecorder {
public:
  void clear();
  void begin(Phase phase);
  void enter(int32_t op);
  /// Ends the op and the phase that run.
  void end();
  /// An op that is over; the one that ran has ended when it began.
  void addOp(int32_t op, int64_t begin, int64_t end);
  /// A phase that is over.
  void add(Phase phase, int64_t begin, int64_t end);

  /// What is over; phases come before the ops within them.
  void addSpan(const Span &span) { spans.push_back(span); }

  const std::vector<Span> &all() const { return spans; }

private:
  void leave(int64_t now);

  std::vector<Span> spans;
  int64_t phase = -1, op = -1; ///< places in `spans` of what runs; -1: nothing
};

/// What one op came to over all steps.
struct OpTime {
  int32_t mode = 0; ///< of the program that it belongs to; 0: it never ran
  int64_t calls = 0;
  double seconds = 0;
  double rows = 0; ///< of the domain of its first cost
  Work work;       ///< what it had to do at least, by its costs
};

struct TracedStep {
  int32_t mode;
  uint64_t step;
  std::vector<Span> spans;
};

class Profile {
public:
  static constexpr size_t kTracedSteps = 20;

  explicit Profile(const genrec_model_desc &model) : model(model), ops(model.op_count) {}

  /// A step that is done, its spans, and its domains.
  void add(int32_t mode, uint64_t step, const SpanRecorder &spans, const genrec_domain *domains);
  /// Forgets all steps.
  void clear();

  const std::vector<OpTime> &opTimes() const { return ops; }
  int64_t steps(int32_t mode) const { return modes[mode].steps; }
  double seconds(int32_t mode, Phase phase) const {
    return modes[mode].seconds[-static_cast<int32_t>(phase) - 1];
  }
  /// The first steps, at most kTracedSteps of each mode.
  const std::vector<TracedStep> &traced() const { return trace; }

private:
  struct ModeTime {
    int64_t steps = 0;
    std::array<double, kPhases> seconds{};
  };
  void addWork(int32_t op, const genrec_domain *domains);

  const genrec_model_desc &model;
  std::vector<OpTime> ops;
  std::array<ModeTime, 5> modes{};
  std::vector<TracedStep> trace;
};

/// Pairs of an entry with itself and those before it in its list, over all lists.
double pairsOf(const genrec_domain &domain);

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_PROFILE_H

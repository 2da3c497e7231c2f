//===- profile.cpp - When the ops of steps run ----------------------------===//

#include "profile.h"

#include <algorithm>
#include <chrono>

namespace genrec::rt {

const char *nameOf(Phase phase) {
  constexpr const char *kNames[kPhases] = {"read",   "copy",     "dispatch",      "compute",
                                            "update", "exchange", "wait for data", "exchange ahead"};
  return kNames[-static_cast<int32_t>(phase) - 1];
}

int64_t profileClock() {
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

void SpanRecorder::clear() {
  spans.clear();
  phase = op = -1;
}

void SpanRecorder::begin(Phase what) {
  phase = static_cast<int64_t>(spans.size());
  int64_t now = profileClock();
  spans.push_back({static_cast<int32_t>(what), now, now});
}

void SpanRecorder::leave(int64_t now) {
  if (op >= 0)
    spans[op].end = now;
  op = -1;
}

void SpanRecorder::enter(int32_t what) {
  int64_t now = profileClock();
  leave(now);
  op = static_cast<int64_t>(spans.size());
  spans.push_back({what, now, now});
}

void SpanRecorder::end() {
  int64_t now = profileClock();
  leave(now);
  if (phase >= 0)
    spans[phase].end = now;
  phase = -1;
}

void SpanRecorder::addOp(int32_t what, int64_t begin, int64_t end) {
  leave(begin);
  spans.push_back({what, begin, end});
}

void SpanRecorder::add(Phase what, int64_t begin, int64_t end) {
  spans.push_back({static_cast<int32_t>(what), begin, end});
}

double pairsOf(const genrec_domain &domain) {
  if (!domain.offsets || !domain.parent_domain)
    return static_cast<double>(domain.count);
  double pairs = 0;
  for (int64_t row = 0; row < domain.parent_domain->count; ++row) {
    auto length = static_cast<double>(domain.offsets[row + 1] - domain.offsets[row]);
    pairs += length * (length + 1) / 2;
  }
  return pairs;
}

void Profile::addWork(int32_t op, const genrec_domain *domains) {
  const genrec_op_desc &desc = model.ops[op];
  for (int32_t i = 0; i < desc.cost_count; ++i) {
    const genrec_cost &cost = desc.costs[i];
    double rows = cost.domain < 0 ? 1 : static_cast<double>(domains[cost.domain].count);
    double pairs = cost.domain >= 0 && cost.pair_flops > 0 ? pairsOf(domains[cost.domain]) : 0;
    if (i == 0)
      ops[op].rows += rows;
    ops[op].work.bytes += rows * cost.bytes;
    ops[op].work.gatheredBytes += rows * cost.gathered_bytes;
    ops[op].work.flops += rows * cost.flops;
    ops[op].work.sourceBytes += rows * cost.source_bytes;
    Work &work = ops[op].work;
    (desc.bf16 ? work.bf16Flops : work.productFlops) +=
        rows * cost.product_flops + pairs * cost.pair_flops;
  }
}

void Profile::add(int32_t mode, uint64_t step, const SpanRecorder &recorder,
                  const genrec_domain *domains) {
  ModeTime &time = modes[mode];
  ++time.steps;
  for (const Span &span : recorder.all()) {
    double seconds = static_cast<double>(span.end - span.begin) * 1e-9;
    if (span.what < 0) {
      time.seconds[-span.what - 1] += seconds;
    } else if (span.what < model.op_count) {
      OpTime &op = ops[span.what];
      op.mode = mode;
      ++op.calls;
      op.seconds += seconds;
      addWork(span.what, domains);
    }
  }
  auto traced = std::count_if(trace.begin(), trace.end(),
                              [&](const TracedStep &kept) { return kept.mode == mode; });
  if (static_cast<size_t>(traced) < kTracedSteps)
    trace.push_back({mode, step, recorder.all()});
}

void Profile::clear() {
  ops.assign(ops.size(), {});
  modes = {};
  trace.clear();
}

} // namespace genrec::rt

//===- step_sums.cpp - What a step adds up over its portions --------------===//

#include "step_sums.h"

#include "step_slot.h"

#include <algorithm>
#include <numeric>

namespace genrec::rt {

StepSums::StepSums(Communicator &comm, int32_t portions, int32_t losses)
    : rank(comm.getRank()), ranks(comm.getSize()), count(portions), messages(ranks) {
  reported.losses.resize(losses);
}

void StepSums::begin() {
  for (Sums &each : sums) {
    each.isReduced = false;
    if (each.portions)
      each.portions->restart();
  }
  reports = false;
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

void StepSums::contribute(int32_t number, std::span<const float *const> partial,
                          std::span<const int64_t> floats) {
  if (static_cast<size_t>(number) >= sums.size())
    sums.resize(number + 1);
  Sums &to = sums[number];
  int64_t length = std::accumulate(floats.begin(), floats.end(), int64_t(0));
  if (!to.portions || to.length != length) {
    to.portions = std::make_unique<PortionSums>(length, count, rank, ranks);
    to.length = length;
    to.messages.resize(ranks);
  }
  float *at = to.portions->begin();
  for (size_t i = 0; i < partial.size(); ++i)
    at = std::copy_n(partial[i], floats[i], at);
  to.portions->commit();
}

void StepSums::collect(Communicator &on, int32_t number, std::span<const int64_t> floats,
                       std::span<float *const> totals) {
  Sums &from = sums[number];
  if (!from.isReduced) {
    from.memory.resize(from.length);
    from.portions->reduce(on, from.memory.data());
    from.total = from.memory.data();
    countReceived(*from.portions, from.length);
  }
  from.isReduced = true;
  const float *at = from.total;
  for (size_t i = 0; i < totals.size(); at += floats[i++])
    std::copy_n(at, floats[i], totals[i]);
}

/// What the others sent, and, of slices, all but this rank's.
void StepSums::countReceived(const PortionSums &sums, int64_t length) {
  int64_t floats = sums.hasSlices() ? length - length / ranks : 0;
  for (int32_t from = 0; from < ranks; ++from)
    floats += from == rank ? 0 : sums.countFloats(from, rank);
  receivedBytes += floats * 4;
}

//===----------------------------------------------------------------------===//
// Reports
//===----------------------------------------------------------------------===//

/// The signal; of each portion its rows, and sum and weight of each loss.
int64_t StepSums::reportDoubles(int32_t from) const {
  auto losses = static_cast<int64_t>(reported.losses.size());
  return 1 + getPortions(count, from, ranks).count * (1 + 2 * losses);
}

void StepSums::report(std::span<StepSlot *const> slots, int32_t signal) {
  reports = true;
  mine.assign(1, signal);
  for (StepSlot *slot : slots) {
    mine.push_back(static_cast<double>(slot->currentBatch().rows));
    for (const LossValue &loss : slot->losses)
      mine.insert(mine.end(), {loss.sum, loss.weight});
  }
}

void StepSums::addReports() {
  std::fill(reported.losses.begin(), reported.losses.end(), LossValue{});
  reported.rows = 0;
  reported.signal = 0;
  for (int32_t from = 0; from < ranks; ++from) {
    const double *at = messages[from];
    reported.signal = std::max(reported.signal, static_cast<int32_t>(*at++));
    for (int32_t left = getPortions(count, from, ranks).count; left; --left) {
      reported.rows += static_cast<int64_t>(*at++);
      for (LossValue &loss : reported.losses) {
        loss.add({at[0], at[1]});
        at += 2;
      }
    }
  }
}

//===----------------------------------------------------------------------===//
// In the messages of a round
//===----------------------------------------------------------------------===//

int64_t StepSums::getBytes(int32_t from, int32_t to) const {
  int64_t floats = reports ? 2 * reportDoubles(from) : 0;
  for (const Sums &each : sums)
    if (each.rides())
      floats += each.portions->countFloats(from, to);
  return (floats + 1) / 2 * 8;
}

void StepSums::write(int32_t to, char *message) {
  if (reports)
    std::copy(mine.begin(), mine.end(), reinterpret_cast<double *>(message));
  auto *at = reinterpret_cast<float *>(message) + (reports ? 2 * reportDoubles(rank) : 0);
  for (const Sums &each : sums)
    if (each.rides()) {
      each.portions->write(to, at);
      at += each.portions->countFloats(rank, to);
    }
}

void StepSums::read(int32_t from, char *message) {
  messages[from] = reinterpret_cast<const double *>(message);
  auto *at = reinterpret_cast<float *>(message) + (reports ? 2 * reportDoubles(from) : 0);
  for (Sums &each : sums)
    if (each.rides()) {
      each.messages[from] = at;
      at += each.portions->countFloats(from, rank);
    }
}

void StepSums::finish(Communicator &on, bool messagesStay) {
  if (reports)
    addReports();
  reports = false;
  for (Sums &each : sums)
    if (each.rides()) {
      const float *sum = each.portions->add(each.messages);
      if (each.portions->hasSlices()) {
        each.memory.resize(each.length);
        each.portions->gather(on, sum, each.memory.data());
      } else if (!messagesStay) {
        each.memory.assign(sum, sum + each.length);
      }
      bool isCopied = !messagesStay || each.portions->hasSlices();
      each.total = isCopied ? each.memory.data() : sum;
      countReceived(*each.portions, each.length);
      each.isReduced = true;
    }
}

} // namespace genrec::rt

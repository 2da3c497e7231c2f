//===- step_sums.cpp - What a step adds up over its portions --------------===//

#include "step_sums.h"

#include "step_slot.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace genrec::rt {

StepSums::StepSums(Communicator &comm, int32_t portions, int32_t losses,
                   const ParameterShards &shards)
    : rank(comm.getRank()), ranks(comm.getSize()), count(portions), shards(shards), messages(ranks),
      slices(ranks) {
  reported.losses.resize(losses);
}

void StepSums::begin() {
  for (Sums &each : sums) {
    each.isReduced = each.isAhead = false;
    for (Vector *vector : {&each.whole, &each.owned})
      if (vector->portions)
        vector->portions->restart();
  }
  reports = false;
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

bool StepSums::Sums::rides() const {
  const Vector &any = whole.portions ? whole : owned;
  return any.portions && !isReduced && !isAhead && any.portions->isComplete();
}

/// Calls `body` for the vectors that ride in the next round.
template <class Self, class Body> void StepSums::forRiding(Self &self, const Body &body) {
  for (auto &each : self.sums)
    if (each.rides())
      for (auto *vector : {&each.whole, &each.owned})
        if (vector->portions)
          body(*vector);
}

/// Lists of which ranks read their own rows only lie rank by rank, so that these are a slice.
void StepSums::describe(Sums &to, std::span<const int64_t> floats,
                        std::span<const int32_t> parameters) {
  auto isShared = [&](size_t list) {
    return shards.areShared() && !parameters.empty() && parameters[list] >= 0;
  };
  to.whole.length = to.owned.length = 0;
  auto add = [&](Vector &vector, size_t list, int64_t first, int64_t size) {
    vector.pieces.push_back({list, first, size, vector.length});
    vector.length += size;
  };
  for (size_t list = 0; list < floats.size(); ++list)
    if (!isShared(list))
      add(to.whole, list, 0, floats[list]);
  std::vector<int64_t> begins;
  for (int32_t of = 0; of < ranks; ++of) {
    begins.push_back(to.owned.length);
    for (size_t list = 0; list < floats.size(); ++list)
      if (isShared(list)) {
        ParameterShards::Rows rows = shards.of(parameters[list], of);
        int64_t width = shards.width(parameters[list]);
        add(to.owned, list, rows.first * width, rows.count * width);
        if (of == rank)
          to.owned.read.push_back(to.owned.pieces.back());
      }
  }
  begins.push_back(to.owned.length);
  to.whole.read = to.whole.pieces;
  if (!to.whole.pieces.empty())
    to.whole.portions = std::make_unique<PortionSums>(to.whole.length, count, rank, ranks);
  if (!to.owned.pieces.empty())
    to.owned.portions = std::make_unique<PortionSums>(std::move(begins), count, rank, ranks);
  to.whole.messages.resize(ranks);
  to.owned.messages.resize(ranks);
}

void StepSums::contribute(int32_t number, std::span<const float *const> partial,
                          std::span<const int64_t> floats, std::span<const int32_t> parameters) {
  if (static_cast<size_t>(number) >= sums.size())
    sums.resize(number + 1);
  Sums &to = sums[number];
  int64_t length = std::accumulate(floats.begin(), floats.end(), int64_t(0));
  bool isKnown = to.whole.portions || to.owned.portions;
  if (!isKnown || to.whole.length + to.owned.length != length) {
    to = {};
    describe(to, floats, parameters);
  }
  for (Vector *vector : {&to.whole, &to.owned}) {
    if (!vector->portions)
      continue;
    float *values = vector->portions->begin();
    for (const Piece &piece : vector->pieces)
      std::copy_n(partial[piece.list] + piece.first, piece.count, values + piece.at);
    vector->portions->commit();
  }
}

void StepSums::sendAhead(int32_t number, SumsAhead &ahead, CommPurpose purpose) {
  Sums &of = sums[number];
  if (!of.rides() || of.whole.length + of.owned.length < kLeastAhead)
    return;
  of.isAhead = true;
  ahead.start([this, &of, purpose](Communicator &on) {
    on.setPurpose(purpose);
    if (of.whole.portions) {
      std::vector<float> &total = of.whole.memory;
      total.resize(of.whole.length);
      of.whole.portions->reduce(on, total.data());
    }
    if (of.owned.portions)
      of.owned.setTotal(of.owned.portions->exchange(on), rank);
  });
}

void StepSums::endAhead() {
  for (Sums &each : sums) {
    if (!each.isAhead)
      continue;
    each.isAhead = false;
    each.isReduced = true;
    if (PortionSums *whole = each.whole.portions.get()) {
      countReceived(*whole, whole->hasSlices() ? each.whole.length : 0);
      for (int32_t of = 0; of < (whole->hasSlices() ? ranks : 1); ++of) {
        each.whole.total.resize(ranks);
        each.whole.total[of] =
            each.whole.memory.data() + (whole->hasSlices() ? whole->sliceBegin(of) : 0);
      }
    }
    if (each.owned.portions)
      countReceived(*each.owned.portions, 0);
  }
}

void StepSums::collect(Communicator &on, int32_t number, std::span<float *const> totals) {
  Sums &from = sums[number];
  for (Vector *vector : {&from.whole, &from.owned}) {
    if (!vector->portions)
      continue;
    if (!from.isReduced) {
      bool isGathered = vector->portions->hasSlices() && vector == &from.whole;
      countReceived(*vector->portions, isGathered ? vector->length : 0);
      vector->setTotal(vector->portions->exchange(on), rank);
      if (isGathered)
        gather(on, std::span(&vector, 1));
      vector->keepTotal();
    }
    for (const Piece &piece : vector->read)
      vector->copyTotal(piece.at, piece.count, totals[piece.list] + piece.first);
  }
  from.isReduced = true;
}

/// What the others sent, and, of `gathered` floats, all but this rank's slice.
void StepSums::countReceived(const PortionSums &of, int64_t gathered) {
  int64_t floats = of.hasSlices() && gathered ? gathered - of.sliceSize(rank) : 0;
  for (int32_t from = 0; from < ranks; ++from)
    floats += from == rank ? 0 : of.countFloats(from, rank);
  receivedBytes += floats * 4;
}

/// `slice`: this rank's, or all where there are no slices.
void StepSums::Vector::setTotal(const float *slice, int32_t rank) {
  total.assign(messages.size(), nullptr);
  total[portions->hasSlices() ? rank : 0] = slice;
}

void StepSums::Vector::copyTotal(int64_t begin, int64_t size, float *to) const {
  if (!portions->hasSlices()) {
    std::copy_n(total[0] + begin, size, to);
    return;
  }
  for (size_t of = 0; of < total.size() && size > 0; ++of) {
    int64_t first = portions->sliceBegin(static_cast<int32_t>(of)),
            left = first + portions->sliceSize(static_cast<int32_t>(of)) - begin;
    if (left <= 0)
      continue;
    int64_t part = std::min(size, left);
    to = std::copy_n(total[of] + (begin - first), part, to);
    begin += part;
    size -= part;
  }
}

/// Copies what the total has into memory of its own.
void StepSums::Vector::keepTotal() {
  memory.resize(length);
  for (size_t of = 0; of < total.size(); ++of) {
    if (!total[of])
      continue;
    bool isAll = !portions->hasSlices();
    int64_t first = isAll ? 0 : portions->sliceBegin(static_cast<int32_t>(of)),
            size = isAll ? length : portions->sliceSize(static_cast<int32_t>(of));
    std::copy_n(total[of], size, memory.data() + first);
    total[of] = memory.data() + first;
  }
}

/// One exchange for the slices of all vectors, of which this rank has its own.
void StepSums::gather(Communicator &on, std::span<Vector *const> vectors) {
  std::vector<SendPart> send(ranks);
  std::vector<ReceivePart> receive(ranks);
  for (int32_t of = 0; of < ranks; ++of) {
    size_t floats = 0;
    for (const Vector *vector : vectors)
      floats += vector->portions->sliceSize(of);
    slices[of].resize(floats);
  }
  auto bytesOf = [&](int32_t of) {
    return static_cast<int64_t>(slices[of].size() * sizeof(float));
  };
  float *to = slices[rank].data();
  for (const Vector *vector : vectors)
    to = std::copy_n(vector->total[rank], vector->portions->sliceSize(rank), to);
  for (int32_t other = 0; other < ranks; ++other) {
    bool isOther = other != rank;
    send[other] = {slices[rank].data(), isOther ? bytesOf(rank) : 0};
    receive[other] = {slices[other].data(), isOther ? bytesOf(other) : 0};
  }
  on.exchange(send, receive);
  for (int32_t of = 0; of < ranks; ++of) {
    const float *from = slices[of].data();
    for (Vector *vector : vectors) {
      vector->total[of] = from;
      from += vector->portions->sliceSize(of);
    }
  }
}

//===----------------------------------------------------------------------===//
// Reports
//===----------------------------------------------------------------------===//

/// The signal, whether sums should go ahead, and the time; of each portion its rows, and sum and
/// weight of each loss.
int64_t StepSums::reportDoubles(int32_t from) const {
  auto losses = static_cast<int64_t>(reported.losses.size());
  return 3 + getPortions(count, from, ranks).count * (1 + 2 * losses);
}

void StepSums::report(std::span<StepSlot *const> slots, const OwnReport &own) {
  reports = true;
  mine.assign({static_cast<double>(own.signal), own.isNextAhead ? 1.0 : 0.0,
               own.seconds ? static_cast<double>(*own.seconds) : std::nan("")});
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
  reported.seconds.reset();
  for (int32_t from = 0; from < ranks; ++from) {
    const double *at = messages[from];
    reported.signal = std::max(reported.signal, static_cast<int32_t>(*at++));
    if (double isNextAhead = *at++; from == 0)
      reported.isNextAhead = isNextAhead != 0;
    if (double seconds = *at++; !std::isnan(seconds))
      reported.seconds =
          std::max(reported.seconds.value_or(INT64_MIN), static_cast<int64_t>(seconds));
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
  forRiding(*this, [&](const Vector &vector) { floats += vector.portions->countFloats(from, to); });
  return (floats + 1) / 2 * 8;
}

void StepSums::write(int32_t to, char *message) {
  if (reports)
    std::copy(mine.begin(), mine.end(), reinterpret_cast<double *>(message));
  auto *at = reinterpret_cast<float *>(message) + (reports ? 2 * reportDoubles(rank) : 0);
  forRiding(*this, [&](const Vector &vector) {
    vector.portions->write(to, at);
    at += vector.portions->countFloats(rank, to);
  });
}

void StepSums::read(int32_t from, char *message) {
  messages[from] = reinterpret_cast<const double *>(message);
  auto *at = reinterpret_cast<float *>(message) + (reports ? 2 * reportDoubles(from) : 0);
  forRiding(*this, [&](Vector &vector) {
    vector.messages[from] = at;
    at += vector.portions->countFloats(from, rank);
  });
}

void StepSums::finish(Communicator &on, bool messagesStay) {
  if (reports)
    addReports();
  reports = false;
  sliced.clear();
  added.clear();
  for (Sums &each : sums) {
    if (!each.rides())
      continue;
    for (Vector *vector : {&each.whole, &each.owned}) {
      if (!vector->portions)
        continue;
      bool isGathered = vector->portions->hasSlices() && vector == &each.whole;
      countReceived(*vector->portions, isGathered ? vector->length : 0);
      vector->setTotal(vector->portions->add(vector->messages), rank);
      (isGathered ? sliced : added).push_back(vector);
    }
    each.isReduced = true;
  }
  if (!sliced.empty())
    gather(on, sliced);
  if (messagesStay)
    return;
  for (std::vector<Vector *> *vectors : {&sliced, &added})
    for (Vector *vector : *vectors)
      vector->keepTotal();
}

} // namespace genrec::rt

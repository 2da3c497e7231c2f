//===- abi_ranks.cpp - Sums over portions, called by generated code -------===//
//
// How these fail: recording.h. With one portion on one rank, sums are what they are of.
//
//===----------------------------------------------------------------------===//

#include "genrec_rt/abi.h"

#include "../embedding/segments.h"
#include "device_step.h"
#include "find_rows.h"
#include "ranks.h"
#include "recording.h"

#include <algorithm>

using namespace genrec::rt;

/// What a portion gives to the step's sums; null where it is alone, or runs once more to look for
/// NaNs, or has failed on a device: of a lookup that ended early there are no rows there to give
/// sums for. On the host sums need what each portion gives; a step that failed is not kept.
static RankStep *givesTo(StepSlot &slot) {
  const bool hasNone = slot.isFindingNonFinite || (slot.onDevice && slot.failure.any());
  return hasNone ? nullptr : slot.rankStep;
}

extern "C" {

void genrec_rt_contribute(genrec_step *step, int32_t number, int32_t count,
                          const float *const *partial, const int64_t *floats,
                          const int32_t *parameters) {
  StepSlot &slot = StepSlot::of(step);
  auto size = static_cast<size_t>(count);
  if (RankStep *ranks = givesTo(slot))
    guarded(slot, [&] {
      if (slot.onDevice)
        return slot.onDevice->callBetween([&slot, number, of = copyOf(std::span(partial, size)),
                                           lengths = copyOf(std::span(floats, size)),
                                           whose = copyOf(std::span(parameters, size))] {
          slot.rankStep->onDevice()->contribute(number, of, lengths, whose);
        });
      ranks->contribute(number, {partial, size}, {floats, size}, {parameters, size});
    });
}

void genrec_rt_collect(genrec_step *step, int32_t number, int32_t count,
                       const float *const *partial, const int64_t *floats, float *const *sums) {
  StepSlot &slot = StepSlot::of(step);
  auto size = static_cast<size_t>(count);
  if (slot.rankStep && slot.isFindingNonFinite && !slot.rankStep->hasSum(number)) {
    slot.isPastKnown = true;
    for (size_t i = 0; i < size; ++i)
      std::fill_n(sums[i], floats[i], 0.0F);
    return;
  }
  if (RankStep *ranks = slot.rankStep)
    return guarded(slot, [&] {
      if (slot.onDevice)
        return slot.onDevice->collect(number, {sums, size});
      ranks->collect(number, {sums, size});
    });
  for (int32_t i = 0; i < count; ++i)
    if (sums[i] != partial[i] && slot.onDevice)
      guarded(slot, [&] { slot.onDevice->copyFloats(partial[i], floats[i], sums[i]); });
    else if (sums[i] != partial[i])
      std::copy_n(partial[i], floats[i], sums[i]);
}

void genrec_rt_contribute_rows(genrec_step *step, int32_t table, const genrec_domain *touched,
                               float *const *rows, int64_t, const float *sums) {
  StepSlot &slot = StepSlot::of(step);
  if (RankStep *ranks = givesTo(slot))
    guarded(slot, [&] {
      if (slot.onDevice)
        return slot.onDevice->callBetween([=, &slot] {
          slot.rankStep->onDevice()->contributeRows(slot, table, touched, rows, sums);
        });
      ranks->contributeRows(slot, table, {rows, static_cast<size_t>(touched->count)}, sums);
    });
}

void genrec_rt_contribute_segments(genrec_step *step, int32_t table, const genrec_domain *touched,
                                   float *const *rows, const void *segments, int32_t parts,
                                   const float *const *gradients, const int64_t *strides,
                                   int64_t dim) {
  StepSlot &slot = StepSlot::of(step);
  if (!givesTo(slot))
    return;
  guarded(slot, [&] {
    if (slot.onDevice)
      return slot.onDevice->callBetween([=, &slot] {
        slot.rankStep->onDevice()->contributeSegments(slot, table, touched, rows, segments, dim);
      });
    float *sums = slot.rowSums.ensure(std::max<int64_t>(touched->count * dim, 1));
    genrec_rt_segment_sum(step, touched, segments, parts, gradients, strides, dim, sums);
    genrec_rt_contribute_rows(step, table, touched, rows, dim, sums);
  });
}

void genrec_rt_collect_rows(genrec_step *step, int32_t table, const genrec_domain *touched,
                            genrec_domain *owned) {
  StepSlot &slot = StepSlot::of(step);
  RankStep *ranks = slot.rankStep;
  if (slot.onDevice)
    return guarded(slot, [&] {
      if (ranks)
        return ranks->onDevice()->describeCollected(table, owned);
      slot.onDevice->collectRows(touched, owned);
    });
  int64_t count = ranks ? ranks->countCollected(table) : touched->count;
  int64_t capacity = owned->capacity;
  *owned = *touched;
  owned->capacity = capacity;
  owned->count = owned->max_length = count;
  if (ranks)
    guarded(slot, [&] {
      owned->identity = identifyRows(slot, table, ranks->collected(table).rows, count);
    });
}

const genrec_collected_rows *genrec_rt_collected_rows(genrec_step *step, int32_t table) {
  RankStep *ranks = StepSlot::of(step).rankStep;
  return ranks ? &ranks->collected(table) : nullptr;
}

void genrec_rt_exact_sums(genrec_step *step, int32_t count, const genrec_domain *const *owned,
                          const int32_t *of_parameters, const float *const *values,
                          float *const *sums) {
  StepSlot &slot = StepSlot::of(step);
  if (slot.onDevice)
    return guarded(slot, [&] {
      auto size = static_cast<size_t>(count);
      slot.onDevice->sumExactly({owned, size}, {of_parameters, size}, {values, size}, {sums, size});
    });
  for (int32_t i = 0; i < count; ++i)
    *sums[i] = 0;
  guarded(slot, [&] {
    if (RankStep *ranks = slot.rankStep)
      return ranks->sumExactly({count, owned, of_parameters, values, &slot}, sums);
    for (int32_t i = 0; i < count; ++i) {
      ExactSum exact;
      exact.add({values[i], static_cast<size_t>(owned[i]->count)});
      *sums[i] = exact.round();
    }
  });
}

} // extern "C"

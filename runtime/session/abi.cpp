//===- abi.cpp - What generated code calls --------------------------------===//
//
// What goes wrong is recorded in the step, and thrown by the runtime once the stage has
// returned (recording.h).
//
//===----------------------------------------------------------------------===//

#include "genrec_rt/abi.h"

#include "../embedding/distinct.h"
#include "../embedding/segments.h"
#include "device_step.h"
#include "find_rows.h"
#include "genrec_rt/kernels/shared/described_rows.h"
#include "genrec_rt/kernels/shared/distinct_lookups.h"
#include "lookup_counter.h"
#include "non_finite.h"
#include "ranks.h"
#include "recording.h"
#include "row_failures.h"

#include <algorithm>
#include <cstring>

using namespace genrec::rt;

namespace {

inline bool isBeyond(int64_t id, int64_t bits) {
  return bits < 64 && static_cast<uint64_t>(id) >> bits != 0;
}

/// Points invalid entries at the row of zeros; returns the first row whose id is
/// out of range, `count` where there is none.
int64_t checkIds(genrec_rt_pool *pool, const int64_t *ids, const uint8_t *valid, int64_t count,
                 int64_t bits, float *zeros, float **rows) {
  FirstBad bad(count);
  parallelFor(pool, count, kCheckGrain, [&](int64_t begin, int64_t end, int64_t) {
    for (int64_t row = begin; row < end; ++row) {
      if (valid && !valid[row])
        rows[row] = zeros;
      else if (isBeyond(ids[row], bits))
        return bad.note(row);
    }
  });
  return bad.row();
}

/// Handles that were looked up before for this catalogue column, or null.
const CatalogueHandles *knownHandles(genrec_runtime &shared, int32_t table, const int64_t *ids,
                                     int64_t count) {
  for (const auto &known : shared.handles)
    if (known->table == table && known->ids == ids && known->count == count)
      return known.get();
  return nullptr;
}

void keepHandles(genrec_runtime &shared, int32_t table, const int64_t *ids, int64_t count,
                 float *const *rows) {
  auto kept = std::make_unique<CatalogueHandles>();
  kept->table = table;
  kept->ids = ids;
  kept->count = count;
  std::copy_n(rows, count, kept->rows.ensure(count));
  shared.handles.push_back(std::move(kept));
}

/// Of several portions, in a step that runs once more.
void repeatRows(StepSlot &slot, int32_t table, const int64_t *keys, int64_t count, float **rows,
                float *zeros) {
  if (!slot.repeatRows(rows, count))
    std::fill_n(rows, count, zeros);
  noteNonFiniteRow(slot, table, keys, count, rows, zeros);
}

void tableRows(StepSlot &slot, int32_t table, const genrec_domain *domain, const int64_t *ids,
               const uint8_t *valid, float **rows) {
  genrec_runtime &shared = slot.state();
  const genrec_table_desc &desc = shared.model.tables[table];
  int64_t count = domain->count;
  RankStep *ranks = slot.rankStep;
  if (count == 0 && !ranks) // other ranks may wait for this one's lookup
    return;
  TableStore &store = *shared.tables[table];
  bool hasRules = store.configuration().rules.any();
  // Rows of a table with rules may be gone, or elsewhere, in the next step.
  bool wholeCatalogue = !valid && !hasRules && !ranks && shared.isCatalogueColumn(ids);
  if (wholeCatalogue) {
    if (const CatalogueHandles *known = knownHandles(shared, table, ids, count)) {
      std::memcpy(rows, known->rows.data(), static_cast<size_t>(count) * sizeof(float *));
      slot.foundKeys.forget(rows, count);
      return;
    }
  }
  auto *zeros = const_cast<float *>(shared.zeroRow(table));
  int64_t bad = checkIds(slot.pool, ids, valid, count, desc.id_bits, zeros, rows);
  if (bad < count) {
    std::fill_n(rows, count, zeros);
    const Error error = idBeyondTable(slot, table, slot.describeRow(domain, bad), ids[bad]);
    slot.failure.record(error.what(), error.help());
    return;
  }
  if (LookupCounter *counter = shared.lookupCounter) {
    std::fill_n(rows, count, zeros);
    return counter->add(slot, table, domain, ids, valid);
  }
  if (ranks && slot.isFindingNonFinite)
    return repeatRows(slot, table, ids, count, rows, zeros);
  if (ranks)
    return ranks->request(slot, table, ids, valid, count, rows);
  bool isTemporary = findRows(slot, table, ids, valid, count, rows);
  if (slot.isFindingNonFinite)
    noteNonFiniteRow(slot, table, ids, count, rows, zeros);
  if (wholeCatalogue && !isTemporary)
    keepHandles(shared, table, ids, count, rows);
}

void mergedRows(StepSlot &slot, int32_t table, const genrec_domain *domain, const int64_t *keys,
                float **rows) {
  genrec_runtime &shared = slot.state();
  int64_t count = domain->count;
  auto *zeros = const_cast<float *>(shared.zeroRow(table));
  if (slot.rankStep && slot.isFindingNonFinite)
    return repeatRows(slot, table, keys, count, rows, zeros);
  if (RankStep *ranks = slot.rankStep)
    return ranks->request(slot, table, keys, nullptr, count, rows);
  uint8_t *valid = slot.missing.ensure(std::max<int64_t>(count, 1));
  parallelFor(slot.pool, count, kCheckGrain, [&](int64_t begin, int64_t end, int64_t) {
    for (int64_t row = begin; row < end; ++row) {
      valid[row] = keys[row] >= 0;
      rows[row] = zeros;
    }
  });
  findRows(slot, table, keys, valid, count, rows);
  if (slot.isFindingNonFinite)
    noteNonFiniteRow(slot, table, keys, count, rows, zeros);
}

void mergedKeys(StepSlot &slot, int32_t parts, const int32_t *tables,
                const genrec_domain *const *domains, const int64_t *const *ids,
                const uint8_t *const *valid, int64_t *keys) {
  const genrec_model_desc &model = slot.state().model;
  auto *starts =
      static_cast<int64_t *>(genrec_rt_thread_scratch(&slot, (2 * int64_t(parts) + 2) * 8));
  int64_t *firsts = starts + parts + 1;
  firsts[0] = 0;
  for (int32_t part = 0; part < parts; ++part)
    firsts[part + 1] = firsts[part] + domains[part]->count;
  int64_t total = firsts[parts];
  FirstBad bad(total);
  parallelParts(
      slot.pool, parts, kCheckGrain, starts, [&](int64_t part) { return domains[part]->count; },
      [&](int64_t part, int64_t begin, int64_t end) {
        const genrec_table_desc &table = model.tables[tables[part]];
        int64_t *to = keys + firsts[part];
        for (int64_t row = begin; row < end; ++row) {
          bool isNull = valid[part] && !valid[part][row];
          if (!isNull && isBeyond(ids[part][row], table.id_bits))
            bad.note(firsts[part] + row);
          to[row] = isNull ? -1 : table.key | ids[part][row];
        }
      });
  if (!bad.any())
    return;
  int64_t first = bad.row();
  std::fill_n(keys, total, int64_t(-1));
  int32_t part = 0;
  while (firsts[part + 1] <= first)
    ++part;
  int64_t row = first - firsts[part];
  const Error error =
      idBeyondTable(slot, tables[part], slot.describeRow(domains[part], row), ids[part][row]);
  slot.failure.record(error.what(), error.help());
}

} // namespace

extern "C" {

void genrec_rt_table_rows(genrec_step *step, int32_t table, const genrec_domain *domain,
                          const int64_t *ids, const uint8_t *valid, float **rows) {
  StepSlot &slot = StepSlot::of(step);
  guarded(slot, [&] {
    if (slot.onDevice)
      return slot.onDevice->tableRows(table, domain, ids, valid, rows);
    tableRows(slot, table, domain, ids, valid, rows);
  });
}

void genrec_rt_merged_keys(genrec_step *step, int32_t parts, const int32_t *tables,
                           const genrec_domain *const *domains, const int64_t *const *ids,
                           const uint8_t *const *valid, int64_t *keys) {
  StepSlot &slot = StepSlot::of(step);
  guarded(slot, [&] {
    if (slot.onDevice)
      return slot.onDevice->mergedKeys(parts, tables, domains, ids, valid, keys);
    mergedKeys(slot, parts, tables, domains, ids, valid, keys);
  });
}

void genrec_rt_merged_rows(genrec_step *step, int32_t table, const genrec_domain *domain,
                           const int64_t *keys, float **rows) {
  StepSlot &slot = StepSlot::of(step);
  guarded(slot, [&] {
    if (slot.onDevice)
      return slot.onDevice->mergedRows(table, domain, keys, rows);
    mergedRows(slot, table, domain, keys, rows);
  });
}

int64_t genrec_rt_segment_bytes(int64_t capacity) { return segmentBytes(capacity); }

void genrec_rt_unique_rows(genrec_step *step, int32_t table, int32_t parts,
                           const genrec_domain *const *domains, float *const *const *handles,
                           const float *const *gradients, const int64_t *strides,
                           const int64_t *const *parents, int64_t dim, int32_t all,
                           genrec_domain *touched, float **rows, void *segments) {
  StepSlot &slot = StepSlot::of(step);
  if (slot.onDevice)
    return guarded(slot, [&] {
      slot.onDevice->uniqueRows(
          {table, parts, domains, handles, gradients, strides, parents, dim, all != 0, nullptr},
          touched, rows, segments);
    });
  kernels::describeRows(touched, 0);
  guarded(slot, [&] {
    int64_t counts[kMostParts], total = 0;
    const int64_t *keys[kMostParts];
    bool areKeysKnown = true;
    for (int32_t part = 0; part < parts && part < kMostParts; ++part)
      total += counts[part] = domains[part]->count;
    if (parts > kMostParts || total > kMostContributions)
      throw Error("table '" + std::string(slot.state().model.tables[table].name) + "' has " +
                      std::to_string(total) + " gradients in " + std::to_string(parts) +
                      " lookups in one step, more than " + std::to_string(kMostContributions) +
                      " in " + std::to_string(kMostParts),
                  "use a smaller batch");
    GradientParts from{parts, counts, handles, gradients, dim, strides, parents, all != 0};
    // On several portions those that are collected are updated.
    if (int64_t *rowKeys = slot.rankStep ? nullptr : keysOfRows(slot, table, total)) {
      for (int32_t part = 0; part < parts && areKeysKnown; ++part)
        if (counts[part] > 0)
          areKeysKnown = (keys[part] = slot.foundKeys.find(handles[part], counts[part]));
      from.keys = areKeysKnown ? keys : nullptr;
      from.rowKeys = rowKeys;
    }
    kernels::describeRows(
        touched, buildSegments(step->pool, from, slot.state().zeroRow(table), rows, segments));
    if (!slot.rankStep)
      touched->identity = identifyRows(slot, table, rows, touched->count, from.keys);
  });
}

void genrec_rt_segment_sum(genrec_step *step, const genrec_domain *touched, const void *segments,
                           int32_t parts, const float *const *gradients, const int64_t *strides,
                           int64_t dim, float *sums) {
  StepSlot &slot = StepSlot::of(step);
  if (slot.onDevice)
    return guarded(slot, [&] { slot.onDevice->sumSegments(touched, segments, dim, sums); });
  if (touched->count > 0)
    sumSegments(step->pool, {parts, nullptr, nullptr, gradients, dim, strides}, touched->count,
                segments, sums);
}

int64_t genrec_rt_distinct_bytes(int64_t parts, int64_t capacity) {
  return distinctBytes(parts, capacity);
}

void genrec_rt_distinct_rows(genrec_step *step, const genrec_domain *domain, int32_t groups,
                             const int32_t *lookups, float *const *const *handles,
                             genrec_domain *const *distinct, float **const *rows, void *places) {
  StepSlot &slot = StepSlot::of(step);
  const LookupGroups of{std::span(lookups, static_cast<size_t>(groups)), handles, rows, places};
  if (slot.onDevice)
    return guarded(slot, [&] { slot.onDevice->distinctRows({of, domain, distinct}); });
  for (int32_t group = 0; group < groups; ++group)
    kernels::describeRows(distinct[group], 0);
  guarded(slot, [&] {
    int64_t bytes = distinctScratchBytes(domain->count);
    findDistinct(step->pool, domain->count, of,
                 [&] { return genrec_rt_thread_scratch(step, bytes); });
    const kernels::DistinctLookups found(places);
    for (int64_t group = 0, first = 0; group < groups; first += lookups[group++]) {
      kernels::describeRows(distinct[group], found.from(first, lookups[group]).rows());
      slot.foundKeys.forget(rows[group], lookups[group] * domain->count);
    }
  });
}

void genrec_rt_resolve(genrec_step *step, const genrec_domain *domain, const int64_t *ids,
                       const uint8_t *valid, const genrec_domain *catalogue_domain,
                       const int64_t *catalogue_ids, int32_t feature, int32_t allow_missing,
                       int64_t *rows) {
  StepSlot &slot = StepSlot::of(step);
  guarded(slot, [&] {
    if (slot.onDevice)
      return slot.onDevice->resolve(domain, ids, valid, catalogue_domain, catalogue_ids, feature,
                                    allow_missing != 0, rows);
    const CatalogueIndex &index =
        slot.state().catalogueIndex(catalogue_ids, catalogue_domain->count);
    FirstBad bad(domain->count);
    parallelFor(step->pool, domain->count, kCheckGrain, [&](int64_t begin, int64_t end, int64_t) {
      for (int64_t row = begin; row < end; ++row) {
        bool isValid = !valid || valid[row];
        rows[row] = isValid ? index.find(ids[row]) : -1;
        if (isValid && rows[row] < 0 && !allow_missing)
          bad.note(row);
      }
    });
    if (bad.any())
      throw idNotInCatalogue(slot, feature, slot.describeRow(domain, bad.row()), ids[bad.row()]);
  });
}

float genrec_rt_step_value(const genrec_step *step, int32_t kind, double argument) {
  if (kind == 0)
    return static_cast<float>(step->runtime->learningRate(argument, step->step));
  if (kind == 2)
    return static_cast<const StepSlot *>(step)->portion == 0 ? 1.0F : 0.0F;
  return static_cast<float>(1 - std::pow(argument, static_cast<double>(step->step)));
}

double genrec_rt_clip_norm(const genrec_step *step) { return step->runtime->clipNorm; }
double genrec_rt_clip_value(const genrec_step *step) { return step->runtime->clipValue; }

void genrec_rt_store_step_value(genrec_step *step, int32_t kind, double argument, float *to) {
  StepSlot &slot = StepSlot::of(step);
  guarded(slot, [&] { slot.onDevice->storeValue(kind, argument, to); });
}

void genrec_rt_enter(genrec_step *step, int32_t op) {
  StepSlot &slot = StepSlot::of(step);
  if (slot.onDevice)
    return guarded(slot, [&] { slot.onDevice->enter(op); });
  slot.spans.enter(op);
}

void genrec_rt_ran(genrec_step *step, int32_t op, int64_t begin, int64_t end) {
  StepSlot::of(step).spans.addOp(op, begin, end);
}

void *genrec_rt_thread_scratch(genrec_step *step, int64_t bytes) {
  StepSlot &slot = StepSlot::of(step);
  if (slot.onDevice)
    return slot.onDevice->scratch(bytes);
  if (!step->pool) // an early stage of the next batch, beside the pool
    return slot.ownScratch.ensure(bytes);
  return slot.state().workerScratch[genrec_rt_worker_index()].ensure(bytes);
}

void *genrec_rt_block_memory(genrec_step *step, int64_t bytes) {
  StepSlot &slot = StepSlot::of(step);
  return (step->pool ? slot.state().blockMemory : slot.ownBlocks).ensure(bytes);
}

} // extern "C"

//===- non_finite.cpp - Where a NaN or an infinity comes from -------------===//

#include "non_finite.h"

#include "ranks.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace genrec::rt {

//===----------------------------------------------------------------------===//
// The first op
//===----------------------------------------------------------------------===//

/// "parameter 'weight' held a NaN when the step began"; empty where all are finite.
std::string StepSlot::findNonFiniteParameter() const {
  if (onDevice)
    shared.onDevice->readParameters();
  for (size_t i = 0; i < shared.parameters.size(); ++i) {
    const genrec_parameter &parameter =
        onDevice ? shared.onDevice->readParameter(static_cast<int32_t>(i)) : shared.parameters[i];
    for (int64_t at = 0; at < parameter.size; ++at)
      if (!std::isfinite(parameter.value[at]))
        return std::string("parameter '") + shared.model.parameters[i].name + "' held " +
               (std::isnan(parameter.value[at]) ? "a NaN" : "an infinity") + " when the step began";
  }
  return {};
}

bool StepSlot::repeatRows(float **addresses, int64_t count) {
  int64_t at = reinterpret_cast<char *>(addresses) - plan->own.placedAt;
  int64_t bytes = count * static_cast<int64_t>(sizeof(float *));
  isPastKnown |= at < 0 || at + bytes > plan->own.layout.bytes;
  if (isPastKnown)
    return false;
  if (onDevice)
    shared.device()->copyWithin(addresses, underWay + at, bytes);
  else
    std::memcpy(addresses, underWay + at, static_cast<size_t>(bytes));
  return true;
}

void StepSlot::setFinding(bool on) {
  isFindingNonFinite = on;
  check_finite = on || shared.checkFinite;
  profile = !on && shared.profile;
  isPastKnown = false;
}

void StepSlot::findNonFinite() {
  nonFiniteOrigin = findNonFiniteParameter();
  if (!nonFiniteOrigin.empty())
    return;
  // The compute stage that is under way goes on afterwards: it gets back what it has.
  Arena otherOwn, otherShared;
  std::vector<GrowBuffer<char>> otherScratch(shared.workerScratch.size());
  GrowBuffer<char> otherBlocks;
  std::vector<genrec_domain> before = domainTable;
  auto moveTo = [&](Arena &own, Arena &computed) {
    place(plan->own, own, plan->addresses);
    place(plan->shared, computed, plan->addresses);
  };
  underWay = arena.ensure(plan->own.layout.bytes);
  otherOwn.ensure(plan->own.layout.bytes); // what throws does so before anything is moved
  otherShared.ensure(plan->shared.layout.bytes);
  moveTo(otherOwn, otherShared);
  auto exchange = [&] {
    shared.workerScratch.swap(otherScratch);
    std::swap(shared.blockMemory, otherBlocks);
    setFinding(!isFindingNonFinite);
  };
  exchange();
  // What all portions have in common is as it was in the step under way, and is not looked at.
  auto update = rankStep ? nullptr : plan->program->update;
  for (genrec_stage_fn stage :
       {plan->program->copy, plan->program->dispatch, plan->program->compute, update})
    if (stage)
      stage(this);
  exchange();
  failure.clear();
  std::copy(before.begin(), before.end(), domainTable.begin());
  moveTo(arena, computeMemory());
}

std::string StepSlot::describeNonFinite(int32_t op, float value, int64_t row,
                                        int64_t element) const {
  return describeOp(op) + " made " + (std::isnan(value) ? "a NaN" : "an infinity") + " in row " +
         std::to_string(row) + (shared.ranks ? " of portion " + std::to_string(portion) : "") +
         ", element " + std::to_string(element);
}

namespace {

/// A value of a column, or of a row, of floats; 0 of any other type.
double floatAt(int32_t type, const void *values, int64_t at) {
  switch (type) {
  case GENREC_F32:
    return static_cast<const float *>(values)[at];
  case GENREC_F64:
    return static_cast<const double *>(values)[at];
  case GENREC_BF16: { // the upper half of a float
    uint32_t bits = static_cast<uint32_t>(static_cast<const uint16_t *>(values)[at]) << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  default:
    return 0;
  }
}

} // namespace

std::string StepSlot::describeNonFiniteInput() const {
  const genrec_model_desc &model = shared.model;
  for (int32_t i = 0; plan && i < plan->program->feature_count; ++i) {
    int32_t number = plan->program->features[i];
    const genrec_feature_desc &feature = model.features[number];
    const genrec_domain &domain = domainTable[feature.domain];
    const genrec_column &column = columnTable[number];
    for (int64_t row = 0; column.values && row < domain.count; ++row) {
      double value = floatAt(feature.type, column.values, row);
      if (std::isfinite(value) || (column.valid && !column.valid[row]))
        continue;
      const char *shown = std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
      return std::string("column '") + feature.column + "' is " + shown + " in " +
             describeRow(&domain, row);
    }
  }
  return {};
}

/// The table of the model that a key of `table`, which may be merged, is an id of.
static const genrec_table_desc &memberOf(const genrec_model_desc &model,
                                         const genrec_table_desc &table, int64_t key) {
  for (int32_t other = 0; table.group && other < model.table_count; ++other)
    if (model.tables[other].group == table.group &&
        model.tables[other].key == key >> table.key_bits << table.key_bits)
      return model.tables[other];
  return table;
}

std::string describeNonFiniteRow(const genrec_model_desc &model, int32_t table, int64_t key) {
  const genrec_table_desc &desc = model.tables[table];
  const genrec_table_desc &member = memberOf(model, desc, key);
  return std::string("table '") + member.name + "' held a NaN or an infinity in the row of id " +
         std::to_string(key - (desc.group ? member.key : 0)) + " when the step began";
}

void noteNonFiniteRow(StepSlot &slot, int32_t table, const int64_t *keys, int64_t count,
                      float *const *rows, const float *zeros) {
  const genrec_model_desc &model = slot.state().model;
  const genrec_table_desc &desc = model.tables[table];
  const int32_t type = desc.element == GENREC_ROW_F32 ? GENREC_F32 : GENREC_BF16;
  for (int64_t i = 0; i < count && slot.nonFiniteOrigin.empty(); ++i) {
    if (!rows[i] || rows[i] == zeros)
      continue;
    for (int64_t at = 0; at < desc.dim && slot.nonFiniteOrigin.empty(); ++at)
      if (!std::isfinite(floatAt(type, rows[i], at)))
        slot.nonFiniteOrigin = describeNonFiniteRow(model, table, keys[i]);
  }
}

//===----------------------------------------------------------------------===//
// Several portions
//===----------------------------------------------------------------------===//

/// `mine` of the first rank where it is not empty, on every rank. Collective.
static std::string takeFirst(Communicator &comm, std::string mine) {
  std::vector<int64_t> sizes(comm.getSize());
  auto size = static_cast<int64_t>(mine.size());
  comm.allGather(&size, sizes.data(), sizeof size);
  auto first = std::find_if(sizes.begin(), sizes.end(), [](int64_t of) { return of > 0; });
  if (first == sizes.end())
    return {};
  mine.resize(*first);
  comm.broadcast(mine.data(), *first, static_cast<int32_t>(first - sizes.begin()));
  return mine;
}

NonFiniteCause agreeOnCause(Communicator &comm, std::span<StepSlot *const> portions) {
  NonFiniteCause cause;
  for (const StepSlot *slot : portions) {
    if (cause.origin.empty())
      cause.origin = slot->nonFiniteOrigin;
    if (cause.input.empty())
      cause.input = slot->describeNonFiniteInput();
  }
  return {takeFirst(comm, cause.origin), takeFirst(comm, cause.input)};
}

} // namespace genrec::rt

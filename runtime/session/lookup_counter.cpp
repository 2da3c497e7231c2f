//===- lookup_counter.cpp - Counts the ids that data look up --------------===//

#include "lookup_counter.h"

#include "genrec_rt/identity.h"

using namespace genrec::rt;

size_t LookupCounter::LookupHash::operator()(const Lookup &lookup) const {
  return splitMix64(splitMix64(static_cast<uint64_t>(lookup.id)) ^
                    static_cast<uint64_t>(lookup.row));
}

/// Whether the rows of a domain are of the data, and not of a catalogue or of the step.
static bool isOfData(const genrec_model_desc &model, const StepSlot &slot,
                     const genrec_domain *domain) {
  while (domain->parent_domain)
    domain = domain->parent_domain;
  ptrdiff_t index = slot.indexOf(domain);
  return index >= 0 && model.domains[index].kind == GENREC_DOMAIN_DATA;
}

void LookupCounter::add(const StepSlot &slot, int32_t table, const genrec_domain *domain,
                        const int64_t *ids, const uint8_t *valid) {
  if (!isOfData(model, slot, domain))
    return;
  LookupCounts::Table &to = counts.tables[table];
  for (int64_t i = 0; i < domain->count; ++i) {
    if (valid && !valid[i])
      continue;
    ++to.entries;
    if (seen[table].insert({ids[i], StepSlot::rootRow(domain, i)}).second)
      ++to.rows[ids[i]];
  }
}

void LookupCounter::endBatch(int64_t rows) {
  counts.rows += rows;
  for (auto &ofTable : seen)
    ofTable.clear();
}

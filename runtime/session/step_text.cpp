//===- step_text.cpp - What messages say of a step's rows and ops ---------===//

#include "../core/model_queries.h"
#include "device_step.h"
#include "step_slot.h"

namespace genrec::rt {

int64_t StepSlot::rootRow(const genrec_domain *domain, int64_t row) {
  while (domain->parent && domain->parent_domain) {
    row = domain->parent[row];
    domain = domain->parent_domain;
  }
  return row;
}

int32_t StepSlot::numberOf(const genrec_domain *domain) const {
  const ptrdiff_t number = domain - domains;
  if (number < 0 || number >= shared.model.domain_count)
    throw Error("program '" + std::string(plan->program->name) + "' names domain " +
                std::to_string(number) + " of its step, which has " +
                std::to_string(shared.model.domain_count));
  return static_cast<int32_t>(number);
}

ptrdiff_t StepSlot::indexOf(const genrec_domain *domain) const {
  ptrdiff_t index = domain - domainTable.data();
  if (index >= 0 && index < static_cast<ptrdiff_t>(domainTable.size()))
    return index;
  return onDevice ? onDevice->indexOf(domain) : -1;
}

std::string StepSlot::describeRow(const genrec_domain *domain, int64_t row) const {
  ptrdiff_t index = indexOf(domain);
  return describeRow(domain, row, index < 0 ? row : rootRow(&domainTable[index], row));
}

std::string StepSlot::describeRow(const genrec_domain *domain, int64_t row, int64_t above) const {
  ptrdiff_t index = indexOf(domain);
  bool known = index >= 0;
  std::string text = "row " + std::to_string(row);
  if (!known)
    return text;
  const genrec_model_desc &model = shared.model;
  text += std::string(" of '") + model.domains[index].name + "'";
  int32_t root = rootDomain(model, static_cast<int32_t>(index));
  if (model.domains[root].kind != GENREC_DOMAIN_DATA)
    return text;
  if (above >= batch->rows)
    return text;
  int64_t position = batch->positions[above];
  if (batch->locator)
    return text + " (" + batch->locator->describe(position) + ")";
  return text + " (row " + std::to_string(position) + " of the data)";
}

std::string StepSlot::describeBatch() const {
  std::string text = "step " + std::to_string(step);
  if (!batch->locator || batch->rows == 0)
    return text;
  return text + ", whose batch begins at " + batch->locator->describe(batch->positions[0]);
}

std::string StepSlot::describeOp(int32_t op) const {
  if (op < 0 || op >= shared.model.op_count)
    return "op " + std::to_string(op);
  const genrec_op_desc &desc = shared.model.ops[op];
  std::string text = std::string("op '") + (desc.name ? desc.name : "") + "'";
  // One place would be as likely wrong as right.
  if (desc.is_fused && desc.what)
    return text + ", fused (-O 0 keeps lines apart) from " + desc.what;
  if (desc.location.name && *desc.location.name)
    text += std::string(" ('") + desc.location.name + "')";
  std::string where = describe(desc.location);
  return where.empty() ? text : text + " (" + where + ")";
}

std::string StepSlot::describePlace(int32_t op) const {
  if (op < 0 || op >= shared.model.op_count)
    return {};
  std::string where = describe(shared.model.ops[op].location);
  return where.empty() ? where : " (" + where + ")";
}

} // namespace genrec::rt

//===- row_failures.cpp - What is wrong with a row, in words --------------===//

#include "row_failures.h"

#include "../core/text.h"

#include <cstring>
#include <limits>

namespace genrec::rt {

namespace {

/// Numbers as people write them: 2, 0.5, nan.
constexpr const char *kNumber = "%.9g";

template <class T> T read(const void *value) {
  T result;
  std::memcpy(&result, value, sizeof result);
  return result;
}

std::string writtenValue(int32_t type, const void *value) {
  switch (type) {
  case GENREC_I32:
    return std::to_string(read<int32_t>(value));
  case GENREC_I64:
    return std::to_string(read<int64_t>(value));
  case GENREC_F64:
    return formatted(kNumber, read<double>(value));
  default:
    return formatted(kNumber, static_cast<double>(read<float>(value)));
  }
}

const genrec_model_desc &modelOf(const StepSlot &slot) { return slot.state().model; }

bool isFeature(const StepSlot &slot, int32_t feature) {
  return feature >= 0 && feature < modelOf(slot).feature_count;
}

} // namespace

Error idBeyondTable(const StepSlot &slot, int32_t table, const std::string &where, int64_t id) {
  const genrec_table_desc &desc = modelOf(slot).tables[table];
  return Error(where + ": id " + std::to_string(id) + ", beyond the " +
                   std::to_string(desc.id_bits) + " bits of table '" + desc.name + "'",
               "hash it to the bits of its table, or declare the table with more id_bits");
}

Error idNotInCatalogue(const StepSlot &slot, int32_t feature, const std::string &where,
                       int64_t id) {
  std::string name =
      isFeature(slot, feature)
          ? std::string("feature '") + modelOf(slot).features[feature].column + "' has "
          : "";
  return Error(where + ": " + name + "id " + std::to_string(id) + ", which is not in the catalogue",
               "add the item to the catalogue's file, or drop its rows from the data");
}

Error valueBeyond(const StepSlot &slot, const RangeRule &rule, const std::string &where,
                  const void *value) {
  std::string column =
      isFeature(slot, rule.feature)
          ? std::string("column '") + modelOf(slot).features[rule.feature].column + "', "
          : "";
  bool isUnbounded = rule.high >= std::numeric_limits<float>::max();
  std::string limit =
      isUnbounded ? ", but must be a number of at least " + formatted(kNumber, rule.low)
      : rule.endsWithItems()
          ? ", but the catalogue has " + std::to_string(rule.items) + " rows"
          : ", beyond " + formatted(kNumber, rule.low) + " to " + formatted(kNumber, rule.high);
  return Error(where + ": " + column + rule.what + slot.describePlace(rule.op) + " is " +
                   writtenValue(rule.type, value) + limit,
               "mend or drop the row; one that is not to count is null in a nullable column, or "
               "has weight 0");
}

Error notFinite(const StepSlot &slot, const std::string &origin) {
  std::string input = slot.describeNonFiniteInput();
  return Error(origin + ", in " + slot.describeBatch() + (input.empty() ? "" : "; " + input),
               input.empty()
                   ? "look at the op's operands there; a smaller learning rate or gradient "
                     "clipping (clip_norm of the model) often helps"
                   : "mend or drop the row of the data");
}

Error failedOp(const StepSlot &slot, int32_t op, const char *message) {
  return Error(slot.describeOp(op) + ": " + message + ", in " + slot.describeBatch());
}

Error failedRow(const StepSlot &slot, int32_t op, const std::string &where, const char *message) {
  return Error(where + ": " + message + ", in " + slot.describeOp(op));
}

} // namespace genrec::rt

//===- step_report.cpp - What a step says of its losses -------------------===//

#include "genrec_rt/session.h"

#include "non_finite.h"
#include "step_slot.h"

namespace genrec::rt {

std::optional<double> totalLoss(const genrec_model_desc &model, std::span<const LossValue> losses) {
  std::optional<double> total;
  for (size_t i = 0; i < losses.size(); ++i)
    if (std::optional<double> mean = losses[i].mean())
      total = total.value_or(0) + model.losses[i].scale * *mean;
  return total;
}

const std::string &StepReport::nonFiniteOrigin() const {
  static const std::string none;
  return cause ? cause->origin : slot ? slot->nonFiniteOrigin : none;
}

std::string StepReport::describeNonFiniteInput() const {
  return cause ? cause->input : slot ? slot->describeNonFiniteInput() : std::string();
}

} // namespace genrec::rt

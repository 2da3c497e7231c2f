//===- RoundingBound.cpp - bounds on rounding errors ----------------------===//

#include "genrec/Fuzz/RoundingBound.h"

#include <cmath>

using namespace mlir;
using namespace genrec;
using namespace genrec::fuzz;
using interpreter::Batch;

/// Smaller differences may come from gradual underflow.
static constexpr double kSmallestDifference = 1e-37;

/// Raises `spreads`, one of those of `values`, of each value to its deviation in one more run.
static void widen(RoundedValues &values, Values &spreads, const Values &perturbed) {
  for (const auto &[name, list] : perturbed)
    if (!values.exact.count(name))
      values.byChance.insert(name);
  for (const auto &[name, list] : values.exact) {
    std::vector<double> &spread = spreads[name];
    spread.resize(list.size());
    auto other = perturbed.find(name);
    // A row that only some runs update, because its gradient is 0 but for rounding, has no bound.
    bool isComparable = other != perturbed.end() && other->second.size() == list.size();
    for (auto [index, width] : llvm::enumerate(spread))
      width =
          isComparable ? std::fmax(width, std::fabs(other->second[index] - list[index])) : INFINITY;
  }
}

/// Whether products round factors, or tables values.
static bool roundsToBf16(ModelOp model) {
  return model
      .walk([](Operation *op) {
        auto product = dyn_cast<ProductOpInterface>(op);
        auto table = dyn_cast<TableOp>(op);
        bool rounds = isa<RoundFactorOp>(op) || (product && product.getBf16()) ||
                      (table && table.getElement() == RowElement::bf16);
        return rounds ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

llvm::Expected<RoundedObservations> fuzz::observeRounding(ModelOp model, ArrayRef<Batch> batches,
                                                          uint64_t seed, uint64_t runs) {
  interpreter::State initial(model, seed);
  llvm::Expected<Observations> exact = observe(model, initial, batches);
  if (!exact)
    return exact.takeError();
  return observeRounding(model, initial, batches, std::move(*exact), runs, /*portionsInOne=*/1);
}

llvm::Expected<RoundedObservations> fuzz::observeRounding(ModelOp model,
                                                          const interpreter::State &initial,
                                                          ArrayRef<Batch> batches,
                                                          Observations exact, uint64_t runs,
                                                          int64_t portionsInOne) {
  RoundedObservations result;
  result.forward.exact = std::move(exact.forward);
  result.trained.exact = std::move(exact.trained);
  result.trained.sizes = std::move(exact.sizes);
  uint64_t coarseRuns = roundsToBf16(model) ? runs : 0;
  for (uint64_t run = 1; run <= runs + coarseRuns; ++run) {
    bool isCoarse = run > runs;
    ObserveOptions options;
    options.run.coarseFactors = isCoarse;
    options.run.portionsInOne = portionsInOne;
    if (!isCoarse)
      options.run.precision = interpreter::Precision::perturbed;
    options.run.perturbation = run;
    llvm::Expected<Observations> perturbed = observe(model, initial, batches, options);
    if (!perturbed)
      return perturbed.takeError();
    for (auto [values, seen] : {std::pair(&result.forward, &perturbed->forward),
                                std::pair(&result.trained, &perturbed->trained)})
      widen(*values, isCoarse ? values->coarse : values->spread, *seen);
  }
  return std::move(result);
}

static bool isGradient(StringRef name) { return name.contains(" gradient "); }

/// Whether an unexpected value is a table row that training should not have created.
static bool isWrongRow(const RoundedValues &expected, const std::string &name) {
  return StringRef(name).starts_with("table ") && !expected.exact.count(name) &&
         !expected.byChance.count(name);
}

namespace {
/// The bounds on the differences of a value's elements.
class Bounds {
public:
  Bounds(const RoundedValues &expected, const std::string &name, Allowance allowance)
      : spread(expected.spread.find(name)->second), size(expected.exact.find(name)->second),
        allowance(allowance) {
    if (auto sizes = expected.sizes.find(name); sizes != expected.sizes.end())
      size = sizes->second;
    if (auto spreads = expected.coarse.find(name); spreads != expected.coarse.end())
      coarse = spreads->second;
  }

  double operator[](size_t index) const {
    return allowance.spreads * spread[index] + allowance.units * std::fabs(size[index]) +
           (coarse.empty() ? 0.0 : kCoarseSpreads * coarse[index]) + kSmallestDifference;
  }

private:
  ArrayRef<double> spread, size, coarse;
  Allowance allowance;
};
} // namespace

static std::optional<Difference> compareLists(const RoundedValues &expected,
                                              const std::string &name, ArrayRef<double> wanted,
                                              ArrayRef<double> got, Allowance allowance,
                                              Margin *margin) {
  if (got.size() != wanted.size())
    return Difference{name,
                      llvm::formatv("has {0} values, expected {1}", got.size(), wanted.size())};
  Bounds bounds(expected, name, allowance);
  for (size_t i = 0; i < wanted.size(); ++i) {
    double a = wanted[i], b = got[i];
    if ((std::isnan(a) && std::isnan(b)) || a == b)
      continue;
    double allowed = bounds[i];
    double used = std::fabs(a - b) / allowed;
    if (margin && used > margin->used)
      *margin = {used, llvm::formatv("{0} [{1}]", name, i)};
    if (!(used <= 1.0))
      return Difference{
          name, llvm::formatv("[{0}] is {1:e12}, expected {2:e12} (allowed {3:e2}, spread {4:e2})",
                              i, b, a, allowed, expected.spread.find(name)->second[i])};
  }
  return std::nullopt;
}

std::optional<Difference> fuzz::compareRounded(const RoundedValues &expected, const Values &actual,
                                               Allowance allowance, Margin *margin) {
  for (const auto &[name, wanted] : expected.exact) {
    auto found = actual.find(name);
    if (found == actual.end() && isGradient(name))
      continue;
    if (found == actual.end())
      return Difference{name, "is missing"};
    if (auto difference = compareLists(expected, name, wanted, found->second, allowance, margin))
      return difference;
  }
  // Forward values contain no table rows.
  bool hasRows = llvm::any_of(expected.exact, [](const auto &entry) {
    return StringRef(entry.first).starts_with("table ");
  });
  for (const auto &[name, list] : actual)
    if (hasRows && isWrongRow(expected, name))
      return Difference{name, "should not be there"};
  return std::nullopt;
}

std::optional<Difference> fuzz::compareShown(const RoundedValues &expected, const Values &actual,
                                             Allowance allowance) {
  for (const auto &[name, got] : actual)
    if (auto wanted = expected.exact.find(name); wanted != expected.exact.end())
      if (auto difference =
              compareLists(expected, name, wanted->second, got, allowance, /*margin=*/nullptr))
        return difference;
  return std::nullopt;
}

void BoundWidths::add(const RoundedValues &expected, Allowance allowance) {
  for (const auto &[name, list] : expected.exact) {
    Bounds bounds(expected, name, allowance);
    for (auto [index, value] : llvm::enumerate(list)) {
      if (value == 0.0 || !std::isfinite(value))
        continue;
      ++values;
      wide += !(bounds[index] < std::fabs(value));
    }
  }
}

//===- Attributes.cpp - verifiers of encodings, initializers, optimizers --===//

#include "genrec/Dialect/GenRec/IR/VerifierRules.h"

#include "llvm/ADT/StringSwitch.h"

#include <cmath>

using namespace mlir;
using namespace genrec;

LogicalResult RowsAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                       function_ref<InFlightDiagnostic()> emitError) const {
  auto complain = [&](StringRef rule) -> LogicalResult {
    InFlightDiagnostic diagnostic = emitError() << "rows of " << getDomain() << " must " << rule
                                                << ", but the tensor is [";
    for (auto [index, size] : llvm::enumerate(shape)) {
      diagnostic << (index ? ", " : "");
      if (ShapedType::isDynamic(size))
        diagnostic << "?";
      else
        diagnostic << size;
    }
    return diagnostic << "] x " << rules::typeText(elementType);
  };
  if (shape.empty() || !ShapedType::isDynamic(shape.front()))
    return complain("have a dynamic first size, the number of rows");
  if (shape.size() > 2)
    return complain("be scalars or vectors: one size per row at most");
  if (shape.size() == 2 && (ShapedType::isDynamic(shape[1]) || shape[1] == 0))
    return complain("have a static size of at least 1 per row");
  bool known = elementType.isSignlessInteger(1) || elementType.isSignlessInteger(32) ||
               elementType.isSignlessInteger(64) || elementType.isF32() || elementType.isF64() ||
               elementType.isBF16() || isa<StringType, RowType>(elementType);
  if (!known)
    return complain("have elements of i1, i32, i64, f32, f64, bf16, !genrec.string or !genrec.row");
  if (shape.size() == 2 && isa<StringType, RowType>(elementType))
    return complain("have one string or table row each");
  return success();
}

LogicalResult InitAttr::verify(function_ref<InFlightDiagnostic()> emitError, InitKind kind,
                               FloatAttr scale) {
  double value = scale.getValueAsDouble();
  if (!std::isfinite(value) || (kind != InitKind::constant && value < 0.0))
    return emitError() << "initializer " << stringifyInitKind(kind) << " must have a finite scale"
                       << (kind == InitKind::constant ? "" : " of at least 0") << ", but has "
                       << scale;
  return success();
}

namespace {
/// An option of an optimizer: which kinds have it, and the range of its values.
struct OptimizerOption {
  StringRef name;
  StringRef range;
  bool (*holds)(double);
  bool sgd, adagrad, adam;
};
} // namespace

static bool isNotNegative(double value) { return value >= 0.0; }
static bool isPositive(double value) { return value > 0.0; }
static bool isRate(double value) { return value >= 0.0 && value < 1.0; }
static bool isFlag(double value) { return value == 0.0 || value == 1.0; }

static const OptimizerOption kOptimizerOptions[] = {
    {"lr", "at least 0", isNotNegative, true, true, true},
    {"momentum", "in [0, 1)", isRate, true, false, false},
    {"weight_decay", "at least 0", isNotNegative, true, true, true},
    {"eps", "greater than 0", isPositive, false, true, true},
    {"initial_accumulator", "at least 0", isNotNegative, false, true, false},
    {"beta1", "in [0, 1)", isRate, false, false, true},
    {"beta2", "in [0, 1)", isRate, false, false, true},
    {"per_row_step", "0 or 1", isFlag, false, false, true},
    {"frozen", "0 or 1", isFlag, true, true, true},
};

static bool hasOption(const OptimizerOption &option, OptimizerKind kind) {
  switch (kind) {
  case OptimizerKind::sgd:
    return option.sgd;
  case OptimizerKind::adagrad:
  case OptimizerKind::rowwise_adagrad:
    return option.adagrad;
  case OptimizerKind::adam:
  case OptimizerKind::adamw:
    return option.adam;
  }
  llvm_unreachable("every optimizer kind is handled");
}

LogicalResult OptimizerAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                    OptimizerKind kind, DictionaryAttr options) {
  StringRef kindName = stringifyOptimizerKind(kind);
  for (NamedAttribute entry : options) {
    const OptimizerOption *option =
        llvm::find_if(kOptimizerOptions, [&](const OptimizerOption &candidate) {
          return candidate.name == entry.getName() && hasOption(candidate, kind);
        });
    if (option == std::end(kOptimizerOptions)) {
      InFlightDiagnostic diagnostic = emitError() << "optimizer " << kindName << " has no option '"
                                                  << entry.getName().getValue() << "'; it has";
      StringRef separator = " ";
      for (const OptimizerOption &candidate : kOptimizerOptions)
        if (hasOption(candidate, kind)) {
          diagnostic << separator << candidate.name;
          separator = ", ";
        }
      return diagnostic;
    }
    auto value = dyn_cast<FloatAttr>(entry.getValue());
    if (!value || !value.getType().isF64() || !std::isfinite(value.getValueAsDouble()) ||
        !option->holds(value.getValueAsDouble()))
      return emitError() << "option '" << option->name << "' of optimizer " << kindName
                         << " must be an f64, " << option->range << ", but is " << entry.getValue();
  }
  return success();
}

double OptimizerAttr::getOption(StringRef name, bool onTable) const {
  if (auto value = getOptions().getAs<FloatAttr>(name))
    return value.getValueAsDouble();
  OptimizerKind kind = getKind();
  if (name == "lr")
    return 1e-3;
  if (name == "beta1")
    return 0.9;
  if (name == "beta2")
    return 0.999;
  if (name == "eps")
    return kind == OptimizerKind::adagrad || kind == OptimizerKind::rowwise_adagrad ? 1e-10 : 1e-8;
  // Rows that are not in the batch do not decay, so for tables the default is no weight decay.
  if (name == "weight_decay")
    return kind == OptimizerKind::adamw && !onTable ? 1e-2 : 0.0;
  return 0.0;
}

int64_t OptimizerAttr::getStateCount() const {
  if (getOption("frozen") != 0.0) // frozen values need no states
    return 0;
  switch (getKind()) {
  case OptimizerKind::sgd:
    return getOption("momentum") != 0.0 ? 1 : 0;
  case OptimizerKind::adagrad:
  case OptimizerKind::rowwise_adagrad:
    return 1;
  case OptimizerKind::adam:
  case OptimizerKind::adamw:
    // Per-row step counts are one more state of the row.
    return getOption("per_row_step") != 0.0 ? 3 : 2;
  }
  llvm_unreachable("every optimizer kind is handled");
}

bool OptimizerAttr::hasRowStates() const { return getKind() == OptimizerKind::rowwise_adagrad; }

//===- GradientCheck.cpp - gradients against central differences ----------===//

#include "genrec/Interpreter/GradientCheck.h"

#include <cmath>

using namespace mlir;
using namespace genrec;
using namespace genrec::interpreter;

namespace {

/// Compares the derivatives of one program at one state.
class Checker {
public:
  Checker(ProgramOp program, const Batch &batch, const State &state,
          const GradientCheckOptions &options)
      : program(program), batch(batch), state(state), options(options) {}

  llvm::Expected<GradientCheck> run();

private:
  llvm::Error checkValues(StringRef name, int64_t row, int64_t width,
                          llvm::MutableArrayRef<double> values, ArrayRef<double> gradients,
                          double largest);
  llvm::Error holdDetached();
  llvm::Expected<double> lossAt(double &place, double value);
  llvm::Expected<double> difference(double &place, double step);

  ProgramOp program;
  const Batch &batch;
  State state; ///< holds the rows that the batch touches
  llvm::DenseMap<Value, Tensor> held; ///< results of `detach`
  const GradientCheckOptions &options;
  GradientCheck result;
};

double largestOf(ArrayRef<double> values) {
  double largest = 0;
  for (double value : values)
    largest = std::max(largest, std::abs(value));
  return largest;
}

} // namespace

/// Records the results of `detach` ops at the point where derivatives are taken, and holds them
/// constant.
llvm::Error Checker::holdDetached() {
  if (!options.original)
    return llvm::Error::success();
  RunOptions forward;
  forward.forwardOnly = true;
  forward.keepValues = true;
  llvm::Expected<Results> results = runProgram(options.original, batch, state, Mode::train, forward);
  if (!results)
    return results.takeError();
  ProgramOp original = options.original;
  original.walk([&](DetachOp op) {
    if (auto value = results->values.find(op.getResult()); value != results->values.end())
      held.try_emplace(op.getResult(), std::move(value->second));
  });
  return llvm::Error::success();
}

llvm::Expected<double> Checker::lossAt(double &place, double value) {
  double before = place;
  place = value;
  RunOptions forward;
  forward.forwardOnly = true;
  forward.held = &held;
  ProgramOp differenced = options.original ? options.original : program;
  llvm::Expected<Results> results = runProgram(differenced, batch, state, Mode::train, forward);
  place = before;
  if (!results)
    return results.takeError();
  return results->loss().value_or(0.0);
}

/// Central difference of fourth order:
/// (8 (f(x + h) - f(x - h)) - (f(x + 2h) - f(x - 2h))) / 12h.
llvm::Expected<double> Checker::difference(double &place, double step) {
  double h = step * std::max(1.0, std::abs(place)), x = place, sum = 0;
  for (auto [offset, weight] : {std::pair(1.0, 8.0), {-1.0, -8.0}, {2.0, -1.0}, {-2.0, 1.0}}) {
    llvm::Expected<double> loss = lossAt(place, x + offset * h);
    if (!loss)
      return loss.takeError();
    sum += weight * *loss;
  }
  return sum / (12.0 * h);
}

llvm::Error Checker::checkValues(StringRef name, int64_t row, int64_t width,
                                 llvm::MutableArrayRef<double> values, ArrayRef<double> gradients,
                                 double largest) {
  for (size_t i = 0; i < values.size(); ++i) {
    double gradient = gradients.empty() ? 0.0 : gradients[i], relative = 0, last = 0;
    for (double factor : {1.0, 10.0, 0.1, 0.01}) {
      llvm::Expected<double> found = difference(values[i], factor * options.step);
      if (!found)
        return found.takeError();
      last = *found;
      // A loss near 1 has rounding errors of 1e-16, its differences errors of 1e-16 / h.
      double scale = std::max({std::abs(gradient), std::abs(last), 1e-3 * largest, 1e-6});
      relative = std::abs(gradient - last) / scale;
      if (relative <= options.tolerance)
        break;
    }
    ++result.summaries.back().checked;
    result.summaries.back().nonzero += last != 0.0;
    if (relative <= options.tolerance) {
      result.worst = std::max(result.worst, relative);
      continue;
    }
    int64_t offset = static_cast<int64_t>(i);
    result.mismatches.push_back({name.str(), row + offset / width, offset % width, gradient, last});
  }
  return llvm::Error::success();
}

llvm::Expected<GradientCheck> Checker::run() {
  State trained = state;
  llvm::Expected<Results> results = runProgram(program, batch, trained, Mode::train);
  if (!results)
    return results.takeError();
  if (llvm::Error error = holdDetached())
    return error;
  // Frozen parameters and tables have no gradient.
  auto isFrozen = [&](auto declaration) {
    return declaration.getOptimizer().getOption("frozen") != 0.0;
  };
  for (auto &[name, parameter] : state.parameters) {
    if (isFrozen(lookupParameter(program, FlatSymbolRefAttr::get(program.getContext(), name))))
      continue;
    result.summaries.push_back({name, 0, 0});
    auto gradient = results->parameterGradients.find(name);
    ArrayRef<double> gradients;
    if (gradient != results->parameterGradients.end())
      gradients = gradient->second;
    if (llvm::Error error = checkValues(name, 0, parameter.width, parameter.value(), gradients,
                                        largestOf(gradients)))
      return error;
  }
  for (auto &[name, table] : state.tables) {
    if (isFrozen(lookupTable(program, FlatSymbolRefAttr::get(program.getContext(), name))))
      continue;
    result.summaries.push_back({name, 0, 0});
    const auto &gradients = results->tableGradients[name];
    double largest = 0;
    for (const auto &[id, gradient] : gradients)
      largest = std::max(largest, largestOf(gradient));
    for (const auto &[id, row] : trained.tables.find(name)->second.rows)
      state.insertRow(table, id);
    for (auto &[id, row] : table.rows) {
      auto gradient = gradients.find(id);
      ArrayRef<double> values;
      if (gradient != gradients.end())
        values = gradient->second;
      if (llvm::Error error =
              checkValues(name, id, table.dim, llvm::MutableArrayRef(row).take_front(table.dim),
                          values, largest))
        return error;
    }
  }
  return std::move(result);
}

llvm::Expected<GradientCheck> interpreter::checkGradients(ProgramOp program, const Batch &batch,
                                                          const State &state,
                                                          const GradientCheckOptions &options) {
  if (program.getMode() != ProgramMode::train)
    return llvm::make_error<EvaluationError>(
        program.getLoc(), "gradients are checked on a differentiated program of mode train");
  ModelOp model = getModel(program);
  if (!model.getClipNorm().isZero() || !model.getClipValue().isZero())
    return llvm::make_error<EvaluationError>(
        model.getLoc(), "gradients that are clipped differ from derivatives of the loss: check "
                        "them with 'clip_norm' and 'clip_value' 0");
  return Checker(program, batch, state, options).run();
}

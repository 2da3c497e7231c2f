//===- Evaluator.h - one run of one program ---------------------*- C++ -*-===//
//
// Holds the values of a run and hands each op to the function that evaluates
// ops of its kind. lib/Interpreter holds those functions, by theme; a plugin
// brings those of its ops with an EvaluationDialectInterface.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_INTERPRETER_EVALUATOR_H
#define GENREC_INTERPRETER_EVALUATOR_H

#include "genrec/Interpreter/Metrics.h"

#include "genrec/Interpreter/Interpreter.h"

#include "mlir/IR/Dialect.h"
#include "mlir/IR/DialectInterface.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

#include <map>
#include <memory>

namespace genrec::interpreter {

class Evaluator;

/// Some consecutive rows.
struct RowRange {
  int64_t first = 0, count = 0;
};

/// Finds rows for a portion of a batch, whose rank has only some rows of each table, and updates
/// only some of each parameter.
class RowSource {
public:
  virtual ~RowSource() = default;
  virtual llvm::Expected<RowHandle> findRow(Evaluator &evaluator, mlir::Operation *op,
                                            llvm::StringRef table, int64_t id) = 0;
  /// Those of a parameter's `rows` that the rank of `evaluator` updates.
  virtual RowRange getOwnRows(const Evaluator &evaluator, int64_t rows) const = 0;
};

class Evaluator {
public:
  /// With `rows`, table rows are found by it instead of in `state`.
  Evaluator(ProgramOp program, const Batch &batch, State &state, Mode mode,
            const RunOptions &options, RowSource *rows = nullptr);

  /// Evaluates what the mode asks for, and counts a step of training.
  llvm::Expected<Results> run();

  //===-- a run op by op -----------------------------------------------------===//

  /// Finds out which ops are needed, and builds the domains of the data.
  llvm::Error begin();
  bool isNeeded(mlir::Operation &op) const { return needed.contains(&op); }
  /// Drops values that no later op reads.
  void release(mlir::Operation &op);
  Results finish();

  //===-- values ---------------------------------------------------------===//

  /// The value of an operand. The reference stays valid until the value's last use.
  const Tensor &get(mlir::Value value) const;
  /// Sets a result, after rounding it or wrapping it to its element type.
  void set(mlir::Value value, Tensor tensor);
  /// The partial result of a row kernel's accumulator.
  Tensor &accumulator(mlir::Value value) { return *values.find(value)->second; }
  void erase(mlir::Value value) { values.erase(value); }
  /// Evaluates one op, of the program or of a row kernel's body.
  llvm::Error evaluate(mlir::Operation *op);

  //===-- domains ----------------------------------------------------------===//

  /// The rows of a domain of the program. Those of `data` and `catalogue` domains are built from
  /// the batch on first use.
  llvm::Expected<const DomainRows *> domain(mlir::Operation *user, mlir::FlatSymbolRefAttr name);
  /// The rows of a domain value, which exist once its op was evaluated.
  const DomainRows &rowsOf(mlir::Value domain) const;
  /// The rows of the domain in a tensor type; the type must not be shared.
  const DomainRows &rowsOf(mlir::Type type) const;
  void setRows(mlir::Value domain, DomainRows rows);

  //===-- what ops ask for ---------------------------------------------------===//

  bool isTraining() const { return mode == Mode::train; }
  /// The random word of an element in `stream` and this step.
  uint32_t word(int64_t stream, uint64_t row, uint64_t element) const;
  /// The uniform number in [0, 1) of an element: the 24 high bits of its word.
  double uniform(int64_t stream, uint64_t row, uint64_t element) const;
  /// The 16 random bits of an element.
  uint16_t half(int64_t stream, uint64_t row, uint64_t element) const;
  /// Whether dropout keeps an element.
  bool keeps(double rate, int64_t stream, uint64_t row, uint64_t element) const;

  ParameterState &parameter(llvm::StringRef name);
  /// The parameter's value before this step.
  llvm::ArrayRef<double> parameterBefore(llvm::StringRef name);
  /// The rows of a parameter that this rank updates.
  RowRange getOwnRows(ParameterRowsOp op);
  /// To be called before a parameter is written.
  void saveParameter(llvm::StringRef name);
  TableState &table(llvm::StringRef name);
  /// The row of `id`. In training an admitted id without a row gets one; otherwise the result is a
  /// temporary row with the initial value. Fails where the id is out of the table's range.
  llvm::Expected<RowHandle> findRow(mlir::Operation *op, TableState &table, int64_t id);
  /// The same in a table of `of`, the state of any rank.
  llvm::Expected<RowHandle> findRowIn(mlir::Operation *op, State &of, TableState &table,
                                      int64_t id);
  /// The same for a table by name. For a merged table `id` is a key; key -1 is the row of zeros.
  llvm::Expected<RowHandle> findRow(mlir::Operation *op, llvm::StringRef table, int64_t id);
  /// The logical table and the id in it for `id` of table `name`; null for key -1 of a merged
  /// table.
  llvm::Expected<std::pair<TableState *, int64_t>> findLogical(mlir::Operation *op,
                                                               llvm::StringRef name, int64_t id);

  const Batch &batch;
  State &state;
  const Mode mode;
  /// `value` with a random rounding error, with precision `perturbed`. For sums inside of an op
  /// that are subtracted from a nearly equal number: the difference consists of rounding errors
  /// only. And for each addition of a sum over rows: where rows have equal values, additions round
  /// in one direction, and errors grow with the number of rows.
  double perturbed(double value) const;
  /// `sum` with the random errors of its terms, whose squares add up to `squares`, with precision
  /// `perturbed`. For products: where both the terms of a sum and the sums of several rows nearly
  /// cancel, the rounding of each row's sum is all that is left.
  double perturbedSum(double sum, double squares) const;
  /// `value` as a factor of a product with `bf16`: rounded to bfloat16, to nearest, ties to even; 0
  /// if it is below the smallest normal number (machines flush it); an infinity if it is too large.
  double toBf16(double value) const;
  /// `value` as a row of bf16 stores it: rounded to nearest, or stochastically by 16 bits.
  double storedBf16(double value) const;
  /// Reads the `count` values of a row as lookups do: of a hot row rounded towards 0 to bfloat16.
  void readValue(const RowHandle &row, int64_t count, double *to) const;
  double storedBf16(double value, uint16_t bits) const;
  /// `value`, changed by a random fraction of at most `most`.
  double coarse(double value, double most) const;
  /// The label without its perturbation, for rules that compare labels exactly.
  double label(double value) const;

  const RunOptions options;
  const uint64_t step; ///< the step number that random streams and `step_value` see
  Results results;
  MetricAccumulator metrics;
  /// The rows of the row kernel whose body is being evaluated.
  const DomainRows *kernelRows = nullptr;
  /// Whether that row kernel stores into rows of tables or parameters.
  bool updatesRows = false;
  /// By the domain value of unique_rows: per operand and row, the number of its distinct row, -1
  /// for none.
  llvm::DenseMap<mlir::Value, std::vector<std::vector<int64_t>>> segments;

private:
  bool isWanted(mlir::Operation &op);
  void perturb(mlir::Operation *op, std::vector<double> &values) const;
  static void makeFaulty(mlir::Type element, Tensor &tensor);
  void markNeeded();
  void keepReached();
  llvm::Expected<DomainRows> buildDataRows(mlir::Operation *user, DomainOp declaration);
  void keepUnpadded(DomainOp declaration, const BatchRows &rows, std::vector<uint8_t> &kept);

  ProgramOp program;
  RowSource *rowSource;
  llvm::DenseMap<mlir::Value, std::unique_ptr<Tensor>> values;
  llvm::DenseMap<mlir::Value, int64_t> pendingUses;
  llvm::DenseSet<mlir::Operation *> needed;
  llvm::DenseMap<mlir::Attribute, std::unique_ptr<DomainRows>> domains;
  std::map<std::string, std::vector<double>, std::less<>> parametersBefore;
  std::map<std::pair<const TableState *, int64_t>, std::vector<double>> temporaryRows;
};

//===-- functions that evaluate ops -------------------------------------------===//

using Handler = llvm::Error (*)(Evaluator &, mlir::Operation *);

/// Handlers by op.
class HandlerMap {
public:
  /// `evaluate` is a function of (Evaluator &, OpT).
  template <class OpT, auto evaluate> void add() {
    handlers[mlir::TypeID::get<OpT>()] = [](Evaluator &evaluator, mlir::Operation *op) {
      return evaluate(evaluator, mlir::cast<OpT>(op));
    };
  }
  template <class OpT> void addGeneric(Handler handler) {
    handlers[mlir::TypeID::get<OpT>()] = handler;
  }
  /// Null for an op that the interpreter cannot evaluate.
  Handler lookup(mlir::OperationName name) const { return handlers.lookup(name.getTypeID()); }

private:
  llvm::DenseMap<mlir::TypeID, Handler> handlers;
};

/// How the interpreter evaluates the ops of a dialect other than genrec and its body ops'. The
/// constructor of the dialect's class fills `handlers`.
class EvaluationDialectInterface : public mlir::DialectInterface::Base<EvaluationDialectInterface> {
public:
  explicit EvaluationDialectInterface(mlir::Dialect *dialect) : Base(dialect) {}
  /// Null for an op that it does not evaluate.
  Handler lookup(mlir::OperationName name) const { return handlers.lookup(name); }

protected:
  HandlerMap handlers;
};

void addDomainOps(HandlerMap &map);
void addElementwiseOps(HandlerMap &map);
void addListOps(HandlerMap &map);
void addRowOps(HandlerMap &map);
void addRankingOps(HandlerMap &map);
void addAttentionOps(HandlerMap &map);
void addLossOps(HandlerMap &map);
void addCatalogueOps(HandlerMap &map);
void addUpdateOps(HandlerMap &map);
void addDistinctOps(HandlerMap &map);
void addPickOps(HandlerMap &map);
void addRankOps(HandlerMap &map);
void addGroupOps(HandlerMap &map);
void addKernelOps(HandlerMap &map);
void addArithOps(HandlerMap &map);
const HandlerMap &getHandlers();

/// An EvaluationError at `op`.
llvm::Error fail(mlir::Operation *op, const llvm::Twine &message);

//===-- idioms ------------------------------------------------------------------===//

/// An empty tensor of the shape and element type of `type`, with `rows` rows
/// unless it is shared.
Tensor makeTensor(mlir::Type type, int64_t rows);

/// The common shape of operands that are broadcast against each other.
struct BroadcastShape {
  int64_t rows = 1;
  int64_t width = 1;
  bool shared = true;

  explicit BroadcastShape(std::initializer_list<const Tensor *> operands) {
    for (const Tensor *operand : operands) {
      width = std::max(width, operand->width);
      if (!operand->shared) {
        shared = false;
        rows = operand->rows;
      }
    }
  }
};

/// Applies `function` to each element.
template <class To, class From, class Function>
Tensor mapElements(const Tensor &x, Function function) {
  Tensor result = Tensor::make<To>(x.rows, x.width, x.shared);
  const std::vector<From> &from = x.as<From>();
  std::vector<To> &to = result.as<To>();
  for (size_t i = 0; i < from.size(); ++i)
    to[i] = function(from[i]);
  return result;
}

/// Applies `function` to each pair of elements.
template <class To, class From, class Function>
Tensor zipElements(const Tensor &x, const Tensor &y, Function function) {
  BroadcastShape shape({&x, &y});
  Tensor result = Tensor::make<To>(shape.rows, shape.width, shape.shared);
  const std::vector<From> &left = x.as<From>(), &right = y.as<From>();
  std::vector<To> &to = result.as<To>();
  size_t next = 0;
  for (int64_t row = 0; row < shape.rows; ++row)
    for (int64_t column = 0; column < shape.width; ++column)
      to[next++] = function(left[x.at(row, column)], right[y.at(row, column)]);
  return result;
}

/// Calls `body(row, column)` for every element of `tensor`.
template <class Body> void forEachElement(const Tensor &tensor, Body body) {
  for (int64_t row = 0; row < tensor.rows; ++row)
    for (int64_t column = 0; column < tensor.width; ++column)
      body(row, column);
}

/// Copies row `from` of `x` to row `to` of `result`, for any element type.
void copyRow(const Tensor &x, int64_t from, Tensor &result, int64_t to);

/// Copies elements [from, from + count) of each row of x to [to, to + count) of `result`.
void copyColumns(const Tensor &x, int64_t from, Tensor &result, int64_t to, int64_t count);

/// Pools the rows of `x` into the rows of an ancestor domain; an empty list gives 0.
Tensor poolRows(const Evaluator &e, PoolKind kind, const Tensor &x, const DomainRows &from,
                const DomainRows &to, mlir::Type resultType);

/// `x`, where a shared tensor is broadcast to `rows` rows.
Tensor repeatRows(const Tensor &x, int64_t rows);

/// The number of edges that are <= x; 0 for NaN.
int64_t bucketOf(double x, llvm::ArrayRef<double> edges);

double sigmoid(double x);
double silu(double x);
double siluSlope(double x);
double softplus(double x);
/// log Σ exp of `values`.
double logSumExp(llvm::ArrayRef<double> values);
double gelu(double x);

/// The remainder in [0, divisor).
int64_t euclideanRemainder(int64_t x, int64_t divisor);

/// (x - mean) / sqrt(variance + eps) of each row.
Tensor normalizeRows(const Tensor &x, double eps);

/// Broadcasts rows down the domain tree: per row of `rows`, the row of x of its ancestor. `from`:
/// the rows of x.
Tensor fanOut(const Tensor &x, const DomainRows &rows, const DomainRows &from);

/// An operand of a product, its elements rounded where the product has `bf16`.
class Factor {
public:
  Factor(const Evaluator &e, ProductOpInterface product, const Tensor &x);
  operator const Tensor &() const { return rounded ? *rounded : whole; }
  const Tensor *operator->() const { return &static_cast<const Tensor &>(*this); }

private:
  const Tensor &whole;
  std::optional<Tensor> rounded;
};

/// x · weight, or x · weightᵀ where `transposed`; weight is shared and has shape [k, n] ([n, k]).
Tensor multiply(const Evaluator &e, const Tensor &x, const Tensor &weight, int64_t columns,
                bool transposed);

/// The step domain of the rows that have `handles`: one list.
DomainRows stepRows(const Tensor::Handles &handles);

/// Applies one optimizer step to `gradient.size()` weights. `step` is 1-based.
void applyOptimizer(OptimizerAttr optimizer, bool onTable, double scheduleFactor, uint64_t step,
                    RowHandle row, llvm::ArrayRef<double> gradient);

} // namespace genrec::interpreter

#endif // GENREC_INTERPRETER_EVALUATOR_H

//===- ModelBuilder.h - builds random models --------------------*- C++ -*-===//

#ifndef GENREC_FUZZ_MODELBUILDER_H
#define GENREC_FUZZ_MODELBUILDER_H

#include "genrec/Dialect/GenRec/IR/Optimizers.h"
#include "genrec/Fuzz/RandomModel.h"
#include "genrec/Interpreter/Interpreter.h"

#include "mlir/IR/Dialect.h"
#include "mlir/IR/DialectInterface.h"

#include <iterator>
#include <optional>
#include <random>

namespace genrec::fuzz {

/// A domain of the model under construction and its value in the program.
struct DomainEntry {
  mlir::FlatSymbolRefAttr name;
  mlir::FlatSymbolRefAttr parent; ///< null for a root
  DomainKind kind = DomainKind::data;
  mlir::Value value;
  /// The sources of a derived domain. truncate_domain and pad_domain have one.
  llvm::SmallVector<mlir::FlatSymbolRefAttr> sources;
  bool isPairs = false; ///< a domain of pairs of the two sources' rows
};

/// The model under construction, its values so far, and helpers for ops of every theme. One per
/// model.
class ModelBuilder {
public:
  ModelBuilder(mlir::MLIRContext *context, uint64_t seed, const RandomModelOptions &options);

  //===-- chance -----------------------------------------------------------===//
  /// A random integer in [low, high].
  int64_t integer(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return integer(1, 100) <= percent; }
  double real(double low, double high) {
    return low + (high - low) * static_cast<double>(random() >> 11) * 0x1.0p-53;
  }
  template <typename Range> auto &pick(Range &&range) {
    return range[static_cast<size_t>(integer(0, static_cast<int64_t>(std::size(range)) - 1))];
  }
  int64_t rowSize() { return integer(1, options.longestRow); }

  //===-- attributes and types ---------------------------------------------===//
  mlir::NamedAttribute named(llvm::StringRef name, mlir::Attribute value) {
    return builder.getNamedAttr(name, value);
  }
  mlir::NamedAttribute i64(llvm::StringRef name, int64_t value) {
    return named(name, builder.getI64IntegerAttr(value));
  }
  mlir::NamedAttribute f64(llvm::StringRef name, double value) {
    return named(name, builder.getF64FloatAttr(value));
  }
  mlir::NamedAttribute unit(llvm::StringRef name) { return named(name, builder.getUnitAttr()); }
  mlir::NamedAttribute text(llvm::StringRef name, llvm::StringRef value) {
    return named(name, builder.getStringAttr(value));
  }
  /// A new number for `stream`.
  mlir::NamedAttribute stream() { return i64("stream", 256 * nextStream++); }
  mlir::RankedTensorType rows(mlir::FlatSymbolRefAttr domain, llvm::ArrayRef<int64_t> shape,
                              mlir::Type element) {
    return getRowsType(domain, shape, element);
  }
  mlir::Type f32() { return builder.getF32Type(); }
  mlir::Type integerType() { return builder.getI64Type(); }
  mlir::Type boolean() { return builder.getI1Type(); }

  //===-- declarations -----------------------------------------------------===//
  mlir::FlatSymbolRefAttr declareDomain(llvm::StringRef name, mlir::FlatSymbolRefAttr parent,
                                        DomainKind kind, llvm::StringRef column);
  /// `distinctRows`: no two rows have equal initial values, so that rankings by them have no ties.
  mlir::FlatSymbolRefAttr declareTable(int64_t dim, int64_t idBits, bool distinctRows = false);
  /// The value of a new parameter with a random initializer and optimizer.
  mlir::Value parameter(llvm::ArrayRef<int64_t> shape);
  mlir::Attribute randomOptimizer(bool onTable);
  std::optional<double> randomOption(const OptimizerOption &option, bool onTable);
  void addRowRules(llvm::SmallVectorImpl<mlir::NamedAttribute> &attributes, bool isFrozen);
  void addRowElement(llvm::SmallVectorImpl<mlir::NamedAttribute> &attributes, bool isFrozen);

  //===-- ops --------------------------------------------------------------===//
  /// Creates `genrec.<name>`, or an op of another dialect, named with it: "own.op". `segments` are
  /// the sizes of its operand groups, for ops with optional or variadic operands.
  mlir::Operation *make(llvm::StringRef name, mlir::TypeRange results, mlir::ValueRange operands,
                        llvm::ArrayRef<mlir::NamedAttribute> attributes = {},
                        llvm::ArrayRef<int32_t> segments = {});
  mlir::Value value(llvm::StringRef name, mlir::Type result, mlir::ValueRange operands,
                    llvm::ArrayRef<mlir::NamedAttribute> attributes = {},
                    llvm::ArrayRef<int32_t> segments = {}) {
    return make(name, result, operands, attributes, segments)->getResult(0);
  }
  mlir::Value feature(const DomainEntry &domain, llvm::StringRef column, mlir::Type element,
                      llvm::ArrayRef<mlir::NamedAttribute> attributes = {});
  /// The column `name` of a data domain, below that of its lists.
  std::string columnOf(mlir::FlatSymbolRefAttr domain, llvm::StringRef name);
  mlir::Value pool(mlir::Value x, PoolKind kind, const DomainEntry &to);
  /// The columns of all parts, rows of `domain`.
  mlir::Value concat(llvm::ArrayRef<mlir::Value> parts, mlir::FlatSymbolRefAttr domain);
  /// x with row shape [size] (or [] for size 0), by a linear or a row_reduce.
  mlir::Value resize(mlir::Value x, int64_t size);
  /// tanh of x: keeps the range of values where float and double can be compared.
  mlir::Value bounded(mlir::Value x) { return value("tanh", x.getType(), x); }

  //===-- values made so far -----------------------------------------------===//
  /// Adds x, scaled to a size near 1, to the operands of later ops: added to a value near 10^6, a
  /// value near 1 would be lost to rounding. Returns false and adds nothing if all rows are equal,
  /// as faults in the ops before x would then be invisible. With `mayBeEqual` equal rows are
  /// allowed: a user may want constant rows in a table.
  bool offer(mlir::Value x, bool mayBeEqual = false);
  /// A random value of that element type, of `domain` (null: any) and row rank 0, 1, or any (-1);
  /// null if there is none.
  mlir::Value find(mlir::Type element, mlir::FlatSymbolRefAttr domain, int rank);
  DomainEntry &entry(mlir::FlatSymbolRefAttr name);
  /// A random domain for which `accept` is true; null if there is none.
  DomainEntry *findDomain(llvm::function_ref<bool(const DomainEntry &)> accept);

  std::mt19937_64 random;
  /// Draws optimizers and rules for rows, so that the rest of a seed's model does not depend on
  /// them.
  std::mt19937_64 declarationRandom;
  llvm::SmallVector<mlir::NamedAttribute> lastRules; ///< the rules that `addRowRules` drew last
  mlir::OpBuilder builder;                           ///< at the end of the program
  mlir::OwningOpRef<mlir::ModuleOp> module;
  ModelOp model;
  ProgramOp program;
  llvm::SmallVector<DomainEntry> domains;
  llvm::SmallVector<mlir::Value> values;
  llvm::SmallVector<mlir::Value> losses; ///< per-row losses that have no loss op yet
  RandomModelOptions options;
  int64_t nextStream = 1;
  int64_t nextName = 0;
  int64_t nextOp = 0;

private:
  std::optional<interpreter::Tensor> evaluate(mlir::Value x);
};

// Themes: each function tries to add an op of its theme, and returns false if the model lacks the
// operands for it.
using Theme = bool (*)(ModelBuilder &);

/// How random models come to have ops of a dialect other than genrec.
class GeneratorDialectInterface : public mlir::DialectInterface::Base<GeneratorDialectInterface> {
public:
  explicit GeneratorDialectInterface(mlir::Dialect *dialect) : Base(dialect) {}
  virtual llvm::ArrayRef<Theme> getThemes() const = 0;
};

void makeDomainsAndFeatures(ModelBuilder &m);
/// Tables with equal attributes, and matrix products over a parent's and a child's values.
void makeGroups(ModelBuilder &m);
/// A layer over several lookups that have no other users.
void makeJoinedLookups(ModelBuilder &m);
/// The same for each list of a parent: a device runs their kernels together. False where no parent
/// has two.
bool makeAlikeLists(ModelBuilder &m);
/// A row joined of scalars alone, and what is made of it: on a device one lane writes all of them.
bool makeJoinedScalars(ModelBuilder &m);
bool makeWideJoin(ModelBuilder &m);
llvm::ArrayRef<Theme> getRowThemes();
llvm::ArrayRef<Theme> getSequenceThemes();
/// A block that a device's library multiplies for, with heads that take factors rounded before; false
/// where a random value has no list to attend in.
bool makeWideBlock(ModelBuilder &m);
llvm::ArrayRef<Theme> getLossThemes();
/// Losses over all unused values.
void readRest(ModelBuilder &m);
void declareSinks(ModelBuilder &m);
bool makeFanout(ModelBuilder &m);
/// A catalogue with lists and with columns that other rows look up, and losses over them. Called
/// after the sinks, so that the rest of the model of a seed does not depend on it.
void makeItemColumns(ModelBuilder &m);
/// In some models, a loss over the rows of a portion. Called last, for the same reason.
void makeInBatch(ModelBuilder &m);

} // namespace genrec::fuzz

#endif // GENREC_FUZZ_MODELBUILDER_H

//===- ModelIndex.h - numbers of what a model declares ----------*- C++ -*-===//
//
// Generated code and the runtime speak of domains, features, tables, parameters,
// losses, metrics and outputs by number. This is where the numbers come from.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_ANALYSIS_MODELINDEX_H
#define GENREC_ANALYSIS_MODELINDEX_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {

/// One column of the data, as all programs together read it.
struct FeatureEntry {
  mlir::FlatSymbolRefAttr domain;
  mlir::StringAttr column;
  mlir::Type element; ///< null where only feature_valid reads it
  int64_t width = 0;  ///< values of a row [n]; 0 for a scalar
  bool nullable = false;
  std::optional<int64_t> paddingId;
  int64_t idBits = 0;
  mlir::FlatSymbolRefAttr table; ///< a table that the ids feed; may be null
  mlir::Location loc;
};


/// The merged table that `table` is a member of; null where it is none's.
TableOp findMergedTable(TableOp table);

/// The programs of `model` that read `feature`, in order.
llvm::SmallVector<llvm::StringRef> listReaders(ModelOp model, const FeatureEntry &feature);

class ModelIndex {
public:
  explicit ModelIndex(ModelOp model);

  ModelOp model;
  /// Domains in an order where what a derived domain is made of precedes it.
  llvm::SmallVector<DomainOp> domains;
  llvm::SmallVector<TableOp> tables; ///< logical ones
  llvm::SmallVector<TableOp> merged; ///< physical ones that several tables share
  llvm::SmallVector<ParameterOp> parameters;
  llvm::SmallVector<ProgramOp> programs;
  llvm::SmallVector<FeatureEntry> features;
  /// One op per name, the first that any program has.
  llvm::MapVector<mlir::StringAttr, mlir::Operation *> losses;
  llvm::MapVector<mlir::StringAttr, MetricOp> metrics;
  llvm::MapVector<mlir::StringAttr, OutputOp> outputs;
  /// The op that makes a domain in the first program that has it; null when none has.
  mlir::Operation *getMaker(mlir::FlatSymbolRefAttr domain) const { return makers.lookup(domain); }

  int64_t getDomain(mlir::FlatSymbolRefAttr symbol) const {
    return domainNumbers.lookup(symbol.getAttr());
  }
  /// The number of a logical table; of a merged one, that of its first member.
  int64_t getTable(mlir::FlatSymbolRefAttr symbol) const {
    return tableNumbers.lookup(symbol.getAttr());
  }
  /// Where the rows of a logical table are: `group` 0 is a store of its own.
  struct TablePlace {
    int64_t group = 0, key = 0, keyBits = 63;
  };
  TablePlace getPlace(TableOp table) const { return places.lookup(table.getSymNameAttr()); }
  int64_t getParameter(mlir::FlatSymbolRefAttr symbol) const {
    return parameterNumbers.lookup(symbol.getAttr());
  }
  int64_t getFeature(mlir::FlatSymbolRefAttr domain, mlir::StringAttr column) const;
  int64_t getLoss(mlir::StringAttr name) const { return losses.find(name) - losses.begin(); }
  int64_t getMetric(mlir::StringAttr name) const { return metrics.find(name) - metrics.begin(); }
  int64_t getOutput(mlir::StringAttr name) const { return outputs.find(name) - outputs.begin(); }

private:
  void collectProgram(ProgramOp program);
  void collectFeature(mlir::Operation *op, mlir::Value domain, mlir::StringAttr column);
  /// The table that the rows of `ids` are looked up in, here or in a domain that they are moved to;
  /// null when none.
  mlir::FlatSymbolRefAttr findTable(mlir::Value ids) const;
  void orderDomains();

  llvm::DenseMap<mlir::Value, mlir::FlatSymbolRefAttr> fusedIds; ///< of the program being collected
  llvm::DenseMap<mlir::Attribute, TablePlace> places;
  llvm::DenseMap<std::pair<mlir::Attribute, mlir::Attribute>, int64_t> featureNumbers;
  llvm::DenseMap<mlir::Attribute, mlir::Operation *> makers;
  llvm::DenseMap<mlir::Attribute, int64_t> domainNumbers, tableNumbers, parameterNumbers;
};

/// The domains from `domain` up to its root, itself first.
llvm::SmallVector<DomainOp> getDomainPath(mlir::Operation *scope, mlir::FlatSymbolRefAttr domain);

/// The op's stage; compute where nothing is said.
Stage getStage(mlir::Operation *op);

/// Bytes of one element in a buffer; i1 takes one, a row handle eight.
int64_t getElementBytes(mlir::Type element);

/// The rules about a table's rows in words: "at most 1000 rows (lru), admitted after 3 steps";
/// empty without any.
std::string describeRowRules(TableOp table);

} // namespace genrec

#endif // GENREC_ANALYSIS_MODELINDEX_H

//===- ModelIndex.h - numbers of a model's declarations ---------*- C++ -*-===//
//
// Generated code and the runtime refer to domains, features, tables, parameters, losses, metrics
// and outputs by number. ModelIndex assigns these numbers.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_ANALYSIS_MODELINDEX_H
#define GENREC_ANALYSIS_MODELINDEX_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {

/// A column of the data, and all that the model's programs read of it.
struct FeatureEntry {
  mlir::FlatSymbolRefAttr domain;
  mlir::StringAttr column;
  mlir::Type element; ///< null where only feature_valid reads the column
  int64_t width = 0;  ///< elements of a row of shape [n]; 0 for a scalar
  bool nullable = false;
  std::optional<int64_t> paddingId;
  int64_t idBits = 0;
  mlir::FlatSymbolRefAttr table; ///< a table that the column's ids are looked up in, or null
  mlir::Location loc;
};

/// By the name of a table, the merged table that it is a member of.
llvm::DenseMap<mlir::Attribute, TableOp> mapMergedTables(ModelOp model);

/// The columns that a program reads.
class ReadColumns {
public:
  explicit ReadColumns(ProgramOp program);
  bool contains(const FeatureEntry &feature) const {
    return reads.contains({feature.column, feature.domain});
  }

private:
  llvm::DenseSet<std::pair<mlir::Attribute, mlir::Attribute>> reads;
};

/// The programs of a model, with the columns that each reads.
class ColumnReaders {
public:
  explicit ColumnReaders(ModelOp model);
  /// The programs that read `feature`, in program order.
  llvm::SmallVector<llvm::StringRef> list(const FeatureEntry &feature) const;

private:
  llvm::SmallVector<std::pair<llvm::StringRef, ReadColumns>> programs;
};

class ModelIndex {
public:
  explicit ModelIndex(ModelOp model);

  ModelOp model;
  /// All domains; the sources of a derived domain precede it.
  llvm::SmallVector<DomainOp> domains;
  llvm::SmallVector<TableOp> tables; ///< the logical tables
  llvm::SmallVector<TableOp> merged; ///< the merged tables
  llvm::SmallVector<ParameterOp> parameters;
  llvm::SmallVector<ProgramOp> programs;
  llvm::SmallVector<FeatureEntry> features;
  /// The first op of each name in any program.
  llvm::MapVector<mlir::StringAttr, mlir::Operation *> losses;
  llvm::MapVector<mlir::StringAttr, MetricOp> metrics;
  llvm::MapVector<mlir::StringAttr, OutputOp> outputs;
  /// The op that makes a domain, in the first program that uses it; null if there is none.
  mlir::Operation *getMaker(mlir::FlatSymbolRefAttr domain) const { return makers.lookup(domain); }

  int64_t getDomain(mlir::FlatSymbolRefAttr symbol) const {
    return domainNumbers.lookup(symbol.getAttr());
  }
  /// The number of a logical table; for a merged table, that of its first member.
  int64_t getTable(mlir::FlatSymbolRefAttr symbol) const {
    return tableNumbers.lookup(symbol.getAttr());
  }
  /// Where the rows of a logical table are stored. `group` 0: in a store of the table's own.
  struct TableLocation {
    int64_t group = 0, key = 0, keyBits = 63;
  };
  TableLocation getTableLocation(TableOp table) const { return tableLocations.lookup(table.getSymNameAttr()); }
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
  /// The table that the rows of `ids` are looked up in, directly or after a move to another domain;
  /// null if there is none.
  mlir::FlatSymbolRefAttr findTable(mlir::Value ids) const;
  void orderDomains();

  /// by ids, the table; of the program being collected
  llvm::DenseMap<mlir::Value, mlir::FlatSymbolRefAttr> fusedIds;
  llvm::DenseMap<mlir::Attribute, TableLocation> tableLocations;
  llvm::DenseMap<std::pair<mlir::Attribute, mlir::Attribute>, int64_t> featureNumbers;
  llvm::DenseMap<mlir::Attribute, mlir::Operation *> makers;
  llvm::DenseMap<mlir::Attribute, int64_t> domainNumbers, tableNumbers, parameterNumbers;
};

/// `domain` and its ancestors, up to the root.
llvm::SmallVector<DomainOp> getDomainPath(mlir::Operation *scope, mlir::FlatSymbolRefAttr domain);
/// How many domains of the path are below `domain`; all, if it is not on it.
size_t getHeight(llvm::ArrayRef<DomainOp> path, mlir::FlatSymbolRefAttr domain);

/// The op's stage; `compute` for an op without the attribute.
Stage getStage(mlir::Operation *op);

/// Bytes of one element in a buffer: 1 for i1, 8 for a row handle.
int64_t getElementBytes(mlir::Type element);

/// The admission and eviction rules of a table as text: "at most 1000 rows (lru), admitted after 3
/// steps"; empty if there are none.
std::string describeRowRules(TableOp table);

} // namespace genrec

#endif // GENREC_ANALYSIS_MODELINDEX_H

//===- CatalogueGathers.h - what a program gathers from a catalogue -*- C++ -*-===//

#ifndef GENREC_LIB_DIALECT_GENREC_TRANSFORMS_CATALOGUEGATHERS_H
#define GENREC_LIB_DIALECT_GENREC_TRANSFORMS_CATALOGUEGATHERS_H

#include "DomainTree.h"

#include "llvm/ADT/SetVector.h"

#include <string>

namespace genrec {

/// A value per row of a catalogue of which ops gather rows.
struct GatheredValue {
  mlir::Value value;
  llvm::SmallVector<GathersRowsOpInterface> gathers;
  /// The ops that compute `value`, and the domains of lists that these use, back to `columns`.
  llvm::SetVector<mlir::Operation *> ops;
  /// Values that are known for all rows: columns, and what is computed from strings.
  llvm::SetVector<mlir::Value> columns;
  /// Why all rows are computed; empty if only the gathered ones need to be.
  std::string obstacle;
};

/// The sizes that costs assume.
struct AssumedRows {
  int64_t batch; ///< rows of a root domain
  int64_t list;  ///< rows per list
};

/// Finds the values of one catalogue that depend on weights and that ops gather rows of.
class CatalogueGathers {
public:
  /// `catalogue` is a root of `program`.
  CatalogueGathers(ProgramOp program, mlir::FlatSymbolRefAttr catalogue, const DomainTree &tree)
      : program(program), catalogue(catalogue), tree(tree) {}

  /// Finds the values, and what prevents that they are computed for gathered rows only.
  void find(const AssumedRows &assumed);
  llvm::MutableArrayRef<GatheredValue> get() { return found; }

  /// Whether `domain` is the catalogue or a list below it.
  bool isOfCatalogue(mlir::FlatSymbolRefAttr domain) const {
    return domain && (domain == catalogue || tree.isAbove(catalogue, domain));
  }
  /// Whether `value` depends on weights, or on random numbers other than numbers of rows.
  bool needsRunningStep(mlir::Value value);

private:
  bool isLocalToItems(mlir::Operation *op) const;
  void collect();
  void findOps(GatheredValue &gathered, mlir::Value value);
  void findDomain(GatheredValue &gathered, mlir::Value domain);
  std::string findObstacle(GatheredValue &gathered);
  std::string findWholeReader(const GatheredValue &gathered);
  std::string findExpense(const AssumedRows &assumed) const;

  ProgramOp program;
  mlir::FlatSymbolRefAttr catalogue;
  const DomainTree &tree;
  llvm::SmallVector<GatheredValue, 2> found;
  llvm::DenseMap<mlir::Value, bool> running;
};

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_TRANSFORMS_CATALOGUEGATHERS_H

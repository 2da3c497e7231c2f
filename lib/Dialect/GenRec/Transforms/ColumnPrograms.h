//===- ColumnPrograms.h - the programs that columns share -------*- C++ -*-===//
//
// The chain of transforms of one column becomes a body for one row. Bodies that
// differ in constants only are one program; the constants that differ are then
// operands of the columns.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_LIB_DIALECT_GENREC_TRANSFORMS_COLUMNPROGRAMS_H
#define GENREC_LIB_DIALECT_GENREC_TRANSFORMS_COLUMNPROGRAMS_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <memory>

namespace genrec {

/// One column: ids, where they are valid, and the number of their table.
struct ColumnSpec {
  mlir::Value ids, valid; ///< `valid` may be null
  int64_t tag = 0;
};

/// The body of one column: its block has an argument per input.
struct ColumnBody {
  llvm::SmallVector<mlir::Value> inputs;
  std::unique_ptr<mlir::Block> block;
  llvm::SmallVector<mlir::Operation *> transforms; ///< what went into it
};

/// Builds the body that yields the key of `column`. Ops that cannot be part of
/// it are inputs.
mlir::FailureOr<ColumnBody> buildColumnBody(mlir::MLIRContext *context, const ColumnSpec &column);

/// Columns by program.
class ColumnPrograms {
public:
  /// Adds a column; returns its program.
  unsigned add(ColumnBody body);
  size_t size() const { return programs.size(); }

  /// Fills `region` with the body of `program`, once all columns are there.
  void fill(unsigned program, mlir::Region &region) const;
  /// The operands of the columns in the order in which they were added. New
  /// constants are made at the builder's insertion point.
  llvm::SmallVector<mlir::Value> makeInputs(mlir::OpBuilder &builder, mlir::Location loc) const;

private:
  struct Program {
    std::unique_ptr<mlir::Block> block;           ///< of its first column
    llvm::SmallVector<mlir::Attribute> constants; ///< of its first column, in order
    llvm::SmallVector<bool> differs;              ///< by constant
  };
  struct Column {
    unsigned program;
    llvm::SmallVector<mlir::Value> inputs;
    llvm::SmallVector<mlir::Attribute> constants;
  };
  llvm::MapVector<mlir::Attribute, unsigned> byStructure;
  std::vector<Program> programs;
  std::vector<Column> columns;
};

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_TRANSFORMS_COLUMNPROGRAMS_H

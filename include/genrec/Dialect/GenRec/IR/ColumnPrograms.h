//===- ColumnPrograms.h - column programs -----------------------*- C++ -*-===//
//
// What makes a column's rows is a body for one of them. Columns whose bodies differ only in
// constants share one *column program*; these constants then become operands of the columns.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_DIALECT_GENREC_IR_COLUMNPROGRAMS_H
#define GENREC_DIALECT_GENREC_IR_COLUMNPROGRAMS_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <memory>

namespace genrec {

/// A join of so many parts is wide: a device makes them side by side, as columns of a launch. Of
/// fewer a thread makes all without much delay, and reads once what several are made of.
inline constexpr size_t kFewestColumns = 16;

/// The body of one column. Its block has an argument per input.
struct ColumnBody {
  mlir::FlatSymbolRefAttr domain; ///< whose rows it makes
  llvm::SmallVector<mlir::Value> inputs;
  std::unique_ptr<mlir::Block> block;
  llvm::SmallVector<mlir::Operation *> transforms; ///< the ops that became part of it
};

/// Assigns columns to column programs.
class ColumnPrograms {
public:
  /// Adds a column and returns its program.
  unsigned add(ColumnBody body);
  size_t size() const { return programs.size(); }

  /// Moves the body of `program` into `region`. Call it after all columns have been added.
  void fill(unsigned program, mlir::Region &region) const;
  /// The operands of each column, in the order in which the columns were added: its inputs, then
  /// constants, which are created at the builder's insertion point.
  llvm::SmallVector<llvm::SmallVector<mlir::Value>> makeInputs(mlir::OpBuilder &builder,
                                                               mlir::Location loc) const;

private:
  struct Program {
    std::unique_ptr<mlir::Block> block;           ///< of its first column
    llvm::SmallVector<mlir::Attribute> constants; ///< of its first column, in order
    llvm::SmallVector<bool> differs;              ///< per constant: whether columns differ in it
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

#endif // GENREC_DIALECT_GENREC_IR_COLUMNPROGRAMS_H

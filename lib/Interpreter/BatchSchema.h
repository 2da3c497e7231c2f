//===- BatchSchema.h - the columns that a model reads -----------*- C++ -*-===//

#ifndef GENREC_LIB_INTERPRETER_BATCHSCHEMA_H
#define GENREC_LIB_INTERPRETER_BATCHSCHEMA_H

#include "genrec/Interpreter/Batch.h"

namespace genrec::interpreter {

/// A column and the features that read it, in any program of the model.
struct ColumnSchema {
  std::string path;
  mlir::Type element; ///< null: only its nulls are read
  int64_t width = 1;  ///< values per row
  bool isVector = false; ///< a row is a list of them
  bool nullable = false;
  std::vector<FeatureOp> features;
};

/// A domain whose rows come from a file.
struct DomainSchema {
  DomainOp declaration;
  int parent = -1; ///< index of the parent, which comes before its children
  std::vector<int> children;
  std::vector<ColumnSchema> columns;

  std::string name() const;
  /// Whether it is a catalogue, or a list in one.
  bool isCatalogue() const;
  /// The dotted path of the list, empty for a root.
  llvm::StringRef path() const;
};

/// The `data` and `catalogue` domains of the model that `program` belongs to.
std::vector<DomainSchema> getBatchSchema(ProgramOp program);

/// Where a column is found.
struct ColumnPlace {
  enum Kind {
    element, ///< the list's element itself
    member,  ///< below the element, at `path`
    parallel ///< a list of its own below the parent's element, at `path`
  } kind;
  llvm::StringRef path;
};
ColumnPlace getPlace(const DomainSchema &domain, llvm::StringRef column);

/// The path of a child's list below an element of its parent.
llvm::StringRef getListPath(const DomainSchema &parent, const DomainSchema &child);

} // namespace genrec::interpreter

#endif // GENREC_LIB_INTERPRETER_BATCHSCHEMA_H

//===- BatchSchema.h - the columns that a model reads -----------*- C++ -*-===//

#ifndef GENREC_LIB_INTERPRETER_BATCHSCHEMA_H
#define GENREC_LIB_INTERPRETER_BATCHSCHEMA_H

#include "genrec/Interpreter/Batch.h"

namespace genrec::interpreter {

/// A column and the features that read it, in any program of the model.
struct ColumnSchema {
  std::string path;
  mlir::Type element; ///< null: no program reads its values, only which of them are null
  int64_t width = 1;  ///< values per row
  bool isVector = false; ///< a row is a list of `width` values
  bool nullable = false;
  std::vector<FeatureOp> features;
};

/// A domain whose rows come from a file.
struct DomainSchema {
  DomainOp declaration;
  int parent = -1; ///< index of the parent, which precedes its children; -1 for a root
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

/// The path of a column in the JSON of its list.
struct ColumnPath {
  enum Kind {
    element, ///< the column is the list's element itself
    member,  ///< the column is a field of the element, at `path`
    parallel ///< the column is a list of its own in the parent's element, at `path`
  } kind;
  llvm::StringRef path;
};
ColumnPath getColumnPath(const DomainSchema &domain, llvm::StringRef column);

/// The path of a child's list below an element of its parent.
llvm::StringRef getListPath(const DomainSchema &parent, const DomainSchema &child);

} // namespace genrec::interpreter

#endif // GENREC_LIB_INTERPRETER_BATCHSCHEMA_H

//===- Batch.h - data that the interpreter runs on --------------*- C++ -*-===//

#ifndef GENREC_INTERPRETER_BATCH_H
#define GENREC_INTERPRETER_BATCH_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <map>
#include <string>
#include <variant>
#include <vector>

namespace genrec::interpreter {

/// The values of one feature, `width` per row of its domain; booleans are 0 and 1.
struct Column {
  int64_t width = 1;
  bool isVector = false; ///< a row is a list of `width` values, which may be 1
  std::variant<std::vector<int64_t>, std::vector<double>, std::vector<std::string>> values;
  std::vector<uint8_t> valid; ///< one per row; empty: no nulls

  /// How many rows there are.
  size_t size() const;
};

/// The rows of a `data` or `catalogue` domain and their columns.
struct BatchRows {
  int64_t count = 0;
  /// Per parent row its first row here, then `count`; empty for a root.
  std::vector<int64_t> offsets;
  std::map<std::string, Column, std::less<>> columns; ///< by dotted path
};

/// One batch of rows, by domain symbol, catalogues included.
struct Batch {
  std::map<std::string, BatchRows, std::less<>> domains;
  /// Per root row its position in the dataset; empty: 0, 1, 2, …
  std::vector<int64_t> positions;
};

/// Reads a batch from JSON (docs/interpreter.md describes the form) for the
/// domains and features of `program`. Errors name the path and the row.
llvm::Expected<Batch> batchFromJson(ProgramOp program, const llvm::json::Value &value);

/// The same batch as JSON, as `batchFromJson` reads it.
llvm::json::Value batchToJson(ProgramOp program, const Batch &batch);

/// What a random batch looks like.
struct RandomBatchOptions {
  int64_t rows = 4;        ///< root rows
  int64_t longestList = 5; ///< lists have 0 to this many rows, often 0
  double emptyRate = 0.25; ///< of lists
  int64_t vocabulary = 7;  ///< ids are mostly drawn from as many values, skewed
  double rareRate = 0.1;   ///< of ids that are drawn from all that the table takes
  bool distinctIds = false; ///< no id twice in a column, as long as the table has others
  int64_t catalogueRows = 6;
  int64_t firstPosition = 0; ///< of the first root row in the dataset
  double nullRate = 0.2;     ///< of nullable columns
  bool positive = false;     ///< no float below 0, as logarithms and roots want them
};

/// Draws a batch that `program` accepts: ids lie within their table's bits, ids
/// that are resolved exist in the catalogue, classes are in range, times ascend
/// within a list. The same seed gives the same batch.
Batch randomBatch(ProgramOp program, uint64_t seed, const RandomBatchOptions &options = {});

} // namespace genrec::interpreter

#endif // GENREC_INTERPRETER_BATCH_H

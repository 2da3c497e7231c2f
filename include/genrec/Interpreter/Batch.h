//===- Batch.h - batches for the interpreter --------------------*- C++ -*-===//

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
  std::vector<uint8_t> valid; ///< one flag per row; empty: no nulls

  /// The number of rows.
  size_t size() const;
};

/// The rows of a `data` or `catalogue` domain and their columns.
struct BatchRows {
  int64_t count = 0;
  /// For each parent row the number of its first row here, then `count`; empty for a root.
  std::vector<int64_t> offsets;
  std::map<std::string, Column, std::less<>> columns; ///< by dotted path
};

/// The rows of one batch by domain symbol, with those of catalogues.
struct Batch {
  std::map<std::string, BatchRows, std::less<>> domains;
  /// For each root row its position in the dataset; empty: 0, 1, 2, …
  std::vector<int64_t> positions;
};

/// Reads the domains and features of `program` from JSON (format: docs/interpreter.md). Errors name
/// the path and the row.
llvm::Expected<Batch> batchFromJson(ProgramOp program, const llvm::json::Value &value);

/// Writes a batch as JSON that `batchFromJson` reads.
llvm::json::Value batchToJson(ProgramOp program, const Batch &batch);

/// Options of `randomBatch`.
struct RandomBatchOptions {
  int64_t rows = 4;        ///< root rows
  int64_t longestList = 5; ///< lists have 0 to this many rows, often 0
  double emptyRate = 0.25; ///< probability that a list is empty
  int64_t vocabulary = 7;  ///< number of values that most ids are drawn from, skewed
  double rareRate = 0.1;   ///< probability that an id is drawn from the table's whole range
  /// ids in a column are distinct, as long as the table's range has enough
  bool distinctIds = false;
  int64_t catalogueRows = 6;
  int64_t firstPosition = 0; ///< position of the first root row in the dataset
  double nullRate = 0.2;     ///< probability of null, in nullable columns
  bool positive = false;     ///< floats are not negative, as logarithms and roots need
};

/// Draws a batch that `program` accepts: ids fit the bits of their table, resolved ids exist in the
/// catalogue, classes are in range, times ascend within a list. The same seed gives the same batch.
Batch randomBatch(ProgramOp program, uint64_t seed, const RandomBatchOptions &options = {});

} // namespace genrec::interpreter

#endif // GENREC_INTERPRETER_BATCH_H

//===- IdStatistics.h - how often ids are looked up -------------*- C++ -*-===//
//
// What --explain --world knows of a table's ids: counted in data (`info --ids-out` of a binary
// writes it), or assumed to follow Zipf's law.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_REPORT_IDSTATISTICS_H
#define GENREC_REPORT_IDSTATISTICS_H

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace genrec {

/// The ids that data look up in one table.
struct TableIds {
  double lookups = 0;        ///< per root row
  std::vector<int64_t> ids;  ///< by frequency; empty where only frequencies are known
  std::vector<int64_t> rows; ///< of each id: the root rows that look it up
};

/// The ids of some data.
struct IdStatistics {
  int64_t rows = 0; ///< root rows
  llvm::StringMap<TableIds> tables;
  /// Of a domain in all of the data.
  struct DomainRows {
    int64_t rows = 0, longest = 0;
  };
  llvm::StringMap<DomainRows> domains; ///< as far as counted

  /// Reads a file:
  ///   {"rows": 3000, "domains": {"history": {"rows": 154391, "longest": 395}},
  ///    "tables": {"item": {"lookups": 152156, "ids": [7, 3], "rows": [2411, 9]}}}
  /// "lookups" counts ids as often as they occur, "rows" of a table the root rows that look up each
  /// of "ids". Without "ids", they are 0, 1, 2, …; "domains" may be missing.
  static llvm::Expected<IdStatistics> parse(llvm::StringRef json, llvm::StringRef file);
};

/// The probabilities that root rows look up the ids of a table, and the ranks that own the ids.
class IdModel {
public:
  /// Of ids that were counted. Where a global batch has more root rows than were counted, these are
  /// taken for a sample of more.
  IdModel(llvm::StringRef table, const TableIds &counted, int64_t countedRows, double batch,
          int64_t ranks);
  /// Of `count` ids 0, 1, …, the k-th of which has a probability in proportion to (k + 1) to the
  /// power of -exponent in each of `lookups` lookups per root row.
  IdModel(llvm::StringRef table, int64_t count, double exponent, double lookups, int64_t ranks);

  int64_t size() const { return static_cast<int64_t>(owners.size()); }
  double lookups() const { return perRow; }
  /// Ids that each rank owns.
  std::vector<double> countOwned() const;
  /// The distinct ids, by owner, that `rows` root rows look up, in the mean. Besides, `draws`
  /// lookups of ids that are all equally probable are made.
  std::vector<double> countDistinct(double rows, double draws = 0) const;

  /// Of all ids, by falling size: the probability that `rows` root rows look it up.
  std::vector<double> listProbabilities(double rows) const;

private:
  double missing(size_t id, double rows) const;

  int64_t ranks;
  double perRow = 0;
  std::vector<int32_t> owners;
  std::vector<double> probability; ///< in a lookup; empty for counted ids
  std::vector<int64_t> counts;     ///< rows that look up an id, of `population`
  double population = 0;
  bool isSample = false;
};

} // namespace genrec

#endif // GENREC_REPORT_IDSTATISTICS_H

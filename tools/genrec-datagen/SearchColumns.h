//===- SearchColumns.h - hundreds of columns of a search log ----*- C++ -*-===//
//
// A column is named after what it holds and its number: `id_017` are raw ids,
// `amount_331` prices and the like. A value is a function of a quantile in
// [0, 1), which in turn is a function of what the column describes (an item, a
// user, one moment), so that a column says the same about an item every time.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TOOLS_DATAGEN_SEARCHCOLUMNS_H
#define GENREC_TOOLS_DATAGEN_SEARCHCOLUMNS_H

#include "Random.h"

#include <array>
#include <memory>
#include <string>
#include <vector>

#include <arrow/api.h>

namespace genrec::datagen {

/// Whose rows a column belongs to, in the order of their numbers.
enum class Owner { Request, Impression, Click, Search };
constexpr size_t ownerCount = 4;

/// What a column holds: the first five are made into ids of tables, the others are numbers.
enum class Content {
  Id,     ///< int64, sparse, up to `vocabulary` of them
  Text,   ///< string
  Level,  ///< int64 in [0, 32)
  Value,  ///< float, normal
  Time,   ///< int64, seconds UTC, before the request (or past event)
  Amount, ///< float, exponential; -1 where unknown
  Ratio,  ///< float in [0, 1]; null where unknown
  Count,  ///< int64, geometric
};

struct SearchColumn {
  std::string name;
  Content content;
  Owner owner;
  int64_t number;
  int64_t vocabulary; ///< of Id and Text
  bool drawn;         ///< anew for each row; else a function of the row's entity
  double clickWeight; ///< of its effect on the logit of a click, mostly 0
  double orderWeight; ///< of its effect on the logit of an order, mostly 0
};

/// The numbered columns among `columns` feature columns (8 in 11 made for tables, once the
/// nine that have names of their own, of which four are, are counted); at least 20.
std::array<std::vector<SearchColumn>, ownerCount> planSearchColumns(int64_t columns);

/// How many feature columns have names of their own.
constexpr int64_t namedColumns = 9;

std::shared_ptr<arrow::Field> getField(const SearchColumn &column);

/// Where in its column's distribution the value of `entity` is, in [0, 1).
double getQuantile(uint64_t seed, const SearchColumn &column, uint64_t entity);

/// What a value at `quantile` adds to a logit, for a weight of 1: about normal.
double getEffect(const SearchColumn &column, double quantile);

/// Appends the value at `quantile`; times lie before `now`, in seconds.
void appendValue(arrow::ArrayBuilder &builder, const SearchColumn &column, double quantile,
                 int64_t now);

} // namespace genrec::datagen

#endif // GENREC_TOOLS_DATAGEN_SEARCHCOLUMNS_H

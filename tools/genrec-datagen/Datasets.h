//===- Datasets.h - the kinds of data set -----------------------*- C++ -*-===//

#ifndef GENREC_TOOLS_DATAGEN_DATASETS_H
#define GENREC_TOOLS_DATAGEN_DATASETS_H

#include "World.h"

#include <string>

namespace genrec::datagen {

struct DatasetOptions {
  WorldOptions world;
  int64_t users = 20000;
  double meanEvents = 55;        ///< retrieval: mean length of a history
  double meanRequests = 4;       ///< requests, search: mean requests per user
  double meanImpressions = 6;    ///< requests, search: mean impressions per request
  int64_t columns = 660;         ///< search: number of feature columns
  std::string folder;
};

/// Writes train.parquet, valid.parquet, items.parquet and references.json:
/// a history per user, the last event held out. Returns the number of events.
int64_t writeRetrieval(const DatasetOptions &options);

/// Writes train.parquet, valid.parquet and references.json: requests with
/// impressions and their tags, some of them empty. Returns the number of impressions.
int64_t writeRequests(const DatasetOptions &options);

/// Writes train.parquet, valid.parquet and references.json: a search log of
/// `columns` feature columns, with impressions, past clicks and past searches of each
/// request. Returns the number of impressions.
int64_t writeSearch(const DatasetOptions &options);

} // namespace genrec::datagen

#endif // GENREC_TOOLS_DATAGEN_DATASETS_H

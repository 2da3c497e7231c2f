//===- batch.h - The data of one batch on its way to a step ------*- C++ -*-===//

#ifndef GENREC_RT_BATCH_H
#define GENREC_RT_BATCH_H

#include "genrec_rt/abi.h"
#include "genrec_rt/buffer.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace genrec::rt {

/// Where the rows of a batch come from, for error messages.
class RowLocator {
public:
  virtual ~RowLocator() = default;
  /// "train.parquet, row group 3, row 18,204" for a root row's position in the
  /// dataset.
  virtual std::string describe(int64_t position) const = 0;
};

/// The rows of one domain: `count` of them, and where the domain has a parent,
/// one offset per parent row plus one, from 0 up to `count`.
struct DomainBatch {
  bool given = false; ///< whether this batch has the domain
  int64_t count = 0;
  GrowBuffer<int64_t> offsets;
};

/// The values of one feature: as many elements as its domain has rows, of the
/// feature's genrec_type (a genrec_string points into `bytes`).
struct ColumnBatch {
  bool given = false; ///< whether this batch has the feature
  GrowBuffer<char> values;
  GrowBuffer<uint8_t> valid;
  bool hasNulls = false; ///< whether `valid` says anything
  GrowBuffer<char> bytes;
};

/// One batch: data domains and their features. Buffers are kept when a batch
/// object is filled again (after reset). What a program does not read may be
/// left out.
struct Batch {
  std::vector<DomainBatch> domains; ///< by the model's domain index
  std::vector<ColumnBatch> columns; ///< by the model's feature index
  GrowBuffer<int64_t> positions;    ///< of the root rows in the dataset
  int64_t rows = 0;                 ///< root rows
  /// The latest time in it, in seconds since 1970, of tables with a ttl in seconds; none: no time
  /// is known.
  std::optional<int64_t> seconds;
  const RowLocator *locator = nullptr;

  Batch() = default;
  explicit Batch(const genrec_model_desc &model)
      : domains(model.domain_count), columns(model.feature_count) {}

  /// Forgets the rows and keeps the memory.
  void reset() {
    for (DomainBatch &domain : domains)
      domain.given = false, domain.count = 0;
    for (ColumnBatch &column : columns)
      column.given = false;
    rows = 0;
    seconds.reset();
  }
};

/// Makes a batch from plain vectors, for tests and tools. Root rows get the
/// positions firstPosition, firstPosition + 1, … unless set otherwise.
class BatchBuilder {
public:
  explicit BatchBuilder(const genrec_model_desc &model);

  /// Rows of a root domain.
  BatchBuilder &rows(const std::string &domain, int64_t count, int64_t firstPosition = 0);
  /// Rows of a child domain; `offsets` has one entry per parent row plus one.
  BatchBuilder &offsets(const std::string &domain, const std::vector<int64_t> &offsets);
  /// Values of the feature with this column path, in its own type; `valid` is
  /// empty or has one entry per row.
  template <class T>
  BatchBuilder &column(const std::string &path, const std::vector<T> &values,
                       const std::vector<uint8_t> &valid = {}) {
    return columnBytes(path, values.data(), sizeof(T), static_cast<int64_t>(values.size()), valid);
  }
  BatchBuilder &strings(const std::string &path, const std::vector<std::string> &values,
                        const std::vector<uint8_t> &valid = {});

  /// Throws Error where sizes do not fit together.
  Batch take();

private:
  int32_t domainIndex(const std::string &name) const;
  int32_t featureIndex(const std::string &path) const;
  BatchBuilder &columnBytes(const std::string &path, const void *values, size_t elementSize,
                            int64_t count, const std::vector<uint8_t> &valid);
  ColumnBatch &newColumn(int32_t feature, int64_t count, const std::vector<uint8_t> &valid);

  const genrec_model_desc &model;
  Batch batch;
  std::vector<int64_t> counts;       ///< per feature
  std::vector<int64_t> offsetCounts; ///< per domain, 0 where not given
};

/// A sequence of batches. `next` is called from one thread at a time, not
/// necessarily the caller's.
class BatchSource {
public:
  virtual ~BatchSource() = default;
  /// Fills `batch` (made for the same model) and returns true; false at the end.
  virtual bool next(Batch &batch) = 0;
};

/// Bytes of one value of a genrec_type in a column.
int64_t elementBytes(int32_t type);
/// Bytes of one row of a feature.
int64_t rowBytes(const genrec_feature_desc &feature);

/// Whether values of a genrec_type are genrec_strings, whose bytes lie elsewhere.
inline bool hasBytes(int32_t type) { return type == GENREC_STRING || type == GENREC_KEY; }

/// The root domain above `domain`.
int32_t rootDomain(const genrec_model_desc &model, int32_t domain);

/// How many levels below its root a domain is; 0 for a root.
int32_t domainDepth(const genrec_model_desc &model, int32_t domain);

} // namespace genrec::rt

#endif // GENREC_RT_BATCH_H

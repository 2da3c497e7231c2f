//===- ParquetOutput.h - writes generated rows ------------------*- C++ -*-===//

#ifndef GENREC_TOOLS_DATAGEN_PARQUETOUTPUT_H
#define GENREC_TOOLS_DATAGEN_PARQUETOUTPUT_H

#include <memory>
#include <string>

#include <arrow/api.h>

namespace genrec::datagen {

/// Throws std::runtime_error with `what` and Arrow's own message.
void check(const arrow::Status &status, const std::string &what);

/// Rows of a nested schema, built value by value through Arrow builders.
class TableWriter {
public:
  explicit TableWriter(std::shared_ptr<arrow::Schema> schema);

  /// The builder of top-level column `index`, as its own type.
  template <typename Builder> Builder &column(int index) {
    return *static_cast<Builder *>(builder->GetField(index));
  }
  /// Writes all rows to `path`, in row groups of 64 Ki rows, zstd-compressed,
  /// aside and then renamed.
  void write(const std::string &path);

private:
  std::shared_ptr<arrow::Schema> schema;
  std::unique_ptr<arrow::RecordBatchBuilder> builder;
};

/// Writes a text file, aside and then renamed.
void writeText(const std::string &path, const std::string &text);

} // namespace genrec::datagen

#endif // GENREC_TOOLS_DATAGEN_PARQUETOUTPUT_H

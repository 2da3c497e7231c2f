//===- TinyData.h - Parquet files for the model written by hand --*- C++ -*-===//

#ifndef GENREC_TEST_RUNTIME_TINY_DATA_H
#define GENREC_TEST_RUNTIME_TINY_DATA_H

#include <arrow/type_fwd.h>

#include <cstdint>
#include <memory>
#include <string>

namespace genrec::rt::test {

/// A folder of its own for one test, removed at the end.
class TestFolder {
public:
  TestFolder();
  ~TestFolder();
  std::string operator/(const std::string &name) const { return path + "/" + name; }
  std::string path;
};

/// A table from JSON rows, as [[1, [{"movie": 3}]], …] with one value per field.
std::shared_ptr<arrow::Table> tableOf(const std::shared_ptr<arrow::Schema> &schema,
                                      const std::string &json);

/// Writes a table with row groups of `groupRows` rows.
void writeParquet(const std::string &path, const arrow::Table &table, int64_t groupRows = 1 << 20);

/// All of a file in one chunk.
std::shared_ptr<arrow::Table> readParquet(const std::string &path);

/// user: int64, label: float, target: int64, history: list<struct<movie: int64>>.
std::shared_ptr<arrow::Schema> tinySchema();

/// The rows of tinyBatch(seed, users, movies) as a file.
void writeTinyData(const std::string &path, uint64_t seed, int64_t users, int64_t movies,
                   int64_t groupRows);
/// movie: int64, 0 … count - 1.
void writeTinyCatalogue(const std::string &path, int64_t count);

/// The whole text of a file; "" where there is none.
std::string readText(const std::string &path);

} // namespace genrec::rt::test

#endif // GENREC_TEST_RUNTIME_TINY_DATA_H

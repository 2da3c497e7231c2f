//===- footer_check.cpp - Whether a Parquet footer can be true ------------===//

#include "footer_check.h"

#include "genrec_rt/error.h"
#include "genrec_rt/size.h"

#include <parquet/metadata.h>
#include <parquet/schema.h>

#include <algorithm>

namespace genrec::rt {

namespace {

class FooterCheck {
public:
  FooterCheck(const parquet::FileMetaData &footer, const std::string &path, int64_t bytes)
      : footer(footer), path(path), bytes(bytes) {}

  void run() {
    require(footer.num_rows() >= 0, "the file has " + std::to_string(footer.num_rows()) + " rows");
    Size rows = 0;
    for (int group = 0; group < footer.num_row_groups(); ++group) {
      checkGroup(group);
      rows += footer.RowGroup(group)->num_rows();
    }
    require(rows.fits() && rows.saturated() == footer.num_rows(),
            "the file has " + std::to_string(footer.num_rows()) + " rows, its row groups have " +
                std::to_string(rows.saturated()));
  }

private:
  void require(bool holds, const std::string &what) const {
    if (!holds)
      throw Error(path + ": its footer is damaged: " + what, "write the file again");
  }

  void checkGroup(int number) const {
    auto group = footer.RowGroup(number);
    const std::string name = "row group " + std::to_string(number);
    require(group->num_rows() >= 0,
            name + " has " + std::to_string(group->num_rows()) + " rows");
    require(group->num_columns() == footer.schema()->num_columns(),
            name + " has " + std::to_string(group->num_columns()) + " columns, the schema " +
                std::to_string(footer.schema()->num_columns()));
    for (int column = 0; column < group->num_columns(); ++column)
      checkColumn(*group->ColumnChunk(column), *footer.schema()->Column(column), group->num_rows(),
                  name + ", column '" + footer.schema()->Column(column)->path()->ToDotString() +
                      "'");
  }

  void checkColumn(const parquet::ColumnChunkMetaData &chunk,
                   const parquet::ColumnDescriptor &column, int64_t rows,
                   const std::string &name) const {
    // An empty list counts as one value, too: it is stored as a null.
    const bool isList = column.max_repetition_level() > 0;
    const int64_t values = chunk.num_values();
    require(isList ? values >= rows : values == rows,
            name + " has " + std::to_string(values) + " values in " + std::to_string(rows) +
                " rows");
    require(chunk.total_compressed_size() >= 0 && chunk.total_uncompressed_size() >= 0,
            name + " has a size below 0");
    int64_t begin = chunk.data_page_offset();
    if (chunk.has_dictionary_page() && chunk.dictionary_page_offset() > 0)
      begin = std::min(begin, chunk.dictionary_page_offset());
    require(begin >= 0 && (Size(begin) + chunk.total_compressed_size()).saturated() <= bytes,
            name + " lies at bytes " + std::to_string(begin) + " to " +
                std::to_string((Size(std::max<int64_t>(begin, 0)) + chunk.total_compressed_size())
                                   .saturated()) +
                ", the file has " + std::to_string(bytes));
  }

  const parquet::FileMetaData &footer;
  const std::string &path;
  int64_t bytes;
};

} // namespace

void checkFooter(const parquet::FileMetaData &footer, const std::string &path, int64_t bytes) {
  FooterCheck(footer, path, bytes).run();
}

} // namespace genrec::rt

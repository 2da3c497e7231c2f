//===- chained_rows.h - A table's rows in a checkpoint's files ---*- C++ -*-===//
//
// The state of an incremental generation lies in several files: a row is where it changed last.
// Here they are one table again, without a session and a model.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_CHECKPOINT_CHAINED_ROWS_H
#define GENREC_RT_CHECKPOINT_CHAINED_ROWS_H

#include "genrec_rt/safetensors.h"

#include <string>
#include <vector>

namespace genrec::rt {

/// The tables of a file, by name: "<name>.ids" with "<name>.values".
std::vector<std::string> tableNames(const SafetensorsReader &file);

/// Rows by slice and id, whatever their order in the files.
class ChainedRows {
public:
  /// `links`: CheckpointReader::links. They must outlive this.
  ChainedRows(std::vector<const SafetensorsReader *> links, const std::string &table);

  int64_t size() const { return static_cast<int64_t>(places.size()); }
  int64_t id(int64_t row) const { return places[static_cast<size_t>(row)].id; }
  /// The floats of some rows in the tensor "<table><suffix>", row behind row; `width` of each.
  void read(const std::string &suffix, const int64_t *rows, int64_t count, int64_t width,
            float *to) const;
  /// Floats of a row in "<table><suffix>".
  int64_t widthOf(const std::string &suffix) const;
  bool has(const std::string &suffix) const { return links.back()->has(table + suffix); }

private:
  struct Place {
    int64_t id;
    int64_t row; ///< in the file
    int32_t link;
  };

  std::vector<const SafetensorsReader *> links;
  std::string table;
  std::vector<Place> places;
};

} // namespace genrec::rt

#endif // GENREC_RT_CHECKPOINT_CHAINED_ROWS_H

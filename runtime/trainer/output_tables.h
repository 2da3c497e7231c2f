//===- output_tables.h - The tables that predict writes ----------*- C++ -*-===//

#ifndef GENREC_RT_TRAINER_OUTPUT_TABLES_H
#define GENREC_RT_TRAINER_OUTPUT_TABLES_H

#include "genrec_rt/abi.h"

#include <string>
#include <vector>

namespace genrec::rt {

/// The outputs of one domain of the data: a file.
struct OutputTable {
  int32_t domain;
  std::vector<int32_t> outputs; ///< indices of the model's
  std::string path;
};

/// The tables of predict for `--out out`: with one, `out` is its path; with several, each is
/// `<domain>.parquet` in the folder `out`. Outputs of catalogues are for export and not among them.
std::vector<OutputTable> outputTables(const genrec_model_desc &model, const std::string &out);

} // namespace genrec::rt

#endif // GENREC_RT_TRAINER_OUTPUT_TABLES_H

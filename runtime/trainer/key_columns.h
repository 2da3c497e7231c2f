//===- key_columns.h - Columns passed through by predict ---------*- C++ -*-===//

#ifndef GENREC_RT_TRAINER_KEY_COLUMNS_H
#define GENREC_RT_TRAINER_KEY_COLUMNS_H

#include "../data/dataset_files.h"
#include "genrec_rt/abi.h"

#include <arrow/type_fwd.h>

#include <memory>
#include <string>
#include <vector>

namespace genrec::rt {

/// A column that predict copies from the data to its output.
struct KeyColumn {
  std::string path;
  int32_t feature = 0; ///< in the extended model
  int32_t domain = 0; ///< whose rows it is of: the root, or a domain of outputs
  bool isRoot = false; ///< per row of the root domain
  std::shared_ptr<arrow::DataType> type; ///< as it is written
};

/// Of `domains`, the list of the data that the column `path` of `found` is in; -1 for none.
int32_t listDomain(const genrec_model_desc &model, const std::vector<int32_t> &domains,
                   const ColumnPath &found, const std::string &path);

/// The model with the key columns as nullable features of its predict program, so
/// that they are decoded beside what the model reads. The model's own features
/// keep their numbers.
class ExtendedModel {
public:
  /// `domains` are those of the outputs. Error where a column is not in the first of `files`, holds
  /// what cannot be passed through, or belongs neither to the root nor to one of `domains`.
  /// Collective.
  ExtendedModel(const genrec_model_desc &model, const genrec_program_desc &program,
                const std::vector<int32_t> &domains, const std::vector<std::string> &paths,
                const FileSpec &files, Communicator *comm);

  const genrec_model_desc &description() const { return extended; }
  const genrec_program_desc &program() const { return extendedProgram; }
  /// The keys of `data`, of this model, that go beside outputs of `domain`: columns of it and of
  /// the root. Error where a key is null in all files and has no type.
  std::vector<KeyColumn> keysOf(int32_t domain, const Dataset &data) const;

private:
  void addKey(const genrec_model_desc &model, const std::vector<int32_t> &domains, KeyColumn &key,
              const ColumnPath &found, const std::string &file);

  genrec_model_desc extended;
  genrec_program_desc extendedProgram;
  std::vector<KeyColumn> columns;
  std::vector<genrec_feature_desc> features;
  std::vector<int32_t> read;
};

} // namespace genrec::rt

#endif // GENREC_RT_TRAINER_KEY_COLUMNS_H

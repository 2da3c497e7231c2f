//===- dataset_files.cpp - The files of a dataset, on all ranks -----------===//

#include "dataset_files.h"

#include "../comm/from_first_rank.h"
#include "arrow_results.h"
#include "decode_memory.h"

#include <arrow/buffer.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/dictionary.h>
#include <arrow/ipc/reader.h>
#include <arrow/ipc/writer.h>
#include <arrow/type.h>

namespace genrec::rt {

namespace {

Json toJson(const FileSummary &file) {
  const FileIdentity &identity = file.identity;
  return {file.path,      identity.machine, identity.device,         identity.inode,
          identity.size,  identity.changed, identity.footerChecksum, identity.contentChecksum,
          file.groupRows, file.groupBytes};
}

FileSummary fileFromJson(const Json &json) {
  FileSummary file;
  FileIdentity &identity = file.identity;
  size_t at = 0;
  auto take = [&](auto &value) { json.at(at++).get_to(value); };
  take(file.path);
  take(identity.machine);
  take(identity.device);
  take(identity.inode);
  take(identity.size);
  take(identity.changed);
  take(identity.footerChecksum);
  take(identity.contentChecksum);
  take(file.groupRows);
  take(file.groupBytes);
  return file;
}

/// Types as an Arrow schema, the one form of them that can be sent.
Json typesToJson(const KeyTypes &types) {
  std::vector<std::shared_ptr<arrow::Field>> fields;
  for (const auto &type : types)
    fields.push_back(arrow::field("", type ? type : arrow::null()));
  auto bytes = valueOf(arrow::ipc::SerializeSchema(*arrow::schema(fields), decodeMemory()));
  return bytes->ToString();
}

KeyTypes typesFromJson(const Json &json) {
  arrow::io::BufferReader bytes(arrow::Buffer::FromString(json.get<std::string>()));
  arrow::ipc::DictionaryMemo dictionaries;
  auto schema = valueOf(arrow::ipc::ReadSchema(&bytes, &dictionaries));
  KeyTypes types;
  for (const auto &field : schema->fields())
    types.push_back(field->type());
  return types;
}

} // namespace

DatasetFiles::DatasetFiles(const genrec_model_desc &model, const ReadRequest &request,
                           const FileSpec &spec, Communicator *comm)
    : model(model), request(request), comm(comm) {
  Json told = fromFirstRank(comm, [&] { return openAll(spec); });
  if (isFirstRank(comm))
    return;
  told.at("notes").get_to(skipped);
  keyTypes = typesFromJson(told.at("keys"));
  for (const Json &file : told.at("files")) {
    summaries.push_back(fileFromJson(file));
    names.push_back(summaries.back().path);
  }
  opened = std::make_unique<Opened[]>(names.size());
}

Json DatasetFiles::openAll(const FileSpec &spec) {
  names = listFiles(spec, &skipped);
  opened = std::make_unique<Opened[]>(names.size());
  keyTypes.resize(model.feature_count);
  Json files = Json::array();
  for (size_t i = 0; i < names.size(); ++i) {
    auto file = std::make_unique<const ParquetFile>(model, request, keyTypes, names[i]);
    summaries.push_back(file->summary());
    files.push_back(toJson(file->summary()));
    opened[i].file = std::move(file);
    opened[i].file->widenKeyTypes(keyTypes, *opened[0].file);
  }
  return {{"notes", skipped}, {"files", std::move(files)}, {"keys", typesToJson(keyTypes)}};
}

std::vector<DataFile> DatasetFiles::describe(const std::string &role) const {
  std::vector<DataFile> files;
  for (const FileSummary &file : summaries)
    files.push_back({role, file.path, file.identity.size, file.identity.contentChecksum});
  return files;
}

void DatasetFiles::requireSameType(int32_t feature) const {
  runTogether(comm, [&] {
    for (size_t i = 0; isFirstRank(comm) && i < size(); ++i)
      opened[i].file->requireSameType(feature, *opened[0].file,
                                      "files of one dataset must have it of one type");
  });
}

const ParquetFile &DatasetFiles::open(size_t file) const {
  Opened &one = opened[file];
  std::lock_guard<std::mutex> lock(one.mutex);
  if (!one.file)
    one.file = std::make_unique<const ParquetFile>(model, request, keyTypes, summaries[file]);
  return *one.file;
}

FoundColumns findColumns(const FileSpec &files, const std::vector<std::string> &columns,
                         Communicator *comm) {
  FoundColumns found;
  if (columns.empty())
    return found;
  Json told = fromFirstRank(comm, [&] {
    found.file = listFiles(files)[0];
    found.columns = columnsOf(found.file, columns);
    std::vector<int32_t> depths;
    KeyTypes types;
    for (const ColumnPath &column : found.columns) {
      depths.push_back(column.depth);
      types.push_back(column.type);
    }
    return Json{{"file", found.file}, {"depths", depths}, {"types", typesToJson(types)}};
  });
  if (isFirstRank(comm))
    return found;
  told.at("file").get_to(found.file);
  found.columns.resize(columns.size());
  const KeyTypes types = typesFromJson(told.at("types"));
  for (size_t i = 0; i < columns.size(); ++i) {
    told.at("depths").at(i).get_to(found.columns[i].depth);
    found.columns[i].type = types[i];
  }
  return found;
}

} // namespace genrec::rt

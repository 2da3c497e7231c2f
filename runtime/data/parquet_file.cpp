//===- parquet_file.cpp - One file of a dataset ---------------------------===//

#include "parquet_file.h"

#include "../core/text.h"
#include "arrow_results.h"
#include "decode_memory.h"
#include "footer_check.h"
#include "genrec_rt/batch.h"
#include "genrec_rt/error.h"
#include "genrec_rt/size.h"
#include "key_values.h"
#include "leaf_values.h"

#include <arrow/io/file.h>
#include <arrow/table.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

namespace genrec::rt {

namespace {

/// What to do about a file that cannot be read for the reason `why`.
const char *unreadableHelp(const std::string &why) {
  return why.find(std::strerror(EACCES)) != std::string::npos
             ? "let this user read it (chmod u+r), or name the files to read instead"
             : "it may be truncated, still being written, or no Parquet file: write it again";
}

/// Runs `body`; errors of Arrow and Parquet become an Error about `what`.
template <class Body> auto reading(const std::string &what, const Body &body) {
  try {
    return body();
  } catch (const Error &) {
    throw;
  } catch (const std::bad_alloc &) {
    throw; // no error of the file
  } catch (const std::exception &error) {
    // Thrift ends its messages with newlines.
    std::string why = error.what();
    if (why.find("std::bad_alloc") != why.npos) // of Thrift, which tells it as an error of its own
      throw std::bad_alloc();
    why.erase(why.find_last_not_of(" \n") + 1);
    std::replace(why.begin(), why.end(), '\n', ' ');
    throw Error(what + ": cannot be read: " + why, unreadableHelp(why));
  }
}

using OpenFile = std::shared_ptr<arrow::io::ReadableFile>;

OpenFile openFile(const std::string &path) {
  return valueOf(arrow::io::ReadableFile::Open(path, decodeMemory()));
}

std::unique_ptr<parquet::ParquetFileReader>
openReader(const OpenFile &file, std::shared_ptr<parquet::FileMetaData> metadata) {
  return parquet::ParquetFileReader::Open(file, parquet::ReaderProperties(decodeMemory()),
                                          std::move(metadata));
}

std::unique_ptr<parquet::arrow::FileReader>
arrowReader(std::unique_ptr<parquet::ParquetFileReader> reader) {
  parquet::ArrowReaderProperties properties(/*use_threads=*/false);
  // The files are local and whole row groups are decoded on threads of our own:
  // Arrow's read-ahead threads would only add to them.
  properties.set_pre_buffer(false);
  return valueOf(parquet::arrow::FileReader::Make(decodeMemory(), std::move(reader), properties));
}

parquet::arrow::SchemaManifest manifestOf(const parquet::FileMetaData &metadata) {
  parquet::arrow::SchemaManifest manifest;
  auto status =
      parquet::arrow::SchemaManifest::Make(metadata.schema(), metadata.key_value_metadata(),
                                           parquet::ArrowReaderProperties(), &manifest);
  if (!status.ok())
    throw std::runtime_error(status.message());
  return manifest;
}

const char *kNullHelp =
    "write the column with its type; where there are no entries, lists are empty";

/// `wish`: who reads the column.
void requireOnce(const std::string &file, const ColumnPath &found, const std::string &wish) {
  if (!found.repeated.empty())
    throw Error(
        file + ": has several columns '" + found.repeated + "', and " + wish,
        "which one is meant cannot be told: give them different names when the data is written");
}

[[noreturn]] void throwMissing(const std::string &file,
                               const parquet::arrow::SchemaManifest &manifest,
                               const std::string &path, const std::string &wish) {
  if (std::string above = nullColumnAbove(manifest, path); !above.empty())
    throw Error(file + ": has no column '" + path + "', which " + wish + ": column '" + above +
                    "' has nothing but nulls or empty lists, without a type of its own",
                kNullHelp);
  std::vector<std::string> available = leafPaths(manifest);
  std::string own = path.substr(path.find_last_of('.') + 1);
  if (own != path && std::find(available.begin(), available.end(), own) != available.end())
    throw Error(file + ": has no column '" + path + "', which " + wish + ", but '" + own +
                    "' outside of a list",
                "a row per " + path.substr(0, path.find_last_of('.')) +
                    "? rows of one request or user become lists by genrec.data.group");
  std::string help = suggestion(path, available);
  if (help.empty() && wish.starts_with("feature"))
    help = "write the column, or compile the model for this schema; of a folder that holds other "
           "files too, name those to read";
  throw Error(file + ": has no column '" + path + "', which " + wish + "; it has " +
                  listNames(available),
              help);
}

std::string listsIn(int32_t depth) {
  return depth == 0 ? "no list" : depth == 1 ? "a list" : std::to_string(depth) + " nested lists";
}

} // namespace

ParquetFile::ParquetFile(const genrec_model_desc &model, const ReadRequest &request,
                         const KeyTypes &keys, const std::string &path)
    : model(model) {
  plan.keyTypes = &keys;
  about.path = path;
  open(request, nullptr);
}

ParquetFile::ParquetFile(const genrec_model_desc &model, const ReadRequest &request,
                         const KeyTypes &keys, const FileSummary &told)
    : model(model) {
  plan.keyTypes = &keys;
  about.path = told.path;
  open(request, &told);
}

ParquetFile::ParquetFile(const ParquetFile &opened, const ReadRequest &request)
    : model(opened.model), metadata(opened.metadata) {
  plan.keyTypes = opened.plan.keyTypes;
  about.path = opened.about.path;
  about.identity = opened.about.identity;
  reading(name(), [&] {
    planColumns(request, manifestOf(*metadata));
    return 0;
  });
  measureGroups();
}

void ParquetFile::open(const ReadRequest &request, const FileSummary *told) {
  reading(name(), [&] {
    OpenFile file = openFile(name());
    about.identity = FileIdentity::of(file->file_descriptor(), name());
    if (told)
      about.identity.requireSameAs(told->identity, name());
    metadata = openReader(file, nullptr)->metadata();
    checkFooter(*metadata, name(), about.identity.size);
    planColumns(request, manifestOf(*metadata));
    return 0;
  });
  measureGroups();
}

void ParquetFile::measureGroups() {
  for (int group = 0; group < metadata->num_row_groups(); ++group) {
    auto description = metadata->RowGroup(group);
    about.groupRows.push_back(description->num_rows());
    Size bytes = 0;
    for (int leaf : plan.leaves) {
      auto column = description->ColumnChunk(leaf);
      // Numbers decode to at most 8 bytes and an offset per list.
      bool isText = column->type() == parquet::Type::BYTE_ARRAY;
      bytes += Size(column->num_values()) * 16;
      bytes += isText ? column->total_uncompressed_size() : 0;
    }
    about.groupBytes.push_back(
        bytes.value([&] { return name() + ", row group " + std::to_string(group); }));
  }
}

void ParquetFile::requireSameType(int32_t feature, const ParquetFile &first,
                                  const std::string &help) const {
  if (!haveSameValues(plan.featurePaths[feature].type, first.plan.featurePaths[feature].type))
    throw otherType("column", feature, first, help);
}

Error ParquetFile::otherType(const char *what, int32_t feature, const ParquetFile &first,
                             const std::string &help) const {
  const auto typeIn = [&](const ParquetFile &file) {
    return typeName(*plainType(file.plan.featurePaths[feature].type));
  };
  return Error(name() + ": " + what + " '" + model.features[feature].column + "' is " +
                   typeIn(*this) + ", in " + first.name() + " it is " + typeIn(first),
               help);
}

void ParquetFile::widenKeyTypes(KeyTypes &types, const ParquetFile &first) const {
  for (int32_t i = 0; i < model.feature_count; ++i) {
    if (!plan.readFeature[i] || model.features[i].type != GENREC_KEY)
      continue;
    const auto &own = plan.featurePaths[i].type;
    auto common = types[i] ? commonKeyType(types[i], own) : plainType(own);
    if (!common)
      throw otherType("key", i, first,
                      "one column is written for all files, and no type holds the values of both");
    types[i] = common;
  }
}

ColumnPath ParquetFile::pathOf(const parquet::arrow::SchemaManifest &manifest,
                               const std::string &path, const std::string &what) const {
  ColumnPath found;
  if (!findPath(manifest, path, found))
    throwMissing(name(), manifest, path, what + " reads");
  requireOnce(name(), found, what + " reads '" + path + "'");
  return found;
}

ColumnPath ParquetFile::pathOfDomain(const parquet::arrow::SchemaManifest &manifest,
                                     int32_t domain) const {
  std::string path = model.domains[domain].column;
  std::string what = std::string("domain '") + model.domains[domain].name + "'";
  ColumnPath found = pathOf(manifest, path, what);
  // It may end at a list of lists, whose inner ones open another domain.
  if (int32_t depth = domainDepth(model, domain); found.depth < depth)
    throw Error(name() + ": column '" + path + "' lies in " + listsIn(found.depth) + ", but " +
                    what + " lies in " + listsIn(depth),
                "a feature of a row has no list around it, one of a list has one, and so on");
  return found;
}

ColumnPath ParquetFile::pathOfFeature(const parquet::arrow::SchemaManifest &manifest,
                                      int32_t index) const {
  const genrec_feature_desc &feature = model.features[index];
  std::string path = feature.column, what = "feature '" + path + "'";
  ColumnPath found = pathOf(manifest, path, what);
  int32_t depth = domainDepth(model, feature.domain) + (feature.width > 0 ? 1 : 0);
  // A vector is null where its list is.
  bool fits = feature.type == GENREC_VALID ? found.depth >= depth : found.depth == depth;
  // Nulls alone have no type: neither that of a number nor that of a list of them, a vector.
  bool isNull = found.type->id() == arrow::Type::NA;
  if (fits || (isNull && feature.width > 0 && found.depth == depth - 1))
    return found;
  std::string wanted = std::string(" of domain '") + model.domains[feature.domain].name +
                       "' lies in " + listsIn(depth);
  if (feature.width > 0)
    wanted = ", " + std::to_string(feature.width) + " values per row" + wanted;
  throw Error(
      name() + ": column '" + path + "' " +
          (isNull ? "is null throughout, without a type of its own,"
                  : "lies in " + listsIn(found.depth) + ",") +
          " but " + what + wanted,
      isNull
          ? kNullHelp
          : "a feature of a row has no list around it, one of a list has one, and so on; several "
            "values per row are a list too");
}

void ParquetFile::checkType(int32_t index, const ColumnPath &path) const {
  const genrec_feature_desc &feature = model.features[index];
  std::string why;
  if (isReadable(*path.type, feature.type, why))
    return;
  throw Error(name() + ": column '" + feature.column + "' is " + typeName(*path.type) +
                  ", the model reads " + genrec_type_name(feature.type),
              why.empty() ? "write the column with that type, or compile the model for this schema"
                          : why);
}

void ParquetFile::planColumns(const ReadRequest &request,
                              const parquet::arrow::SchemaManifest &manifest) {
  plan.root = request.root;
  plan.readDomain = request.domains;
  plan.readFeature = request.features;
  plan.domainPaths.resize(model.domain_count);
  plan.featurePaths.resize(model.feature_count);
  for (int32_t i = 0; i < model.feature_count; ++i) {
    if (!plan.readFeature[i])
      continue;
    plan.featurePaths[i] = pathOfFeature(manifest, i);
    checkType(i, plan.featurePaths[i]);
    plan.leaves.push_back(plan.featurePaths[i].leaf);
  }
  for (int32_t i = 0; i < model.domain_count; ++i) {
    if (!plan.readDomain[i] || i == request.root)
      continue;
    plan.domainPaths[i] = pathOfDomain(manifest, i);
    plan.leaves.push_back(plan.domainPaths[i].leaf);
  }
  std::sort(plan.leaves.begin(), plan.leaves.end());
  plan.leaves.erase(std::unique(plan.leaves.begin(), plan.leaves.end()), plan.leaves.end());
}

std::vector<ColumnPath> columnsOf(const std::string &file,
                                  const std::vector<std::string> &columns) {
  return reading(file, [&] {
    auto metadata = openReader(openFile(file), nullptr)->metadata();
    auto manifest = manifestOf(*metadata);
    std::vector<ColumnPath> found(columns.size());
    for (size_t i = 0; i < columns.size(); ++i)
      if (!findPath(manifest, columns[i], found[i]))
        throwMissing(file, manifest, columns[i], "was asked for");
      else
        requireOnce(file, found[i], "'" + columns[i] + "' was asked for");
    return found;
  });
}

Chunk ParquetFile::decode(int group, OrderWatch &order) const {
  RowGroupLocation location{name(), group};
  std::string what = name() + ", row group " + std::to_string(group);
  auto table = reading(what, [&] {
    OpenFile file = openFile(name());
    about.identity.requireSame(file->file_descriptor(), name());
    // A reader per call: readers are not thread-safe.
    auto reader = arrowReader(openReader(file, metadata));
    auto read = reader->ReadRowGroup(group, plan.leaves);
    // The file changed while it was read, so neither data nor errors can be trusted.
    about.identity.requireSame(file->file_descriptor(), name());
    return valueOf(std::move(read));
  });
  if (table->num_rows() != about.groupRows[group] && !plan.leaves.empty())
    throw Error(what + ": holds " + std::to_string(table->num_rows()) +
                    " rows where its footer says " + std::to_string(about.groupRows[group]),
                unreadableHelp(""));
  Chunk chunk = decodeTable(model, plan, *table, location, order);
  chunk.rows = about.groupRows[group]; // a table without columns has no row count
  chunk.domains[plan.root].count = chunk.rows;
  return chunk;
}

} // namespace genrec::rt

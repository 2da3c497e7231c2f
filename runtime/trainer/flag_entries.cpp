//===- flag_entries.cpp - Flags of the form name=value --------------------===//

#include "flag_entries.h"

#include "../core/text.h"

#include <CLI/Error.hpp>

#include <charconv>
#include <system_error>

namespace genrec::rt {

namespace {

std::string knownCatalogues(const genrec_model_desc &model) {
  std::vector<std::string> names;
  for (int32_t i = 0; i < model.domain_count; ++i)
    if (model.domains[i].kind == GENREC_DOMAIN_CATALOGUE)
      names.push_back(model.domains[i].name);
  return listNames(names);
}

/// A count in all of `text`; 0 where it is none.
int64_t parseCount(std::string_view text) {
  int64_t count = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  return error == std::errc() && end == text.data() + text.size() ? count : 0;
}

void splitCatalogues(const genrec_model_desc &model, const std::vector<std::string> &entries,
                     Flags &flags) {
  for (const std::string &entry : entries) {
    size_t equals = entry.find('=');
    if (equals == std::string::npos || equals == 0)
      throw CLI::ValidationError("--catalogue", "'" + entry + "' is not of the form name=file");
    std::string name = entry.substr(0, equals);
    bool known = false;
    for (int32_t i = 0; i < model.domain_count; ++i)
      known |= model.domains[i].kind == GENREC_DOMAIN_CATALOGUE && name == model.domains[i].name;
    if (!known)
      throw CLI::ValidationError("--catalogue", "the model has no catalogue '" + name +
                                                    "'; it has " + knownCatalogues(model));
    flags.catalogues[name] = entry.substr(equals + 1);
  }
}

void splitHostTables(const std::vector<std::string> &entries, Flags &flags) {
  for (const std::string &entry : entries) {
    size_t equals = entry.rfind('=');
    int64_t rows = 0;
    if (equals != std::string::npos && equals > 0)
      rows = parseCount(std::string_view(entry).substr(equals + 1));
    if (rows < 1)
      throw CLI::ValidationError("--host-tables",
                                 "'" + entry + "' is not of the form table=rows, as user=1000000");
    if (!flags.hostTables.emplace(entry.substr(0, equals), rows).second)
      throw CLI::ValidationError("--host-tables",
                                 "'" + entry.substr(0, equals) + "' is there twice");
  }
}

void splitBatchTokens(const std::string &entry, Flags &flags) {
  if (entry.empty())
    return;
  size_t equals = entry.rfind('=');
  int64_t tokens = 0;
  if (equals != std::string::npos && equals > 0)
    tokens = parseCount(std::string_view(entry).substr(equals + 1));
  if (tokens < 1)
    throw CLI::ValidationError("--batch-tokens",
                               "'" + entry + "' is not of the form list=tokens, as history=76800");
  flags.tokenList = entry.substr(0, equals);
  flags.batchTokens = tokens;
}

} // namespace

void takeEntries(const FlagEntries &entries, const genrec_model_desc &model, Flags &flags) {
  splitCatalogues(model, entries.catalogues, flags);
  splitHostTables(entries.hostTables, flags);
  splitBatchTokens(entries.batchTokens, flags);
}

} // namespace genrec::rt

//===- flag_entries.cpp - Flags of the form name=value --------------------===//

#include "flag_entries.h"

#include "../core/text.h"

#include <CLI/Error.hpp>

#include <charconv>
#include <system_error>
#include <tuple>
#include <utility>

namespace genrec::rt {

namespace {

std::string knownCatalogues(const genrec_model_desc &model) {
  std::vector<std::string> names;
  for (int32_t i = 0; i < model.domain_count; ++i)
    if (model.domains[i].kind == GENREC_DOMAIN_CATALOGUE)
      names.push_back(model.domains[i].name);
  return listNames(names);
}

/// `entry` is name=count, of the form that `example` has; the count is 1 or more.
std::pair<std::string, int64_t> splitCount(const char *flag, const std::string &entry,
                                           const char *example) {
  size_t equals = entry.rfind('=');
  int64_t count = 0;
  if (equals != std::string::npos && equals > 0) {
    const char *begin = entry.data() + equals + 1, *end = entry.data() + entry.size();
    auto [stop, error] = std::from_chars(begin, end, count);
    if (error != std::errc() || stop != end)
      count = 0;
  }
  if (count < 1)
    throw CLI::ValidationError(flag, "'" + entry + "' is not of the form " + example);
  return {entry.substr(0, equals), count};
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
    auto [table, rows] = splitCount("--host-tables", entry, "table=rows, as user=1000000");
    if (!flags.hostTables.emplace(table, rows).second)
      throw CLI::ValidationError("--host-tables", "'" + table + "' is there twice");
  }
}

void splitBatchTokens(const std::string &entry, Flags &flags) {
  if (!entry.empty())
    std::tie(flags.tokenList, flags.batchTokens) =
        splitCount("--batch-tokens", entry, "list=tokens, as history=76800");
}

} // namespace

void takeEntries(const FlagEntries &entries, const genrec_model_desc &model, Flags &flags) {
  splitCatalogues(model, entries.catalogues, flags);
  splitHostTables(entries.hostTables, flags);
  splitBatchTokens(entries.batchTokens, flags);
}

} // namespace genrec::rt

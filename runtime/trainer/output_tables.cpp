//===- output_tables.cpp - The tables that predict writes -----------------===//

#include "output_tables.h"

#include "genrec_rt/batch.h"

#include <algorithm>
#include <filesystem>

namespace genrec::rt {

std::vector<OutputTable> outputTables(const genrec_model_desc &model, const std::string &out) {
  std::vector<OutputTable> tables;
  for (int32_t i = 0; i < model.output_count; ++i) {
    int32_t domain = model.outputs[i].domain;
    if (model.domains[rootDomain(model, domain)].kind == GENREC_DOMAIN_CATALOGUE)
      continue;
    auto found = std::find_if(tables.begin(), tables.end(),
                              [&](const OutputTable &table) { return table.domain == domain; });
    if (found == tables.end())
      found = tables.insert(tables.end(), {domain, {}, out});
    found->outputs.push_back(i);
  }
  for (OutputTable &table : tables)
    if (tables.size() > 1)
      table.path = (std::filesystem::path(out) /
                    (std::string(model.domains[table.domain].name) + ".parquet"))
                       .string();
  return tables;
}

} // namespace genrec::rt

//===- model_queries.cpp - What a model's description says ----------------===//

#include "model_queries.h"

#include "genrec_rt/batch.h"

namespace genrec::rt {

int32_t dataRoot(const genrec_model_desc &model) {
  for (int32_t i = 0; i < model.domain_count; ++i)
    if (model.domains[i].kind == GENREC_DOMAIN_DATA && model.domains[i].parent < 0)
      return i;
  return -1;
}

ReadSet readSet(const genrec_model_desc &model, const genrec_program_desc &program) {
  ReadSet set{std::vector<char>(model.domain_count), std::vector<char>(model.feature_count)};
  int32_t root = dataRoot(model);
  auto addDomain = [&](int32_t domain) {
    if (rootDomain(model, domain) != root)
      return;
    for (; domain >= 0; domain = model.domains[domain].parent)
      if (model.domains[domain].kind == GENREC_DOMAIN_DATA)
        set.domains[domain] = 1;
  };
  if (root >= 0)
    set.domains[root] = 1;
  for (int32_t i = 0; i < program.domain_count; ++i)
    addDomain(program.domains[i]);
  for (int32_t i = 0; i < program.feature_count; ++i) {
    int32_t domain = model.features[program.features[i]].domain;
    addDomain(domain);
    set.features[program.features[i]] = rootDomain(model, domain) == root;
  }
  for (int32_t i = 0; i < model.feature_count; ++i)
    if (model.features[i].has_padding_id && set.domains[model.features[i].domain])
      set.features[i] = 1;
  return set;
}

std::string describe(const genrec_location &location) {
  if (!location.file || !*location.file)
    return {};
  return std::string(location.file) + ":" + std::to_string(location.line);
}

} // namespace genrec::rt

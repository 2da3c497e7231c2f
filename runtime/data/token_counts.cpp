//===- token_counts.cpp - How long the lists of rows are ------------------===//

#include "token_counts.h"

#include <algorithm>

namespace genrec::rt {

int32_t TokenCounts::source() const {
  const genrec_domain_desc &desc = model.domains[domain];
  return desc.kind == GENREC_DOMAIN_DERIVED ? desc.truncated : domain;
}

std::vector<int64_t> TokenCounts::before(const Chunk &chunk) const {
  const int32_t list = source();
  const int64_t cut = domain == list ? INT64_MAX : model.domains[domain].max_length;
  // Entries before each row of the list's parent, then of the parent's parent, up to the root.
  const std::vector<int64_t> &offsets = chunk.domains[list].offsets;
  std::vector<int64_t> entries(offsets.size());
  for (size_t i = 0; i + 1 < offsets.size(); ++i)
    entries[i + 1] = entries[i] + std::min(offsets[i + 1] - offsets[i], cut);
  for (int32_t at = model.domains[list].parent; model.domains[at].parent >= 0;
       at = model.domains[at].parent) {
    std::vector<int64_t> above;
    for (int64_t offset : chunk.domains[at].offsets)
      above.push_back(entries[offset]);
    entries = std::move(above);
  }
  std::vector<int64_t> tokens(entries.size());
  for (size_t i = 0; i + 1 < entries.size(); ++i)
    tokens[i + 1] = tokens[i] + std::clamp<int64_t>(entries[i + 1] - entries[i], 1, most);
  return tokens;
}

} // namespace genrec::rt

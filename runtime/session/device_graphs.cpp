//===- device_graphs.cpp - Steps that were captured -----------------------===//

#include "device_graphs.h"

#include <algorithm>

namespace genrec::rt {

StepGraph &StepGraphs::of(const GraphKey &key) {
  auto found =
      std::find_if(kept.begin(), kept.end(), [&](const auto &graph) { return graph->key == key; });
  if (found == kept.end()) {
    if (kept.size() == most)
      kept.pop_back();
    kept.push_back(std::make_unique<StepGraph>(device));
    kept.back()->key = key;
    found = std::prev(kept.end());
  }
  std::rotate(kept.begin(), found, std::next(found));
  return *kept.front();
}

void StepGraphs::refuse(const std::string &why) {
  if (std::find(reasons.begin(), reasons.end(), why) == reasons.end())
    reasons.push_back(why);
}

} // namespace genrec::rt

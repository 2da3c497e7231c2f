//===- found_keys.cpp - By which keys a step found its rows ---------------===//

#include "found_keys.h"

#include <algorithm>

namespace genrec::rt {

void FoundKeys::note(float *const *handles, const int64_t *keys, int64_t count) {
  if (count == 0)
    return;
  forget(handles, count);
  auto unused = std::find_if(lookups.begin(), lookups.end(),
                             [](const Lookup &lookup) { return lookup.count == 0; });
  Lookup &lookup = unused == lookups.end() ? lookups.emplace_back() : *unused;
  lookup.handles = handles;
  lookup.count = count;
  std::copy_n(keys, count, lookup.keys.ensure(count));
}

void FoundKeys::forget(float *const *handles, int64_t count) {
  for (Lookup &lookup : lookups)
    if (handles < lookup.handles + lookup.count && lookup.handles < handles + count)
      lookup.count = 0;
}

void FoundKeys::clear() {
  for (Lookup &lookup : lookups)
    lookup.count = 0;
}

const int64_t *FoundKeys::find(float *const *handles, int64_t count) const {
  for (const Lookup &lookup : lookups)
    if (lookup.count > 0 && handles >= lookup.handles &&
        handles + count <= lookup.handles + lookup.count)
      return lookup.keys.data() + (handles - lookup.handles);
  return nullptr;
}

} // namespace genrec::rt

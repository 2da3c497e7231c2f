//===- from_first_rank.cpp - What rank 0 finds out, on all ranks ----------===//

#include "from_first_rank.h"

#include <vector>

namespace genrec::rt {

Json fromFirstRank(Communicator *comm, const std::function<Json()> &make) {
  if (!comm || comm->getSize() == 1)
    return make();
  std::vector<uint8_t> bytes; // CBOR
  runTogether(comm, [&] {
    if (isFirstRank(comm))
      bytes = Json::to_cbor(make());
  });
  auto size = static_cast<int64_t>(bytes.size());
  comm->broadcast(&size, sizeof size, 0);
  bytes.resize(static_cast<size_t>(size));
  comm->broadcast(bytes.data(), size, 0);
  return Json::from_cbor(bytes);
}

} // namespace genrec::rt

//===- same_on_ranks.cpp - What must not differ among ranks ----------------===//

#include "same_on_ranks.h"

#include "../core/checksum.h"

#include <algorithm>

namespace genrec::rt {

void requireSame(Communicator *comm, const std::string &what,
                 const std::vector<std::string> &lines) {
  if (!comm || comm->getSize() == 1)
    return;
  std::string text;
  for (const std::string &line : lines)
    text += line + "\n";
  uint64_t mine = checksumOf(text);
  std::vector<uint64_t> all(comm->getSize());
  comm->allGather(&mine, all.data(), sizeof mine);
  auto other = std::find_if(all.begin(), all.end(), [&](uint64_t each) { return each != all[0]; });
  if (other == all.end())
    return;
  auto root = static_cast<int32_t>(other - all.begin());
  auto broadcastText = [&](int32_t from) {
    std::string shared = text;
    auto bytes = static_cast<int64_t>(shared.size());
    comm->broadcast(&bytes, sizeof bytes, from);
    shared.resize(static_cast<size_t>(bytes));
    comm->broadcast(shared.data(), bytes, from);
    return shared;
  };
  std::string expected = broadcastText(0), theirs = broadcastText(root);
  // The first line that differs, of each.
  auto differs = std::mismatch(theirs.begin(), theirs.end(), expected.begin(), expected.end());
  auto lineAt = [](const std::string &from, size_t at) {
    size_t begin = at == 0 ? 0 : from.rfind('\n', at - 1) + 1;
    std::string line = from.substr(begin, from.find('\n', at) - begin);
    return line.empty() ? "nothing" : line;
  };
  auto at = static_cast<size_t>(differs.first - theirs.begin());
  throw Error("rank " + std::to_string(root) + " has other " + what +
                  " than rank 0: " + lineAt(theirs, at) + "; rank 0: " + lineAt(expected, at),
              "start all ranks with the same binary, flags and data");
}

} // namespace genrec::rt

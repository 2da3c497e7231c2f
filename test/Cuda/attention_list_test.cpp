// The list of tiles that the Hopper attention kernels follow.

#include "attention_testing.h"

#include <map>

namespace {

using namespace genrec::rt::cuda;
using namespace genrec::rt::cuda::testing;

constexpr int kRows = 128, kColumns = 64;

/// The tiles of a call, in the order of its list. One block makes it, or several.
template <class C, Over What>
std::vector<AttentionTile> listed(const std::vector<int64_t> &offsets, int64_t heads,
                                  int64_t maxLength, int64_t spareLists, bool oneBlock) {
  DeviceArray<int64_t> bounds(offsets);
  const auto lists = static_cast<int64_t>(offsets.size()) - 1;
  DeviceArray<genrec_domain> above(
      {genrec_domain{lists, lists + spareLists, nullptr, nullptr, nullptr, nullptr, 0, nullptr}});
  DeviceArray<genrec_domain> domain(
      {genrec_domain{offsets.back(), offsets.back(), bounds.data(), nullptr, nullptr, above.data(),
                     maxLength, nullptr}});
  AttentionArgs<Bf16> args;
  args.domain = domain.data();
  args.parents = lists + spareLists;
  args.offsets = bounds.data();
  args.heads = heads;
  args.maxLength = maxLength;
  args.rows = offsets.back();
  // Memory holds anything; one tile more than there may be shows writes behind the last one.
  DeviceArray<int> counts(std::vector<int>(2 * kBins + kListLaunches, 7)), count({-1});
  const int64_t most = detail::mostTiles(args, kRows);
  DeviceArray<AttentionTile> tiles(
      std::vector<AttentionTile>(static_cast<size_t>(most + 1), AttentionTile{-7, -7, -7, -7}));
  const TileList list{counts.data(), counts.data() + kBins, counts.data() + 2 * kBins, count.data(),
                      tiles.data()};
  detail::makeTileList<C, What, kRows, kColumns>(args, list, testStream(),
                                                 oneBlock ? kOneBlockTiles : 0);
  GENREC_CUDA_CHECK(cudaDeviceSynchronize());
  for (int launch = 0; launch < kListLaunches; ++launch)
    EXPECT_EQ(counts.read()[static_cast<size_t>(2 * kBins + launch)], 0); // tiles taken
  std::vector<AttentionTile> result = tiles.read();
  EXPECT_LE(count.read()[0], most);
  EXPECT_EQ(result.back().list, -7);
  result.resize(static_cast<size_t>(count.read()[0]));
  return result;
}

/// Every tile with rows is in the list once, and no other.
void expectEachOnce(const std::vector<AttentionTile> &tiles, const std::vector<int64_t> &offsets,
                    int64_t heads) {
  std::map<std::vector<int64_t>, int> times;
  for (const AttentionTile &tile : tiles)
    ++times[{tile.list, tile.head, tile.begin}];
  size_t expected = 0;
  for (size_t list = 0; list + 1 < offsets.size(); ++list)
    for (int64_t head = 0; head < heads; ++head)
      for (int64_t begin = 0; begin < offsets[list + 1] - offsets[list]; begin += kRows, ++expected)
        EXPECT_EQ((times[{static_cast<int64_t>(list), head, begin}]), 1)
            << "list " << list << ", head " << head << ", row " << begin;
  EXPECT_EQ(tiles.size(), expected);
}

using Causal = AttentionConfig<Bf16, 64, 64, ScoreKind::silu, kCausal>;

void expectEveryTileOnceAndTheLongestFirst(bool oneBlock) {
  const std::vector<int64_t> offsets = {0, 0, 700, 701, 829, 829, 1900, 2000};
  const auto forward = listed<Causal, Over::keys>(offsets, 3, 1100, 4, oneBlock);
  expectEachOnce(forward, offsets, 3);
  for (size_t i = 1; i < forward.size(); ++i) // queries further behind see more keys
    EXPECT_LE(forward[i].begin, forward[i - 1].begin + kRows) << i;
  const auto backward = listed<Causal, Over::queries>(offsets, 3, 1100, 0, oneBlock);
  expectEachOnce(backward, offsets, 3);
  auto after = [&](const AttentionTile &tile) {
    const auto list = static_cast<size_t>(tile.list);
    return offsets[list + 1] - offsets[list] - tile.begin;
  };
  for (size_t i = 1; i < backward.size(); ++i) // keys further in front are seen by more queries
    EXPECT_LE(after(backward[i]), after(backward[i - 1]) + kRows) << i;
}

TEST(AttentionList, HasEveryTileOnceAndTheLongestFirst) {
  expectEveryTileOnceAndTheLongestFirst(/*oneBlock=*/true);
}
TEST(AttentionList, OfSeveralBlocksHasEveryTileOnceAndTheLongestFirst) {
  expectEveryTileOnceAndTheLongestFirst(/*oneBlock=*/false);
}

/// Lists and heads whose keys and values do not fit into the cache together come part by part, the
/// last part a whole one.
TEST(AttentionList, PartsFitIntoTheCache) {
  constexpr int64_t kLength = 65536, kHeads = 2, kLists = 3;
  std::vector<int64_t> offsets;
  for (int64_t list = 0; list <= kLists; ++list)
    offsets.push_back(list * kLength);
  const auto tiles = listed<Causal, Over::keys>(offsets, kHeads, kLength, 0, /*oneBlock=*/true);
  expectEachOnce(tiles, offsets, kHeads);
  constexpr int64_t kPairs = kPartBytes / (kLength * kSharedRowBytes<Causal, Over::keys>);
  static_assert(kPairs == 2);
  const size_t perPart = static_cast<size_t>(kPairs * kLength / kRows);
  for (size_t i = 0; i < tiles.size(); ++i) {
    EXPECT_EQ(static_cast<size_t>((tiles[i].list * kHeads + tiles[i].head) / kPairs), i / perPart);
    if (i % perPart != 0) { // in a part the longest come first, by 32 classes
      EXPECT_LE(tiles[i].begin, tiles[i - 1].begin + kLength / kClasses + kRows) << i;
    }
  }
}

} // namespace

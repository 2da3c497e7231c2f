// The mask by tiles against the mask pair by pair, and its definition.

#include "attention_testing.h"

namespace of_mask {
namespace {

using namespace genrec::rt::cuda;

template <unsigned Features> using Config = AttentionConfig<float, 8, 8, ScoreKind::silu, Features>;

/// attention_args.h, word for word.
template <class C> bool seesByDefinition(int n, int c, int t, int window, int i, int j) {
  const auto isTarget = [&](int row) { return C::Masked && row >= n - t; };
  const auto isContext = [&](int row) { return C::Masked && row < c && !isTarget(row); };
  if (isTarget(j))
    return i == j;
  if (isContext(i) || isContext(j))
    return true;
  return !(C::Causal && j > i) && !(C::HasWindow && window > 0 && std::abs(i - j) >= window);
}

template <class C> void checkTiles(int n, int c, int t, int window, int rows, int columns) {
  const ListMask<C> mask(n, c, t, window);
  for (int q = 0; q < n; q += rows)
    for (int k = 0; k < n; k += columns) {
      const RowRange queries{q, std::min(q + rows, n)}, keys{k, std::min(k + columns, n)};
      int seen = 0;
      for (int i = queries.begin; i < queries.end; ++i)
        for (int j = keys.begin; j < keys.end; ++j) {
          ASSERT_EQ(mask.sees(i, j), seesByDefinition<C>(n, c, t, window, i, j))
              << "n " << n << " c " << c << " t " << t << " window " << window << " pair " << i
              << " " << j;
          if (!mask.sees(i, j))
            continue;
          ++seen;
          const RowRange ks = mask.keysOf(queries), qs = mask.queriesOf(keys);
          ASSERT_TRUE(j >= ks.begin && j < ks.end)
              << "n " << n << " c " << c << " t " << t << " window " << window;
          ASSERT_TRUE(i >= qs.begin && i < qs.end)
              << "n " << n << " c " << c << " t " << t << " window " << window;
        }
      const int pairs = (queries.end - queries.begin) * (keys.end - keys.begin);
      ASSERT_TRUE(seen == 0 || mask.anySeen(queries, keys));
      ASSERT_TRUE(seen == pairs || !mask.allSeen(queries, keys))
          << "n " << n << " c " << c << " t " << t << " window " << window << " tile " << q << " "
          << k;
      // Where nothing is special both are exact but for the triangle's corner.
      if (c == 0 && t == 0 && window == 0 && (q != k || !C::Causal))
        ASSERT_EQ(mask.allSeen(queries, keys), seen == pairs);
      if (c == 0 && t == 0)
        ASSERT_EQ(mask.anySeen(queries, keys), seen > 0);
      ASSERT_FALSE(mask.allSeen({q, n + 1}, keys));
    }
}

template <unsigned Features> void checkMask() {
  for (int n : {1, 2, 7, 16, 25})
    for (int c : {0, 1, 3, 30})
      for (int t : {0, 1, 4, 30})
        for (int window : {0, 1, 5, 40})
          for (int tile : {1, 4, 8})
            checkTiles<Config<Features>>(n, c, t, window, tile, tile == 4 ? 8 : tile);
}

TEST(AttentionMask, TilesAgreeWithPairs) {
  checkMask<0>();
  checkMask<kCausal>();
  checkMask<kCausal + kWindow>();
  checkMask<kWindow>();
  checkMask<kMasked>();
  checkMask<kCausal + kMasked>();
  checkMask<kMasked + kWindow>();
  checkMask<kCausal + kMasked + kWindow>();
}

} // namespace
} // namespace of_mask

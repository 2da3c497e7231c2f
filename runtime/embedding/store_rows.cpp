//===- store_rows.cpp - The embedding store: memory of its rows -----------===//

#include "genrec_rt/store.h"

#include <algorithm>
#include <functional>

namespace genrec::rt {

namespace {

/// Rows per chunk of the parallel-for.
constexpr int64_t kInitializeGrain = 256, kIdentifyGrain = 2048;
/// Rows whose ids are on their way from memory while those before them are answered.
constexpr int64_t kIdsAhead = 32;

/// Orders chunks by address.
bool isBefore(const std::pair<const float *, int64_t> &a,
              const std::pair<const float *, int64_t> &b) {
  return std::less<>()(a.first, b.first);
}

} // namespace

/// One chunk more: of huge pages, which cost less to be given and to be reached at random, but
/// for the first, which is all that a small table has.
template <class T> static void addChunk(std::vector<T *> &chunks, int64_t bytes) {
  void *chunk = allocateAligned(bytes);
  if (!chunks.empty())
    adviseHugePages(chunk, bytes);
  chunks.push_back(static_cast<T *>(chunk));
}

void EmbeddingStore::allocateAhead() {
  while (static_cast<int64_t>(chunks.size()) << chunkShift < rowCount + chunkMask + 1) {
    addChunk(chunks, (chunkMask + 1) * stride * 4);
    const std::pair<const float *, int64_t> last(chunks.back(), chunks.size() - 1);
    chunksByAddress.insert(
        std::upper_bound(chunksByAddress.begin(), chunksByAddress.end(), last, isBefore), last);
  }
  while (static_cast<int64_t>(idChunks.size()) << kIdShift < rowCount + kIdChunk)
    addChunk(idChunks, kIdChunk * 8);
}

void EmbeddingStore::initializeValues(int64_t key, float *values) const {
  const RowInitializer &initializer = config.initializerOf(key);
  if (config.element == RowElement::f32)
    return initializer.fill(config.idOf(key), config.dim, values);
  static thread_local std::vector<float> wide;
  wide.resize(static_cast<size_t>(config.dim));
  initializer.fill(config.idOf(key), config.dim, wide.data());
  packValues(wide.data(), config.dim, values);
}

void EmbeddingStore::initializeRows(genrec_rt_pool *pool, int64_t from, int64_t to) {
  parallelFor(pool, to - from, kInitializeGrain, [&](int64_t begin, int64_t end, int64_t) {
    for (int64_t number = from + begin; number < from + end; ++number) {
      float *values = row(number), *states = values + config.stateOffset();
      initializeValues(id(number), values);
      std::fill(values + config.valueFloats(), values + stride, 0.0f);
      if (config.states > 0 && config.initialAccumulator != 0)
        std::fill(states, states + config.stateWidth(),
                  static_cast<float>(config.initialAccumulator));
    }
  });
}

/// The numbers of the rows at some addresses, -1 where there is none.
void EmbeddingStore::numberRows(float *const *rows, int64_t count, int64_t *numbers) const {
  // The last chunk that does not begin behind an address. Addresses come in no order: branches of a
  // search would be predicted wrongly half of the time, so all searches go in step, without any.
  const std::pair<const float *, int64_t> *sorted = chunksByAddress.data();
  std::fill_n(numbers, count, 0);
  for (size_t left = chunksByAddress.size(); left > 1; left -= left / 2)
    for (int64_t i = 0; i < count; ++i) {
      const int64_t next = numbers[i] + static_cast<int64_t>(left / 2);
      numbers[i] = std::less_equal<>()(sorted[next].first, rows[i]) ? next : numbers[i];
    }
  for (int64_t i = 0; i < count; ++i) {
    const auto [begin, chunk] = sorted[numbers[i]];
    // Exact, as rows are whole strides apart; a division takes several times as long.
    const auto strides = static_cast<double>(rows[i] - begin) * strideInverse;
    const auto inChunk = static_cast<int64_t>(strides + 0.5), first = chunk << chunkShift;
    const bool isInChunk = std::less_equal<>()(begin, rows[i]) && inChunk <= chunkMask;
    numbers[i] = isInChunk && first + inChunk < rowCount ? first + inChunk : -1;
  }
}

void EmbeddingStore::identify(const StoreStream &on, float *const *rows, int64_t count,
                              const int64_t *counted, uint64_t *identities) const {
  parallelFor(on.pool, counted ? *counted : count, kIdentifyGrain,
              [&](int64_t begin, int64_t end, int64_t) {
                // Ids come from memory: those of a block are on their way while the block before is
                // done.
                int64_t numbers[2][kIdsAhead];
                auto sizeAt = [&](int64_t first) {
                  return std::clamp<int64_t>(end - first, 0, kIdsAhead);
                };
                auto start = [&](int64_t first, int64_t *of) {
                  numberRows(rows + first, sizeAt(first), of);
                  for (int64_t i = 0; i < sizeAt(first); ++i)
                    if (of[i] >= 0)
                      __builtin_prefetch(&idChunks[of[i] >> kIdShift][of[i] & (kIdChunk - 1)]);
                };
                start(begin, numbers[0]);
                for (int64_t first = begin, turn = 0; first < end; first += kIdsAhead, turn ^= 1) {
                  start(first + kIdsAhead, numbers[turn ^ 1]);
                  for (int64_t i = 0; i < sizeAt(first); ++i)
                    identities[first + i] =
                        numbers[turn][i] < 0 ? 0 : config.identityOf(id(numbers[turn][i]));
                }
              });
}

} // namespace genrec::rt

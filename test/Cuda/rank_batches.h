//===- rank_batches.h - Batches of a model's portions ------------*- C++ -*-===//

#ifndef GENREC_TEST_CUDA_RANK_BATCHES_H
#define GENREC_TEST_CUDA_RANK_BATCHES_H

#include "rank_model.h"

#include "genrec_rt/portions.h"
#include "genrec_rt/session.h"

#include <utility>
#include <vector>

namespace genrec::rt::cuda::test {

constexpr int32_t kPortions = 4;

/// Rows [n p / S, n (p + 1) / S) of a batch.
inline Samples portionOf(const Samples &batch, int32_t portion) {
  const auto count = static_cast<int64_t>(batch.ids.size());
  const int64_t first = count * portion / kPortions, last = count * (portion + 1) / kPortions;
  return {{batch.ids.begin() + first, batch.ids.begin() + last},
          {batch.labels.begin() + first, batch.labels.begin() + last}};
}

class PortionSource : public BatchSource {
public:
  PortionSource(const std::vector<Samples> &samples, PortionRange own) {
    for (const Samples &each : samples)
      for (int32_t portion = own.first; portion < own.first + own.count; ++portion)
        batches.push_back(batchOf(portionOf(each, portion)));
  }
  bool next(Batch &batch) override {
    if (at == batches.size())
      return false;
    std::swap(batch, batches[at++]);
    return true;
  }

private:
  std::vector<Batch> batches;
  size_t at = 0;
};

} // namespace genrec::rt::cuda::test

#endif // GENREC_TEST_CUDA_RANK_BATCHES_H

//===- rank_batches.h - Batches of a model's portions ------------*- C++ -*-===//

#ifndef GENREC_TEST_CUDA_RANK_BATCHES_H
#define GENREC_TEST_CUDA_RANK_BATCHES_H

#include "prepared_source.h"
#include "rank_model.h"

#include "genrec_rt/portions.h"

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

/// The batches of a rank's portions.
class PortionSource : public PreparedSource {
public:
  PortionSource(const std::vector<Samples> &samples, PortionRange own)
      : PreparedSource(batchesOf(samples, own)) {}

private:
  static std::vector<Batch> batchesOf(const std::vector<Samples> &samples, PortionRange own) {
    std::vector<Batch> batches;
    for (const Samples &each : samples)
      for (int32_t portion = own.first; portion < own.first + own.count; ++portion)
        batches.push_back(batchOf(portionOf(each, portion)));
    return batches;
  }
};

} // namespace genrec::rt::cuda::test

#endif // GENREC_TEST_CUDA_RANK_BATCHES_H

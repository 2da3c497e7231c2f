//===- added_by_pieces.h - Long sums as devices order them -------*- C++ -*-===//

#ifndef GENREC_TEST_CUDA_ADDED_BY_PIECES_H
#define GENREC_TEST_CUDA_ADDED_BY_PIECES_H

#include "genrec_rt/kernels/cuda/segments_warp.h"

#include <algorithm>
#include <vector>

namespace genrec::rt::cuda::test {

/// The sum of rows: `add(items)` where there are at most kMostSummed, else that of pieces of so
/// many, and so on.
template <class Add>
std::vector<float> addedByPieces(std::vector<std::vector<float>> items, const Add &add) {
  const auto most = static_cast<size_t>(kMostSummed);
  while (items.size() > most) {
    std::vector<std::vector<float>> pieces;
    for (size_t at = 0; at < items.size(); at += most)
      pieces.push_back(
          add({items.begin() + static_cast<int64_t>(at),
               items.begin() + static_cast<int64_t>(std::min(items.size(), at + most))}));
    items = std::move(pieces);
  }
  return add(items);
}

} // namespace genrec::rt::cuda::test

#endif // GENREC_TEST_CUDA_ADDED_BY_PIECES_H

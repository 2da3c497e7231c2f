//===- rank_model.h - A model for devices of several ranks ------*- C++ -*-===//
//
// device_model.h's regression with the stages of a model that portions train:
//
//   dispatch    looks the rows up
//   compute     loss and gradients; gives them to the sums
//   update      of the sums over all portions: SGD on the weight and on the rows that a rank owns
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TEST_CUDA_RANK_MODEL_H
#define GENREC_TEST_CUDA_RANK_MODEL_H

#include "device_model.h"

namespace genrec::rt::cuda::test {

/// The id that `looksUpLater` looks up as well, below `kLaterIds`.
int64_t laterId(int64_t id, const float *row);
constexpr int64_t kLaterIds = 40;

/// What the compute stage does besides. With `looksUpLater` it looks up an id of the same table that
/// it makes of the row of each sample; the sample's row is the sum of both. With `meetsLate` portions
/// meet between finding the rows that they touch and giving their sums. With `sumsFirst` the dispatch
/// stage gives to a sum, as weights of losses do.
enum class RankCompute { plain, looksUpLater, meetsLate, sumsFirst };
const genrec_model_desc &rankModel(RankCompute how = RankCompute::plain);

} // namespace genrec::rt::cuda::test

#endif // GENREC_TEST_CUDA_RANK_MODEL_H

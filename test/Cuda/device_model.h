//===- device_model.h - A model for a device, written by hand ----*- C++ -*-===//
//
// Linear regression over rows of a table, through the interface that emitted stages use:
//
//   sample      features: id, label
//   logit = weight . row(id);  loss = sum of (logit - label)^2;  SGD with a decaying rate on both
//
//   dispatch    looks the rows up and counts them
//   compute     the rest
//
// Sums are those of one thread, so a loop of the host has the same bits.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TEST_CUDA_DEVICE_MODEL_H
#define GENREC_TEST_CUDA_DEVICE_MODEL_H

#include "genrec_rt/session.h"

#include <vector>

namespace genrec::rt::cuda::test {

constexpr int64_t kDim = 4;
constexpr double kRate = 0.05;

/// With the stages above, and a program that evaluates; with `lateLookup` the compute stage looks
/// the rows up once more.
const genrec_model_desc &deviceModel(bool lateLookup = false);

struct Samples {
  std::vector<int64_t> ids;
  std::vector<float> labels;
};
/// `count` samples with ids below `ids`, a function of `seed`.
Samples drawSamples(uint64_t seed, int64_t count, int64_t ids);
Batch batchOf(const Samples &samples);

/// Evaluates lists: the loss is how many items these have on average. The compute stage counts as
/// many of a list as the longest has, and as many in all as there is room for, by what the host
/// knows, as launches of kernels over lists do.
const genrec_model_desc &listModel();
Batch batchOfLists(const std::vector<int64_t> &lengths);

/// An id that the compute stage makes of a sample's, given the row of that one.
using LaterId = int64_t (*)(int64_t id, const float *row);

/// What the model says of these batches, one step each, starting with `weight`: losses, then the
/// weight and the rows by id. With `later`, a sample's row is the sum of its own and of that one's.
struct Trained {
  std::vector<float> losses;
  std::vector<float> weight;
  std::vector<std::vector<float>> rows; ///< by id; empty where it never occurred
};
Trained trainOnHost(const std::vector<Samples> &batches, std::vector<float> weight, int64_t ids,
                    LaterId later = nullptr);

/// The loss that batches have, each by itself, with what was trained; ids that never occurred have
/// new rows.
struct Trained;
std::vector<float> evaluateOnHost(const std::vector<Samples> &batches, const Trained &trained);

} // namespace genrec::rt::cuda::test

#endif // GENREC_TEST_CUDA_DEVICE_MODEL_H

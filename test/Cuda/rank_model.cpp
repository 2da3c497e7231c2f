//===- rank_model.cpp - A model for devices of several ranks --------------===//

#include "rank_model.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/launch.h"

namespace genrec::rt::cuda::test {

namespace {

enum Domain { sample, touched, owned };
enum Buffer {
  handles,
  gradients,
  loss,
  touchedRows,
  segments,
  weightGradient,
  rate,
  total,
  laterIds,
  laterHandles,
  whole,
  changes
};

template <class T> T *at(genrec_step *step, Buffer buffer) {
  return static_cast<T *>(step->buffers[buffer]);
}

__host__ __device__ int64_t makeId(int64_t id, const float *row) {
  return (id * 7 + (row[0] > 0.2F ? 3 : 4)) % kLaterIds;
}

__global__ void laterKernel(const genrec_step *step, const int64_t *ids, float *const *rows,
                            int64_t *later) {
  for (int64_t i = 0; i < step->domains[sample].count; ++i)
    later[i] = makeId(ids[i], rows[i]);
}

/// loss[0] = sum of squares, loss[1] = rows; gradients of rows and of the weight. `later` may be
/// null.
__global__ void forwardKernel(const genrec_step *step, float *const *rows, float *const *later,
                              const float *labels, const float *weight, float *loss,
                              float *gradients, float *dWeight) {
  const int64_t count = step->domains[sample].count;
  loss[0] = 0;
  loss[1] = static_cast<float>(count);
  for (int64_t d = 0; d < kDim; ++d)
    dWeight[d] = 0;
  for (int64_t i = 0; i < count; ++i) {
    float logit = 0, row[kDim];
    for (int64_t d = 0; d < kDim; ++d) {
      row[d] = later ? rows[i][d] + later[i][d] : rows[i][d];
      logit += weight[d] * row[d];
    }
    const float off = logit - labels[i];
    loss[0] += off * off;
    for (int64_t d = 0; d < kDim; ++d) {
      gradients[i * kDim + d] = 2 * off * weight[d];
      dWeight[d] += 2 * off * row[d];
    }
  }
}

/// `capacity`: of the rows, as the host knows it; so many `changes` there are.
__global__ void updateKernel(const genrec_step *step, float *const *rows, const float *sums,
                             const float *rate, float *weight, const float *dWeight,
                             int64_t capacity, float *changes) {
  const int64_t count = min(step->domains[owned].count, capacity);
  for (int64_t i = 0; i < count * kDim; ++i)
    changes[i] = *rate * sums[i];
  for (int64_t i = 0; i < count * kDim; ++i)
    rows[i / kDim][i % kDim] -= changes[i];
  for (int64_t d = 0; d < kDim; ++d)
    weight[d] -= *rate * dWeight[d];
}

void dispatch(genrec_step *step) {
  genrec_rt_table_rows(step, 0, &step->domains[sample],
                       static_cast<const int64_t *>(step->columns[0].values), nullptr,
                       at<float *>(step, handles));
}

void dispatchAndSum(genrec_step *step) {
  dispatch(step);
  const float *partial[] = {static_cast<const float *>(step->columns[1].values)};
  const int64_t floats[] = {1};
  const int32_t parameters[] = {-1};
  genrec_rt_contribute(step, 1, 1, partial, floats, parameters);
}

/// The rest of the stage, given the rows of samples: one or two lists of them.
void computeWith(genrec_step *step, int32_t parts, float *const *later, bool meets = false) {
  genrec_domain *samples = &step->domains[sample], *distinct = &step->domains[touched];
  GENREC_CUDA_LAUNCH(kernels::streamOf(step), (LaunchShape{1, 1}), forwardKernel, step->device,
                     at<float *>(step, handles), later,
                     static_cast<const float *>(step->columns[1].values), step->parameters[0].value,
                     at<float>(step, loss), at<float>(step, gradients),
                     at<float>(step, weightGradient));
  genrec_rt_report_device_loss(step, 0, at<float>(step, loss), at<float>(step, loss) + 1);
  const genrec_domain *domains[] = {samples, samples};
  float *const *lists[] = {at<float *>(step, handles), later};
  const float *from[] = {at<float>(step, gradients), at<float>(step, gradients)},
              *partial[] = {at<float>(step, weightGradient)};
  const int64_t strides[] = {kDim, kDim}, *parents[] = {nullptr, nullptr}, floats[] = {kDim};
  const int32_t parameters[] = {0};
  genrec_rt_contribute(step, 0, 1, partial, floats, parameters);
  genrec_rt_unique_rows(step, 0, parts, domains, lists, from, strides, parents, kDim, 1, distinct,
                        at<float *>(step, touchedRows), at<void>(step, segments));
  if (meets) {
    float *sums[] = {at<float>(step, whole)};
    genrec_rt_contribute(step, 1, 1, partial, floats, parameters);
    genrec_rt_collect(step, 1, 1, partial, floats, sums);
  }
  genrec_rt_contribute_segments(step, 0, distinct, at<float *>(step, touchedRows),
                                at<void>(step, segments), parts, from, strides, kDim);
}

void compute(genrec_step *step) { computeWith(step, 1, nullptr); }
void computeAndMeet(genrec_step *step) { computeWith(step, 1, nullptr, true); }

void computeWithLookup(genrec_step *step) {
  GENREC_CUDA_LAUNCH(kernels::streamOf(step), (LaunchShape{1, 1}), laterKernel, step->device,
                     static_cast<const int64_t *>(step->columns[0].values),
                     at<float *>(step, handles), at<int64_t>(step, laterIds));
  genrec_rt_table_rows(step, 0, &step->domains[sample], at<int64_t>(step, laterIds), nullptr,
                       at<float *>(step, laterHandles));
  computeWith(step, 2, at<float *>(step, laterHandles));
}

void update(genrec_step *step) {
  genrec_rt_collect_rows(step, 0, &step->domains[touched], &step->domains[owned]);
  const genrec_collected_rows *rows = genrec_rt_collected_rows(step, 0);
  const float *partial[] = {at<float>(step, weightGradient)};
  float *sums[] = {at<float>(step, total)};
  const int64_t floats[] = {kDim};
  genrec_rt_collect(step, 0, 1, partial, floats, sums);
  genrec_rt_store_step_value(step, 0, kRate, at<float>(step, rate));
  GENREC_CUDA_LAUNCH(kernels::streamOf(step), (LaunchShape{1, 1}), updateKernel, step->device,
                     rows->rows, rows->sums, at<float>(step, rate), step->parameters[0].value,
                     at<float>(step, total), step->domains[owned].capacity,
                     at<float>(step, changes));
}

int64_t ofSamples(const int64_t *capacities, const int64_t *) { return 2 * capacities[sample]; }

const genrec_domain_desc domains[] = {
    {"sample", GENREC_DOMAIN_DATA, -1, "", nullptr, nullptr, 0, 0, 0},
    {"touched", GENREC_DOMAIN_STEP, -1, nullptr, nullptr, ofSamples, 0, 0, 0},
    {"owned", GENREC_DOMAIN_STEP, -1, nullptr, nullptr, ofSamples, 0, 0, 1}};
const genrec_buffer_desc buffers[] = {
    {sample, 8, 0, 0, 3, "handles"},
    {sample, 4 * kDim, 0, 1, 3, "gradients"},
    {-1, 0, 8, 1, 3, "loss"},
    {touched, 8, 0, 2, 3, "touched"},
    {touched, GENREC_SEGMENT_BYTES_PER_ROW, GENREC_SEGMENT_BYTES, 2, 3, "segments"},
    {-1, 0, 4 * kDim, 1, 3, "weight_gradient"},
    {-1, 0, 4, 4, 5, "rate"},
    {-1, 0, 4 * kDim, 4, 5, "total"},
    {sample, 8, 0, 1, 3, "later_ids"},
    {sample, 8, 0, 1, 3, "later_handles"},
    {-1, 0, 4 * kDim, 2, 3, "whole"},
    {owned, 4 * kDim, 0, 4, 5, "changes"}};
const int32_t read[] = {sample}, columns[] = {0, 1};
const genrec_program_desc programs[] = {
    {"train", GENREC_MODE_TRAIN, read, 1, columns, 2, buffers, 12, 1, 4, nullptr, dispatch, compute,
     update, nullptr, nullptr},
    {"train", GENREC_MODE_TRAIN, read, 1, columns, 2, buffers, 12, 1, 4, nullptr, dispatch,
     computeWithLookup, update, nullptr, "it looks up ids that it makes"},
    {"train", GENREC_MODE_TRAIN, read, 1, columns, 2, buffers, 12, 1, 4, nullptr, dispatch,
     computeAndMeet, update, nullptr, "it adds up what it makes"},
    {"train", GENREC_MODE_TRAIN, read, 1, columns, 2, buffers, 12, 1, 4, nullptr, dispatchAndSum,
     compute, update, nullptr, nullptr}};

genrec_model_desc describe(const genrec_program_desc *program) {
  genrec_model_desc described = deviceModel();
  described.domains = domains;
  described.domain_count = 3;
  described.programs = program;
  described.program_count = 1;
  return described;
}

} // namespace

int64_t laterId(int64_t id, const float *row) { return makeId(id, row); }

const genrec_model_desc &rankModel(RankCompute how) {
  static const genrec_model_desc models[] = {describe(&programs[0]), describe(&programs[1]),
                                             describe(&programs[2]), describe(&programs[3])};
  return models[static_cast<int>(how)];
}

} // namespace genrec::rt::cuda::test

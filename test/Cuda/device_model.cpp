//===- device_model.cpp - A model for a device, written by hand -----------===//

#include "device_model.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/launch.h"

#include <algorithm>
#include <numeric>
#include <span>

namespace genrec::rt::cuda::test {

namespace {

enum Feature { id, label };
enum Domain { sample, touched };
enum Buffer {
  handles,
  gradients,
  sums,
  rate,
  loss,
  touchedRows,
  segments,
  weightGradient,
  late,
  weights
};

template <class T> T *at(genrec_step *step, Buffer buffer) {
  return static_cast<T *>(step->buffers[buffer]);
}

__global__ void onesKernel(const genrec_step *step, float *addends) {
  for (int64_t i = 0; i < step->domains[sample].count; ++i)
    addends[i] = 1;
}

__global__ void sumKernel(const genrec_step *step, const float *addends, float *sum) {
  *sum = 0;
  for (int64_t i = 0; i < step->domains[sample].count; ++i)
    *sum += addends[i];
}

/// Squares of errors; gradients of rows and of the weight.
__global__ void forwardKernel(const genrec_step *step, float *const *rows, const float *labels,
                              const float *weight, float *squares, float *gradients,
                              float *dWeight) {
  const int64_t count = step->domains[sample].count;
  for (int64_t d = 0; d < kDim; ++d)
    dWeight[d] = 0;
  for (int64_t i = 0; i < count; ++i) {
    float logit = 0;
    for (int64_t d = 0; d < kDim; ++d)
      logit += weight[d] * rows[i][d];
    const float off = logit - labels[i];
    squares[i] = off * off;
    for (int64_t d = 0; d < kDim; ++d) {
      gradients[i * kDim + d] = 2 * off * weight[d];
      dWeight[d] += 2 * off * rows[i][d];
    }
  }
}

__global__ void updateKernel(const genrec_step *step, float *const *rows, const float *sums,
                             const float *rate, float *weight, const float *dWeight) {
  for (int64_t n = 0; n < step->domains[touched].count; ++n)
    for (int64_t d = 0; d < kDim; ++d)
      rows[n][d] -= *rate * sums[n * kDim + d];
  for (int64_t d = 0; d < kDim; ++d)
    weight[d] -= *rate * dWeight[d];
}

void lookUp(genrec_step *step, Buffer to) {
  genrec_rt_table_rows(step, 0, &step->domains[sample],
                       static_cast<const int64_t *>(step->columns[id].values), nullptr,
                       at<float *>(step, to));
}

/// Sums are made in two launches with addends in scratch: in the dispatch stage how many rows there
/// are, in the compute stage the loss. Both stages may run at once.
float *addendsOf(genrec_step *step) {
  return static_cast<float *>(
      genrec_rt_thread_scratch(step, step->domains[sample].capacity * int64_t(sizeof(float))));
}

void sumAddends(genrec_step *step, const float *addends, Buffer to) {
  GENREC_CUDA_LAUNCH(kernels::streamOf(step), (LaunchShape{1, 1}), sumKernel, step->device, addends,
                     at<float>(step, to));
}

void dispatch(genrec_step *step) {
  lookUp(step, handles);
  float *addends = addendsOf(step);
  GENREC_CUDA_LAUNCH(kernels::streamOf(step), (LaunchShape{1, 1}), onesKernel, step->device,
                     addends);
  sumAddends(step, addends, weights);
}

/// The loss and gradients.
void forward(genrec_step *step) {
  float *squares = addendsOf(step);
  GENREC_CUDA_LAUNCH(kernels::streamOf(step), (LaunchShape{1, 1}), forwardKernel, step->device,
                     at<float *>(step, handles),
                     static_cast<const float *>(step->columns[label].values),
                     step->parameters[0].value, squares, at<float>(step, gradients),
                     at<float>(step, weightGradient));
  sumAddends(step, squares, loss);
  genrec_rt_report_device_loss(step, 0, at<float>(step, loss), at<float>(step, weights));
}

void update(genrec_step *step) {
  genrec_domain *samples = &step->domains[sample], *distinct = &step->domains[touched];
  const genrec_domain *domains[] = {samples};
  float *const *lists[] = {at<float *>(step, handles)};
  const float *from[] = {at<float>(step, gradients)};
  const int64_t strides[] = {kDim}, *parents[] = {nullptr};
  genrec_rt_unique_rows(step, 0, 1, domains, lists, from, strides, parents, kDim, 1, distinct,
                        at<float *>(step, touchedRows), at<void>(step, segments));
  genrec_rt_segment_sum(step, distinct, at<void>(step, segments), 1, from, strides, kDim,
                        at<float>(step, sums));
  genrec_rt_store_step_value(step, 0, kRate, at<float>(step, rate));
  GENREC_CUDA_LAUNCH(kernels::streamOf(step), (LaunchShape{1, 1}), updateKernel, step->device,
                     at<float *>(step, touchedRows), at<float>(step, sums), at<float>(step, rate),
                     step->parameters[0].value, at<float>(step, weightGradient));
}

void compute(genrec_step *step) {
  forward(step);
  update(step);
}

/// The lookup ends a capture that a loss is part of.
void computeWithLookup(genrec_step *step) {
  forward(step);
  lookUp(step, late);
  update(step);
}

void lookUpAndComputeLoss(genrec_step *step) {
  dispatch(step);
  forward(step);
}

int64_t touchedCapacity(const int64_t *capacities, const int64_t *) { return capacities[sample]; }

const genrec_domain_desc domains[] = {
    {"sample", GENREC_DOMAIN_DATA, -1, "", nullptr, nullptr, 0, 0, 0},
    {"touched", GENREC_DOMAIN_STEP, -1, nullptr, nullptr, touchedCapacity, 0, 0, 0}};
const genrec_feature_desc features[] = {
    {"id", sample, GENREC_I64, 0, 0, 0, 20, "t", {"model.py", 3, "id"}, 0},
    {"label", sample, GENREC_F32, 0, 0, 0, 0, nullptr, {"model.py", 4, "label"}, 0}};
const genrec_table_desc tables[] = {{"t",
                                     kDim,
                                     20,
                                     {GENREC_INIT_CONSTANT, 0.25},
                                     {GENREC_OPTIMIZER_SGD, 0, kRate, 0, 0},
                                     {"model.py", 5, "t"},
                                     0,
                                     0,
                                     0,
                                     0,
                                     0,
                                     0,
                                     0}};
const genrec_parameter_desc parameters[] = {{"weight",
                                             1,
                                             {kDim, 0},
                                             {GENREC_INIT_ZEROS, 0},
                                             {GENREC_OPTIMIZER_SGD, 0, kRate, 0, 0},
                                             {"model.py", 6, "weight"}}};
const genrec_loss_desc losses[] = {{"squares", 1.0, {"model.py", 9, "loss"}}};
const genrec_buffer_desc buffers[] = {
    {sample, 8, 0, 0, 3, "handles"},
    {sample, 4 * kDim, 0, 1, 4, "gradients"},
    {touched, 4 * kDim, 0, 2, 4, "sums"},
    {-1, 0, 4, 3, 4, "rate"},
    {-1, 0, 4, 1, 4, "loss"},
    {touched, 8, 0, 2, 4, "touched"},
    {sample, GENREC_SEGMENT_BYTES_PER_ROW, GENREC_SEGMENT_BYTES, 2, 4, "segments"},
    {-1, 0, 4 * kDim, 1, 4, "weight_gradient"},
    {sample, 8, 0, 1, 3, "late"},
    {-1, 0, 4, 0, 4, "weights"}};
const int32_t read[] = {sample}, columns[] = {id, label};
const genrec_program_desc programs[] = {
    {"train", GENREC_MODE_TRAIN, read, 1, columns, 2, buffers, 10, 1, 0, nullptr, dispatch, compute,
     nullptr, nullptr, nullptr},
    {"evaluate", GENREC_MODE_EVALUATE, read, 1, columns, 2, buffers, 10, 1, 0, nullptr, dispatch,
     forward, nullptr, nullptr, nullptr}};
const genrec_program_desc latePrograms[] = {
    {"train", GENREC_MODE_TRAIN, read, 1, columns, 2, buffers, 10, 1, 0, nullptr, dispatch,
     computeWithLookup, nullptr, nullptr, nullptr},
    {"evaluate", GENREC_MODE_EVALUATE, read, 1, columns, 2, buffers, 10, 1, 0, nullptr, nullptr,
     lookUpAndComputeLoss, nullptr, nullptr, nullptr}};

genrec_model_desc describe(std::span<const genrec_program_desc> programs) {
  genrec_model_desc model{};
  model.abi_version = GENREC_ABI_VERSION;
  model.name = "samples";
  model.compiler = "written by hand";
  model.schedule = "linear";
  model.schedule_steps = 100;
  model.domains = domains;
  model.domain_count = 2;
  model.features = features;
  model.feature_count = 2;
  model.tables = tables;
  model.table_count = 1;
  model.parameters = parameters;
  model.parameter_count = 1;
  model.losses = losses;
  model.loss_count = 1;
  model.programs = programs.data();
  model.program_count = static_cast<int32_t>(programs.size());
  model.device = genrec_rt_cuda_device;
  return model;
}

enum ListDomain { list, item };

/// loss[0] = items of lists, `longest` of each at most, and of the first `room`; loss[1] = lists.
__global__ void countKernel(const genrec_step *step, const float *ones, int64_t longest,
                            int64_t room, float *loss) {
  const genrec_domain &items = step->domains[item];
  const int64_t count = step->domains[list].count;
  loss[0] = 0;
  loss[1] = static_cast<float>(count);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t first = items.offsets[i], end = min(items.offsets[i + 1], first + longest);
    for (int64_t at = first; at < min(end, room); ++at)
      loss[0] += ones[at];
  }
}

void countItems(genrec_step *step) {
  auto *counted = static_cast<float *>(step->buffers[0]);
  GENREC_CUDA_LAUNCH(kernels::streamOf(step), (LaunchShape{1, 1}), countKernel, step->device,
                     static_cast<const float *>(step->columns[0].values),
                     step->domains[item].max_length, step->domains[item].capacity, counted);
  genrec_rt_report_device_loss(step, 0, counted, counted + 1);
}

const genrec_domain_desc listDomains[] = {
    {"list", GENREC_DOMAIN_DATA, -1, "", nullptr, nullptr, 0, 0, 0},
    {"item", GENREC_DOMAIN_DATA, list, "item", nullptr, nullptr, 0, 0, 0}};
const genrec_feature_desc listFeatures[] = {
    {"item.one", item, GENREC_F32, 0, 0, 0, 0, nullptr, {"model.py", 3, "one"}, 0}};
const genrec_buffer_desc listBuffers[] = {{-1, 0, 8, 1, 2, "loss"}};
const int32_t listsRead[] = {list, item}, listColumns[] = {0};
const genrec_program_desc listPrograms[] = {{"evaluate", GENREC_MODE_EVALUATE, listsRead, 2,
                                             listColumns, 1, listBuffers, 1, 1, 0, nullptr, nullptr,
                                             countItems, nullptr, nullptr, nullptr}};

genrec_model_desc describeLists() {
  genrec_model_desc model = describe(listPrograms);
  model.domains = listDomains;
  model.features = listFeatures;
  model.feature_count = 1;
  model.table_count = 0;
  return model;
}

} // namespace

const genrec_model_desc &listModel() {
  static const genrec_model_desc model = describeLists();
  return model;
}

Batch batchOfLists(const std::vector<int64_t> &lengths) {
  std::vector<int64_t> offsets(lengths.size() + 1);
  std::partial_sum(lengths.begin(), lengths.end(), offsets.begin() + 1);
  return BatchBuilder(listModel())
      .rows("list", static_cast<int64_t>(lengths.size()))
      .offsets("item", offsets)
      .column("item.one", std::vector<float>(static_cast<size_t>(offsets.back()), 1.0F))
      .take();
}

const genrec_model_desc &deviceModel(bool lateLookup) {
  static const genrec_model_desc plain = describe(programs), late = describe(latePrograms);
  return lateLookup ? late : plain;
}

Samples drawSamples(uint64_t seed, int64_t count, int64_t ids) {
  Samples samples;
  uint64_t state = splitMix64(seed);
  for (int64_t i = 0; i < count; ++i) {
    state = splitMix64(state);
    samples.ids.push_back(static_cast<int64_t>(state % static_cast<uint64_t>(ids)));
    samples.labels.push_back(static_cast<float>(state >> 40 & 1));
  }
  return samples;
}

Batch batchOf(const Samples &samples) {
  return BatchBuilder(deviceModel())
      .rows("sample", static_cast<int64_t>(samples.ids.size()))
      .column("id", samples.ids)
      .column("label", samples.labels)
      .take();
}

std::vector<float> evaluateOnHost(const std::vector<Samples> &batches, const Trained &trained) {
  std::vector<float> losses;
  for (const Samples &samples : batches) {
    float loss = 0;
    for (size_t i = 0; i < samples.ids.size(); ++i) {
      const std::vector<float> &row = trained.rows[static_cast<size_t>(samples.ids[i])];
      float logit = 0;
      for (int64_t d = 0; d < kDim; ++d)
        logit += trained.weight[d] * (row.empty() ? 0.25F : row[d]);
      loss += (logit - samples.labels[i]) * (logit - samples.labels[i]);
    }
    losses.push_back(loss / static_cast<float>(samples.ids.size()));
  }
  return losses;
}

Trained trainOnHost(const std::vector<Samples> &batches, std::vector<float> weight, int64_t ids,
                    LaterId later) {
  Trained result;
  result.rows.resize(static_cast<size_t>(ids));
  for (size_t step = 0; step < batches.size(); ++step) {
    const Samples &samples = batches[step];
    Schedule schedule{"linear", 0, 100, 0};
    const auto rate = static_cast<float>(kRate * schedule.factor(step + 1));
    std::vector<std::vector<float>> sums(result.rows.size());
    std::vector<float> dWeight(kDim, 0.0F);
    float loss = 0;
    for (size_t i = 0; i < samples.ids.size(); ++i) {
      std::vector<int64_t> of = {samples.ids[i]};
      result.rows[of[0]].resize(kDim, 0.25F);
      if (later)
        of.push_back(later(of[0], result.rows[of[0]].data()));
      std::vector<float> row(kDim);
      for (const int64_t id : of) {
        result.rows[id].resize(kDim, 0.25F);
        for (int64_t d = 0; d < kDim; ++d)
          row[d] += result.rows[id][d];
      }
      float logit = 0;
      for (int64_t d = 0; d < kDim; ++d)
        logit += weight[d] * row[d];
      const float off = logit - samples.labels[i];
      loss += off * off;
      for (const int64_t id : of) {
        std::vector<float> &sum = sums[id];
        const bool isFirst = sum.empty();
        sum.resize(kDim, 0.0F);
        for (int64_t d = 0; d < kDim; ++d)
          sum[d] = isFirst ? 2 * off * weight[d] : sum[d] + 2 * off * weight[d];
      }
      for (int64_t d = 0; d < kDim; ++d)
        dWeight[d] += 2 * off * row[d];
    }
    for (size_t id = 0; id < sums.size(); ++id)
      for (size_t d = 0; d < sums[id].size(); ++d)
        result.rows[id][d] -= rate * sums[id][d];
    for (int64_t d = 0; d < kDim; ++d)
      weight[d] -= rate * dWeight[d];
    result.losses.push_back(loss / static_cast<float>(samples.ids.size()));
  }
  result.weight = weight;
  return result;
}

} // namespace genrec::rt::cuda::test

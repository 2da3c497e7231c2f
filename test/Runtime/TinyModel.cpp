//===- TinyModel.cpp - A compiled model written by hand -------------------===//

#include "TinyModel.h"

#include "genrec_rt/identity.h"
#include "genrec_rt/kernels/shared/random.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace genrec::rt::test {

TinyHooks tinyHooks;

namespace {

constexpr int64_t kDim = kTinyDim;
constexpr uint32_t kMaskStream = 256;
enum Feature { user, label, target, movie, catalogueMovie };
enum Buffer {
  handles,
  pooled,
  logits,
  gradients,
  touchedRows,
  sums,
  segments,
  targetRows,
  ranks,
  itemHandles,
  best,
  vectors
};

template <class T> T *at(genrec_step *step, Buffer buffer) {
  return static_cast<T *>(step->buffers[buffer]);
}
template <class T> const T *column(genrec_step *step, Feature feature) {
  return static_cast<const T *>(step->columns[feature].values);
}

float maskOf(const genrec_step *step, int64_t row) {
  if (step->mode != 1)
    return 1;
  kernels::RandomStream stream{step->seed, step->step, kMaskStream};
  uint32_t word = kernels::philoxWord(stream, step->domains[kTinyHistory].identity[row], 0);
  return kernels::keeps(word, kernels::keepThreshold(0.25f)) ? 1 / 0.75f : 0;
}

void forward(genrec_step *step) {
  const genrec_domain &history = step->domains[kTinyHistory];
  genrec_rt_table_rows(step, 0, &history, column<int64_t>(step, movie), nullptr,
                       at<float *>(step, handles));
  const float *weight = step->parameters[0].value;
  float bias = step->parameters[1].value[0];
  parallelFor(step->pool, step->domains[kTinyUser].count, 4,
              [&](int64_t begin, int64_t end, int64_t) {
                for (int64_t u = begin; u < end; ++u) {
                  float *h = at<float>(step, pooled) + u * kDim;
                  std::fill_n(h, kDim, 0.0f);
                  for (int64_t row = history.offsets[u]; row < history.offsets[u + 1]; ++row) {
                    float mask = maskOf(step, row);
                    for (int64_t d = 0; d < kDim; ++d)
                      h[d] += mask * at<float *>(step, handles)[row][d];
                  }
                  float logit = bias;
                  for (int64_t d = 0; d < kDim; ++d)
                    logit += weight[d] * h[d];
                  at<float>(step, logits)[u] = logit;
                }
              });
}

float lossOf(float logit, float wanted) {
  return std::max(logit, 0.0f) - logit * wanted + std::log1p(std::exp(-std::fabs(logit)));
}

void reportLoss(genrec_step *step) {
  int64_t users = step->domains[kTinyUser].count;
  float sum = 0;
  for (int64_t u = 0; u < users; ++u)
    sum += lossOf(at<float>(step, logits)[u], column<float>(step, label)[u]);
  genrec_rt_report_loss(step, 0, sum, static_cast<float>(users));
  if (step->check_finite)
    genrec_rt_check_finite(step, 0, at<float>(step, logits), users, 1, 1);
}

void updateRows(genrec_step *step) {
  const genrec_domain *histories[] = {&step->domains[kTinyHistory]};
  float *const *lists[] = {at<float *>(step, handles)};
  const float *from[] = {at<float>(step, gradients)};
  genrec_domain *touched = &step->domains[kTinyTouched];
  const int64_t *parents[] = {nullptr};
  const int64_t strides[] = {kDim};
  genrec_rt_unique_rows(step, 0, 1, histories, lists, from, strides, parents, kDim, 0, touched,
                        at<float *>(step, touchedRows), at<void>(step, segments));
  genrec_rt_segment_sum(step, touched, at<void>(step, segments), 1, from, strides, kDim,
                        at<float>(step, sums));
  float rate = genrec_rt_step_value(step, 0, 0.1);
  for (int64_t n = 0; n < touched->count; ++n) {
    float *row = at<float *>(step, touchedRows)[n];
    for (int64_t d = 0; d < kDim; ++d) {
      float g = at<float>(step, sums)[n * kDim + d];
      row[kDim + d] += g * g;
      row[d] -= rate * g / (std::sqrt(row[kDim + d]) + 1e-10f);
    }
  }
}

void trainCopy(genrec_step *step) {
  if (tinyHooks.copy)
    tinyHooks.copy(step);
}

void trainCompute(genrec_step *step) {
  if (tinyHooks.compute)
    tinyHooks.compute(step);
  if (step->profile)
    genrec_rt_enter(step, 0);
  forward(step);
  if (step->profile)
    genrec_rt_enter(step, 1);
  reportLoss(step);
  const genrec_domain &history = step->domains[kTinyHistory];
  int64_t users = step->domains[kTinyUser].count;
  float *weight = step->parameters[0].value;
  float weightGradient[kDim] = {}, biasGradient = 0;
  for (int64_t u = 0; u < users; ++u) {
    float probability = 1 / (1 + std::exp(-at<float>(step, logits)[u]));
    float g = (probability - column<float>(step, label)[u]) / static_cast<float>(users);
    biasGradient += g;
    for (int64_t d = 0; d < kDim; ++d)
      weightGradient[d] += g * at<float>(step, pooled)[u * kDim + d];
    for (int64_t row = history.offsets[u]; row < history.offsets[u + 1]; ++row)
      for (int64_t d = 0; d < kDim; ++d)
        at<float>(step, gradients)[row * kDim + d] = maskOf(step, row) * g * weight[d];
  }
  updateRows(step);
  float rate = genrec_rt_step_value(step, 0, 0.1);
  for (int64_t d = 0; d < kDim; ++d)
    weight[d] -= rate * weightGradient[d];
  step->parameters[1].value[0] -= rate * biasGradient;
}

void resolveTargets(genrec_step *step) {
  genrec_rt_resolve(step, &step->domains[kTinyUser], column<int64_t>(step, target), nullptr,
                    &step->domains[kTinyMovies], column<int64_t>(step, catalogueMovie), target, 0,
                    at<int64_t>(step, targetRows));
}

void findItems(genrec_step *step) {
  genrec_rt_table_rows(step, 0, &step->domains[kTinyMovies], column<int64_t>(step, catalogueMovie),
                       nullptr, at<float *>(step, itemHandles));
}

float scoreOf(genrec_step *step, int64_t u, int64_t item) {
  float score = 0;
  for (int64_t d = 0; d < kDim; ++d)
    score += step->parameters[0].value[d] * at<float>(step, pooled)[u * kDim + d] *
             at<float *>(step, itemHandles)[item][d];
  return score;
}

void evaluateCompute(genrec_step *step) {
  forward(step);
  reportLoss(step);
  findItems(step);
  const genrec_domain &users = step->domains[kTinyUser];
  for (int64_t u = 0; u < users.count; ++u) {
    int64_t wanted = at<int64_t>(step, targetRows)[u], rank = 1;
    float least = scoreOf(step, u, wanted);
    for (int64_t item = 0; item < step->domains[kTinyMovies].count; ++item)
      rank += item != wanted && scoreOf(step, u, item) >= least;
    at<int64_t>(step, ranks)[u] = rank;
  }
  genrec_rt_report_metric(step, 0, 0, &users, at<int64_t>(step, ranks), nullptr, nullptr, nullptr,
                          nullptr);
  genrec_rt_report_metric(step, 0, 1, &users, at<float>(step, logits), column<float>(step, label),
                          nullptr, nullptr, nullptr);
}

void predictCompute(genrec_step *step) {
  forward(step);
  findItems(step);
  const genrec_domain &users = step->domains[kTinyUser];
  for (int64_t u = 0; u < users.count; ++u) {
    int64_t *chosen = at<int64_t>(step, best) + 2 * u;
    chosen[0] = chosen[1] = -1;
    for (int64_t item = 0; item < step->domains[kTinyMovies].count; ++item) {
      float score = scoreOf(step, u, item);
      if (chosen[0] < 0 || score > scoreOf(step, u, chosen[0])) {
        chosen[1] = chosen[0];
        chosen[0] = item;
      } else if (chosen[1] < 0 || score > scoreOf(step, u, chosen[1])) {
        chosen[1] = item;
      }
    }
    for (int i = 0; i < 2; ++i)
      chosen[i] = column<int64_t>(step, catalogueMovie)[chosen[i]];
  }
  genrec_rt_report_output(step, 0, &users, at<float>(step, logits), nullptr);
  genrec_rt_report_output(step, 1, &users, at<int64_t>(step, best), nullptr);
}

void itemsCompute(genrec_step *step) {
  findItems(step);
  const genrec_domain &movies = step->domains[kTinyMovies];
  for (int64_t item = 0; item < movies.count; ++item)
    for (int64_t d = 0; d < kDim; ++d)
      at<float>(step, vectors)[item * kDim + d] = 2 * at<float *>(step, itemHandles)[item][d];
  genrec_rt_report_output(step, 2, &movies, at<float>(step, vectors), nullptr);
}

int64_t touchedCapacity(const int64_t *capacities, const int64_t *) {
  return capacities[kTinyHistory];
}

const genrec_domain_desc domains[] = {
    {"user", GENREC_DOMAIN_DATA, -1, "", nullptr, nullptr, 0, 0},
    {"history", GENREC_DOMAIN_DATA, 0, "history", nullptr, nullptr, 0, 0},
    {"movies", GENREC_DOMAIN_CATALOGUE, -1, nullptr, nullptr, nullptr, 0, 0},
    {"touched", GENREC_DOMAIN_STEP, -1, nullptr, nullptr, touchedCapacity, 0, 0}};

const genrec_feature_desc features[] = {
    {"user", kTinyUser, GENREC_I64, 0, 0, 0, 0, nullptr, {"tiny.py", 3, "user"}},
    {"label", kTinyUser, GENREC_F32, 0, 0, 0, 0, nullptr, {"tiny.py", 4, "label"}},
    {"target", kTinyUser, GENREC_I64, 0, 0, 0, 20, "movie", {"tiny.py", 5, "target"}},
    {"history.movie", kTinyHistory, GENREC_I64, 0, 1, -1, 20, "movie", {"tiny.py", 6, "movie"}},
    {"movie", kTinyMovies, GENREC_I64, 0, 0, 0, 20, "movie", {"tiny.py", 7, "movie"}}};

const genrec_table_desc tables[] = {{"movie", kDim, 20, {2, 0.5}, {1, 1, 0.1, 0.1}, {}}};
const genrec_parameter_desc parameters[] = {{"weight", 1, {kDim, 0}, {4, 1.0}, {0, 0, 0.1, 0}, {}},
                                            {"bias", 0, {0, 0}, {0, 0}, {0, 0, 0.1, 0}, {}}};
const genrec_loss_desc losses[] = {{"bce", 1.0, {"tiny.py", 14, "loss"}}};
const int64_t cutOffs[] = {1, 5};
const genrec_metric_desc metrics[] = {{"ranking", 0, cutOffs, 2, "nothing excluded"},
                                      {"auc", 1, nullptr, 0, nullptr}};
const genrec_output_desc outputs[] = {{"score", kTinyUser, GENREC_F32, 0},
                                      {"top", kTinyUser, GENREC_I64, 2},
                                      {"vector", kTinyMovies, GENREC_F32, kDim}};

const genrec_buffer_desc buffers[] = {
    {kTinyHistory, 8, 0, 1, 5, "handles"},
    {kTinyUser, 4 * kDim, 0, 1, 6, "pooled"},
    {kTinyUser, 4, 0, 1, 6, "logits"},
    {kTinyHistory, 4 * kDim, 0, 2, 4, "gradients"},
    {kTinyTouched, 8, 0, 3, 5, "touched"},
    {kTinyTouched, 4 * kDim, 0, 4, 5, "sums"},
    {kTinyHistory, GENREC_SEGMENT_BYTES_PER_ROW, GENREC_SEGMENT_BYTES, 3, 4, "segments"},
    {kTinyUser, 8, 0, 0, 6, "targets"},
    {kTinyUser, 8, 0, 5, 6, "ranks"},
    {kTinyMovies, 8, 0, 5, 6, "items"},
    {kTinyUser, 16, 0, 5, 6, "best"},
    {kTinyMovies, 4 * kDim, 0, 5, 6, "vectors"}};

const int32_t dataDomains[] = {kTinyUser, kTinyHistory};
const int32_t allDomains[] = {kTinyUser, kTinyHistory, kTinyMovies};
const int32_t trainFeatures[] = {label, movie};
const int32_t evaluateFeatures[] = {label, target, movie, catalogueMovie};
const int32_t predictFeatures[] = {movie, catalogueMovie};
const int32_t itemFeatures[] = {catalogueMovie};
const int32_t itemDomains[] = {kTinyMovies};
const genrec_program_desc programs[] = {{"train", 1, dataDomains, 2, trainFeatures, 2, buffers, 12,
                                         1, 0, trainCopy, nullptr, trainCompute},
                                        {"evaluate", 2, allDomains, 3, evaluateFeatures, 4, buffers,
                                         12, 1, 0, resolveTargets, nullptr, evaluateCompute},
                                        {"predict", 3, allDomains, 3, predictFeatures, 2, buffers,
                                         12, 0, 0, nullptr, nullptr, predictCompute},
                                        {"items", 4, itemDomains, 1, itemFeatures, 1, buffers, 12,
                                         0, 0, nullptr, nullptr, itemsCompute}};
const genrec_cost linearCosts[] = {{kTinyUser, 20, 0, 0, 8, 0}, {-1, 100, 0, 0, 0, 0}};
const genrec_op_desc ops[] = {
    {"linear", {"tiny.py", 12, "logit"}, "pool, linear (tiny.py:12)", 2, linearCosts, 2},
    {"loss", {"tiny.py", 14, ""}, "bce_with_logits (tiny.py:14)", 2, nullptr, 0}};

const genrec_model_desc model = {GENREC_ABI_VERSION,
                                 "tiny",
                                 "written by hand",
                                 0,
                                 0,
                                 "constant",
                                 0,
                                 0,
                                 0,
                                 domains,
                                 4,
                                 features,
                                 5,
                                 tables,
                                 1,
                                 parameters,
                                 2,
                                 losses,
                                 1,
                                 metrics,
                                 2,
                                 outputs,
                                 3,
                                 programs,
                                 4,
                                 ops,
                                 2,
                                 nullptr};

} // namespace

const genrec_model_desc &tinyModel() { return model; }

Batch tinyBatch(uint64_t seed, int64_t users, int64_t movies, int64_t firstPosition) {
  uint64_t state = splitMix64(seed);
  auto draw = [&](int64_t n) {
    state = splitMix64(state);
    return static_cast<int64_t>(state % static_cast<uint64_t>(n));
  };
  std::vector<int64_t> offsets = {0}, ids, names, targets;
  std::vector<float> labels;
  for (int64_t u = 0; u < users; ++u) {
    for (int64_t n = draw(8); n > 0; --n)
      ids.push_back(draw(movies));
    offsets.push_back(static_cast<int64_t>(ids.size()));
    names.push_back(firstPosition + u);
    targets.push_back(draw(movies));
    labels.push_back(static_cast<float>(draw(2)));
  }
  return BatchBuilder(model)
      .rows("user", users, firstPosition)
      .offsets("history", offsets)
      .column("user", names)
      .column("label", labels)
      .column("target", targets)
      .column("history.movie", ids)
      .take();
}

Batch tinyCatalogue(int64_t count) {
  std::vector<int64_t> ids(count);
  for (int64_t i = 0; i < count; ++i)
    ids[i] = i;
  return BatchBuilder(model).rows("movies", count).column("movie", ids).take();
}

bool TinySource::next(Batch &batch) {
  if (done == batches)
    return false;
  batch = tinyBatch(static_cast<uint64_t>(done), users, movies, done * users);
  ++done;
  return true;
}

std::vector<float> trainedState(Session &session) {
  std::vector<float> all;
  for (int32_t i = 0; i < session.model().parameter_count; ++i) {
    ParameterView view = session.parameter(i);
    all.insert(all.end(), view.value.begin(), view.value.end());
    all.insert(all.end(), view.states.begin(), view.states.end());
  }
  for (int32_t i = 0; i < session.model().table_count; ++i) {
    TableView table = session.table(i);
    std::map<int64_t, int64_t> numbers;
    for (int64_t row = 0; row < table.size(); ++row)
      numbers[table.id(row)] = row;
    for (auto [id, row] : numbers) {
      all.push_back(static_cast<float>(id));
      all.insert(all.end(), table.row(row), table.row(row) + table.dim() * (1 + table.states()));
    }
  }
  return all;
}

} // namespace genrec::rt::test

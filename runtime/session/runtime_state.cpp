//===- runtime_state.cpp - What all steps of a session share --------------===//

#include "runtime_state.h"

#include "device_graphs.h"
#include "ranks.h"

#include "../core/threads.h"
#include "genrec_rt/identity.h"
#include "genrec_rt/size.h"

#include <algorithm>
#include <cmath>

using namespace genrec::rt;

genrec_runtime::genrec_runtime(const genrec_model_desc &model, const SessionOptions &options)
    : model(model), seed(options.seed), clipNorm(options.clipNorm.value_or(model.clip_norm)),
      clipValue(options.clipValue.value_or(model.clip_value)), checkFinite(options.checkFinite),
      explainNonFinite(options.explainNonFinite), caughtSignal(options.caughtSignal),
      onDevice(DeviceState::make(model, options.comm)),
      shards(model, options.shardOptimizer && options.comm ? options.comm->getSize() : 1),
      catalogueRows(model), catalogues(model.domain_count), metrics(model) {
  makeDevice(options);
  if (options.profile)
    profile = std::make_unique<Profile>(model);
  setRates(options);
  int32_t threads = options.threads > 0 ? options.threads : defaultThreads();
  pool.reset(genrec_rt_pool_create(threads));
  if (!pool)
    throw Error("cannot start " + std::to_string(threads) + " threads",
                "ask for fewer with --threads");
  workerScratch.resize(threads);
  makeTables(options);
  chooseReplicas(options);
  makeParameters(shards.areShared() ? options.comm->getRank() : 0);
  makeRanks(options);
  PortionRange own = ranks ? ranks->own() : PortionRange{0, 1};
  firstPortion = own.first;
  if (onDevice)
    onDevice->graphs().setPortions(own.count);
  for (int32_t i = 0; i < own.count * model.output_count; ++i) {
    const genrec_output_desc &output = model.outputs[i % model.output_count];
    OutputRows &rows = outputs.emplace_back();
    rows.type = output.type;
    rows.width = output.width;
    rows.nulls = static_cast<Nulls>(output.nulls);
  }
}

genrec_runtime::~genrec_runtime() = default;

void genrec_runtime::makeDevice(const SessionOptions &options) {
  if (!onDevice)
    return;
  onDevice->setCaptures(options.captureSteps);
  if (explainNonFinite)
    onDevice->stopAtNonFinite(model);
  for (auto &scratch : deviceScratch)
    scratch = std::make_unique<DeviceMemory>(*device(), "scratch");
}

void genrec_runtime::setRates(const SessionOptions &options) {
  if (options.schedule)
    schedule = *options.schedule;
  else if (model.schedule)
    schedule = {model.schedule, model.schedule_warmup, model.schedule_steps, model.schedule_final};
  for (int32_t i = 0; i < model.table_count; ++i)
    largestRate = std::max(largestRate, model.tables[i].optimizer.learning_rate);
  for (int32_t i = 0; i < model.parameter_count; ++i)
    largestRate = std::max(largestRate, model.parameters[i].optimizer.learning_rate);
  if (!options.learningRate)
    return;
  if (!(*options.learningRate >= 0) || !std::isfinite(*options.learningRate))
    throw Error("the learning rate must be a number of at least 0, got " +
                std::to_string(*options.learningRate));
  if (largestRate <= 0)
    throw Error("a learning rate was given, but every optimizer of the model declares rate 0",
                "declare a base rate in the model: the flag scales it");
  rateScale = *options.learningRate / largestRate;
}

static RowInitializer makeInitializer(const genrec_table_desc &desc, uint64_t seed) {
  return {
      desc.init.kind, desc.init.scale, seed, nameHash(desc.name), 1, static_cast<double>(desc.dim)};
}

int32_t genrec_runtime::findTable(const std::string &name, const std::string &refusal) const {
  std::string known;
  for (int32_t table = 0; table < model.table_count; ++table) {
    if (name == model.tables[table].name)
      return table;
    known += (table ? ", '" : "'") + std::string(model.tables[table].name) + "'";
  }
  throw Error("table '" + name + "' " + refusal + ": the model has no such table",
              known.empty() ? "it has none" : "it has " + known);
}

bool genrec_runtime::sharesStore(int32_t a, int32_t b) const {
  return a == b || (model.tables[a].group && model.tables[a].group == model.tables[b].group);
}

std::vector<int64_t> genrec_runtime::cachedRows(const SessionOptions &options) const {
  std::vector<int64_t> rows(model.table_count);
  for (const auto &[name, count] : options.hostTables) {
    const int32_t table = findTable(name, "cannot have its rows in the host's memory");
    if (!onDevice)
      throw Error("table '" + name + "' has its rows in the host's memory already: model '" +
                      std::string(model.name) + "' was not compiled for a device",
                  "leave it out of the tables of the host");
    for (int32_t i = 0; i < model.table_count; ++i)
      rows[i] += sharesStore(table, i) ? count : 0;
  }
  return rows;
}

std::shared_ptr<TableStore> genrec_runtime::makeStore(int32_t first, const RowRules &rules,
                                                      int64_t hostRows) {
  const genrec_table_desc &desc = model.tables[first];
  StoreConfig config;
  config.dim = desc.dim;
  config.element = static_cast<RowElement>(desc.element);
  config.states = desc.optimizer.states;
  config.rowStates = desc.optimizer.row_states != 0;
  config.rules = rules;
  config.initialAccumulator = desc.optimizer.initial_accumulator;
  config.initializer = makeInitializer(desc, seed);
  for (int32_t j = 0; desc.group && j < model.table_count; ++j)
    if (sharesStore(first, j)) {
      config.members.resize(std::max<size_t>(config.members.size(), memberOf(model.tables[j]) + 1));
      config.members[memberOf(model.tables[j])] = makeInitializer(model.tables[j], seed);
    }
  config.keyBits = desc.group ? desc.key_bits : 63;
  if (!onDevice)
    return makeHostStore(config);
  if (hostRows)
    onDevice->noteHostTables();
  return device()->makeStore(config, desc.name, hostRows);
}

void genrec_runtime::makeTables(const SessionOptions &options) {
  tables.resize(model.table_count);
  const std::vector<int64_t> cached = cachedRows(options);
  if (options.comm && options.comm->getSize() > 1)
    globalBound = std::make_unique<GlobalBound>(*options.comm);
  for (int32_t i = 0; i < model.table_count; ++i) {
    const genrec_table_desc &desc = model.tables[i];
    if (!tables[i]) {
      const RowRules rules{desc.bounded,     static_cast<Eviction>(desc.evict),
                           desc.ttl,         desc.admit_after,
                           desc.ttl_seconds, desc.hot_after};
      std::shared_ptr<TableStore> store =
          makeStore(i, globalBound ? GlobalBound::rulesOfRank(rules) : rules, cached[i]);
      if (store->configuration().rules.any())
        ruledStores.push_back(store.get());
      if (rules.ttlSeconds > 0)
        clock.watch(rules.ttlSeconds);
      if (globalBound)
        globalBound->add(*store, rules);
      for (int32_t j = i; j < model.table_count; ++j)
        if (sharesStore(i, j))
          tables[j] = store;
    }
    int64_t floats = tables[i]->rowStride();
    GrowBuffer<float> &zeros = zeroRows.emplace_back();
    std::fill_n(zeros.ensure(floats), floats, 0.0f);
    if (onDevice)
      onDevice->addTable(floats);
  }
}

void genrec_runtime::chooseReplicas(const SessionOptions &options) {
  replicated.assign(model.table_count, false);
  for (const std::string &name : options.replicate) {
    const int32_t table = findTable(name, "cannot be replicated");
    if (tables[table]->configuration().rules.any())
      throw Error("table '" + name +
                      "' cannot be replicated: its rules (bounded, ttl, admit_after, hot_after) "
                      "count what all ranks look up, which the owners of its rows see",
                  "let its rows be divided among ranks, or declare it without rules");
    replicated[table] = true;
  }
}

void genrec_runtime::makeRanks(const SessionOptions &options) {
  int32_t size = options.comm ? options.comm->getSize() : 1;
  int32_t portions = options.portions > 0 ? options.portions : size;
  if (portions == 1)
    return;
  if (!options.comm)
    alone = makeSingleComm();
  if (options.portions > size && !options.rowTravel.keepsBits())
    throw Error(
        "rows that travel rounded, or without being deduplicated, have other bits on another "
        "number of ranks, which portions promise they do not have",
        "train with one portion per rank");
  if (onDevice && size > 1)
    connected = device()->connect(*options.comm);
  Communicator &comm = alone ? *alone : connected ? *connected : *options.comm;
  ranks =
      std::make_unique<Ranks>(comm, portions, model, tables, replicated, shards, options.rowTravel,
                              options.earlyGradients, device(), options.overlap);
}

void genrec_runtime::evict(uint64_t step, std::optional<int64_t> seconds) {
  const auto number = static_cast<int64_t>(step);
  if (clock.isNeeded())
    clock.end(number, seconds);
  for (TableStore *store : ruledStores)
    store->evict(storeStream(), number, clock.expired(store->configuration().rules.ttlSeconds));
  if (globalBound)
    globalBound->evict(storeStream());
}

void genrec_runtime::makeParameters(int32_t rank) {
  float *values = parameterValues.ensure(shards.countFloats() + 1);
  std::fill_n(values, shards.countFloats() + 1, 0.0f);
  for (int32_t i = 0; i < model.parameter_count; ++i) {
    const genrec_parameter_desc &desc = model.parameters[i];
    int64_t columns = shards.width(i), rows = desc.rank > 1 ? desc.shape[0] : 1;
    ParameterShards::Rows own = shards.of(i, rank);
    Size total = Size(own.count) * columns * desc.optimizer.states * sizeof(float);
    total.value([&] { return std::string("parameter '") + desc.name + "'"; });
    float *value = values + shards.start(i);
    RowInitializer initializer{
        desc.init.kind,      desc.init.scale,           seed,
        nameHash(desc.name), static_cast<double>(rows), static_cast<double>(columns)};
    for (int64_t row = 0; row < rows; ++row)
      initializer.fill(static_cast<uint64_t>(row), columns, value + row * columns);
    int64_t states = desc.optimizer.states, stateFloats = own.count * columns * states;
    // The first state begins with what the optimizer says, the others with 0.
    float *state = parameterStates.emplace_back().ensure(stateFloats + 1);
    std::fill_n(state, stateFloats + 1, 0.0f);
    for (int64_t row = 0; states > 0 && row < own.count; ++row)
      std::fill_n(state + row * columns * states, columns,
                  static_cast<float>(desc.optimizer.initial_accumulator));
    const genrec_parameter host{
        value, rows * columns, own.first, own.count, value + own.first * columns, state};
    parameters.push_back(onDevice ? onDevice->addParameter(host, stateFloats) : host);
  }
}

double genrec_runtime::learningRate(double base, uint64_t step) const {
  return base * rateScale * schedule.factor(step);
}

bool genrec_runtime::isCatalogueColumn(const int64_t *ids) const {
  for (const ColumnBatch &column : catalogueRows.columns)
    if (column.values.data() && reinterpret_cast<const int64_t *>(column.values.data()) == ids)
      return true;
  return false;
}

const CatalogueIndex &genrec_runtime::catalogueIndex(const int64_t *ids, int64_t count) {
  std::lock_guard<std::mutex> lock(indexMutex);
  for (const Index &known : indices)
    if (known.ids == ids)
      return *known.index;
  try {
    indices.push_back({ids, std::make_unique<CatalogueIndex>(ids, count)});
  } catch (const Error &error) {
    for (int32_t i = 0; i < model.feature_count; ++i)
      if (reinterpret_cast<const int64_t *>(catalogueRows.columns[i].values.data()) == ids)
        throw Error(std::string("catalogue '") + model.domains[model.features[i].domain].name +
                        "', column '" + model.features[i].column + "': " + error.what(),
                    error.help());
    throw;
  }
  return *indices.back().index;
}

double Schedule::factor(uint64_t step) const {
  double t = static_cast<double>(step);
  if (warmup > 0 && t < static_cast<double>(warmup))
    return t / static_cast<double>(warmup);
  if (kind == "constant" || steps <= warmup)
    return 1;
  double progress = (t - static_cast<double>(warmup)) / static_cast<double>(steps - warmup);
  progress = std::clamp(progress, 0.0, 1.0);
  if (kind == "linear")
    return 1 + (final - 1) * progress;
  constexpr double kPi = 3.14159265358979323846;
  return final + (1 - final) * (1 + std::cos(kPi * progress)) / 2;
}

void Schedule::check() const {
  if (kind != "constant" && kind != "linear" && kind != "cosine")
    throw Error("unknown schedule '" + kind + "'", "use constant, linear or cosine");
  if (warmup < 0 || steps < 0)
    throw Error("a schedule's steps must not be negative, got warmup " + std::to_string(warmup) +
                " and steps " + std::to_string(steps));
}

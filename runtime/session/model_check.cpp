//===- model_check.cpp - Is a model's description sound -------------------===//

#include "model_check.h"

#include "genrec_rt/batch.h"
#include "genrec_rt/error.h"
#include "genrec_rt/session.h"

namespace genrec::rt {

namespace {

void require(bool holds, const std::string &what) {
  if (!holds)
    throw Error("the compiled model's description is broken: " + what,
                "compile the model again with the genrec-compile of this runtime");
}

bool inRange(int32_t index, int32_t count) { return index >= 0 && index < count; }

void checkDomains(const genrec_model_desc &model) {
  int32_t roots = 0;
  for (int32_t i = 0; i < model.domain_count; ++i) {
    const genrec_domain_desc &domain = model.domains[i];
    std::string name = std::string("domain '") + domain.name + "'";
    require(genrec_domain_kind_name(domain.kind),
            name + " has kind " + std::to_string(domain.kind));
    require(domain.parent >= -1 && domain.parent < i,
            name + " comes before its parent " + std::to_string(domain.parent));
    bool made = domain.kind == GENREC_DOMAIN_DERIVED || domain.kind == GENREC_DOMAIN_STEP;
    require(!made || domain.capacity, name + " has no capacity function");
    require(domain.kind != GENREC_DOMAIN_DATA || domain.parent < 0 ||
                (domain.column && *domain.column),
            name + " names no column");
    require(domain.max_length <= 0 || (domain.truncated >= 0 && domain.truncated < i),
            name + " is cut from domain " + std::to_string(domain.truncated));
    roots += domain.kind == GENREC_DOMAIN_DATA && domain.parent < 0;
  }
  if (roots > 1)
    throw Error("the model has " + std::to_string(roots) + " root domains read from the data",
                "a dataset has one row per root row: make the others its children or catalogues");
}

void checkFeatures(const genrec_model_desc &model) {
  for (int32_t i = 0; i < model.feature_count; ++i) {
    const genrec_feature_desc &feature = model.features[i];
    std::string name = std::string("feature '") + feature.column + "'";
    require(inRange(feature.domain, model.domain_count), name + " has no domain");
    bool isRead =
        genrec_type_name(feature.type) && feature.type != GENREC_ROW && feature.type != GENREC_KEY;
    require(isRead, name + " has type " + std::to_string(feature.type));
    if (feature.has_padding_id && model.domains[feature.domain].parent < 0)
      throw Error(name + " has a padding id, but its domain '" +
                      model.domains[feature.domain].name + "' is a root",
                  "padding is dropped from lists: give padding_id to a feature of a list");
    require(feature.width == 0 ||
                (feature.width > 0 && (feature.type == GENREC_F32 || feature.type == GENREC_F64)),
            name + " has rows of " + std::to_string(feature.width) + " values of type " +
                std::to_string(feature.type));
    require(!feature.has_padding_id || feature.type == GENREC_I32 || feature.type == GENREC_I64,
            name + " has a padding id and is no integer");
  }
}

void checkTraining(const std::string &name, const genrec_init_desc &init,
                   const genrec_optimizer_desc &optimizer) {
  require(genrec_init_kind_name(init.kind),
          name + " has initial values of kind " + std::to_string(init.kind));
  require(genrec_optimizer_kind_name(optimizer.kind) && optimizer.states >= 0,
          name + " has an optimizer of kind " + std::to_string(optimizer.kind) + " with " +
              std::to_string(optimizer.states) + " states");
}

void checkProgram(const genrec_model_desc &model, const genrec_program_desc &program) {
  std::string name = std::string("program '") + program.name + "'";
  require(genrec_mode_name(program.mode), name + " has mode " + std::to_string(program.mode));
  for (int32_t i = 0; i < program.domain_count; ++i)
    require(inRange(program.domains[i], model.domain_count), name + " lists an unknown domain");
  for (int32_t i = 0; i < program.feature_count; ++i)
    require(inRange(program.features[i], model.feature_count), name + " lists an unknown feature");
  for (int32_t i = 0; i < program.buffer_count; ++i) {
    const genrec_buffer_desc &buffer = program.buffers[i];
    require(buffer.domain >= -1 && buffer.domain < model.domain_count && buffer.bytes >= 0 &&
                buffer.bytes_per_row >= 0 && buffer.first <= buffer.last,
            name + " has a broken buffer " + std::to_string(i));
  }
}

/// Tables that share a store have the same rules about rows, which are the store's.
void checkSharing(const genrec_table_desc &table, const genrec_table_desc &other) {
  const std::string both =
      std::string("table '") + table.name + "' shares a store with '" + other.name + "'";
  require(other.bounded == table.bounded && other.evict == table.evict && other.ttl == table.ttl &&
              other.ttl_seconds == table.ttl_seconds && other.admit_after == table.admit_after &&
              other.hot_after == table.hot_after,
          both + ", but has other rules about its rows");
  require(other.element == table.element, both + ", but has other elements");
}

void checkTable(const genrec_model_desc &model, int32_t number) {
  const genrec_table_desc &table = model.tables[number];
  const std::string name = std::string("table '") + table.name + "'";
  const bool fits = table.group == 0 ||
                    (table.key_bits >= table.id_bits && table.key_bits < 63 && table.key >= 0 &&
                     table.key >> table.key_bits << table.key_bits == table.key);
  require(fits, name + " shares a store, but its ids do not fit");
  require(table.dim > 0 && table.id_bits > 0 && table.id_bits <= 64,
          name + " has a size or id width out of range");
  require(table.bounded >= 0 && table.ttl >= 0 && table.ttl_seconds >= 0 &&
              table.admit_after >= 0 && table.hot_after >= 0 && genrec_evict_kind_name(table.evict),
          name + " has rules out of range");
  require(genrec_row_element_name(table.element) && genrec_row_rounding_name(table.rounding),
          name + " has an element or rounding out of range");
  require(table.hot_after == 0 || table.element == GENREC_ROW_BF16,
          name + " has hot rows, which tables of bf16 have");
  checkTraining(name, table.init, table.optimizer);
  for (int32_t i = 0; table.group && i < number; ++i)
    if (model.tables[i].group == table.group)
      checkSharing(table, model.tables[i]);
}

} // namespace

void checkModel(const genrec_model_desc &model) {
  if (model.abi_version != GENREC_ABI_VERSION)
    throw Error("the model was compiled for version " + std::to_string(model.abi_version) +
                    " of the runtime interface, this runtime has version " +
                    std::to_string(GENREC_ABI_VERSION),
                "compile the model again with the genrec-compile of this runtime");
  checkDomains(model);
  checkFeatures(model);
  for (int32_t i = 0; i < model.table_count; ++i)
    checkTable(model, i);
  for (int32_t i = 0; i < model.parameter_count; ++i) {
    const genrec_parameter_desc &parameter = model.parameters[i];
    std::string name = std::string("parameter '") + parameter.name + "'";
    require(inRange(parameter.rank, 3), name + " has a rank above 2");
    checkTraining(name, parameter.init, parameter.optimizer);
  }
  for (int32_t i = 0; i < model.output_count; ++i)
    require(inRange(model.outputs[i].domain, model.domain_count),
            std::string("output '") + model.outputs[i].name + "' has no domain");
  for (int32_t i = 0; i < model.metric_count; ++i)
    require(genrec_metric_kind_name(model.metrics[i].kind),
            std::string("metric '") + model.metrics[i].name + "' has kind " +
                std::to_string(model.metrics[i].kind));
  for (int32_t i = 0; i < model.output_count; ++i)
    require(genrec_nulls_name(model.outputs[i].nulls),
            std::string("output '") + model.outputs[i].name + "' has nulls of kind " +
                std::to_string(model.outputs[i].nulls));
  for (int32_t i = 0; i < model.op_count; ++i)
    require(genrec_stage_name(model.ops[i].stage), std::string("op '") + model.ops[i].name +
                                                       "' has stage " +
                                                       std::to_string(model.ops[i].stage));
  for (int32_t i = 0; i < model.program_count; ++i)
    checkProgram(model, model.programs[i]);
  if (model.schedule)
    Schedule{model.schedule, model.schedule_warmup, model.schedule_steps, model.schedule_final}
        .check();
}

} // namespace genrec::rt

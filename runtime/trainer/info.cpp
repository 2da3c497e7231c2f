//===- info.cpp - The info command ----------------------------------------===//

#include "../core/text.h"
#include "../session/model_check.h"
#include "commands.h"

#include <cstdio>

namespace genrec::rt {

namespace {

Json optimizerJson(const genrec_optimizer_desc &optimizer) {
  return {{"kind", genrec_optimizer_kind_name(optimizer.kind)},
          {"learning_rate", optimizer.learning_rate},
          {"states", optimizer.states}};
}

Json initJson(const genrec_init_desc &init) {
  return {{"kind", genrec_init_kind_name(init.kind)}, {"scale", init.scale}};
}

Json domainsJson(const genrec_model_desc &model) {
  Json list = Json::array();
  for (int32_t i = 0; i < model.domain_count; ++i) {
    const genrec_domain_desc &domain = model.domains[i];
    if (domain.kind == GENREC_DOMAIN_STEP)
      continue;
    Json entry = {{"name", domain.name}, {"kind", genrec_domain_kind_name(domain.kind)}};
    if (domain.parent >= 0)
      entry["parent"] = model.domains[domain.parent].name;
    if (domain.column && *domain.column)
      entry["column"] = domain.column;
    if (domain.source && *domain.source)
      entry["source"] = domain.source;
    list.push_back(entry);
  }
  return list;
}

Json columnsJson(const genrec_model_desc &model) {
  Json list = Json::array();
  for (int32_t i = 0; i < model.feature_count; ++i) {
    const genrec_feature_desc &feature = model.features[i];
    Json entry = {{"column", feature.column},
                  {"domain", model.domains[feature.domain].name},
                  {"type", genrec_type_name(feature.type)},
                  {"nullable", feature.nullable != 0}};
    if (feature.width > 0)
      entry["width"] = feature.width;
    if (feature.has_padding_id)
      entry["padding_id"] = feature.padding_id;
    if (feature.id_bits > 0)
      entry["id_bits"] = feature.id_bits;
    Json programs = Json::array();
    for (int32_t p = 0; p < model.program_count; ++p)
      for (int32_t f = 0; f < model.programs[p].feature_count; ++f)
        if (model.programs[p].features[f] == i)
          programs.push_back(model.programs[p].name);
    entry["read_by"] = programs;
    list.push_back(entry);
  }
  return list;
}

Json parametersJson(const genrec_model_desc &model) {
  Json list = Json::array();
  for (int32_t i = 0; i < model.parameter_count; ++i) {
    const genrec_parameter_desc &parameter = model.parameters[i];
    list.push_back(
        {{"name", parameter.name},
         {"shape", std::vector<int64_t>(parameter.shape, parameter.shape + parameter.rank)},
         {"init", initJson(parameter.init)},
         {"optimizer", optimizerJson(parameter.optimizer)}});
  }
  return list;
}

Json infoJson(const genrec_model_desc &model) {
  Json tables = Json::array(), losses = Json::array(), metrics = Json::array(),
       outputs = Json::array(), programs = Json::array();
  for (int32_t i = 0; i < model.table_count; ++i) {
    const genrec_table_desc &table = model.tables[i];
    tables.push_back({{"name", table.name},
                      {"dim", table.dim},
                      {"id_bits", table.id_bits},
                      {"init", initJson(table.init)},
                      {"optimizer", optimizerJson(table.optimizer)}});
    if (table.element != GENREC_ROW_F32)
      tables.back().update({{"element", genrec_row_element_name(table.element)},
                            {"rounding", genrec_row_rounding_name(table.rounding)}});
    if (table.bounded)
      tables.back().update(
          {{"bounded", table.bounded}, {"evict", genrec_evict_kind_name(table.evict)}});
    if (table.ttl)
      tables.back()["ttl"] = table.ttl;
    if (table.ttl_seconds)
      tables.back()["ttl_seconds"] = table.ttl_seconds;
    if (table.admit_after)
      tables.back()["admit_after"] = table.admit_after;
    if (table.hot_after)
      tables.back()["hot_after"] = table.hot_after;
  }
  for (int32_t i = 0; i < model.loss_count; ++i)
    losses.push_back({{"name", model.losses[i].name}, {"scale", model.losses[i].scale}});
  for (int32_t i = 0; i < model.metric_count; ++i) {
    const genrec_metric_desc &metric = model.metrics[i];
    metrics.push_back({{"name", metric.name},
                       {"kind", genrec_metric_kind_name(metric.kind)},
                       {"at", std::vector<int64_t>(metric.at, metric.at + metric.at_count)},
                       {"note", metric.note ? metric.note : ""}});
  }
  for (int32_t i = 0; i < model.output_count; ++i)
    outputs.push_back({{"name", model.outputs[i].name},
                       {"domain", model.domains[model.outputs[i].domain].name},
                       {"type", genrec_type_name(model.outputs[i].type)},
                       {"width", model.outputs[i].width}});
  for (int32_t i = 0; i < model.program_count; ++i)
    programs.push_back(model.programs[i].name);
  return {{"model", model.name},
          {"compiler", model.compiler ? model.compiler : ""},
          {"abi_version", model.abi_version},
          {"programs", programs},
          {"domains", domainsJson(model)},
          {"columns", columnsJson(model)},
          {"tables", tables},
          {"parameters", parametersJson(model)},
          {"losses", losses},
          {"metrics", metrics},
          {"outputs", outputs},
          {"schedule",
           {{"kind", model.schedule ? model.schedule : "constant"},
            {"warmup", model.schedule_warmup},
            {"steps", model.schedule_steps},
            {"final", model.schedule_final}}},
          {"clip_norm", model.clip_norm},
          {"clip_value", model.clip_value}};
}

std::string shapeText(const Json &shape) { return toText(shape); }

void printList(const char *title, const Json &list,
               const std::function<std::string(const Json &)> &text) {
  if (list.empty())
    return;
  std::printf("%s\n", title);
  for (const Json &entry : list)
    std::printf("  %s\n", text(entry).c_str());
}

void printInfo(const Json &info) {
  std::printf("model '%s', compiled by %s\n", words(info["model"]).c_str(),
              words(info["compiler"]).c_str());
  printList("domains", info["domains"], [](const Json &domain) {
    std::string text = words(domain["name"]) + " (" + words(domain["kind"]);
    for (const char *key : {"parent", "column", "source"})
      if (domain.contains(key))
        text += std::string(", ") + key + " " + words(domain[key]);
    return text + ")";
  });
  printList("columns", info["columns"], [](const Json &column) {
    std::vector<std::string> programs = column["read_by"];
    return words(column["column"]) + ": " + words(column["type"]) + " per row of " +
           words(column["domain"]) + "; read by " + listNames(programs);
  });
  printList("tables", info["tables"], [](const Json &table) {
    return words(table["name"]) + ": dim " + toText(table["dim"]) + ", ids of " +
           toText(table["id_bits"]) + " bits, " + words(table["init"]["kind"]) + " " +
           toText(table["init"]["scale"]) + ", " + words(table["optimizer"]["kind"]) + " " +
           toText(table["optimizer"]["learning_rate"]);
  });
  printList("parameters", info["parameters"], [](const Json &parameter) {
    return words(parameter["name"]) + ": " + shapeText(parameter["shape"]) + ", " +
           words(parameter["init"]["kind"]) + " " + toText(parameter["init"]["scale"]) + ", " +
           words(parameter["optimizer"]["kind"]) + " " +
           toText(parameter["optimizer"]["learning_rate"]);
  });
  printList("losses", info["losses"], [](const Json &loss) {
    return words(loss["name"]) + ", scale " + toText(loss["scale"]);
  });
  printList("metrics", info["metrics"], [](const Json &metric) {
    std::string note = words(metric["note"]);
    return words(metric["name"]) + " (" + words(metric["kind"]) +
           (metric["at"].empty() ? "" : " at " + toText(metric["at"])) + ")" +
           (note.empty() ? "" : ": " + note);
  });
  printList("outputs", info["outputs"], [](const Json &output) {
    std::string width = output["width"] == 0 ? "" : " x " + toText(output["width"]);
    return words(output["name"]) + ": " + words(output["type"]) + width + " per row of " +
           words(output["domain"]);
  });
  if (!info.contains("data"))
    return;
  printList("data", info["data"]["domains"], [](const Json &domain) {
    std::string list =
        domain.contains("longest") ? ", longest list " + toText(domain["longest"]) : "";
    return words(domain["name"]) + ": " + toText(domain["rows"]) + " rows, at most " +
           toText(domain["largest_batch"]) + " in a batch" + list;
  });
  std::printf("  memory: genrec-compile <model> --explain %s\n",
              words(info["data"]["explain"]).c_str());
}

} // namespace

int runInfo(const genrec_model_desc &model, const Flags &flags) {
  checkModel(model);
  Json info = infoJson(model);
  if (!flags.data.empty())
    info["data"] = dataJson(model, flags);
  if (flags.json)
    std::printf("%s\n", toText(info, 1).c_str());
  else
    printInfo(info);
  return 0;
}

} // namespace genrec::rt

//===- model-driver.cpp - runs a compiled model on batches in JSON --------===//
//
// The compiled counterpart of genrec-run: loads a shared object made by
// genrec-compile, runs one batch per step, and prints one JSON object per step in the
// form of `genrec-run --json`.
//
//   model-driver model.so batches.json modes [seed] [threads]
//
// batches.json holds a list of batches in the form of `genrec-run --print-batch`; modes are
// train, evaluate, predict or items, one per batch with commas between, or one for all.
// "allocations" of a step counts what all threads allocated while it ran.
//
//===----------------------------------------------------------------------===//

#include "JsonBatch.h"

#include "genrec_rt/error.h"
#include "genrec_rt/kernels/cpu/gemm.h"
#include "genrec_rt/kernels/cpu/rank.h"
#include "genrec_rt/kernels/cpu/time_buckets.h"
#include "genrec_rt/kernels/shared/hash.h"
#include "genrec_rt/session.h"

#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <new>

static std::atomic<int64_t> newCalls{0};

void *operator new(size_t bytes) {
  newCalls.fetch_add(1, std::memory_order_relaxed);
  if (void *memory = std::malloc(bytes ? bytes : 1))
    return memory;
  std::abort();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }

using namespace genrec::rt;
namespace json = llvm::json;

/// What a shared object takes from the program that loads it: one function of
/// each part of the runtime, so that the linker keeps the part.
extern const void *const kKept[];
const void *const kKept[] = {
    reinterpret_cast<const void *>(&genrec_rt_table_rows),
    reinterpret_cast<const void *>(&genrec_rt_report_loss),
    reinterpret_cast<const void *>(&genrec_rt_parallel_for),
    reinterpret_cast<const void *>(&kernels::matmulDynamic),
    reinterpret_cast<const void *>(&kernels::topK),
    reinterpret_cast<const void *>(
        static_cast<int64_t (*)(genrec_string, int64_t, int64_t)>(&kernels::hashXxh3)),
    reinterpret_cast<const void *>(&kernels::fillTimeBuckets),
};

static json::Value toJson(double value) {
  if (std::isfinite(value))
    return value;
  return std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
}

/// null where no row counts.
static json::Value meanToJson(std::optional<double> mean) {
  return mean ? toJson(*mean) : json::Value(nullptr);
}

static json::Array toJson(const float *values, int64_t count) {
  json::Array list;
  for (int64_t i = 0; i < count; ++i)
    list.push_back(toJson(values[i]));
  return list;
}

static json::Value readElement(const OutputRows &rows, int64_t i) {
  int64_t width = rows.width ? rows.width : 1;
  if (rows.isNull(i / width) || rows.isNull(i / width, i % width))
    return nullptr;
  switch (rows.type) {
  case GENREC_F32:
    return toJson(rows.as<float>()[i]);
  case GENREC_F64:
    return toJson(rows.as<double>()[i]);
  case GENREC_I32:
    return static_cast<int64_t>(rows.as<int32_t>()[i]);
  case GENREC_I1:
    return static_cast<int64_t>(rows.as<uint8_t>()[i]);
  default:
    return rows.as<int64_t>()[i];
  }
}

static json::Value outputToJson(const OutputRows &rows) {
  json::Array list;
  for (int64_t row = 0; row < rows.count; ++row) {
    if (rows.width <= 1) {
      list.push_back(readElement(rows, row));
      continue;
    }
    json::Array columns;
    for (int64_t column = 0; column < rows.width; ++column)
      columns.push_back(readElement(rows, row * rows.width + column));
    list.push_back(std::move(columns));
  }
  return list;
}

static json::Object tableToJson(const TableView &table) {
  const StoreConfig &config = table.configuration();
  json::Object rows;
  for (int64_t number = 0; number < table.size(); ++number) {
    json::Array row = toJson(table.row(number), config.usedFloats());
    if (config.rules.any()) {
      Sighting sighting;
      table.rows(number, 1).readSightings(&sighting);
      row.push_back(sighting.lastStep);
      row.push_back(sighting.steps);
    }
    rows[std::to_string(table.id(number))] = std::move(row);
  }
  return rows;
}

static json::Object stateToJson(Session &session, const StepReport &report) {
  const genrec_model_desc &model = session.model();
  json::Object top, losses, parameters, states, tables, outputs, metrics;
  for (int32_t i = 0; i < model.loss_count; ++i)
    losses[model.losses[i].name] = json::Object{{"mean", meanToJson(report.losses[i].mean())},
                                                {"sum", toJson(report.losses[i].sum)},
                                                {"weight", toJson(report.losses[i].weight)}};
  for (int32_t i = 0; i < model.parameter_count; ++i) {
    ParameterView view = session.parameter(i);
    parameters[model.parameters[i].name] =
        toJson(view.value.data(), static_cast<int64_t>(view.value.size()));
    states[model.parameters[i].name] =
        toJson(view.state.data(), static_cast<int64_t>(view.state.size()));
  }
  for (int32_t i = 0; i < model.table_count; ++i)
    tables[model.tables[i].name] = tableToJson(session.table(i));
  for (int32_t i = 0; i < model.output_count; ++i)
    if (session.output(i).given)
      outputs[model.outputs[i].name] = outputToJson(session.output(i));
  for (auto &[name, value] : session.metrics().values())
    metrics[name] = toJson(value);
  top["losses"] = std::move(losses);
  top["loss"] = meanToJson(report.loss);
  top["parameters"] = std::move(parameters);
  top["states"] = std::move(states);
  top["tables"] = std::move(tables);
  top["outputs"] = std::move(outputs);
  top["metrics"] = std::move(metrics);
  return top;
}

/// The mode of batch `index`: one mode is for every batch.
static Mode parseMode(llvm::StringRef modes, size_t index) {
  llvm::SmallVector<llvm::StringRef> list;
  modes.split(list, ',');
  llvm::StringRef mode = list[std::min(index, list.size() - 1)];
  if (mode == "train")
    return Mode::train;
  if (mode == "items")
    return Mode::items;
  return mode == "evaluate" ? Mode::evaluate : Mode::predict;
}

static int32_t findRoot(const genrec_model_desc &model, int32_t kind, const std::string &name) {
  for (int32_t i = 0; i < model.domain_count; ++i)
    if (model.domains[i].kind == kind && model.domains[i].parent < 0 &&
        (name.empty() || name == model.domains[i].name))
      return i;
  throw Error("the model has no root domain '" + name + "'", "check the batch");
}

static void run(int argc, char **argv) {
  LoadedModel loaded(argv[1]);
  const genrec_model_desc &model = loaded.model();
  auto file = llvm::MemoryBuffer::getFile(argv[2]);
  if (!file)
    throw Error(std::string("cannot read ") + argv[2], "give a file");
  llvm::Expected<json::Value> batches = json::parse((*file)->getBuffer());
  if (!batches)
    throw Error(llvm::toString(batches.takeError()), "give a list of batches");
  SessionOptions options;
  options.seed = argc > 4 ? std::stoull(argv[4]) : 0;
  options.threads = argc > 5 ? std::stoi(argv[5]) : 2;
  Session session(model, options);
  size_t index = 0;
  for (const json::Value &value : *batches->getAsArray()) {
    const json::Object &object = *value.getAsObject();
    if (const json::Object *catalogues = index == 0 ? object.getObject("catalogues") : nullptr)
      for (const auto &[name, rows] : *catalogues) {
        int32_t root = findRoot(model, GENREC_DOMAIN_CATALOGUE, name.str());
        session.setCatalogue(root, driver::readRows(model, root, *rows.getAsArray(), nullptr));
      }
    session.metrics().reset();
    Mode mode = parseMode(argv[3], index++);
    Batch batch;
    StepReport report;
    if (mode != Mode::items)
      batch = driver::readRows(model, findRoot(model, GENREC_DOMAIN_DATA, ""),
                               *object.getArray("rows"), object.getArray("positions"));
    int64_t before = newCalls + alignedAllocations();
    report = mode == Mode::items ? session.stepWithoutRows(mode) : session.step(mode, batch);
    int64_t allocations = newCalls + alignedAllocations() - before;
    json::Object state = stateToJson(session, report);
    state["allocations"] = allocations;
    llvm::outs() << json::Value(std::move(state)) << "\n";
  }
}

int main(int argc, char **argv) {
  if (argc < 4) {
    llvm::errs() << "usage: model-driver model.so batches.json modes [seed] [threads]\n";
    return 2;
  }
  try {
    run(argc, argv);
  } catch (const std::exception &error) {
    llvm::errs() << "model-driver: " << error.what() << "\n";
    return 1;
  }
  return 0;
}

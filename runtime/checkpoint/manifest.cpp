//===- manifest.cpp - What a checkpoint says of itself --------------------===//

#include "manifest.h"

#include "../core/checksum.h"
#include "genrec_rt/error.h"
#include "json_fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

namespace genrec::rt {

namespace {

/// Version 3 has incremental generations; without them, version 2 is written.
constexpr int64_t kVersion = 3, kVersionOfFull = 2;
constexpr int64_t kMost = INT64_MAX;
const std::string kPrefix = "{\n \"checksum\": \"";
const std::string kZeros(16, '0');

/// Text with its checksum filled in.
std::string seal(const Json &body, bool isFull) {
  Json manifest = {{"checksum", kZeros}, {"version", isFull ? kVersionOfFull : kVersion}};
  manifest.update(body);
  std::string text = toText(manifest, 1) + "\n";
  return text.replace(kPrefix.size(), kZeros.size(), toHex(checksumOf(text)));
}

bool isSealed(const std::string &text) {
  return text.size() >= kPrefix.size() + kZeros.size() &&
         text.compare(0, kPrefix.size(), kPrefix) == 0;
}

bool isWhole(std::string text) {
  std::string said = text.substr(kPrefix.size(), kZeros.size());
  text.replace(kPrefix.size(), kZeros.size(), kZeros);
  return fromHex(said) == checksumOf(text);
}

Json digestToJson(const TensorDigest &digest) {
  Json::object_t blocks;
  for (const auto &[name, sums] : digest.blocks) {
    std::string digits;
    for (uint64_t sum : sums)
      digits += toHex(sum);
    blocks.emplace_back(name, std::move(digits)); // names are distinct
  }
  return {{"file", kTensorFile},
          {"bytes", digest.bytes},
          {"block_bytes", TensorDigest::kBlockBytes},
          {"header", toHex(digest.header)},
          {"blocks", std::move(blocks)}};
}

uint64_t hexOf(const JsonFields &fields, const char *name) {
  std::optional<uint64_t> value = fromHex(fields.text(name));
  if (!value)
    throw fields.error(name, "is no checksum: 16 hexadecimal digits");
  return *value;
}

TensorDigest digestFromJson(const JsonFields &fields) {
  TensorDigest digest;
  digest.bytes = fields.integer("bytes", 8, kMost);
  fields.integer("block_bytes", TensorDigest::kBlockBytes, TensorDigest::kBlockBytes);
  digest.header = hexOf(fields, "header");
  JsonFields blocks = fields.fields("blocks");
  for (const auto &[name, value] : fields.raw("blocks").items()) {
    std::string digits = value.is_string() ? value.get<std::string>() : "?";
    std::vector<uint64_t> &sums = digest.blocks[name];
    for (size_t at = 0; at < digits.size(); at += 16) {
      std::optional<uint64_t> sum = fromHex(std::string_view(digits).substr(at, 16));
      if (!sum)
        throw blocks.error(name, "is no list of checksums");
      sums.push_back(*sum);
    }
  }
  return digest;
}

Json dataToJson(const std::vector<DataFile> &files) {
  Json list = Json::array();
  for (const DataFile &file : files)
    list.push_back({{"role", file.role},
                    {"path", file.path},
                    {"bytes", file.bytes},
                    {"checksum", toHex(file.checksum)}});
  return list;
}

/// By ttl in seconds, pairs of a period's number and its first step.
Json clockToJson(const StepClock::State &clock) {
  Json periods = Json::object();
  for (const auto &[ttl, list] : clock.periods) {
    Json pairs = Json::array();
    for (const StepClock::Period &each : list)
      pairs.push_back({{"period", each.period}, {"first_step", each.firstStep}});
    periods[std::to_string(ttl)] = std::move(pairs);
  }
  return {{"seconds", *clock.seconds}, {"periods", std::move(periods)}};
}

StepClock::State clockFromJson(const JsonFields &fields, uint64_t step) {
  constexpr int64_t kLeast = -kMost;
  StepClock::State clock;
  clock.seconds = fields.integer("seconds", kLeast, kMost);
  const JsonFields periods = fields.fields("periods");
  for (const auto &[name, value] : fields.raw("periods").items()) {
    int64_t ttl = 0;
    auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), ttl);
    if (error != std::errc() || end != name.data() + name.size() || ttl < 1)
      throw periods.error(name, "is no number of seconds");
    std::vector<StepClock::Period> &list = clock.periods[ttl];
    for (const JsonFields &pair : periods.list(name.c_str())) {
      StepClock::Period each{pair.integer("period", kLeast, kMost),
                             pair.integer("first_step", 0, static_cast<int64_t>(step))};
      if (!list.empty() &&
          (each.period <= list.back().period || each.firstStep <= list.back().firstStep))
        throw periods.error(name, "does not ascend");
      list.push_back(each);
    }
  }
  return clock;
}

Json stateToJson(const TrainingState &state) {
  Json losses = Json::array();
  for (const LossValue &loss : state.epochLosses)
    losses.push_back({{"sum", realToJson(loss.sum)}, {"weight", realToJson(loss.weight)}});
  Json json = {{"step", state.step},
               {"epoch", state.epoch},
               {"rows_in_epoch", state.rowsInEpoch},
               {"batches_in_epoch", state.batchesInEpoch},
               {"epoch_losses", losses},
               {"seed", state.seed},
               {"batch", state.batch},
               {"token_list", state.tokenList},
               {"batch_tokens", state.batchTokens},
               {"portions", state.portions},
               {"shuffle", state.shuffle},
               {"order", state.order},
               {"data_rows", state.dataRows},
               {"window_rows", state.windowRows},
               {"data", dataToJson(state.data)},
               {"first_step", state.firstStep},
               {"before", Json::parse(state.before)},
               {"history", Json::parse(state.history)}};
  if (!state.clockSource.empty())
    json["clock_source"] = state.clockSource;
  if (state.clock.seconds)
    json["clock"] = clockToJson(state.clock);
  return json;
}

/// A sum or a weight of a loss; version 1 wrote null for what is not finite.
double lossValue(const JsonFields &fields, const char *name) {
  return fields.raw(name).is_null() ? std::nan("") : fields.real(name);
}

TrainingState stateFromJson(const JsonFields &fields) {
  TrainingState state;
  state.step = static_cast<uint64_t>(fields.integer("step", 0, kMost));
  state.epoch = fields.integer("epoch", 1, kMost);
  for (const JsonFields &loss : fields.list("epoch_losses"))
    state.epochLosses.push_back({lossValue(loss, "sum"), lossValue(loss, "weight")});
  state.seed = fields.number64("seed");
  state.batch = fields.integer("batch", 1, kMost);
  if (fields.has("portions")) // version 2 had none at first
    state.portions = static_cast<int32_t>(fields.integer("portions", 1, INT32_MAX));
  state.shuffle = fields.boolean("shuffle");
  state.dataRows = fields.integer("data_rows", 0, kMost);
  state.windowRows = fields.integer("window_rows", 0, kMost);
  state.rowsInEpoch = fields.integer("rows_in_epoch", 0, state.dataRows);
  if (fields.has("batches_in_epoch")) {
    state.batchesInEpoch = fields.integer("batches_in_epoch", 0, kMost);
    state.order = static_cast<int32_t>(fields.integer("order", 0, INT32_MAX));
    state.tokenList = fields.text("token_list");
    state.batchTokens = fields.integer("batch_tokens", 0, kMost);
  } else { // version 2 had batches by rows only, at first
    state.batchesInEpoch = state.rowsInEpoch / state.batch + (state.rowsInEpoch % state.batch > 0);
  }
  const Json &history = fields.raw("history");
  if (!history.is_array())
    throw fields.error("history", "is no list");
  for (const JsonFields &record : fields.list("history"))
    if (record.has("evaluation"))
      record.fields("evaluation");
  state.history = toText(history);
  if (fields.has("first_step")) // version 2 had neither at first
    state.firstStep =
        static_cast<uint64_t>(fields.integer("first_step", 0, static_cast<int64_t>(state.step)));
  if (fields.has("before")) {
    fields.list("before");
    state.before = toText(fields.raw("before"));
  }
  if (fields.has("clock_source"))
    state.clockSource = fields.text("clock_source");
  if (fields.has("clock"))
    state.clock = clockFromJson(fields.fields("clock"), state.step);
  if (!fields.has("data"))
    return state;
  for (const JsonFields &file : fields.list("data"))
    state.data.push_back({file.text("role"), file.text("path"), file.integer("bytes", 0, kMost),
                          hexOf(file, "checksum")});
  return state;
}

std::string baseOf(const JsonFields &fields, const char *name) {
  std::string base = fields.text(name);
  if (!isGenerationName(base))
    throw fields.error(name, "is no name of a generation");
  return base;
}

void requireSection(const JsonFields &fields, const std::string &wanted) {
  if (fields.text("kind") != wanted)
    throw fields.error("kind", "is '" + fields.text("kind") + "', it must be '" + wanted + "'");
}

} // namespace

std::string toText(const FolderManifest &manifest) {
  Json generations = Json::array();
  bool areFull = true;
  for (const GenerationEntry &entry : manifest.generations) {
    generations.push_back(
        {{"name", entry.name}, {"step", entry.step}, {"manifest", toHex(entry.checksum)}});
    if (entry.base.empty())
      continue;
    generations.back()["base"] = entry.base;
    areFull = false;
  }
  return seal({{"kind", "folder"}, {"generations", generations}, {"retired", manifest.retired}},
              areFull);
}

std::string toText(const GenerationManifest &manifest) {
  Json body = {{"kind", "generation"}, {"model", manifest.model}, {"compiler", manifest.compiler}};
  body["finite"] = manifest.isFinite;
  body["sorted"] = manifest.isSorted;
  body.update(stateToJson(manifest.state));
  body["tensors"] = digestToJson(*manifest.digest);
  body["identity"] =
      manifest.identity.empty() ? Json(nullptr) : Json::parse(manifest.identity, nullptr, false);
  if (!manifest.base.empty())
    body["base"] = {{"name", manifest.base}, {"manifest", toHex(manifest.baseChecksum)}};
  return seal(body, manifest.base.empty());
}

int64_t checkManifest(const std::string &text, const std::string &path) {
  if (isSealed(text) && !isWhole(text))
    throw Error(path + ": is damaged: its text has another checksum than it says");
  JsonDocument document(text, path, "is damaged");
  int64_t version = document.root().integer("version", 1, kMost);
  if (version > kVersion)
    throw Error(path + ": has version " + std::to_string(version) + ", this binary reads up to " +
                    std::to_string(kVersion),
                "use a binary of the genrec that wrote it, or a newer one");
  if (version > 1 && !isSealed(text))
    throw Error(path + ": is damaged: it does not begin with its checksum");
  return version;
}

FolderManifest parseFolderManifest(const std::string &text, const std::string &path) {
  JsonDocument document(text, path, "is damaged");
  JsonFields root = document.root();
  if (root.text("kind") == "generation") {
    std::filesystem::path folder = std::filesystem::path(path).parent_path();
    std::string above = folder.parent_path().empty() ? "." : folder.parent_path().string();
    throw Error(folder.string() + ": is one generation of a checkpoint",
                "name the folder above: --checkpoint " + above + " --generation " +
                    folder.filename().string());
  }
  requireSection(root, "folder");
  FolderManifest manifest;
  for (const JsonFields &entry : root.list("generations")) {
    manifest.generations.push_back({entry.text("name"),
                                    static_cast<uint64_t>(entry.integer("step", 0, kMost)),
                                    hexOf(entry, "manifest")});
    if (!isGenerationName(manifest.generations.back().name))
      throw entry.error("name", "is no name of a generation");
    if (entry.has("base"))
      manifest.generations.back().base = baseOf(entry, "base");
  }
  manifest.retired = root.texts("retired");
  for (const std::string &name : manifest.retired)
    if (!isGenerationName(name))
      throw root.error("retired", "holds '" + name + "', which is no name of a generation");
  return manifest;
}

GenerationManifest parseGenerationManifest(const std::string &text, const std::string &path) {
  JsonDocument document(text, path, "is damaged");
  JsonFields root = document.root();
  requireSection(root, "generation");
  GenerationManifest manifest;
  manifest.model = root.text("model");
  manifest.compiler = root.text("compiler");
  if (!root.raw("identity").is_null()) {
    root.fields("identity");
    manifest.identity = toText(root.raw("identity"));
  }
  manifest.state = stateFromJson(root);
  manifest.isFinite = root.boolean("finite");
  manifest.isSorted = root.has("sorted") && root.boolean("sorted");
  if (root.has("base")) {
    manifest.base = baseOf(root.fields("base"), "name");
    manifest.baseChecksum = hexOf(root.fields("base"), "manifest");
  }
  manifest.digest = digestFromJson(root.fields("tensors"));
  manifest.tensorBytes = manifest.digest->bytes;
  return manifest;
}

GenerationManifest parseVersion1(const std::string &text, const std::string &path) {
  JsonDocument document(text, path, "is damaged");
  JsonFields root = document.root();
  GenerationManifest manifest;
  manifest.model = root.text("model");
  manifest.compiler = root.has("compiler") ? root.text("compiler") : "";
  manifest.state = stateFromJson(root);
  manifest.tensors = root.text("tensors");
  size_t slash = manifest.tensors.find('/');
  if (slash == std::string::npos || !isGenerationName(manifest.tensors.substr(0, slash)) ||
      manifest.tensors.substr(slash + 1) != kTensorFile)
    throw root.error("tensors", "is '" + manifest.tensors + "', not like step-1/" + kTensorFile);
  manifest.tensorBytes = root.integer("tensor_bytes", 8, kMost);
  manifest.isFinite = false; // version 1 did not look
  return manifest;
}

bool isGenerationName(const std::string &name) {
  constexpr size_t kStem = 5; // of "step-"
  return name.rfind("step-", 0) == 0 && name.size() > kStem && name.size() < 64 &&
         std::all_of(
             name.begin() + kStem, name.end(),
             [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
}

} // namespace genrec::rt

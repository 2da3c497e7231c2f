//===- profile_report.cpp - A profile as a table and as a trace -----------===//

#include "profile_report.h"

#include "../core/text.h"

#include <algorithm>

namespace genrec::rt {

namespace {

constexpr size_t kMostShown = 30;

std::string whereOf(const genrec_op_desc &op) {
  if (!op.location.file || !*op.location.file)
    return {};
  std::string file = op.location.file;
  return file.substr(file.rfind('/') + 1) + ":" + std::to_string(op.location.line);
}

std::string whatOf(const genrec_op_desc &op) { return op.what ? op.what : ""; }

/// The mean work of a call; nothing for an op without known costs.
std::optional<Work> workOfCall(const genrec_op_desc &desc, const OpTime &time) {
  if (desc.cost_count == 0 || time.calls == 0)
    return std::nullopt;
  const Work &work = time.work;
  auto calls = static_cast<double>(time.calls);
  return Work{.bytes = work.bytes / calls,
              .gatheredBytes = work.gatheredBytes / calls,
              .flops = work.flops / calls,
              .productFlops = work.productFlops / calls,
              .bf16Flops = work.bf16Flops / calls,
              .sourceBytes = work.sourceBytes / calls};
}

Json opToJson(const genrec_op_desc &desc, const OpTime &time, double steps,
              const std::optional<Roofline> &roofline) {
  Json json = {{"name", desc.name},
               {"what", whatOf(desc)},
               {"where", whereOf(desc)},
               {"stage", genrec_stage_name(desc.stage)},
               {"calls_per_step", static_cast<double>(time.calls) / steps},
               {"milliseconds", time.seconds * 1e3 / steps},
               {"rows", time.rows / steps},
               {"bytes", (time.work.bytes + time.work.gatheredBytes) / steps},
               {"flops", time.work.allFlops() / steps}};
  if (std::optional<Work> work = workOfCall(desc, time); roofline && work) {
    json["predicted_milliseconds"] =
        roofline->seconds(*work) * 1e3 * static_cast<double>(time.calls) / steps;
    json["bound"] = roofline->bound(*work);
  }
  return json;
}

std::string padded(const std::string &text, size_t width) {
  // Cut to characters, not bytes: names may hold any UTF-8.
  size_t shown = 0, bytes = 0;
  while (bytes < text.size() && shown < width) {
    ++bytes;
    while (bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xc0) == 0x80)
      ++bytes;
    ++shown;
  }
  return text.substr(0, bytes) + std::string(width - shown, ' ');
}

std::string opLine(const Json &op, double total) {
  double milliseconds = op["milliseconds"];
  std::string line = "  " + padded(op["name"], 34) + formatted("%9.3f", milliseconds) +
                     formatted("%6.1f%%", total > 0 ? milliseconds / total * 100 : 0);
  line += op.contains("predicted_milliseconds")
              ? formatted("%10.3f ", op["predicted_milliseconds"]) + padded(op["bound"], 10)
              : std::string(21, ' ');
  line += formatted("%11.0f ", op["rows"]);
  std::string what = op["what"], where = op["where"];
  return line + " " + (what.empty() ? where : what);
}

} // namespace

Json profileToJson(const genrec_model_desc &model, const Profile &profile, Mode mode,
                   const std::optional<Roofline> &roofline) {
  auto number = static_cast<int32_t>(mode);
  auto steps = static_cast<double>(std::max<int64_t>(profile.steps(number), 1));
  Json phases = Json::object();
  for (int32_t i = 0; i < kPhases; ++i) {
    auto phase = static_cast<Phase>(-i - 1);
    phases[nameOf(phase)] = profile.seconds(number, phase) * 1e3 / steps;
  }
  Json ops = Json::array();
  double predicted = 0;
  for (int32_t i = 0; i < model.op_count; ++i) {
    const OpTime &time = profile.opTimes()[i];
    if (time.mode != number)
      continue;
    ops.push_back(opToJson(model.ops[i], time, steps, roofline));
    if (ops.back().contains("predicted_milliseconds"))
      predicted += ops.back()["predicted_milliseconds"].get<double>();
  }
  Json json = {{"model", model.name},
               {"steps", profile.steps(number)},
               {"milliseconds_per_step_by_phase", phases},
               {"ops", ops}};
  if (roofline)
    json["predicted_milliseconds_per_step"] = predicted;
  return json;
}

Json profileOfRanks(const Profile &profile, int32_t portions,
                    const std::vector<double> &idleSeconds, int64_t steps, Communicator &comm) {
  auto train = static_cast<int32_t>(Mode::train);
  struct {
    double flops = 0;
    double seconds[kPhases] = {};
  } mine;
  std::vector<decltype(mine)> all(comm.getSize());
  // A profile counts every portion of a step.
  int64_t own = getPortions(portions, comm.getRank(), comm.getSize()).count;
  auto count = static_cast<double>(std::max<int64_t>(profile.steps(train) / own, 1));
  for (const OpTime &op : profile.opTimes())
    if (op.mode == train)
      mine.flops += op.work.allFlops() / count;
  for (int32_t i = 0; i < kPhases; ++i)
    mine.seconds[i] = profile.seconds(train, static_cast<Phase>(-i - 1)) / count;
  comm.allGather(&mine, all.data(), sizeof mine);
  Json ranks = Json::array();
  for (size_t rank = 0; rank < all.size(); ++rank) {
    Json phases = Json::object();
    for (int32_t i = 0; i < kPhases; ++i)
      phases[nameOf(static_cast<Phase>(-i - 1))] = all[rank].seconds[i] * 1e3;
    double idle = idleSeconds[rank] * 1e3 / static_cast<double>(std::max<int64_t>(steps, 1));
    ranks.push_back({{"rank", rank},
                     {"flops", all[rank].flops},
                     {"milliseconds_by_phase", phases},
                     {"idle_milliseconds", idle}});
  }
  return ranks;
}

/// A line per rank.
static std::string rankTable(const Json &ranks) {
  std::string text = "  rank        MFLOP  compute ms  exchange ms   idle ms\n";
  for (const Json &rank : ranks) {
    const Json &phases = rank["milliseconds_by_phase"];
    text += formatted("  %4.0f", rank["rank"]) +
            formatted("%13.3f", rank["flops"].get<double>() * 1e-6) +
            formatted("%12.3f", phases[nameOf(Phase::compute)]) +
            formatted("%13.3f", phases[nameOf(Phase::exchange)]) +
            formatted("%10.3f", rank["idle_milliseconds"]) + "\n";
  }
  return text;
}

std::string profileTable(const Json &profile) {
  std::string text = "profile of " + std::to_string(profile["steps"].get<int64_t>()) +
                     " steps, milliseconds per step\n ";
  for (const auto &[name, value] : profile["milliseconds_per_step_by_phase"].items())
    text += " " + name + " " + formatted("%.3f", value) + ";";
  text.back() = '\n';
  if (profile.contains("by_rank"))
    text += rankTable(profile["by_rank"]);
  std::vector<const Json *> ops;
  double total = 0;
  for (const Json &op : profile["ops"]) {
    ops.push_back(&op);
    total += op["milliseconds"].get<double>();
  }
  std::sort(ops.begin(), ops.end(), [](const Json *a, const Json *b) {
    return std::pair((*b)["milliseconds"].get<double>(), a) <
           std::pair((*a)["milliseconds"].get<double>(), b);
  });
  text += "  " + padded("op", 34) + "     time  share  at least by          rows  from\n";
  for (size_t i = 0; i < std::min(ops.size(), kMostShown); ++i)
    text += opLine(*ops[i], total) + "\n";
  if (ops.size() > kMostShown)
    text += "  … " + std::to_string(ops.size() - kMostShown) + " more in profile.json\n";
  if (!profile.contains("predicted_milliseconds_per_step"))
    text += "  not predicted: run `" + profile["model"].get<std::string>() +
            " calibrate` once on this machine\n";
  else
    text +=
        "  at least, all ops: " + formatted("%.3f", profile["predicted_milliseconds_per_step"]) +
        ", measured " + formatted("%.3f", total) + "\n";
  return text;
}

namespace {

/// Tracks of a trace.
enum Track { mainThread = 1, readingThread = 2, dispatchingThread = 3 };

/// Which thread a phase of a step ran on, and with it the ops that follow. `isAhead`: the step was
/// dispatched beside the one before.
Track trackOf(Phase phase, bool isAhead) {
  if (phase == Phase::read || phase == Phase::copy)
    return readingThread;
  bool isOfDispatch =
      phase == Phase::dispatch || phase == Phase::exchangeAhead || phase == Phase::wait;
  return isAhead && isOfDispatch ? dispatchingThread : mainThread;
}

bool isDispatchedAhead(const TracedStep &step) {
  return std::any_of(step.spans.begin(), step.spans.end(), [](const Span &span) {
    return span.what == static_cast<int32_t>(Phase::exchangeAhead);
  });
}

} // namespace

std::string profileTrace(const genrec_model_desc &model, const Profile &profile,
                         const std::optional<Roofline> &roofline) {
  std::string text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  auto add = [&, isFirst = true](const Json &event) mutable {
    text += (isFirst ? "\n" : ",\n") + toText(event);
    isFirst = false;
  };
  for (const auto &[thread, name] :
       {std::pair{mainThread, "compute (main thread)"},
        std::pair{readingThread, "read and copy (reading thread)"},
        std::pair{dispatchingThread, "dispatch (dispatching thread, on several ranks)"}})
    add({{"name", "thread_name"},
         {"ph", "M"},
         {"pid", 1},
         {"tid", thread},
         {"args", {{"name", name}}}});
  int64_t first = INT64_MAX;
  for (const TracedStep &step : profile.traced())
    for (const Span &span : step.spans)
      first = std::min(first, span.begin);
  constexpr const char *kModes[] = {"", "train", "evaluate", "predict", "items"};
  for (const TracedStep &step : profile.traced()) {
    bool isAhead = isDispatchedAhead(step);
    Track track = mainThread; // ops follow the phase that they are in
    for (const Span &span : step.spans) {
      if (span.what < 0)
        track = trackOf(static_cast<Phase>(span.what), isAhead);
      Json event = {{"name", span.what < 0 ? nameOf(static_cast<Phase>(span.what))
                                           : model.ops[span.what].name},
                    {"cat", span.what < 0 ? "phase" : "op"},
                    {"ph", "X"},
                    {"pid", 1},
                    {"tid", static_cast<int>(track)},
                    {"ts", static_cast<double>(span.begin - first) * 1e-3},
                    {"dur", static_cast<double>(span.end - span.begin) * 1e-3},
                    {"args", {{"step", step.step}, {"program", kModes[step.mode]}}}};
      if (span.what >= 0) {
        event["args"]["from"] = whatOf(model.ops[span.what]);
        event["args"]["where"] = whereOf(model.ops[span.what]);
        std::optional<Work> work = workOfCall(model.ops[span.what], profile.opTimes()[span.what]);
        if (roofline && work) {
          event["args"]["at least, in the mean (us)"] = roofline->seconds(*work) * 1e6;
          event["args"]["by"] = roofline->bound(*work);
        }
      }
      add(event);
    }
  }
  return text + "\n]}\n";
}

} // namespace genrec::rt

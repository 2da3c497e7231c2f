//===- progress.cpp - What a run prints while it runs ---------------------===//

#include "progress.h"

#include "../core/launcher.h"
#include "../core/text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace genrec::rt {

namespace {

constexpr int kBarCells = 12;

/// Blocks in eighths of a cell.
std::string barOf(double fraction) {
  const char *eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  int filled = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * kBarCells * 8);
  std::string bar;
  for (int cell = 0; cell < kBarCells; ++cell) {
    int part = std::clamp(filled - cell * 8, 0, 8);
    bar += part == 8 ? "█" : part == 0 ? " " : eighths[part];
  }
  return bar;
}

/// 72 seconds as "1:12".
std::string clockTime(double seconds) {
  auto whole = static_cast<int64_t>(std::max(seconds, 0.0));
  char text[32];
  if (whole >= 3600)
    std::snprintf(text, sizeof text, "%ld:%02ld:%02ld", static_cast<long>(whole / 3600),
                  static_cast<long>(whole / 60 % 60), static_cast<long>(whole % 60));
  else
    std::snprintf(text, sizeof text, "%ld:%02ld", static_cast<long>(whole / 60),
                  static_cast<long>(whole % 60));
  return text;
}

/// A number of a record, or why there is none.
std::string shownValue(const Json &record, const std::string &name, const Json &value) {
  if (value.is_number())
    return formatted("%.4f", value);
  if (record.contains("no_rows"))
    for (const Json &empty : record["no_rows"])
      if (empty == name)
        return "no rows";
  return "undefined";
}

/// The metrics of a record as lines "HR@10 0.2130  MRR 0.1020": those without a
/// name in front first, then one line "name: …" per name.
std::vector<std::string> metricLines(const Json &record) {
  std::vector<std::string> names = {""}, lines = {""};
  if (!record.contains("metrics"))
    return lines;
  for (const auto &[key, value] : record["metrics"].items()) {
    size_t dot = key.rfind('.');
    std::string name = dot == std::string::npos ? "" : key.substr(0, dot);
    std::string shown = dot == std::string::npos ? key : key.substr(dot + 1);
    std::transform(shown.begin(), shown.end(), shown.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    auto line = static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    if (line == names.size()) {
      names.push_back(name);
      lines.push_back("  " + name + ":");
    }
    lines[line] += "  " + shown + " " + shownValue(record, key, value);
  }
  return lines;
}

double secondsBetween(std::chrono::steady_clock::time_point from,
                      std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

} // namespace

Json toJson(const NamedValues &values) {
  Json json = Json::object();
  for (const auto &[name, value] : values)
    json[name] = std::isfinite(value) ? Json(value) : Json(nullptr);
  return json;
}

Progress::Progress(const std::string &wanted, int64_t every, const std::string &title)
    : every(every), prefix("[" + title + "]") {
  prefix.resize(std::max<size_t>(prefix.size() + 1, 10), ' ');
  bool terminal = isWatched();
  style = wanted == "bar"     ? Style::bar
          : wanted == "lines" ? Style::lines
          : wanted == "json"  ? Style::json
          : wanted == "none"  ? Style::none
          : terminal          ? Style::bar
                              : Style::lines;
  begin();
}

Progress::~Progress() { clearBar(); }

void Progress::begin() {
  phaseBegin = lastReport = Clock::now();
  rowsAtBegin = -1;
}

bool Progress::isDue(uint64_t step) {
  if (every > 0)
    return step % static_cast<uint64_t>(every) == 0;
  double seconds = style == Style::bar ? 0.1 : style == Style::json ? 0.2 : 15;
  return secondsBetween(lastReport, Clock::now()) >= seconds;
}

void Progress::step(const StepNews &news) {
  // Speed is measured from the end of the first step, which also allocates memory and waits for
  // decoding.
  if (rowsAtBegin < 0) {
    rowsAtBegin = news.rows;
    phaseBegin = Clock::now();
  }
  if (style == Style::none || !isDue(news.step))
    return;
  lastReport = Clock::now();
  draw(news);
}

void Progress::draw(const StepNews &news) {
  double seconds = secondsBetween(phaseBegin, Clock::now());
  double speed = seconds > 0 ? static_cast<double>(news.rows - rowsAtBegin) / seconds : 0;
  double eta = speed > 0 ? static_cast<double>(news.totalRows - news.rows) / speed : 0;
  if (style == Style::json)
    return event("step", {{"phase", news.phase},
                          {"epoch", news.epoch},
                          {"epochs", news.epochs},
                          {"step", news.step},
                          {"rows", news.rows},
                          {"total_rows", news.totalRows},
                          {"loss", news.loss ? Json(*news.loss) : Json(nullptr)},
                          {"mean_loss", news.meanLoss ? Json(*news.meanLoss) : Json(nullptr)},
                          {"learning_rate", news.learningRate},
                          {"rows_per_second", speed},
                          {"seconds", secondsBetween(runBegin, lastReport)}});
  std::string title =
      news.epochs > 0 && std::string(news.phase) == "train"
          ? "epoch " + std::to_string(news.epoch) + "/" + std::to_string(news.epochs)
          : news.phase;
  bool hasLoss = std::string(news.phase) != "predict";
  std::string mean = news.meanLoss ? formatted("%.4f", *news.meanLoss) : "no rows";
  std::string loss = hasLoss ? "  loss " + mean : "";
  std::string rate = speed > 0 ? "  " + withThousands(static_cast<int64_t>(speed)) + " rows/s" : "";
  if (style == Style::bar) {
    double fraction = news.totalRows > 0 ? static_cast<double>(news.rows) / news.totalRows : 0;
    std::printf("\r\033[K%s%s %s%s%s%s  eta %s", prefix.c_str(), title.c_str(),
                barOf(fraction).c_str(), loss.c_str(), rate.c_str(), lastMetrics.c_str(),
                clockTime(eta).c_str());
    barShown = true;
    std::fflush(stdout);
    return;
  }
  printLine(prefix + title + "  step " + withThousands(static_cast<int64_t>(news.step)) + loss +
            rate);
}

void Progress::clearBar() {
  if (barShown)
    std::printf("\r\033[K");
  barShown = false;
  std::fflush(stdout);
}

void Progress::printLine(const std::string &text) {
  clearBar();
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

void Progress::message(const std::string &text) {
  if (style == Style::json)
    event("message", {{"text", text}});
  else if (style != Style::none)
    printLine(prefix + text);
}

void Progress::table(const std::string &lines) {
  if (style != Style::json && style != Style::none)
    printLine(lines.substr(0, lines.find_last_not_of('\n') + 1));
}

void Progress::epochDone(int64_t epoch, int64_t epochs, const Json &record) {
  event("epoch", record);
  if (style == Style::bar || style == Style::lines)
    printLine(prefix + "epoch " + std::to_string(epoch) + "/" + std::to_string(epochs) + "  loss " +
              shownValue(record, "loss", record.value("loss", Json())) + "  " +
              withThousands(static_cast<int64_t>(record.value("rows_per_second", 0.0))) +
              " rows/s");
}

void Progress::evaluationDone(const Json &record) {
  event("evaluation", record);
  std::vector<std::string> metrics = metricLines(record);
  std::string loss =
      record.contains("loss") ? "  loss " + shownValue(record, "loss", record["loss"]) : "";
  // If one of several losses has no rows, nothing else shows it.
  const Json losses = record.value("losses", Json::object());
  for (const auto &[name, value] : losses.items())
    if (losses.size() > 1 && value.is_null())
      loss += "  (" + name + ": " + shownValue(record, name, value) + ")";
  if (style == Style::bar || style == Style::lines)
    for (const std::string &line : metrics)
      if (std::string text = (&line == metrics.data() ? loss : "") + line; !text.empty())
        printLine("[eval]  " + text);
  // The bar has room for one metric.
  lastMetrics = metrics[0].substr(0, metrics[0].find("  ", 2));
}

void Progress::done(const Json &summary) { event("done", summary); }

void Progress::event(const std::string &kind, Json fields) {
  if (style != Style::json)
    return;
  Json line = {{"event", kind}};
  line.update(fields);
  std::printf("%s\n", toText(line).c_str());
  std::fflush(stdout);
}

} // namespace genrec::rt

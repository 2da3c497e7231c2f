//===- patience.cpp - When training no longer helps -----------------------===//

#include "patience.h"

#include <cmath>

namespace genrec::rt {

bool improvesByFalling(const std::string &monitored) {
  size_t dot = monitored.rfind('.');
  std::string last = dot == std::string::npos ? monitored : monitored.substr(dot + 1);
  // Normalised entropy is a loss (He et al., ADKDD 2014).
  return last == "loss" || last == "ne";
}

double monitoredValue(const Json &evaluation, const std::string &monitored) {
  const Json &from = evaluation.contains("metrics") && evaluation["metrics"].contains(monitored)
                         ? evaluation["metrics"]
                         : evaluation;
  bool isNumber = from.contains(monitored) && from[monitored].is_number();
  return isNumber ? from[monitored].get<double>() : std::nan("");
}

Patience patienceOf(const Json &history, const std::string &monitored) {
  Patience patience;
  for (const Json &record : history) {
    if (!record.contains("evaluation"))
      continue;
    const Json &evaluation = record["evaluation"];
    ++patience.evaluations;
    double value = monitoredValue(evaluation, monitored);
    bool isBetter = std::isfinite(value) &&
                    (!patience.hasBest() || (improvesByFalling(monitored) ? value < patience.best
                                                                          : value > patience.best));
    if (isBetter) {
      patience.best = value;
      patience.since = 0;
      patience.bestEpoch = record.value("epoch", int64_t(0));
      patience.bestStep = record.value("step", int64_t(0));
    } else {
      ++patience.since;
    }
  }
  return patience;
}

} // namespace genrec::rt

//===- patience.cpp - When training no longer helps -----------------------===//

#include "patience.h"

namespace genrec::rt {

bool improvesByFalling(const std::string &monitored) {
  size_t dot = monitored.rfind('.');
  std::string last = dot == std::string::npos ? monitored : monitored.substr(dot + 1);
  // Normalised entropy is a loss (He et al., ADKDD 2014).
  return last == "loss" || last == "ne";
}

Patience patienceOf(const Json &history, const std::string &monitored) {
  Patience patience;
  for (const Json &record : history) {
    if (!record.contains("evaluation"))
      continue;
    const Json &evaluation = record["evaluation"];
    ++patience.evaluations;
    const Json &from = evaluation.contains("metrics") && evaluation["metrics"].contains(monitored)
                           ? evaluation["metrics"]
                           : evaluation;
    bool isBetter = false;
    if (from.contains(monitored) && from[monitored].is_number()) {
      double value = from[monitored];
      isBetter = !patience.hasBest() ||
                 (improvesByFalling(monitored) ? value < patience.best : value > patience.best);
      if (isBetter)
        patience.best = value;
    }
    if (isBetter) {
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

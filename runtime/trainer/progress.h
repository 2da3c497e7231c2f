//===- progress.h - What a run prints while it runs --------------*- C++ -*-===//

#ifndef GENREC_RT_TRAINER_PROGRESS_H
#define GENREC_RT_TRAINER_PROGRESS_H

#include "../core/json.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace genrec::rt {

using NamedValues = std::vector<std::pair<std::string, double>>;

/// {"hr@10": 0.29, …}; NaN becomes null.
Json toJson(const NamedValues &values);

/// The progress that a step reports.
struct StepNews {
  const char *phase = "train"; ///< train, evaluate, predict
  int64_t epoch = 0, epochs = 0;
  uint64_t step = 0;
  int64_t rows = 0, totalRows = 0; ///< of this phase (an epoch)
  std::optional<double> loss;      ///< of this step; none where no row counts
  std::optional<double> meanLoss;  ///< so far in this phase
  double learningRate = 0;
};

/// Prints a bar on a terminal, lines elsewhere, or JSON events; on standard
/// output. A step's event says when the step ended, in seconds since the run began, so that a late
/// reader can tell how long steps took.
class Progress {
public:
  /// `style`: auto, bar, lines, json, none. `every`: steps between reports, 0: by
  /// time (bar 10 a second, json 5 a second, lines one in 15 seconds).
  /// Lines begin with `title` in brackets.
  Progress(const std::string &style, int64_t every, const std::string &title = "train");
  ~Progress();

  /// A new epoch, evaluation or prediction begins.
  void begin();
  void step(const StepNews &news);
  /// A message of its own: "resuming at step 300".
  void message(const std::string &text);
  /// Prints lines unchanged; nothing in the styles json and none.
  void table(const std::string &lines);
  void epochDone(int64_t epoch, int64_t epochs, const Json &record);
  void evaluationDone(const Json &record);
  /// The last event of a JSON stream.
  void done(const Json &summary);
  /// A JSON event of another kind; nothing in other styles.
  void event(const std::string &kind, Json fields);

private:
  enum class Style { bar, lines, json, none };
  using Clock = std::chrono::steady_clock;

  bool isDue(uint64_t step);
  void draw(const StepNews &news);
  void printLine(const std::string &text);
  void clearBar();

  Style style;
  int64_t every;
  std::string prefix; ///< "[train]   "
  Clock::time_point runBegin = Clock::now(), phaseBegin, lastReport;
  int64_t rowsAtBegin = -1;
  bool barShown = false;
  std::string lastMetrics;
};

} // namespace genrec::rt

#endif // GENREC_RT_TRAINER_PROGRESS_H

//===- flag_rules.cpp - Flags that cannot act are mistakes ----------------===//

#include "flag_rules.h"

#include <CLI/Error.hpp>

#include <set>
#include <string>
#include <utility>

namespace genrec::rt {

namespace {

class Rules {
public:
  Rules(const CLI::App &command, const Flags &flags, const genrec_model_desc &model)
      : flags(flags), model(model) {
    for (const CLI::Option *option : command.get_options())
      if (option->count() > 0)
        for (const std::string &name : option->get_lnames())
          given.insert("--" + name);
  }

  void check() const {
    clipping();
    schedule();
    evaluations();
    checkpoints();
    reports();
    data();
    rowTravel();
  }

private:
  /// Refuses `flag`, if given, unless `canAct`.
  void require(const std::string &flag, bool canAct, const std::string &why) const {
    if (given.contains(flag) && !canAct)
      throw CLI::ValidationError(flag, why);
  }

  /// Clipping is compiled only if the model declares a limit.
  void clipping() const {
    auto declare = [&](const std::string &name) {
      return "cannot act: model '" + std::string(model.name) + "' declares no " + name +
             "; give it one, as super().__init__(" + name +
             "=1.0), and compile it again: the flag replaces the declared limit";
    };
    require("--clip-norm", model.clip_norm > 0, declare("clip_norm"));
    require("--clip-value", model.clip_value > 0, declare("clip_value"));
  }

  void schedule() const {
    Schedule schedule = *sessionOptions(flags, model).schedule;
    const bool decays = schedule.kind != "constant";
    for (const char *flag : {"--schedule-steps", "--schedule-final"})
      require(flag, decays,
              "cannot act: a constant schedule has no end; add --schedule linear or cosine");
    require("--schedule-steps", schedule.steps == 0 || schedule.steps > schedule.warmup,
            "must be above the " + std::to_string(schedule.warmup) +
                " steps of warm-up, or nothing is left to decay in");
  }

  void evaluations() const {
    const bool evaluates = !flags.validation.empty();
    for (const char *flag : {"--patience", "--eval-every", "--eval-epochs"})
      require(flag, evaluates, "needs --validation, the data to evaluate on");
    require("--eval-batch", evaluates || flags.evalBeforeTrain,
            "needs --validation, the data to evaluate on, or --eval-before-train");
    require("--eval-before-train", flags.patience == 0,
            "cannot act beside --patience, which compares the epochs over one set of data");
    require("--monitor", flags.patience > 0,
            "needs --patience, the evaluations without improvement after which to stop");
    require("--eval-every", flags.evalEpochs.empty(),
            "cannot act beside --eval-epochs, which lists the epochs");
    for (int64_t epoch : flags.evalEpochs)
      require("--eval-epochs", epoch >= 1 && epoch <= flags.epochs,
              "names epoch " + std::to_string(epoch) + ", but the run has epochs 1 to " +
                  std::to_string(flags.epochs));
  }

  void checkpoints() const {
    for (const auto &[flag, purpose] :
         {std::pair("--resume", "go on from"), std::pair("--overwrite", "replace"),
          std::pair("--checkpoint-every", "save to"),
          std::pair("--checkpoint-full-every", "save to"), std::pair("--keep", "keep them in")})
      require(flag, !flags.checkpoint.empty(),
              std::string("needs --checkpoint, the folder to ") + purpose);
    require("--init", flags.continued.empty(),
            "cannot act beside --continue: the checkpoint has all weights");
    if (flags.command != Flags::Command::train)
      return;
    require("--generation", flags.resume || !flags.continued.empty(),
            "needs --resume or --continue, which read a checkpoint");
    require("--generation", !flags.resume || flags.continued.empty(),
            "is unclear beside both --resume and --continue: leave one of them out");
  }

  void reports() const {
    require("--log-every",
            flags.progress != "none" || !flags.tensorboard.empty() || !flags.metricsJson.empty(),
            "cannot act: nothing reports steps with --progress none; add --metrics-json or "
            "--tensorboard, or show progress");
  }

  void data() const {
    require("--clock", needsClock(),
            "cannot act: no table of model '" + std::string(model.name) +
                "' has a ttl in seconds, as gr.Table(…, ttl=datetime.timedelta(days=30))");
    require("--shuffle-window", flags.shuffle, "cannot act beside --no-shuffle");
    require(
        "--batch", flags.batchTokens == 0,
        "cannot act beside --batch-tokens, which says how large batches are; --eval-batch is for "
        "evaluations");
    for (const char *flag : {"--batch", "--catalogue"})
      require(flag, flags.command != Flags::Command::info || !flags.data.empty(),
              "needs --data, the data to count");
  }

  bool needsClock() const {
    for (int32_t i = 0; i < model.table_count; ++i)
      if (model.tables[i].ttl_seconds > 0)
        return true;
    return false;
  }

  /// Portions promise the same bits on any number of ranks.
  void rowTravel() const {
    const std::string rounded =
        "cannot act beside --portions, which promises the same bits on any number of ranks: rows "
        "are "
        "rounded where they travel, and it depends on the number of ranks which do";
    for (auto [flag, wire] :
         {std::pair("--row-wire", flags.rowWire), std::pair("--gradient-wire", flags.gradientWire)})
      require(flag, wire == "f32" || !given.contains("--portions"), rounded);
    require("--replicate", flags.command == Flags::Command::train || !flags.choosesReplicas(),
            "cannot be auto: a run chooses by what its training steps exchange; name tables, or "
            "none");
    require("--replica-memory", flags.choosesReplicas(),
            "needs --replicate auto, whose choice it bounds");
    require("--replicate", flags.gradientWire == "f32" || !flags.namesReplicas(),
            "cannot act beside --gradient-wire bf16: sums of gradients are rounded where they "
            "travel, so "
            "that copies of a row would differ from rank to rank");
    require("--deduplicate",
            sessionOptions(flags, model).rowTravel.keepsBits() || flags.rowWire == "bf16" ||
                flags.gradientWire == "bf16" || !given.contains("--portions"),
            "cannot be owner or none beside --portions, which promises the same bits on any number "
            "of ranks: gradients of equal ids are then added in the order in which they arrive");
  }

  const Flags &flags;
  const genrec_model_desc &model;
  std::set<std::string> given; ///< the flags that were
};

} // namespace

void requireActingFlags(const CLI::App &command, const Flags &flags,
                        const genrec_model_desc &model) {
  Rules(command, flags, model).check();
}

} // namespace genrec::rt

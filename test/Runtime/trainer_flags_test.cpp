//===- trainer_flags_test.cpp - Flags that cannot act, numbers told ------===//

#include "../../runtime/core/launcher.h"
#include "../../runtime/core/threads.h"
#include "../../runtime/trainer/patience.h"
#include "../../runtime/trainer/same_on_ranks.h"
#include "RunCommand.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>

namespace genrec::rt::test {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class TrainerFlagsTest : public CommandTest {
protected:
  /// What a command line is refused with, before anything is read.
  std::string refusal(const Arguments &arguments, const genrec_model_desc &model = tinyModel()) {
    Ran ran = runCommand(arguments, model);
    EXPECT_EQ(ran.status, 2) << ran.err;
    EXPECT_EQ(ran.out, "");
    return ran.err;
  }
};

//===-- flags that cannot act -----------------------------------------------===//

TEST_F(TrainerFlagsTest, ClippingIsRefusedWhereTheModelDeclaresNone) {
  for (std::string name : {"norm", "value"})
    EXPECT_EQ(refusal(training({"--clip-" + name, "1"})),
              "tiny: error: --clip-" + name + ": cannot act: model 'tiny' declares no clip_" +
                  name + "; give it one, as super().__init__(clip_" + name +
                  "=1.0), and compile it again: the flag replaces the declared limit\n"
                  "  help: train --help lists what there is\n");
  genrec_model_desc clipping = tinyModel();
  clipping.clip_norm = 1;
  EXPECT_EQ(runCommand(training({"--clip-norm", "2", "--max-steps", "1"}), clipping).status, 0);
  EXPECT_THAT(refusal(training({"--clip-value", "2"}), clipping), HasSubstr("no clip_value"));
}

TEST_F(TrainerFlagsTest, WhatFlagsNeedIsSaid) {
  for (const char *flag : {"--schedule-steps", "--schedule-final"})
    EXPECT_THAT(refusal(training({flag, "1"})), HasSubstr("a constant schedule has no end"));
  EXPECT_THAT(refusal(training({"--schedule", "linear", "--warmup", "7", "--schedule-steps", "7"})),
              HasSubstr("--schedule-steps: must be above the 7 steps of warm-up"));
  for (const char *flag : {"--patience", "--eval-every", "--eval-epochs", "--eval-batch"})
    EXPECT_THAT(refusal(training({flag, "1"})),
                HasSubstr(std::string(flag) + ": needs --validation"));
  EXPECT_THAT(refusal(validating({"--eval-every", "2", "--eval-epochs", "1"})),
              HasSubstr("--eval-every: cannot act beside --eval-epochs"));
  EXPECT_THAT(refusal(validating({"--epochs", "3", "--eval-epochs", "1,4"})),
              HasSubstr("--eval-epochs: names epoch 4, but the run has epochs 1 to 3"));
  EXPECT_THAT(refusal(validating({"--monitor", "auc"})), HasSubstr("--monitor: needs --patience"));
  for (const char *flag : {"--checkpoint-every", "--resume"})
    EXPECT_THAT(
        refusal(training(flag == std::string("--resume") ? Arguments{flag} : Arguments{flag, "5"})),
        HasSubstr(std::string(flag) + ": needs --checkpoint"));
  EXPECT_THAT(refusal(training({"--log-every", "1", "--progress", "none"})),
              HasSubstr("nothing reports steps with --progress none"));
  EXPECT_THAT(refusal({"info", "--batch", "3"}), HasSubstr("--batch: needs --data"));
}

//===-- the numbers that are told -------------------------------------------===//

TEST_F(TrainerFlagsTest, TheLearningRateToldIsThatOfTheStep) {
  Ran ran = runCommand(training({"--warmup", "10", "--lr", "1", "--max-steps", "12", "--log-every",
                                 "1", "--progress", "json"}));
  ASSERT_EQ(ran.status, 0) << ran.err;
  auto steps = ran.events("step");
  ASSERT_EQ(steps.size(), 12u);
  for (size_t i = 0; i < steps.size(); ++i)
    EXPECT_DOUBLE_EQ(steps[i]["learning_rate"], std::min(1.0, (static_cast<double>(i) + 1) / 10));
}

TEST_F(TrainerFlagsTest, WhatIsNotFiniteIsNeverTheBest) {
  auto historyOf = [](const std::vector<double> &losses) {
    Json history = Json::array();
    for (double loss : losses)
      history.push_back({{"epoch", history.size() + 1}, {"evaluation", {{"loss", loss}}}});
    return history;
  };
  const double infinity = std::numeric_limits<double>::infinity();
  for (double bad : {std::nan(""), infinity, -infinity}) {
    Patience first = patienceOf(historyOf({bad, 0.5, 0.6}), "loss");
    EXPECT_EQ(first.bestEpoch, 2) << bad;
    EXPECT_EQ(first.best, 0.5) << bad;
    Patience later = patienceOf(historyOf({0.5, bad}), "loss");
    EXPECT_EQ(later.bestEpoch, 1) << bad;
    EXPECT_FALSE(patienceOf(historyOf({bad}), "loss").hasBest()) << bad;
  }
}

TEST_F(TrainerFlagsTest, InfoNamesEveryKindOfMetric) {
  std::vector<genrec_metric_desc> metrics;
  for (int32_t kind = 0; genrec_metric_kind_name(kind); ++kind)
    metrics.push_back({"m", kind, nullptr, 0, nullptr, 0});
  genrec_model_desc model = tinyModel();
  model.metrics = metrics.data();
  model.metric_count = static_cast<int32_t>(metrics.size());
  Ran ran = runCommand({"info", "--json"}, model);
  ASSERT_EQ(ran.status, 0) << ran.err;
  std::vector<std::string> kinds;
  auto info = nlohmann::json::parse(ran.out);
  for (const auto &metric : info["metrics"])
    kinds.push_back(metric["kind"]);
  std::vector<std::string> expected = {"ranking", "auc", "gauc", "ne", "rmse", "mae"};
  EXPECT_EQ(kinds, expected);
}

//===-- one of several ranks ------------------------------------------------===//

/// Sets variables of the environment for a while, and nothing else of a launcher.
class Environment {
public:
  explicit Environment(const std::vector<std::pair<const char *, const char *>> &values) {
    for (const char *name : kNames)
      unsetenv(name);
    for (auto [name, value] : values)
      setenv(name, value, 1);
  }
  ~Environment() {
    for (const char *name : kNames)
      unsetenv(name);
  }

private:
  static constexpr const char *kNames[] = {"OMPI_COMM_WORLD_SIZE",
                                           "OMPI_COMM_WORLD_LOCAL_SIZE",
                                           "OMPI_COMM_WORLD_RANK",
                                           "GENREC_COMM_LIBRARY",
                                           "MV2_COMM_WORLD_SIZE",
                                           "PMI_SIZE",
                                           "MPI_LOCALNRANKS",
                                           "PMIX_SIZE",
                                           "PMIX_RANK",
                                           "SLURM_NTASKS",
                                           "SLURM_PROCID",
                                           "SLURM_STEP_NUM_TASKS",
                                           "SLURM_STEP_ID",
                                           "SLURM_JOB_ID",
                                           "SLURM_NTASKS_PER_NODE"};
};

TEST_F(TrainerFlagsTest, RanksAreFoundByTheirLaunchers) {
  using Values = std::vector<std::pair<const char *, const char *>>;
  auto ranks = [](const Values &values) {
    Environment environment(values);
    return currentLaunch().ranks;
  };
  EXPECT_EQ(ranks({}), 1);
  EXPECT_EQ(ranks({{"OMPI_COMM_WORLD_SIZE", "2"}}), 2);
  EXPECT_EQ(ranks({{"PMI_SIZE", "8"}}), 8);
  EXPECT_EQ(ranks({{"MV2_COMM_WORLD_SIZE", "3"}}), 3);
  EXPECT_EQ(ranks({{"PMIX_RANK", "1"}}), 2);
  EXPECT_EQ(ranks({{"PMIX_RANK", "0"}}), 1);
  EXPECT_EQ(ranks({{"OMPI_COMM_WORLD_SIZE", "1"}, {"PMIX_RANK", "0"}}), 1);
  // srun -n 4
  EXPECT_EQ(ranks({{"SLURM_NTASKS", "4"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "2"}}),
            4);
  // A batch script of a job of 4 tasks, none of them started; one of them started.
  EXPECT_EQ(ranks({{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}}), 1);
  EXPECT_EQ(ranks({{"SLURM_NTASKS", "4"}, {"SLURM_STEP_NUM_TASKS", "1"}}), 1);
  EXPECT_EQ(ranks({{"OMPI_COMM_WORLD_SIZE", "many"}}), 1);
}

TEST_F(TrainerFlagsTest, OneOfSeveralRanksNeedsACommunicator) {
  Environment environment({{"OMPI_COMM_WORLD_SIZE", "2"}, {"GENREC_COMM_LIBRARY", "/nowhere.so"}});
  Ran ran = runCommand(training());
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.err, HasSubstr("/nowhere.so"));
  EXPECT_THAT(ran.err, HasSubstr("GENREC_COMM_LIBRARY"));
  EXPECT_EQ(runCommand(training({"--comm", "none", "--max-steps", "1"})).status, 0);
  EXPECT_EQ(runCommand({"info"}).status, 0);
  EXPECT_EQ(runCommand({"train", "--help"}).status, 0);
}

TEST_F(TrainerFlagsTest, OnlyTheFirstRankTellsWhatTheFlagsLack) {
  std::vector<std::pair<const char *, const char *>> launched = {
      {"OMPI_COMM_WORLD_SIZE", "2"}, {"GENREC_COMM_LIBRARY", "/nowhere.so"}};
  for (const char *rank : {"0", "1"}) {
    launched.resize(2);
    launched.emplace_back("OMPI_COMM_WORLD_RANK", rank);
    Environment environment(launched);
    Ran ran = runCommand({"train"});
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.err.empty(), *rank == '1') << ran.err;
  }
}

TEST_F(TrainerFlagsTest, CoresAreSharedByTheRanksThatMayRunThere) {
  auto cores = [](const char *machine, std::initializer_list<int> numbers) {
    Cores cores;
    std::strcpy(cores.machine, machine);
    for (int number : numbers)
      CPU_SET(number, &cores.set);
    return cores;
  };
  // Two ranks with the same four cores, one bound to a core of its own, one elsewhere.
  std::vector<Cores> all = {cores("a", {0, 1, 2, 3}), cores("a", {0, 1, 2, 3}), cores("a", {7}),
                            cores("b", {0, 1, 2})};
  std::vector<int32_t> shares;
  for (size_t rank = 0; rank < all.size(); ++rank)
    shares.push_back(shareOfCores(all, rank));
  EXPECT_EQ(shares, (std::vector<int32_t>{2, 2, 1, 3}));
  all.assign(3, cores("a", {0, 1})); // more ranks than cores
  EXPECT_EQ(shareOfCores(all, 1), 1);
}

TEST_F(TrainerFlagsTest, WhatDiffersAmongRanksIsNamed) {
  auto run = [](std::vector<std::string> lines) {
    runThreadRanks(3, [&](Communicator &comm) {
      requireSame(&comm, "data",
                  comm.getRank() == 2 ? lines : std::vector<std::string>{"a 1", "b 22"});
    });
  };
  EXPECT_NO_THROW(run({"a 1", "b 22"}));
  for (auto [lines, text] :
       {std::pair(std::vector<std::string>{"a 1", "b 23"}, "b 23; rank 0: b 22"),
        {{"a 1"}, "nothing; rank 0: b 22"},
        {{"a 1", "b 22", "c"}, "c; rank 0: nothing"}})
    EXPECT_THAT(
        [&] { run(lines); },
        ThrowsMessage<Error>(HasSubstr("rank 2 has other data than rank 0: " + std::string(text))));
}

//===-- names that are not UTF-8, and numbers beyond all sizes ---------------===//

TEST_F(TrainerFlagsTest, PathsThatAreNotUtf8AreReported) {
  const std::string strange = folder / "tr\xff\xfe.parquet";
  std::filesystem::copy_file(folder / "train.parquet", strange);
  Ran ran =
      runCommand({"train", "--data", strange, "--batch", "10", "--max-steps", "2", "--progress",
                  "json", "--metrics-json", folder / "m.json", "--checkpoint", folder / "ch\xff"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.events("done").size(), 1u);
  auto metrics = nlohmann::json::parse(readText(folder / "m.json"));
  EXPECT_EQ(metrics["config"]["data"][0], folder / "tr\xEF\xBF\xBD\xEF\xBF\xBD.parquet");
  Ran wrong = runCommand({"train", "--data", folder / "no\xff.parquet", "--progress", "json"});
  EXPECT_EQ(wrong.status, 1);
  EXPECT_EQ(wrong.events("error").size(), 1u);
}

TEST_F(TrainerFlagsTest, ABatchBeyondTheDataIsAllOfIt) {
  const std::string most = std::to_string(std::numeric_limits<int64_t>::max());
  auto finalOf = [&](const std::string &batch) {
    Ran ran = runCommand(validating({"--batch", batch, "--eval-batch", most, "--epochs", "2",
                                     "--metrics-json", folder / "m.json"}));
    EXPECT_EQ(ran.status, 0) << ran.err;
    auto final = nlohmann::json::parse(readText(folder / "m.json"))["final"];
    final["evaluation"].erase("seconds");
    return final;
  };
  EXPECT_EQ(finalOf(most), finalOf("230"));
  EXPECT_EQ(finalOf(most)["step"], 2);
  Ran long_ = runCommand(training({"--epochs", most, "--data-memory", most, "--max-steps", "3"}));
  EXPECT_EQ(long_.status, 0) << long_.err;
}

} // namespace
} // namespace genrec::rt::test

//===- trainer_test.cpp - The command line of a compiled model ------------===//

#include "genrec_rt/trainer.h"

#include "TinyData.h"
#include "TinyModel.h"
#include "genrec_rt/checkpoint.h"
#include "genrec_rt/dataset.h"
#include "genrec_rt/safetensors.h"

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <parquet/arrow/reader.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace genrec::rt::test {
namespace {

using Json = nlohmann::json;
constexpr int64_t kMovies = 40, kUsers = 230;

struct Ran {
  int status;
  std::string out, err;
};

/// Runs one command in this process.
Ran run(const std::vector<std::string> &arguments, const genrec_model_desc &model = tinyModel()) {
  std::vector<const char *> argv = {"tiny"};
  for (const std::string &argument : arguments)
    argv.push_back(argument.c_str());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  int status = trainerMain(model, static_cast<int>(argv.size()), argv.data());
  std::fflush(stdout);
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  std::string out = testing::internal::GetCapturedStdout();
  return {status, out, testing::internal::GetCapturedStderr()};
}

class TrainerTest : public testing::Test {
protected:
  TrainerTest() {
    writeTinyData(folder / "train.parquet", 1, kUsers, kMovies, 50);
    writeTinyData(folder / "valid.parquet", 2, 70, kMovies, 50);
    writeTinyCatalogue(folder / "movies.parquet", kMovies);
  }

  /// train on the data, 23 batches of 10 rows an epoch.
  std::vector<std::string> training(const std::string &checkpoint,
                                    const std::vector<std::string> &more = {}) {
    std::vector<std::string> all = {"train", "--batch", "10", "--seed", "4", "--threads", "2"};
    if (std::find(more.begin(), more.end(), "--data") == more.end())
      all.insert(all.begin() + 1, {"--data", folder / "train.parquet"});
    if (!checkpoint.empty())
      all.insert(all.end(), {"--checkpoint", folder / checkpoint});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  std::vector<std::string> evaluating() {
    return {"--validation", folder / "valid.parquet", "--catalogue",
            "movies=" + folder / "movies.parquet"};
  }

  std::vector<float> stateIn(const std::string &checkpoint) {
    SessionOptions options;
    options.seed = 4;
    Session session(tinyModel(), options);
    loadCheckpoint(folder / checkpoint, session);
    return trainedState(session);
  }

  /// The events of a JSON run.
  static std::vector<Json> events(const std::string &out) {
    std::vector<Json> all;
    std::stringstream lines(out);
    for (std::string line; std::getline(lines, line);)
      all.push_back(Json::parse(line));
    return all;
  }

  TestFolder folder;
};

template <class T> std::vector<T> operator+(std::vector<T> a, const std::vector<T> &b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

//===-- training ----------------------------------------------------------===//

TEST_F(TrainerTest, TrainsEvaluatesAndWritesMetrics) {
  Ran ran = run(training(
      "", evaluating() + std::vector<std::string>{"--epochs", "6", "--eval-every", "3",
                                                  "--metrics-json", folder / "m.json", "--progress",
                                                  "json", "--log-every", "1"}));
  ASSERT_EQ(ran.status, 0) << ran.err;
  Json metrics = Json::parse(readText(folder / "m.json"));
  EXPECT_EQ(metrics["model"], "tiny");
  ASSERT_EQ(metrics["history"].size(), 6u);
  EXPECT_LT(metrics["history"][5]["loss"], metrics["history"][0]["loss"]);
  for (size_t epoch = 0; epoch < 6; ++epoch)
    EXPECT_EQ(metrics["history"][epoch].contains("evaluation"), epoch % 3 == 2);
  const Json &evaluation = metrics["final"]["evaluation"];
  EXPECT_EQ(evaluation["rows"], 70);
  for (const char *name : {"hr@1", "hr@5", "ndcg@1", "ndcg@5", "mrr", "auc"})
    EXPECT_TRUE(evaluation["metrics"].contains(name)) << name;
  EXPECT_LE(evaluation["metrics"]["hr@1"], evaluation["metrics"]["hr@5"]);
  EXPECT_EQ(metrics["metric_notes"]["ranking"], "nothing excluded");
  EXPECT_EQ(metrics["final"]["step"], 6 * 23);
  EXPECT_GT(metrics["timings"]["rows_per_second"], 0);
  EXPECT_GE(metrics["hardware"]["cores"], 1);

  std::vector<Json> all = events(ran.out);
  auto count = [&](const char *kind) {
    return std::count_if(all.begin(), all.end(), [&](const Json &e) { return e["event"] == kind; });
  };
  EXPECT_EQ(count("epoch"), 6);
  EXPECT_EQ(count("evaluation"), 2);
  EXPECT_EQ(all.back()["event"], "done");
  double before = 0; // the clock of steps goes on from epoch to epoch
  for (const Json &event : all)
    if (event["event"] == "step") {
      EXPECT_GT(event["seconds"], before);
      before = event["seconds"];
    }
  EXPECT_GT(before, 0);
}

TEST_F(TrainerTest, SameBitsAtAnyNumberOfThreads) {
  ASSERT_EQ(run(training("one", {"--threads", "1", "--epochs", "2"})).status, 0);
  ASSERT_EQ(run(training("three", {"--threads", "3", "--epochs", "2"})).status, 0);
  EXPECT_EQ(stateIn("one"), stateIn("three"));
}

TEST_F(TrainerTest, ListedEpochsAreEvaluated) {
  Ran ran = run(
      training("", evaluating() + std::vector<std::string>{"--epochs", "5", "--eval-epochs", "2,4",
                                                           "--metrics-json", folder / "m.json"}));
  ASSERT_EQ(ran.status, 0) << ran.err;
  Json history = Json::parse(readText(folder / "m.json"))["history"];
  for (size_t epoch = 1; epoch <= 5; ++epoch)
    EXPECT_EQ(history[epoch - 1].contains("evaluation"), epoch == 2 || epoch == 4);
}

TEST_F(TrainerTest, EveryStepsLossIsKeptOnRequest) {
  Ran ran = run(training("", {"--max-steps", "7", "--log-every", "1", "--metrics-json",
                              folder / "m.json", "--progress", "json", "--no-shuffle"}));
  ASSERT_EQ(ran.status, 0) << ran.err;
  Json losses = Json::parse(readText(folder / "m.json"))["step_losses"];
  ASSERT_EQ(losses.size(), 7u);
  // The same, driven by hand.
  SessionOptions options;
  options.seed = 4;
  Session session(tinyModel(), options);
  Dataset data(tinyModel(), {&session.program(Mode::train)}, folder / "train.parquet", {});
  EpochOptions order;
  order.batch = 10;
  auto source = data.epoch(order);
  Batch batch(tinyModel());
  for (size_t step = 0; step < 7; ++step) {
    batch.reset();
    ASSERT_TRUE(source->next(batch));
    EXPECT_EQ(losses[step]["loss"], *session.train(batch).loss);
  }
}

//===-- checkpoints -------------------------------------------------------===//

/// Runs a command in a process of its own, which `during` may send signals; returns
/// its exit status, or minus the signal that ended it.
int runApart(const std::vector<std::string> &arguments, const std::function<void(pid_t)> &during,
             rlim_t mostFileBytes = RLIM_INFINITY) {
  std::fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    // As on a full disk, writes fail beyond this size.
    std::signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit = {mostFileBytes, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &limit);
    std::vector<const char *> argv = {"tiny"};
    for (const std::string &argument : arguments)
      argv.push_back(argument.c_str());
    _exit(trainerMain(tinyModel(), static_cast<int>(argv.size()), argv.data()));
  }
  during(child);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/// Waits until the checkpoint in `checkpoint` has at least this step.
void waitForStep(const std::string &checkpoint, uint64_t step) {
  for (int i = 0; i < 20000; ++i) {
    if (hasCheckpoint(checkpoint) && readTrainingState(checkpoint).step >= step)
      return;
    usleep(1000);
  }
  FAIL() << "no checkpoint of step " << step << " in " << checkpoint;
}

TEST_F(TrainerTest, AResumedRunEndsWithTheSameBits) {
  std::vector<std::string> epochs = {"--epochs", "3"};
  ASSERT_EQ(run(training("whole", epochs)).status, 0);
  // Cut in the middle of the second epoch, then at the end of it.
  ASSERT_EQ(run(training("cut", epochs + std::vector<std::string>{"--max-steps", "30"})).status, 0);
  EXPECT_NE(stateIn("whole"), stateIn("cut"));
  Ran resumed =
      run(training("cut", epochs + std::vector<std::string>{"--max-steps", "46", "--resume"}));
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_NE(resumed.out.find("resuming at step 30, epoch 2, row 70"), std::string::npos)
      << resumed.out;
  ASSERT_EQ(run(training("cut", epochs + std::vector<std::string>{"--resume"})).status, 0);
  EXPECT_EQ(stateIn("whole"), stateIn("cut"));
}

TEST_F(TrainerTest, ResumeRefusesOtherSettings) {
  ASSERT_EQ(run(training("c", {"--max-steps", "5"})).status, 0);
  auto errorOf = [&](const std::vector<std::string> &more) {
    return run(training("c", more + std::vector<std::string>{"--resume"})).err;
  };
  EXPECT_NE(
      errorOf({"--batch", "20"}).find("the checkpoint was trained with --batch 10, now it is 20"),
      std::string::npos);
  EXPECT_NE(errorOf({"--seed", "5"}).find("trained with --seed 4, now it is 5"), std::string::npos);
  EXPECT_NE(errorOf({"--no-shuffle"}).find("trained with shuffling on, now it is off"),
            std::string::npos);
  EXPECT_NE(errorOf({"--data", folder / "valid.parquet"})
                .find("trained on other data: file 1 of the data, " + folder / "valid.parquet"),
            std::string::npos);
  // As long, and of as many rows.
  writeTinyData(folder / "train.parquet", 3, kUsers, kMovies, 50);
  EXPECT_NE(errorOf({}).find("trained on other data: file 1 of the data, "), std::string::npos);
  // The same elsewhere.
  writeTinyData(folder / "moved.parquet", 1, kUsers, kMovies, 50);
  EXPECT_EQ(errorOf({"--data", folder / "moved.parquet"}), "");
}

/// In the words of what to do next.
TEST_F(TrainerTest, NoRunBeginsOverACheckpoint) {
  ASSERT_EQ(run(training("c", {"--max-steps", "5"})).status, 0);
  std::vector<float> saved = stateIn("c");
  Ran again = run(training("c", {"--max-steps", "3"}));
  EXPECT_EQ(again.status, 1);
  EXPECT_EQ(again.err, "tiny: error: " + folder / "c" +
                           "/ holds a checkpoint of this model at step 5; --resume goes on with "
                           "its run, --overwrite starts anew\n");
  genrec_model_desc other = tinyModel();
  other.name = "large";
  EXPECT_EQ(run(training("c", {"--max-steps", "3"}), other).err,
            "large: error: " + folder / "c" +
                "/ holds a checkpoint of another model at step 5: it is model 'tiny', this binary "
                "is model 'large'\n  help: use another folder to keep it, or --overwrite to start "
                "anew\n");
  EXPECT_EQ(stateIn("c"), saved);
  EXPECT_EQ(run(training("c", {"--resume", "--overwrite"})).status, 2);
  ASSERT_EQ(run(training("c", {"--max-steps", "3", "--overwrite"})).status, 0);
  EXPECT_EQ(readTrainingState(folder / "c").step, 3u);
  EXPECT_FALSE(std::filesystem::exists(folder / "c/step-5"));
  // Damage is no reason to begin anew either.
  std::ofstream(folder / "c/manifest.json") << "x";
  Ran damaged = run(training("c", {"--max-steps", "3"}));
  EXPECT_EQ(damaged.err,
            "tiny: error: " + folder / "c" +
                "/ holds a checkpoint that cannot be used: " + (folder / "c/manifest.json") +
                ": is damaged: no JSON object\n  help: generation step-3 is whole: "
                "--generation step-3 uses it; --overwrite starts anew\n");
  Ran resumed = run(training("c", {"--max-steps", "6", "--resume", "--generation", "step-3"}));
  EXPECT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_EQ(readTrainingState(folder / "c").step, 6u);
}

TEST_F(TrainerTest, ASecondRunInOneFolderIsRefused) {
  int status =
      runApart(training("c", {"--epochs", "100000", "--progress", "none"}), [&](pid_t child) {
        waitForStep(folder / "c", 1);
        for (const char *flag : {"--resume", "--overwrite"}) {
          Ran second = run(training("c", {flag}));
          EXPECT_EQ(second.status, 1);
          EXPECT_NE(second.err.find("/c is being trained into by process " + std::to_string(child) +
                                    " on "),
                    std::string::npos)
              << second.err;
        }
        kill(child, SIGTERM);
      });
  EXPECT_EQ(status, 128 + SIGTERM);
}

TEST_F(TrainerTest, ALossThatIsNotFiniteEndsTheRun) {
  ASSERT_EQ(run(training("c", {"--max-steps", "5"})).status, 0);
  std::vector<std::string> diverging = {"--lr", "1e30", "--resume", "--epochs", "3"};
  Ran ran = run(training("c", diverging));
  EXPECT_EQ(ran.status, 1);
  EXPECT_EQ(ran.err.find("tiny: error: loss 'bce' (tiny.py:14) is "), 0u) << ran.err;
  EXPECT_NE(ran.err.find(" in step 7, epoch 1: op 'linear' ('logit') (tiny.py:12) made "),
            std::string::npos)
      << ran.err;
  EXPECT_NE(ran.err.find("; what was saved before is as it was\n"), std::string::npos) << ran.err;
  EXPECT_EQ(readTrainingState(folder / "c").step, 5u);
  ASSERT_EQ(run({"evaluate", "--checkpoint", folder / "c", "--data", folder / "valid.parquet",
                 "--catalogue", "movies=" + folder / "movies.parquet"})
                .status,
            0);
  diverging.push_back("--allow-nonfinite");
  ASSERT_EQ(run(training("c", diverging)).status, 0);
  EXPECT_EQ(readTrainingState(folder / "c").step, 69u);
  // It may be resumed and exported.
  diverging[4] = "4"; // epochs
  EXPECT_EQ(run(training("c", diverging)).status, 0);
  EXPECT_EQ(run({"export", "--checkpoint", folder / "c", "--out", folder / "out", "--catalogue",
                 "movies=" + folder / "movies.parquet"})
                .status,
            0);
}

TEST_F(TrainerTest, ResumeWithoutACheckpointStartsAnew) {
  ASSERT_EQ(run(training("a", {"--max-steps", "5"})).status, 0);
  ASSERT_EQ(run(training("b", {"--max-steps", "5", "--resume"})).status, 0);
  EXPECT_EQ(stateIn("a"), stateIn("b"));
}

TEST_F(TrainerTest, SigtermSavesACheckpointAndResumesToTheSameBits) {
  std::vector<std::string> epochs = {"--epochs", "150", "--progress", "none"};
  ASSERT_EQ(run(training("whole", epochs)).status, 0);
  for (int signal : {SIGTERM, SIGINT}) {
    std::string name = "cut" + std::to_string(signal);
    int status = runApart(training(name, epochs), [&](pid_t child) {
      waitForStep(folder / name, 23);
      kill(child, signal);
    });
    ASSERT_EQ(status, 128 + signal);
    EXPECT_LT(readTrainingState(folder / name).epoch, 150);
    ASSERT_EQ(run(training(name, epochs + std::vector<std::string>{"--resume"})).status, 0);
    EXPECT_EQ(stateIn("whole"), stateIn(name));
  }
}

TEST_F(TrainerTest, AKilledRunLeavesAWholeCheckpoint) {
  std::vector<std::string> flags = {"--epochs", "100000",     "--checkpoint-every",
                                    "1",        "--progress", "none"};
  // Saving after every step, it is nearly always killed while it saves.
  for (uint64_t steps : {5, 40, 90}) {
    int status =
        runApart(training("k", flags + std::vector<std::string>{"--resume"}), [&](pid_t child) {
          waitForStep(folder / "k", steps);
          kill(child, SIGKILL);
        });
    ASSERT_EQ(status, -SIGKILL);
    TrainingState state = readTrainingState(folder / "k");
    ASSERT_GE(state.step, steps);
    // The same steps without interruption give the same bits.
    std::string name = "straight" + std::to_string(steps);
    ASSERT_EQ(run(training(name, {"--epochs", "100000", "--max-steps", std::to_string(state.step)}))
                  .status,
              0);
    EXPECT_EQ(stateIn("k"), stateIn(name));
  }
}

//===-- the other commands ------------------------------------------------===//

TEST_F(TrainerTest, EvaluateRepeatsTheNumbersOfTraining) {
  ASSERT_EQ(
      run(training("c", evaluating() + std::vector<std::string>{"--epochs", "2", "--metrics-json",
                                                                folder / "t.json"}))
          .status,
      0);
  Ran ran = run({"evaluate", "--checkpoint", folder / "c", "--data", folder / "valid.parquet",
                 "--catalogue", "movies=" + folder / "movies.parquet", "--batch", "7",
                 "--metrics-json", folder / "e.json"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  Json trained = Json::parse(readText(folder / "t.json"))["final"]["evaluation"];
  Json evaluated = Json::parse(readText(folder / "e.json"))["evaluation"];
  EXPECT_EQ(trained["metrics"], evaluated["metrics"]);
  EXPECT_NEAR(trained["loss"], evaluated["loss"], 1e-6);
  EXPECT_NE(ran.out.find("HR@5"), std::string::npos);
}

std::shared_ptr<arrow::Table> readParquet(const std::string &path) {
  auto file = arrow::io::ReadableFile::Open(path).ValueOrDie();
  auto reader = parquet::arrow::OpenFile(file, arrow::default_memory_pool()).ValueOrDie();
  return reader->ReadTable().ValueOrDie()->CombineChunks().ValueOrDie();
}

TEST_F(TrainerTest, PredictPassesKeysThrough) {
  ASSERT_EQ(run(training("c", {"--epochs", "2"})).status, 0);
  Ran ran = run({"predict", "--checkpoint", folder / "c", "--data", folder / "valid.parquet",
                 "--catalogue", "movies=" + folder / "movies.parquet", "--batch", "16", "--keys",
                 "user,label", "--out", folder / "scores.parquet"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  auto table = readParquet(folder / "scores.parquet");
  EXPECT_EQ(table->schema()->ToString(/*show_metadata=*/false),
            "user: int64\nlabel: float\nscore: float not null\n"
            "top: list<element: int64 not null> not null");
  ASSERT_EQ(table->num_rows(), 70);
  auto &users = static_cast<arrow::Int64Array &>(*table->column(0)->chunk(0));
  auto &scores = static_cast<arrow::FloatArray &>(*table->column(2)->chunk(0));
  auto &top = static_cast<arrow::ListArray &>(*table->column(3)->chunk(0));
  for (int64_t row = 0; row < 70; ++row) {
    EXPECT_EQ(users.Value(row), row);
    EXPECT_EQ(top.value_length(row), 2);
  }
  // The scores are those of the session.
  SessionOptions options;
  options.seed = 4;
  Session session(tinyModel(), options);
  loadCheckpoint(folder / "c", session);
  session.setCatalogue(kTinyMovies, tinyCatalogue(kMovies));
  Batch batch = tinyBatch(2, 70, kMovies);
  session.predict(batch);
  for (int64_t row = 0; row < 70; ++row)
    EXPECT_EQ(scores.Value(row), session.output(0).as<float>()[row]);

  Ran unnamed =
      run({"predict", "--checkpoint", folder / "c", "--data", folder / "valid.parquet",
           "--catalogue", "movies=" + folder / "movies.parquet", "--out", folder / "rows.parquet"});
  ASSERT_EQ(unnamed.status, 0) << unnamed.err;
  EXPECT_EQ(readParquet(folder / "rows.parquet")->field(0)->name(), "row");
}

TEST_F(TrainerTest, PredictErrors) {
  ASSERT_EQ(run(training("c", {"--max-steps", "1"})).status, 0);
  auto errorOf = [&](const std::string &keys) {
    return run({"predict", "--checkpoint", folder / "c", "--data", folder / "valid.parquet",
                "--catalogue", "movies=" + folder / "movies.parquet", "--keys", keys, "--out",
                folder / "scores.parquet"})
        .err;
  };
  EXPECT_NE(errorOf("usr").find("has no column 'usr', which was asked for; it has user, label, "
                                "target, history.movie\n  help: did you mean 'user'?"),
            std::string::npos);
  EXPECT_NE(errorOf("history.movie")
                .find("key 'history.movie' is of a list that the outputs do not belong to: "
                      "they are rows of 'user'"),
            std::string::npos);
  EXPECT_NE(errorOf("score").find("key 'score' has the name of an output"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "scores.parquet"));
  EXPECT_FALSE(std::filesystem::exists(folder / "scores.parquet.partial"));
}

TEST_F(TrainerTest, ExportWritesParametersTablesAndItems) {
  ASSERT_EQ(run(training("c", {"--epochs", "1"})).status, 0);
  Ran ran = run({"export", "--checkpoint", folder / "c", "--out", folder / "out", "--catalogue",
                 "movies=" + folder / "movies.parquet"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  SessionOptions options;
  options.seed = 4;
  Session session(tinyModel(), options);
  loadCheckpoint(folder / "c", session);
  SafetensorsReader parameters(folder / "out/parameters.safetensors"),
      tables(folder / "out/tables.safetensors"), items(folder / "out/items.safetensors");
  EXPECT_EQ(parameters.tensors().size(), 2u);
  EXPECT_EQ(tables.tensors().size(), 2u); // no optimizer states
  EXPECT_EQ(describe(tables.tensor("movie.values")),
            "F32 [" + std::to_string(session.table(0).size()) + ", 4]");
  auto check = [&](const SafetensorsReader &items, const std::string &name, float factor) {
    EXPECT_EQ(describe(items.tensor(name)), "F32 [40, 4]");
    std::vector<int64_t> ids(kMovies);
    items.readIntegers("movies.ids", 0, kMovies, ids.data());
    std::vector<float> rows(kMovies * 4);
    items.readFloats(name, 0, kMovies * 4, rows.data());
    for (int64_t i = 0; i < kMovies; ++i) {
      EXPECT_EQ(ids[i], i);
      float row[4];
      session.table(0).findOrInsert(&ids[i], 1).read(0, 4, row);
      for (int64_t d = 0; d < 4; ++d)
        EXPECT_EQ(rows[i * 4 + d], factor * row[d]);
    }
  };
  check(items, "movies.vector", 2); // what the model makes of the rows

  // A model that gives out no item vectors: the rows as they are.
  genrec_model_desc plain = tinyModel();
  plain.program_count = 3;
  plain.output_count = 2;
  Ran raw = run({"export", "--checkpoint", folder / "c", "--out", folder / "raw", "--catalogue",
                 "movies=" + folder / "movies.parquet"},
                plain);
  ASSERT_EQ(raw.status, 0) << raw.err;
  check(SafetensorsReader(folder / "raw/items.safetensors"), "movies.movie", 1);
}

TEST_F(TrainerTest, InfoDescribesTheModel) {
  Ran ran = run({"info", "--json"});
  ASSERT_EQ(ran.status, 0);
  Json info = Json::parse(ran.out);
  EXPECT_EQ(info["tables"][0]["dim"], 4);
  EXPECT_EQ(info["tables"][0]["optimizer"]["kind"], "adagrad");
  EXPECT_EQ(info["parameters"][0]["shape"], Json::array({4}));
  EXPECT_EQ(info["columns"][3]["column"], "history.movie");
  EXPECT_EQ(info["columns"][3]["padding_id"], -1);
  EXPECT_EQ(info["columns"][3]["read_by"], Json::array({"train", "evaluate", "predict"}));
  EXPECT_EQ(info["domains"].size(), 3u); // step domains are no one's business
  EXPECT_NE(run({"info"}).out.find("movie: dim 4, ids of 20 bits"), std::string::npos);
}

//===-- mistakes ----------------------------------------------------------===//

TEST_F(TrainerTest, MistakesAreToldWithTheFix) {
  Ran none = run(training("", {"--data", folder / "none.parquet"}));
  EXPECT_EQ(none.status, 1);
  EXPECT_EQ(none.err,
            "tiny: error: there is no file or folder '" + folder / "none.parquet" + "'\n");

  Ran catalogue = run(training("", {"--validation", folder / "valid.parquet"}));
  EXPECT_EQ(catalogue.err, "tiny: error: the model needs catalogue 'movies' and names no file for "
                           "it\n  help: pass --catalogue movies=<file>; in Python, "
                           "catalogues={\"movies\": <file>}\n");

  Ran unknown = run(training("", {"--catalogue", "films=x"}));
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.err.find("the model has no catalogue 'films'; it has movies"),
            std::string::npos);

  EXPECT_EQ(run({"train"}).status, 2);
  EXPECT_EQ(run(training("", {"--resume"})).status, 2);
  EXPECT_EQ(run({"train", "--help"}).status, 0);

  genrec_model_desc training_only = tinyModel();
  training_only.program_count = 1;
  Ran predict = run({"predict", "--data", folder / "valid.parquet", "--checkpoint", folder / "c",
                     "--out", folder / "x"},
                    training_only);
  EXPECT_EQ(predict.err.find("tiny: error: there is no checkpoint in"), 0u);
}

TEST_F(TrainerTest, MistakesInFlagsAreToldWithTheRule) {
  auto expect = [&](const std::vector<std::string> &arguments, const std::string &what,
                    const std::string &command) {
    Ran wrong = run(arguments);
    EXPECT_EQ(wrong.status, 2);
    EXPECT_EQ(wrong.err,
              "tiny: error: " + what + "\n  help: " + command + "--help lists what there is\n");
  };
  expect({}, "a command is needed: one of train, evaluate, predict, export, info", "");
  expect({"fly"}, "there is no command 'fly': give one of train, evaluate, predict, export, info",
         "");
  expect({"evaluate"}, "--data is required", "evaluate ");
  expect(training("", {"--bach", "3"}), "there is no flag '--bach'; did you mean '--batch'?",
         "train ");
  expect(training("", {"--zzz=3"}), "there is no flag '--zzz'", "train ");
  expect(training("", {"more"}), "an argument was not expected: 'more'", "train ");
  expect(training("", {"--epochs", "0"}), "--epochs: must be above 0, got 0", "train ");
  expect(training("", {"--warmup", "-1"}), "--warmup: must be at least 0, got -1", "train ");
  expect(training("", {"--schedule-final", "2"}), "--schedule-final: must be 0 to 1, got 2",
         "train ");
  expect(training("", {"--lr", "fast"}), "--lr: must be a number, got 'fast'", "train ");
  expect(training("", {"--epochs", "1.5"}), "--epochs: cannot be '1.5'", "train ");
}

/// Found before the first step, not after the last.
TEST_F(TrainerTest, WhatCannotBeWrittenIsToldAtTheStart) {
  std::ofstream(folder / "file") << "x";
  for (const char *flag : {"--checkpoint", "--profile", "--tensorboard"}) {
    Ran wrong = run(training("", {flag, folder / "file"}));
    EXPECT_EQ(wrong.status, 1);
    EXPECT_EQ(wrong.out, "");
    EXPECT_EQ(wrong.err, std::string("tiny: error: ") + flag + " " + (folder / "file") +
                             ": cannot make folder " + (folder / "file") +
                             ": Not a directory\n"
                             "  help: name another place\n");
  }
  Ran missing = run(training("", {"--metrics-json", folder / "none/m.json"}));
  EXPECT_EQ(missing.out, "");
  EXPECT_EQ(missing.err, "tiny: error: --metrics-json " + (folder / "none/m.json") +
                             ": cannot be written: No such file or directory\n"
                             "  help: name another place, or make it writable\n");
}

TEST_F(TrainerTest, ErrorsAreEventsInAJsonRun) {
  Ran ran = run(training("", {"--data", folder / "none.parquet", "--progress", "json"}));
  EXPECT_EQ(ran.status, 1);
  Json event = events(ran.out).back();
  EXPECT_EQ(event["event"], "error");
  EXPECT_EQ(event["message"], "there is no file or folder '" + folder / "none.parquet" + "'");
}

TEST_F(TrainerTest, AFullDiskEndsTheRunAndKeepsTheCheckpoint) {
  ASSERT_EQ(run(training("c", {"--max-steps", "3"})).status, 0);
  std::vector<float> saved = stateIn("c");
  int status = runApart(
      training("c", {"--max-steps", "5", "--resume", "--progress", "none"}), [](pid_t) {},
      /*mostFileBytes=*/1000);
  EXPECT_EQ(status, 1);
  EXPECT_EQ(readTrainingState(folder / "c").step, 3u);
  EXPECT_EQ(stateIn("c"), saved);
}

} // namespace
} // namespace genrec::rt::test

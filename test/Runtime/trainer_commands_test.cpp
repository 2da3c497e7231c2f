//===- trainer_commands_test.cpp - evaluate, predict, export, info --------===//

#include "TrainerTest.h"
#include "genrec_rt/safetensors.h"

#include <arrow/api.h>

#include <filesystem>
#include <fstream>
#include <set>

namespace genrec::rt::test {
namespace {

constexpr int64_t kListedMovies = 40;

TEST_F(TrainerTest, EvaluateRepeatsTheNumbersOfTraining) {
  ASSERT_EQ(runCommand(training("c", evaluating() + std::vector<std::string>{"--epochs", "2",
                                                                             "--metrics-json",
                                                                             folder / "t.json"}))
                .status,
            0);
  Ran ran = runCommand(
      {"evaluate", "--checkpoint", folder / "c", "--data", folder / "valid.parquet", "--catalogue",
       "movies=" + folder / "movies.parquet", "--batch", "7", "--metrics-json", folder / "e.json"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  Json trained = Json::parse(readText(folder / "t.json"))["final"]["evaluation"];
  Json evaluated = Json::parse(readText(folder / "e.json"))["evaluation"];
  EXPECT_EQ(trained["metrics"], evaluated["metrics"]);
  EXPECT_NEAR(trained["loss"], evaluated["loss"], 1e-6);
  EXPECT_NE(ran.out.find("HR@5"), std::string::npos);
}

TEST_F(TrainerTest, PredictPassesKeysThrough) {
  ASSERT_EQ(runCommand(training("c", {"--epochs", "2"})).status, 0);
  Ran ran = runCommand({"predict", "--checkpoint", folder / "c", "--data", folder / "valid.parquet",
                        "--catalogue", "movies=" + folder / "movies.parquet", "--batch", "16",
                        "--keys", "user,label", "--out", folder / "scores.parquet"});
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
  session.setCatalogue(kTinyMovies, tinyCatalogue(kListedMovies));
  Batch batch = tinyBatch(2, 70, kListedMovies);
  session.predict(batch);
  for (int64_t row = 0; row < 70; ++row)
    EXPECT_EQ(scores.Value(row), session.output(0).as<float>()[row]);

  Ran unnamed = runCommand(
      {"predict", "--checkpoint", folder / "c", "--data", folder / "valid.parquet", "--catalogue",
       "movies=" + folder / "movies.parquet", "--out", folder / "rows.parquet"});
  ASSERT_EQ(unnamed.status, 0) << unnamed.err;
  EXPECT_EQ(readParquet(folder / "rows.parquet")->field(0)->name(), "row");
}

TEST_F(TrainerTest, PredictErrors) {
  ASSERT_EQ(runCommand(training("c", {"--max-steps", "1"})).status, 0);
  auto errorOf = [&](const std::string &keys) {
    return runCommand({"predict", "--checkpoint", folder / "c", "--data", folder / "valid.parquet",
                       "--catalogue", "movies=" + folder / "movies.parquet", "--keys", keys,
                       "--out", folder / "scores.parquet"})
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
  EXPECT_NE(errorOf("user,label,user").find("--keys names column 'user' twice"), std::string::npos);
  // The position of a row, where no key says which it is, has a name that outputs may have.
  genrec_model_desc positioned = tinyModel();
  genrec_output_desc output = positioned.outputs[0];
  output.name = "row";
  positioned.outputs = &output;
  positioned.output_count = 1;
  const std::vector<std::string> predict = {"predict",
                                            "--checkpoint",
                                            folder / "c",
                                            "--data",
                                            folder / "valid.parquet",
                                            "--catalogue",
                                            "movies=" + folder / "movies.parquet",
                                            "--out",
                                            folder / "scores.parquet"};
  EXPECT_NE(runCommand(predict, positioned)
                .err.find("output 'row' has the name of the column that says which row each is of"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "scores.parquet"));
  EXPECT_FALSE(std::filesystem::exists(folder / "scores.parquet.partial"));
}

TEST_F(TrainerTest, PredictLeavesNothingOnAFullDisk) {
  if (!std::filesystem::exists("/dev/full"))
    GTEST_SKIP() << "no /dev/full here";
  ASSERT_EQ(runCommand(training("c", {"--max-steps", "1"})).status, 0);
  std::filesystem::create_symlink("/dev/full", folder / "scores.parquet.partial");
  Ran ran = runCommand({"predict", "--checkpoint", folder / "c", "--data", folder / "valid.parquet",
                        "--catalogue", "movies=" + folder / "movies.parquet", "--out",
                        folder / "scores.parquet"});
  EXPECT_EQ(ran.status, 1);
  EXPECT_NE(ran.err.find("No space left on device)\n  help: free some space, or write to another"),
            std::string::npos)
      << ran.err;
  EXPECT_FALSE(std::filesystem::is_symlink(std::string(folder / "scores.parquet.partial")));
  EXPECT_FALSE(std::filesystem::exists(folder / "scores.parquet"));
}

TEST_F(TrainerTest, ExportWritesParametersTablesAndItems) {
  ASSERT_EQ(runCommand(training("c", {"--epochs", "1"})).status, 0);
  Ran ran = runCommand({"export", "--checkpoint", folder / "c", "--out", folder / "out",
                        "--catalogue", "movies=" + folder / "movies.parquet"});
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
    std::vector<int64_t> ids(kListedMovies);
    items.readIntegers("movies.ids", 0, kListedMovies, ids.data());
    std::vector<float> rows(kListedMovies * 4);
    items.readFloats(name, 0, kListedMovies * 4, rows.data());
    for (int64_t i = 0; i < kListedMovies; ++i) {
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
  Ran raw = runCommand({"export", "--checkpoint", folder / "c", "--out", folder / "raw",
                        "--catalogue", "movies=" + folder / "movies.parquet"},
                       plain);
  ASSERT_EQ(raw.status, 0) << raw.err;
  check(SafetensorsReader(folder / "raw/items.safetensors"), "movies.movie", 1);

  // A catalogue that is not there is told before anything is written.
  Ran none = runCommand({"export", "--checkpoint", folder / "c", "--out", folder / "none",
                         "--catalogue", "movies=" + folder / "none.parquet"});
  EXPECT_EQ(none.status, 1);
  EXPECT_TRUE(std::filesystem::is_empty(std::string(folder / "none")));
}

TEST_F(TrainerTest, AnExportIsWholeOrNotTaken) {
  if (!std::filesystem::exists("/dev/full"))
    GTEST_SKIP() << "no /dev/full here";
  const std::string out = folder / "out";
  auto exported = [&] {
    return runCommand({"export", "--checkpoint", folder / "c", "--out", out, "--catalogue",
                       "movies=" + folder / "movies.parquet"});
  };
  ASSERT_EQ(runCommand(training("c", {"--max-steps", "1"})).status, 0);
  ASSERT_EQ(exported().status, 0);
  const std::string before = readText(out + "/parameters.safetensors");
  ASSERT_EQ(runCommand(training("c", {"--max-steps", "2", "--overwrite"})).status, 0);
  // A disk that is full at the last file: those of the export before stay.
  std::filesystem::create_symlink("/dev/full", out + "/items.safetensors.partial");
  Ran full = exported();
  EXPECT_EQ(full.status, 1);
  EXPECT_NE(full.err.find("No space left on device"), std::string::npos) << full.err;
  EXPECT_EQ(readText(out + "/parameters.safetensors"), before);
  for (const char *file : {"parameters", "tables", "items"})
    EXPECT_FALSE(std::filesystem::exists(out + "/" + file + ".safetensors.partial"));
  ASSERT_EQ(exported().status, 0);
  EXPECT_NE(readText(out + "/parameters.safetensors"), before);

  // One that was ended between two files.
  std::filesystem::rename(out + "/parameters.safetensors", out + "/parameters.safetensors.before");
  Ran ran = runCommand(training("d", {"--max-steps", "1", "--init", out}));
  EXPECT_EQ(ran.status, 1);
  EXPECT_NE(ran.err.find("holds no whole export: it has tables.safetensors, but no "
                         "parameters.safetensors\n  help: export once more, or name the file "
                         "itself: --init " +
                         out + "/tables.safetensors"),
            std::string::npos)
      << ran.err;
  ASSERT_EQ(exported().status, 0);
  EXPECT_TRUE(std::filesystem::exists(out + "/parameters.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(out + "/parameters.safetensors.before"));
}

TEST_F(TrainerTest, AnExportThatCannotTakeItsPlaceLeavesTheOneBefore) {
  ASSERT_EQ(runCommand(training("c", {"--max-steps", "1"})).status, 0);
  const std::string out = folder / "out";
  std::filesystem::create_directories(out + "/tables.safetensors/x"); // no file can replace it
  std::ofstream(out + "/parameters.safetensors") << "of an export before";
  Ran ran = runCommand({"export", "--checkpoint", folder / "c", "--out", out, "--catalogue",
                        "movies=" + folder / "movies.parquet"});
  EXPECT_EQ(ran.status, 1);
  EXPECT_NE(ran.err.find("cannot replace " + out + "/tables.safetensors: Is a directory"),
            std::string::npos)
      << ran.err;
  std::string before;
  std::getline(std::ifstream(out + "/parameters.safetensors"), before);
  EXPECT_EQ(before, "of an export before");
  std::set<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(out))
    names.insert(entry.path().filename());
  EXPECT_EQ(names, (std::set<std::string>{"parameters.safetensors", "tables.safetensors"}));
}

TEST_F(TrainerTest, InfoDescribesTheModel) {
  Ran ran = runCommand({"info", "--json"});
  ASSERT_EQ(ran.status, 0);
  Json info = Json::parse(ran.out);
  EXPECT_EQ(info["tables"][0]["dim"], 4);
  EXPECT_EQ(info["tables"][0]["optimizer"]["kind"], "adagrad");
  EXPECT_EQ(info["parameters"][0]["shape"], Json::array({4}));
  EXPECT_EQ(info["columns"][3]["column"], "history.movie");
  EXPECT_EQ(info["columns"][3]["padding_id"], -1);
  EXPECT_EQ(info["columns"][3]["read_by"], Json::array({"train", "evaluate", "predict"}));
  EXPECT_EQ(info["domains"].size(), 3u); // step domains are no one's business
  EXPECT_NE(runCommand({"info"}).out.find("movie: dim 4, ids of 20 bits"), std::string::npos);
}

} // namespace
} // namespace genrec::rt::test

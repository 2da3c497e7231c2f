//===- session_test.cpp - Steps, determinism, two batches in flight -------===//

#include "TinyData.h"
#include "TinyModel.h"
#include "error_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <condition_variable>
#include <dlfcn.h>
#include <filesystem>
#include <link.h>
#include <mutex>
#include <new>

namespace genrec::rt::test {
namespace {

constexpr int64_t kCatalogue = 50;

SessionOptions withSeed(uint64_t seed, int32_t threads = 2) {
  SessionOptions options;
  options.seed = seed;
  options.threads = threads;
  return options;
}

std::vector<float> trainSteps(Session &session, int64_t steps, int64_t users) {
  std::vector<float> losses;
  for (int64_t i = 0; i < steps; ++i) {
    Batch batch = tinyBatch(static_cast<uint64_t>(i), users, kCatalogue, i * users);
    losses.push_back(static_cast<float>(*session.train(batch).loss));
  }
  return losses;
}

TEST(Session, TrainingLowersTheLossOfOneBatch) {
  Session session(tinyModel(), withSeed(1));
  Batch batch = tinyBatch(3, 64, kCatalogue);
  double first = *session.train(batch).loss, last = 0;
  for (int i = 0; i < 40; ++i)
    last = *session.train(batch).loss;
  EXPECT_LT(last, first - 0.05);
  EXPECT_EQ(session.stepsDone(), 41u);
}

TEST(Session, SameBitsAtAnyNumberOfThreads) {
  Session one(tinyModel(), withSeed(5, 1)), four(tinyModel(), withSeed(5, 4));
  EXPECT_EQ(trainSteps(one, 12, 200), trainSteps(four, 12, 200));
  EXPECT_EQ(trainedState(one), trainedState(four));
  Session other(tinyModel(), withSeed(6, 1));
  trainSteps(other, 12, 200);
  EXPECT_NE(trainedState(one), trainedState(other));
}

TEST(Session, PipelineGivesTheBitsOfSingleSteps) {
  Session single(tinyModel(), withSeed(5)), piped(tinyModel(), withSeed(5));
  std::vector<float> expected = trainSteps(single, 12, 100), losses;
  TinySource source(12, 100, kCatalogue);
  int64_t steps = piped.run(Mode::train, source, [&](const StepReport &report) {
    losses.push_back(static_cast<float>(*report.loss));
    return true;
  });
  EXPECT_EQ(steps, 12);
  EXPECT_EQ(losses, expected);
  EXPECT_EQ(trainedState(piped), trainedState(single));
}

TEST(Session, RunEndsWhereTheCallerSays) {
  Session session(tinyModel(), withSeed(5));
  TinySource source(12, 10, kCatalogue);
  int64_t seen = 0;
  EXPECT_EQ(session.run(Mode::train, source, [&](const StepReport &) { return ++seen < 3; }), 3);
  EXPECT_EQ(session.stepsDone(), 3u);
}

/// The copy stage of batch t + 1 and the compute stage of batch t wait for each
/// other: only two batches in flight can pass.
struct Meeting {
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t copied = 0;
  bool overlapped = false;
} meeting;

TEST(Session, CopyStageOfTheNextBatchRunsDuringCompute) {
  meeting.copied = 0;
  tinyHooks.copy = [](genrec_step *step) {
    std::lock_guard<std::mutex> lock(meeting.mutex);
    meeting.copied = step->step;
    meeting.changed.notify_all();
  };
  tinyHooks.compute = [](genrec_step *step) {
    if (step->step >= 5)
      return;
    std::unique_lock<std::mutex> lock(meeting.mutex);
    meeting.overlapped = meeting.changed.wait_for(lock, std::chrono::seconds(60),
                                                  [&] { return meeting.copied > step->step; });
    EXPECT_TRUE(meeting.overlapped);
  };
  Session session(tinyModel(), withSeed(5));
  TinySource source(5, 10, kCatalogue);
  EXPECT_EQ(session.run(Mode::train, source, nullptr), 5);
  tinyHooks = {};
}

TEST(Session, WhatAKernelThrowsOnAnyThreadEndsTheStep) {
  Session session(tinyModel(), withSeed(5));
  Batch batch = tinyBatch(1, 10, kCatalogue);
  tinyHooks.compute = [](genrec_step *step) {
    parallelFor(step->pool, 100, 1, [](int64_t begin, int64_t, int64_t) {
      if (begin == 40)
        throw std::bad_alloc(); // as scratch that cannot be had
    });
  };
  EXPECT_THROW(session.train(batch), std::bad_alloc);
  TinySource source(3, 10, kCatalogue);
  EXPECT_THROW(session.run(Mode::train, source, nullptr), std::bad_alloc);
  tinyHooks = {};
  EXPECT_EQ(session.train(batch).step, 1u); // none of those counted
}

TEST(Session, ErrorsOfTheReadingThreadReachTheCallerInOrder) {
  struct Failing : TinySource {
    using TinySource::TinySource;
    int64_t calls = 0;
    bool next(Batch &batch) override {
      if (++calls == 3)
        throw Error("the third batch is broken");
      return TinySource::next(batch);
    }
  } source(9, 10, kCatalogue);
  Session session(tinyModel(), withSeed(5));
  int64_t steps = 0;
  try {
    session.run(Mode::train, source, [&](const StepReport &) { return ++steps, true; });
    FAIL() << "no error";
  } catch (const Error &error) {
    EXPECT_STREQ(error.what(), "the third batch is broken");
  }
  EXPECT_EQ(steps, 2);
}

TEST(Session, EvaluationLeavesTrainingBitsUnchanged) {
  Session plain(tinyModel(), withSeed(5)), mixed(tinyModel(), withSeed(5));
  mixed.setCatalogue(kTinyMovies, tinyCatalogue(kCatalogue));
  for (int64_t i = 0; i < 6; ++i) {
    Batch batch = tinyBatch(static_cast<uint64_t>(i), 20, kCatalogue);
    plain.train(batch);
    mixed.train(batch);
    Batch unseen = tinyBatch(100 + static_cast<uint64_t>(i), 30, kCatalogue);
    mixed.evaluate(unseen);
    mixed.predict(unseen);
  }
  EXPECT_EQ(trainedState(plain), trainedState(mixed));
  EXPECT_EQ(mixed.metrics().rows(0), 180);
}

TEST(Session, UnseenIdsHaveTheirInitialValuesInEvaluation) {
  Session evaluated(tinyModel(), withSeed(5)), trained(tinyModel(), withSeed(5));
  evaluated.setCatalogue(kTinyMovies, tinyCatalogue(kCatalogue));
  Batch batch = tinyBatch(1, 40, kCatalogue);
  evaluated.predict(batch);
  std::vector<float> scores(evaluated.output(0).as<float>().begin(),
                            evaluated.output(0).as<float>().end());
  EXPECT_EQ(evaluated.table(0).size(), 0);
  // With all rows inserted (by findOrInsert), predictions are the same.
  trained.setCatalogue(kTinyMovies, tinyCatalogue(kCatalogue));
  std::vector<int64_t> ids(kCatalogue);
  for (int64_t i = 0; i < kCatalogue; ++i)
    ids[i] = i;
  trained.table(0).findOrInsert(ids.data(), kCatalogue);
  trained.predict(batch);
  EXPECT_EQ(scores, std::vector<float>(trained.output(0).as<float>().begin(),
                                       trained.output(0).as<float>().end()));
}

TEST(Session, OutputsNameTheRootRow) {
  Session session(tinyModel(), withSeed(5));
  session.setCatalogue(kTinyMovies, tinyCatalogue(kCatalogue));
  Batch batch = tinyBatch(1, 7, kCatalogue);
  session.predict(batch);
  OutputRows &top = session.output(1);
  ASSERT_TRUE(top.given);
  EXPECT_EQ(top.count, 7);
  EXPECT_EQ(top.as<int64_t>().size(), 14u);
  for (int64_t row = 0; row < 7; ++row)
    EXPECT_EQ(top.rootRows[row], row);
}

TEST(Session, MistakesAreNamed) {
  Session session(tinyModel(), withSeed(5));
  Batch batch = tinyBatch(1, 4, kCatalogue);
  EXPECT_EQ(messageOf([&] { session.evaluate(batch); }), "catalogue 'movies' was not given");

  session.setCatalogue(kTinyMovies, tinyCatalogue(10));
  Batch outside = BatchBuilder(tinyModel())
                      .rows("user", 2, 70)
                      .offsets("history", {0, 1, 1})
                      .column<float>("label", {0, 1})
                      .column<int64_t>("target", {3, 99})
                      .column<int64_t>("history.movie", {1})
                      .take();
  EXPECT_EQ(messageOf([&] { session.evaluate(outside); }),
            "row 1 of 'user' (row 71 of the data): feature 'target' has id 99, which is not in the "
            "catalogue");

  Batch beyond = BatchBuilder(tinyModel())
                     .rows("user", 2)
                     .offsets("history", {0, 1, 3})
                     .column<float>("label", {0, 1})
                     .column<int64_t>("history.movie", {1, 2, 1 << 20})
                     .take();
  EXPECT_EQ(messageOf([&] { session.train(beyond); }),
            "row 2 of 'history' (row 1 of the data): id 1048576, beyond the 20 bits of table "
            "'movie'");

  Batch without = BatchBuilder(tinyModel()).rows("user", 1).offsets("history", {0, 0}).take();
  EXPECT_EQ(messageOf([&] { session.train(without); }),
            "the batch lacks feature 'label', which program 'train' reads");
}

TEST(Session, DuplicateCatalogueIdsAreAnError) {
  Session session(tinyModel(), withSeed(5));
  session.setCatalogue(
      kTinyMovies,
      BatchBuilder(tinyModel()).rows("movies", 3).column<int64_t>("movie", {4, 5, 4}).take());
  Batch batch = tinyBatch(1, 4, 5);
  EXPECT_EQ(messageOf([&] { session.evaluate(batch); }),
            "catalogue 'movies', column 'movie': id 4 occurs twice, in rows 0 and 2");
}

TEST(Session, CheckFiniteNamesOpLineAndRow) {
  SessionOptions options = withSeed(5);
  options.checkFinite = true;
  Session session(tinyModel(), options);
  session.parameter("bias").value[0] = NAN;
  Batch batch = tinyBatch(1, 4, kCatalogue);
  EXPECT_EQ(messageOf([&] { session.train(batch); }),
            "op 'linear' ('logit') (tiny.py:12) made a NaN in row 0, element 0, in step 1");
}

TEST(Session, ALossThatIsNotFiniteIsTracedToItsOp) {
  SessionOptions options = withSeed(5);
  Session plain(tinyModel(), options);
  options.explainNonFinite = true;
  Session tracing(tinyModel(), options);
  for (Session *session : {&plain, &tracing}) {
    auto isTold = [&](const StepReport &report, const std::string &begin) {
      return report.nonFiniteOrigin().rfind(session == &tracing ? begin : "", 0) == 0 &&
             report.nonFiniteOrigin().empty() == (session == &plain);
    };
    Batch batch = tinyBatch(1, 16, kCatalogue);
    EXPECT_EQ(session->train(batch).nonFiniteOrigin(), "");
    TableView movies = session->table("movie");
    for (int64_t row = 0; row < movies.size(); ++row)
      std::fill_n(movies.row(row), movies.dim(), FLT_MAX);
    std::ranges::fill(session->parameter("weight").value, FLT_MAX);
    StepReport report = session->train(batch);
    ASSERT_FALSE(std::isfinite(*report.loss));
    EXPECT_EQ(report.losses[0].weight, 16); // not counted twice
    EXPECT_TRUE(isTold(report, "op 'linear' ('logit') (tiny.py:12) made an infinity in row "))
        << report.nonFiniteOrigin();
    report = session->train(batch);
    EXPECT_TRUE(isTold(report, "parameter 'weight' held ")) << report.nonFiniteOrigin();
  }
  EXPECT_EQ(plain.table("movie").size(), tracing.table("movie").size());
  EXPECT_EQ(plain.memoryUse().arenas, tracing.memoryUse().arenas);
}

TEST(Session, LearningRateScalesAndFollowsTheSchedule) {
  SessionOptions options = withSeed(5);
  options.learningRate = 0.5;
  options.schedule = Schedule{"linear", 10, 110, 0.1};
  Session session(tinyModel(), options);
  EXPECT_DOUBLE_EQ(session.learningRate(), 0.05);
  session.setStepsDone(9);
  EXPECT_DOUBLE_EQ(session.learningRate(), 0.5);
  session.setStepsDone(59);
  EXPECT_DOUBLE_EQ(session.learningRate(), 0.5 * 0.55);
  session.setStepsDone(1000);
  EXPECT_DOUBLE_EQ(session.learningRate(), 0.05);
}

TEST(Session, CosineEndsAtItsFinalFactor) {
  Schedule cosine{"cosine", 0, 100, 0.2};
  EXPECT_DOUBLE_EQ(cosine.factor(0), 1.0);
  EXPECT_DOUBLE_EQ(cosine.factor(50), 0.6);
  EXPECT_DOUBLE_EQ(cosine.factor(100), 0.2);
  EXPECT_THROW((Schedule{"square", 0, 0, 0}.check()), Error);
}

TEST(Session, AnotherAbiVersionIsRefused) {
  genrec_model_desc newer = tinyModel();
  newer.abi_version = GENREC_ABI_VERSION + 1;
  EXPECT_EQ(messageOf([&] { Session session(newer, withSeed(1)); }),
            "the model was compiled for version " + std::to_string(GENREC_ABI_VERSION + 1) +
                " of the runtime interface, this runtime has version " +
                std::to_string(GENREC_ABI_VERSION));
}

TEST(LoadedModel, WhatIsNoModelIsNamed) {
  EXPECT_EQ(messageOf([] {
              LoadedModel model("/none.so");
            }).find("/none.so: cannot be loaded as a compiled model: "),
            0u);
  // A library of the current folder, not one of that name elsewhere.
  TestFolder folder;
  link_map *libm = nullptr;
  ASSERT_EQ(dlinfo(dlopen("libm.so.6", RTLD_NOW), RTLD_DI_LINKMAP, &libm), 0);
  std::filesystem::create_symlink(libm->l_name, folder / "m.so");
  std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder / "");
  EXPECT_EQ(messageOf([] { LoadedModel model("m.so"); }),
            "m.so: holds no compiled model (no symbol genrec_model)");
  std::filesystem::current_path(before);
}

TEST(Session, TheDefaultRateIsTheModels) {
  Session session(tinyModel(), withSeed(1));
  EXPECT_DOUBLE_EQ(session.learningRate(), 0.1);
  SessionOptions wrong = withSeed(1);
  wrong.learningRate = -1;
  EXPECT_EQ(messageOf([&] { Session bad(tinyModel(), wrong); }),
            "the learning rate must be a number of at least 0, got -1.000000");
}

TEST(Session, ErasedRowsStartAnewAndOthersStay) {
  SessionOptions options;
  options.seed = 4;
  Session session(tinyModel(), options), untrained(tinyModel(), options);
  Batch batch = tinyBatch(1, 50, 20);
  session.train(batch);
  TableView table = session.table("movie");
  int64_t rows = table.size();
  ASSERT_GT(rows, 5);
  std::vector<int64_t> erased{table.id(0), table.id(3), 999};
  std::vector<float> kept(table.row(1), table.row(1) + table.dim());
  int64_t keptId = table.id(1);
  session.eraseRows("movie", erased);
  EXPECT_EQ(table.size(), rows - 2);
  for (int64_t row = 0; row < table.size(); ++row) {
    EXPECT_NE(table.id(row), erased[0]);
    EXPECT_NE(table.id(row), erased[1]);
    if (table.id(row) == keptId)
      EXPECT_TRUE(std::equal(kept.begin(), kept.end(), table.row(row)));
  }
  std::vector<float> again(2 * table.dim()), initial(again);
  table.findOrInsert(erased.data(), 1).read(0, 2 * table.dim(), again.data());
  untrained.table("movie").findOrInsert(erased.data(), 1).read(0, 2 * table.dim(), initial.data());
  EXPECT_EQ(again, initial) << "value and state";
}

} // namespace
} // namespace genrec::rt::test

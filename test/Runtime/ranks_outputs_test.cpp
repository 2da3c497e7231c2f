//===- ranks_outputs_test.cpp - What ranks give out together --------------===//

#include "../../runtime/trainer/output_file.h"

#include "TinyData.h"
#include "TinyModel.h"
#include "genrec_rt/owner.h"

#include <cmath>
#include <gtest/gtest.h>

namespace genrec::rt::test {
namespace {

constexpr int64_t kUsers = 31, kMovies = 60, kBatches = 3;

/// Users [begin, end) of a batch.
Batch cut(const Batch &whole, int64_t begin, int64_t end) {
  const int64_t *offsets = whole.domains[kTinyHistory].offsets.data();
  std::vector<int64_t> lengths;
  for (int64_t user = begin; user <= end; ++user)
    lengths.push_back(offsets[user] - offsets[begin]);
  auto values = [&]<class T>(int32_t feature, int64_t from, int64_t to, T) {
    const auto *first = reinterpret_cast<const T *>(whole.columns[feature].values.data());
    return std::vector<T>(first + from, first + to);
  };
  return BatchBuilder(tinyModel())
      .rows("user", end - begin, whole.positions[begin])
      .offsets("history", lengths)
      .column("user", values(0, begin, end, int64_t()))
      .column("label", values(1, begin, end, float()))
      .column("target", values(2, begin, end, int64_t()))
      .column("history.movie", values(3, offsets[begin], offsets[end], int64_t()))
      .take();
}

/// A session with the catalogue and the rows of all movies that this rank owns.
std::unique_ptr<Session> makeSession(Communicator *comm) {
  SessionOptions options;
  options.seed = 3;
  options.threads = 1;
  options.comm = comm;
  auto session = std::make_unique<Session>(tinyModel(), options);
  session->setCatalogue(kTinyMovies, tinyCatalogue(kMovies));
  for (int64_t id = 0; id < kMovies; ++id) {
    if (comm && getOwner(getSlice(hashTableName("movie"), id), comm->getSize()) != comm->getRank())
      continue;
    std::vector<float> value(kTinyDim);
    for (int64_t d = 0; d < kTinyDim; ++d)
      value[d] = std::sin(static_cast<float>(id * kTinyDim + d));
    session->table("movie").findOrInsert(&id, 1).write(0, kTinyDim, value.data());
  }
  return session;
}

/// Runs a program over some batches, each cut into as many portions as ranks.
template <class OnStep>
void runCut(Session &session, Mode mode, const OnStep &onStep) {
  Communicator *comm = session.comm();
  int64_t rank = comm ? comm->getRank() : 0, ranks = comm ? comm->getSize() : 1;
  for (int64_t number = 0; number < kBatches; ++number) {
    Batch whole = tinyBatch(number, kUsers, kMovies, number * kUsers);
    Batch mine = cut(whole, kUsers * rank / ranks, kUsers * (rank + 1) / ranks);
    onStep(session.step(mode, mine));
  }
}

std::string predictTo(const std::string &path, Communicator *comm) {
  auto session = makeSession(comm);
  OutputFile file(path, tinyModel(), {0, 1}, {}, comm);
  runCut(*session, Mode::predict, [&](const StepReport &report) {
    EXPECT_EQ(report.rows, kUsers);
    EXPECT_EQ(report.batches.size(), 1U);
    file.append(*session, report);
  });
  EXPECT_EQ(file.close(), kBatches * kUsers);
  return readText(path);
}

TEST(OutputsOfRanks, AreOneFileInTheOrderOfRows) {
  TestFolder folder;
  std::string alone = predictTo(folder / "alone", nullptr);
  EXPECT_GT(alone.size(), 500U);
  for (int32_t ranks = 1; ranks <= 4; ++ranks) {
    std::string path = folder / std::to_string(ranks);
    runThreadRanks(ranks, [&](Communicator &comm) {
      std::string written = predictTo(path, &comm);
      EXPECT_TRUE(written == alone) << ranks;
    });
  }
}

TEST(OutputsOfRanks, AFileThatCannotBeMadeIsToldOnAll) {
  TestFolder folder;
  std::atomic<int> told = 0;
  runThreadRanks(3, [&](Communicator &comm) {
    try {
      OutputFile file(folder / "no/such/folder", tinyModel(), {0, 1}, {}, &comm);
    } catch (const Error &error) {
      told += std::string(error.what()).find("no/such/folder") != std::string::npos;
    }
  });
  EXPECT_EQ(told, 3);
}

TEST(OutputsOfRanks, AreKeptByPortion) {
  // Several portions on one rank, without a communicator.
  SessionOptions options;
  options.seed = 3;
  options.threads = 1;
  options.portions = 3;
  Session session(tinyModel(), options);
  session.setCatalogue(kTinyMovies, tinyCatalogue(kMovies));
  Batch whole = tinyBatch(1, kUsers, kMovies);
  std::vector<Batch> portions;
  for (int64_t i = 0; i < 3; ++i)
    portions.push_back(cut(whole, kUsers * i / 3, kUsers * (i + 1) / 3));
  StepReport report = session.step(Mode::predict, portions);
  options.portions = 1;
  Session other(tinyModel(), options);
  other.setCatalogue(kTinyMovies, tinyCatalogue(kMovies));
  other.predict(whole);
  std::vector<float> scores;
  for (int32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(report.batches[i], &portions[i]);
    auto some = session.output(0, i).as<float>();
    scores.insert(scores.end(), some.begin(), some.end());
  }
  auto expected = other.output(0).as<float>();
  EXPECT_EQ(scores, std::vector<float>(expected.begin(), expected.end()));
}

TEST(MetricsOfRanks, OfAnEvaluationAreTheSame) {
  auto evaluate = [](Communicator *comm) {
    auto session = makeSession(comm);
    runCut(*session, Mode::evaluate, [](const StepReport &) {});
    if (comm)
      session->metrics().gather(*comm);
    return session->metrics().values();
  };
  auto alone = evaluate(nullptr);
  EXPECT_GT(alone[4].second, 0); // mrr
  for (int32_t ranks = 1; ranks <= 4; ++ranks)
    runThreadRanks(ranks, [&](Communicator &comm) { EXPECT_EQ(evaluate(&comm), alone) << ranks; });
}

} // namespace
} // namespace genrec::rt::test

//===- TinyModel.h - A compiled model written by hand ------------*- C++ -*-===//
//
// Logistic regression over pooled embeddings, through the interface that generated
// code uses:
//
//   user ── history     features: user, label, target; history.movie
//   movies (catalogue)  feature: movie
//
//   h = sum over the history of keep(draw) * row(movie)      (training draws masks)
//   logit = weight · h + bias;  loss = mean BCE(logit, label)
//   evaluation: AUC of the logit; rank of `target` by weight ⊙ h · row(item)
//   prediction: score (logit) and the two best items
//   items: twice the row of every item
//
// Adagrad on rows, SGD on the rest.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TEST_RUNTIME_TINY_MODEL_H
#define GENREC_TEST_RUNTIME_TINY_MODEL_H

#include "genrec_rt/session.h"

namespace genrec::rt::test {

constexpr int64_t kTinyDim = 4;
constexpr int32_t kTinyUser = 0, kTinyHistory = 1, kTinyMovies = 2, kTinyTouched = 3;

const genrec_model_desc &tinyModel();

/// Called inside the stages of the train program, null unless a test sets them.
struct TinyHooks {
  void (*copy)(genrec_step *step) = nullptr;
  void (*compute)(genrec_step *step) = nullptr;
};
extern TinyHooks tinyHooks;

/// A batch of `users` whose histories hold movies in [0, movies), a function of
/// `seed`; some histories are empty.
Batch tinyBatch(uint64_t seed, int64_t users, int64_t movies, int64_t firstPosition = 0);

/// The catalogue of movies 0 .. count-1.
Batch tinyCatalogue(int64_t count);

/// Batches of equal size made by tinyBatch.
class TinySource : public BatchSource {
public:
  TinySource(int64_t batches, int64_t users, int64_t movies)
      : batches(batches), users(users), movies(movies) {}
  bool next(Batch &batch) override;

private:
  int64_t batches, users, movies, done = 0;
};

/// All values that training changes: parameters, then rows by id.
std::vector<float> trainedState(Session &session);

} // namespace genrec::rt::test

#endif // GENREC_TEST_RUNTIME_TINY_MODEL_H

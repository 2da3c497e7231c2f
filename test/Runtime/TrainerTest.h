//===- TrainerTest.h - Runs of the model written by hand ---------*- C++ -*-===//

#ifndef GENREC_TEST_RUNTIME_TRAINER_TEST_H
#define GENREC_TEST_RUNTIME_TRAINER_TEST_H

#include "RunCommand.h"
#include "genrec_rt/checkpoint.h"

#include <algorithm>

namespace genrec::rt::test {

using Json = nlohmann::json;

class TrainerTest : public CommandTest {
protected:
  /// As CommandTest::training, into a checkpoint unless its name is empty. Other --data in `more`
  /// replaces the data.
  Arguments training(const std::string &checkpoint, const Arguments &more = {}) const {
    Arguments all = {"train", "--batch", "10", "--seed", "4", "--threads", "2"};
    if (std::find(more.begin(), more.end(), "--data") == more.end())
      all.insert(all.begin() + 1, {"--data", folder / "train.parquet"});
    if (!checkpoint.empty())
      all.insert(all.end(), {"--checkpoint", folder / checkpoint});
    return join(all, more);
  }

  Arguments evaluating() const {
    return {"--validation", folder / "valid.parquet", "--catalogue",
            "movies=" + folder / "movies.parquet"};
  }

  std::vector<float> stateIn(const std::string &checkpoint) const {
    SessionOptions options;
    options.seed = 4;
    Session session(tinyModel(), options);
    loadCheckpoint(folder / checkpoint, session);
    return trainedState(session);
  }
};

template <class T> std::vector<T> operator+(std::vector<T> a, const std::vector<T> &b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

} // namespace genrec::rt::test

#endif // GENREC_TEST_RUNTIME_TRAINER_TEST_H

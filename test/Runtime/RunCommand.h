//===- RunCommand.h - Commands of the model written by hand ------*- C++ -*-===//

#ifndef GENREC_TEST_RUNTIME_RUN_COMMAND_H
#define GENREC_TEST_RUNTIME_RUN_COMMAND_H

#include "TinyData.h"
#include "TinyModel.h"
#include "genrec_rt/trainer.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <cstdio>
#include <sstream>

namespace genrec::rt::test {

struct Ran {
  int status;
  std::string out, err;

  /// The events of a run with --progress json, of one kind.
  std::vector<nlohmann::json> events(const std::string &kind) const {
    std::vector<nlohmann::json> all;
    std::stringstream lines(out);
    for (std::string line; std::getline(lines, line);)
      if (auto event = nlohmann::json::parse(line); event["event"] == kind)
        all.push_back(event);
    return all;
  }
};

/// Runs one command in this process.
inline Ran runCommand(const std::vector<std::string> &arguments,
                      const genrec_model_desc &model = tinyModel()) {
  std::vector<const char *> argv = {"tiny"};
  for (const std::string &argument : arguments)
    argv.push_back(argument.c_str());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  int status = trainerMain(model, static_cast<int>(argv.size()), argv.data());
  std::fflush(stdout);
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGHUP, SIG_DFL);
  std::string out = testing::internal::GetCapturedStdout();
  return {status, out, testing::internal::GetCapturedStderr()};
}

/// Files for the model written by hand, and commands over them.
class CommandTest : public testing::Test {
protected:
  using Arguments = std::vector<std::string>;

  CommandTest() {
    writeTinyData(folder / "train.parquet", 1, 230, 40, 50);
    writeTinyData(folder / "valid.parquet", 2, 70, 40, 50);
    writeTinyCatalogue(folder / "movies.parquet", 40);
  }

  /// Trains on 23 batches of 10 rows an epoch; `more` comes last and so wins.
  Arguments training(const Arguments &more = {}) const {
    return join({"train", "--data", folder / "train.parquet", "--batch", "10", "--seed", "4",
                 "--threads", "2"},
                more);
  }
  Arguments validating(const Arguments &more = {}) const {
    return training(join({"--validation", folder / "valid.parquet", "--catalogue",
                          "movies=" + folder / "movies.parquet"},
                         more));
  }

  static Arguments join(Arguments list, const Arguments &more) {
    list.insert(list.end(), more.begin(), more.end());
    return list;
  }

  TestFolder folder;
};

} // namespace genrec::rt::test

#endif // GENREC_TEST_RUNTIME_RUN_COMMAND_H

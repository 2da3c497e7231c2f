//===- bench_report_test.cpp - What benchmarks of a device say ------------===//

#include "../../benchmarks/cuda/report.h"

#include <gmock/gmock.h>

#include <cstdio>
#include <fstream>
#include <limits>
#include <sstream>

namespace genrec::bench {
namespace {

const std::vector<std::string> kGroups = {"memory", "matmul"};

std::string messageOf(const std::vector<std::string> &given) {
  try {
    parseArguments(given, kGroups);
  } catch (const std::invalid_argument &error) {
    return error.what();
  }
  return "";
}

TEST(BenchArguments, AreAFileADryRunAndOneGroup) {
  const Arguments none = parseArguments({}, kGroups);
  EXPECT_FALSE(none.isDryRun);
  EXPECT_EQ(none.only + none.file, "");
  const Arguments all = parseArguments({"--only", "matmul", "out.json", "--dry-run"}, kGroups);
  EXPECT_TRUE(all.isDryRun);
  EXPECT_EQ(all.only, "matmul");
  EXPECT_EQ(all.file, "out.json");
}

TEST(BenchArguments, WhatIsNoneIsNamed) {
  EXPECT_EQ(messageOf({"--only", "speed"}), "--only takes one of memory, matmul, found 'speed'");
  EXPECT_EQ(messageOf({"--only"}), "--only takes one of memory, matmul, found nothing");
  EXPECT_EQ(messageOf({"--fast"}),
            "unknown option '--fast': there are --dry-run, --only <group> and a file");
  EXPECT_EQ(messageOf({"a.json", "b.json"}), "one file at most, found 'a.json' and 'b.json'");
}

TEST(BenchReport, WritesFiguresWhatWasSkippedAndWhere) {
  Report report("ceilings");
  report.describe("name", quoted("a \"card\"\\\n"));
  report.describe("multiprocessors", "132");
  report.add("copy", 4000.5, "GB/s");
  report.add("of nothing", std::numeric_limits<double>::infinity(), "x");
  report.skip("matmul", "no cuBLAS");
  EXPECT_EQ(report.json(), R"({"program": "ceilings",
 "device": {"name": "a \"card\"\\\u000a", "multiprocessors": 132},
 "figures": [
  {"what": "copy", "value": 4000.500000, "unit": "GB/s"},
  {"what": "of nothing", "value": null, "unit": "x"}],
 "skipped": [
  {"what": "matmul", "why": "no cuBLAS"}]}
)");
  const std::string path = testing::TempDir() + "bench_report.json";
  report.write(path);
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), report.json());
  std::remove(path.c_str());
  EXPECT_THROW(report.write(testing::TempDir() + "no such folder/x.json"), std::runtime_error);
}

} // namespace
} // namespace genrec::bench

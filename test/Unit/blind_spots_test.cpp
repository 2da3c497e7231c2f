//===- blind_spots_test.cpp - what a comparison cannot notice -------------===//

#include "genrec/Fuzz/BlindSpots.h"
#include "genrec/Fuzz/RoundingBound.h"
#include "genrec/InitAllDialects.h"

#include "mlir/Parser/Parser.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace mlir;
using namespace genrec;
using namespace genrec::fuzz;

namespace {

class BlindSpotsTest : public testing::Test {
protected:
  BlindSpotsTest() {
    DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// The names of the ops that can be wrong unnoticed, of a model of one feature "dense" of
  /// requests, with `ops` behind it.
  std::vector<std::string> findBlind(const std::string &ops) {
    module = parseSourceString<ModuleOp>(R"(
      genrec.model @m {
        genrec.domain @request
        genrec.program @main {
          %rows = genrec.batch : !genrec.domain<@request>
          %x = genrec.feature %rows "dense" : (!genrec.domain<@request>) -> tensor<?xf32, #genrec.rows<@request>>
          )" + ops + "}}",
                                         &context);
    EXPECT_TRUE(module);
    BlindSpots spots = findBlindSpots(*module->getOps<ModelOp>().begin(), /*seed=*/3);
    count = spots.ops;
    std::vector<std::string> names;
    for (Operation *op : spots.blind)
      names.push_back(op->getName().stripDialect().str());
    return names;
  }

  MLIRContext context{MLIRContext::Threading::DISABLED};
  OwningOpRef<ModuleOp> module;
  int64_t count = 0;
};

TEST_F(BlindSpotsTest, OpsThatReachAnOutputShow) {
  EXPECT_TRUE(findBlind(R"(
    %y = genrec.tanh %x : tensor<?xf32, #genrec.rows<@request>>
    genrec.output "y" %y : tensor<?xf32, #genrec.rows<@request>>)")
                  .empty());
  EXPECT_EQ(count, 2) << "batch makes no value";
}

TEST_F(BlindSpotsTest, WhatNothingReadsDoesNot) {
  EXPECT_EQ(findBlind(R"(
    %y = genrec.tanh %x : tensor<?xf32, #genrec.rows<@request>>
    genrec.output "x" %x : tensor<?xf32, #genrec.rows<@request>>)"),
            std::vector<std::string>{"tanh"});
}

TEST_F(BlindSpotsTest, NorDoesWhatIsLostInRounding) {
  // 1e-9 of x beside x itself: less than a float tells.
  EXPECT_EQ(findBlind(R"(
    %small = genrec.constant dense<1.0e-9> : tensor<f32>
    %y = genrec.mul %x, %small : (tensor<?xf32, #genrec.rows<@request>>, tensor<f32>) -> tensor<?xf32, #genrec.rows<@request>>
    %z = genrec.add %x, %y : (tensor<?xf32, #genrec.rows<@request>>, tensor<?xf32, #genrec.rows<@request>>) -> tensor<?xf32, #genrec.rows<@request>>
    genrec.output "z" %z : tensor<?xf32, #genrec.rows<@request>>)"),
            (std::vector<std::string>{"constant", "mul"}));
}

TEST_F(BlindSpotsTest, IntegersAndFlagsAreMadeWrongToo) {
  EXPECT_TRUE(findBlind(R"(
    %id = genrec.feature %rows "id" : (!genrec.domain<@request>) -> tensor<?xi64, #genrec.rows<@request>>
    %rest = genrec.mod %id {divisor = 5 : i64} : (tensor<?xi64, #genrec.rows<@request>>) -> tensor<?xi64, #genrec.rows<@request>>
    %same = genrec.compare eq %id, %rest : (tensor<?xi64, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@request>>) -> tensor<?xi1, #genrec.rows<@request>>
    %flag = genrec.cast %same : (tensor<?xi1, #genrec.rows<@request>>) -> tensor<?xf32, #genrec.rows<@request>>
    genrec.output "id" %id : tensor<?xi64, #genrec.rows<@request>>
    genrec.output "rest" %rest : tensor<?xi64, #genrec.rows<@request>>
    genrec.output "flag" %flag : tensor<?xf32, #genrec.rows<@request>>
    genrec.output "x" %x : tensor<?xf32, #genrec.rows<@request>>)")
                  .empty());
  EXPECT_EQ(count, 5);
}

TEST_F(BlindSpotsTest, RandomModelsHaveFew) {
  int64_t ops = 0, blind = 0;
  for (uint64_t seed = 500; seed < 530; ++seed) {
    BlindSpots spots = makeObservableModel(&context, seed).spots;
    ops += spots.ops;
    blind += static_cast<int64_t>(spots.blind.size());
  }
  EXPECT_GT(ops, 1500);
  EXPECT_LT(100 * blind, ops);
}

TEST(BoundWidths, CountsWhatMayDifferByMoreThanItIs) {
  // 64 spreads are 0.64 of 1 and 64 of 1; what is 0 has no size to compare with.
  RoundedValues values{{{"p", {1.0, 1.0, 0.0, 2.0}}}, {{"p", {0.01, 1.0, 1.0, INFINITY}}}, {}, {}};
  BoundWidths widths;
  widths.add(values, kCompiledAllowance);
  EXPECT_EQ(widths.values, 3u);
  EXPECT_EQ(widths.wide, 2u);
}

TEST(RoundingBound, RowsThatShouldNotBeThereAreNamed) {
  RoundedValues expected{
      {{"table t id 1", {1.0}}}, {{"table t id 1", {0.0}}}, {}, {"table t id 3"}};
  Values actual{{"table t id 1", {1.0}}, {"table t id 2", {1.0}}};
  auto difference = compareRounded(expected, actual, kCompiledAllowance);
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->name, "table t id 2");
  EXPECT_EQ(difference->text, "should not be there");
  actual = {{"table t id 1", {1.0}}, {"table t id 3", {1.0}}};
  EXPECT_FALSE(compareRounded(expected, actual, kCompiledAllowance))
      << "rounding decides whether its gradient is 0";
}

} // namespace

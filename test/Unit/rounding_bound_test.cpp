//===- rounding_bound_test.cpp - what levels may differ by ----------------===//

#include "genrec/Fuzz/RandomModel.h"
#include "genrec/Fuzz/RoundingBound.h"
#include "genrec/InitAllDialects.h"

#include "mlir/Parser/Parser.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

using namespace mlir;
using namespace genrec;
using namespace genrec::fuzz;

namespace {

/// One value 1 with a spread of 1e-6, one value 0 with a spread of 1e-9.
RoundedValues expect() { return {{{"p", {1.0, 0.0}}}, {{"p", {1e-6, 1e-9}}}, {}, {}}; }

TEST(RoundingBound, AllowsSpreadsAndUnitsOfTheValueItself) {
  Margin margin;
  EXPECT_FALSE(compareRounded(expect(), {{"p", {1 + 6.3e-5, 0}}}, kCompiledAllowance, &margin));
  EXPECT_NEAR(margin.used, 6.3e-5 / (6.4e-5 + 8 * 0x1.0p-24), 1e-9);
  EXPECT_EQ(margin.name, "p [0]");
  auto difference = compareRounded(expect(), {{"p", {1, 6.5e-8}}}, kCompiledAllowance);
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->name, "p");
}

TEST(RoundingBound, TakesTheLargestThatAStoredValueHasBeen) {
  RoundedValues values = expect();
  values.sizes["p"] = {1.0, 2.0};
  EXPECT_FALSE(compareRounded(values, {{"p", {1, 6.4e-8 + 15 * 0x1.0p-24}}}, kCompiledAllowance));
  EXPECT_TRUE(compareRounded(values, {{"p", {1, 6.4e-8 + 17 * 0x1.0p-24}}}, kCompiledAllowance));
}

TEST(RoundingBound, NamesWhatIsMissingOrOfAnotherSize) {
  EXPECT_EQ(compareRounded(expect(), {}, kCompiledAllowance)->text, "is missing");
  EXPECT_EQ(compareRounded(expect(), {{"p", {1}}}, kCompiledAllowance)->text,
            "has 1 values, expected 2");
  RoundedValues gradient{{{"step 0 gradient w", {1}}}, {{"step 0 gradient w", {0}}}, {}, {}};
  EXPECT_FALSE(compareRounded(gradient, {}, kCompiledAllowance))
      << "levels need not name gradients";
}

TEST(RoundingBound, NotANumberIsItselfAlone) {
  RoundedValues nan{{{"auc", {NAN}}}, {{"auc", {0}}}, {}, {}};
  EXPECT_FALSE(compareRounded(nan, {{"auc", {NAN}}}, kCompiledAllowance));
  EXPECT_TRUE(compareRounded(nan, {{"auc", {0.5}}}, kCompiledAllowance));
}

TEST(RoundingBound, SpreadsAreThoseOfFloats) {
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  OwningOpRef<ModuleOp> module = makeRandomModel(&context, 2);
  ModelOp model = *module->getOps<ModelOp>().begin();
  BatchSeries series = makeBatches(model, 2, 1);
  llvm::Expected<RoundedObservations> seen = observeRounding(model, series.batches, 2, kManyRuns);
  ASSERT_TRUE(bool(seen)) << llvm::toString(seen.takeError());
  bool isMoved = false;
  for (const auto &[name, spread] : seen->forward.spread)
    for (auto [value, width] : llvm::zip_equal(seen->forward.exact[name], spread)) {
      isMoved |= width > 0;
      EXPECT_LE(width, 1e-4 * std::max(1.0, std::fabs(value))) << name;
    }
  EXPECT_TRUE(isMoved);
}

TEST(RoundingBound, TheSumOfOneElementIsThatElement) {
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(R"(
    genrec.model @m {
      genrec.domain @request
      genrec.table @ids dim 3 {init = #genrec.init<normal, 1.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1 : f64}>}
      genrec.program @main {
        %rows = genrec.batch : !genrec.domain<@request>
        %id = genrec.feature %rows "id" : (!genrec.domain<@request>) -> tensor<?xi64, #genrec.rows<@request>>
        %x = genrec.lookup %id in @ids : (tensor<?xi64, #genrec.rows<@request>>) -> tensor<?x3xf32, #genrec.rows<@request>>
        %y = genrec.tanh %x : tensor<?x3xf32, #genrec.rows<@request>>
        %one = genrec.slice_columns %y from 1 : (tensor<?x3xf32, #genrec.rows<@request>>) -> tensor<?x1xf32, #genrec.rows<@request>>
        %sum = genrec.row_reduce sum %one : (tensor<?x1xf32, #genrec.rows<@request>>) -> tensor<?xf32, #genrec.rows<@request>>
        %zero = genrec.sub %one, %sum : (tensor<?x1xf32, #genrec.rows<@request>>, tensor<?xf32, #genrec.rows<@request>>) -> tensor<?x1xf32, #genrec.rows<@request>>
        genrec.output "zero" %zero : tensor<?x1xf32, #genrec.rows<@request>>
        genrec.output "moved" %y : tensor<?x3xf32, #genrec.rows<@request>>
      }
    })",
                                                             &context);
  ASSERT_TRUE(module);
  ModelOp model = *module->getOps<ModelOp>().begin();
  BatchSeries series = makeBatches(model, 4, 1);
  llvm::Expected<RoundedObservations> seen = observeRounding(model, series.batches, 4, kManyRuns);
  ASSERT_TRUE(bool(seen)) << llvm::toString(seen.takeError());
  auto largest = [&](const char *name) {
    const std::vector<double> &spread = seen->forward.spread[name];
    return spread.empty() ? -1.0 : *std::max_element(spread.begin(), spread.end());
  };
  EXPECT_EQ(largest("predict 0 output zero"), 0.0);
  EXPECT_GT(largest("predict 0 output moved"), 0.0);
}

} // namespace

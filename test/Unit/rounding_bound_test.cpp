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

TEST(RoundingBound, AllowsAFewSpreadsOfChangedFactors) {
  RoundedValues values = expect();
  values.coarse["p"] = {1e-3, 0.0};
  EXPECT_FALSE(compareRounded(values, {{"p", {1 + 4.0e-3, 0}}}, kDoubleAllowance));
  EXPECT_TRUE(compareRounded(values, {{"p", {1 + 4.1e-3, 0}}}, kDoubleAllowance));
  EXPECT_TRUE(compareRounded(values, {{"p", {1, 1e-3}}}, kDoubleAllowance))
      << "a value that no such factor reaches";
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

/// What rounding does to the one model of `source`; nothing where it cannot be run.
RoundedObservations observeSource(const char *source) {
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(source, &context);
  EXPECT_TRUE(module);
  if (!module)
    return {};
  ModelOp model = *module->getOps<ModelOp>().begin();
  BatchSeries series = makeBatches(model, 4, 1);
  llvm::Expected<RoundedObservations> seen = observeRounding(model, series.batches, 4, kManyRuns);
  if (seen)
    return std::move(*seen);
  ADD_FAILURE() << llvm::toString(seen.takeError());
  return {};
}

/// The largest spread of a value's elements; -1 where there is no such value.
double getLargestSpread(const RoundedValues &values, const char *name) {
  auto spread = values.spread.find(name);
  if (spread == values.spread.end() || spread->second.empty())
    return -1.0;
  return *std::max_element(spread->second.begin(), spread->second.end());
}

TEST(RoundingBound, TheSumOfOneElementIsThatElement) {
  RoundedObservations seen = observeSource(R"(
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
    })");
  EXPECT_EQ(getLargestSpread(seen.forward, "predict 0 output zero"), 0.0);
  EXPECT_GT(getLargestSpread(seen.forward, "predict 0 output moved"), 0.0);
}

// The sum of a row may be far smaller than its elements: rounding then changes it by more than a
// unit of itself. Binaries are compared with the level where lookups load rows.
TEST(RoundingBound, SumsOfLoadedRowsAreRounded) {
  RoundedObservations seen = observeSource(R"(
    !request = !genrec.domain<@request>
    !row = !genrec.row<9>
    !rows = tensor<?x!genrec.row<9>, #genrec.rows<@request>>
    !sums = tensor<?xf32, #genrec.rows<@request>>
    genrec.model @m {
      genrec.domain @request
      genrec.table @ids dim 9 {init = #genrec.init<normal, 1.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1 : f64}>}
      genrec.program @predict mode predict {
        %request = genrec.batch : !request
        %id = genrec.feature %request "id" : (!request) -> tensor<?xi64, #genrec.rows<@request>>
        %rows = genrec.table_rows %id in @ids : (tensor<?xi64, #genrec.rows<@request>>) -> !rows
        %sum = genrec.row_kernel %request(%rows) attributes {name = "sum", operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]} : (!request, !rows) -> !sums {
        ^bb0(%row: !row):
          %x = genrec.row_load %row : (!row) -> vector<9xf32>
          %all = vector.reduction <add>, %x : vector<9xf32> into f32
          genrec.row_yield %all : f32
        }
        genrec.output "sum" %sum : !sums
      }
    })");
  const std::vector<double> &sums = seen.forward.exact["predict 0 output sum"];
  const std::vector<double> &spreads = seen.forward.spread["predict 0 output sum"];
  ASSERT_FALSE(sums.empty());
  // An error of the sum alone is a unit at most.
  double most = 0.0;
  for (auto [sum, spread] : llvm::zip_equal(sums, spreads))
    most = std::max(most, spread / (std::fabs(sum) * 0x1.0p-24));
  EXPECT_GT(most, 2.0);
}

// All candidates are one row of a table: what a query gets of them is 0 on paper, and each share is
// rounded.
TEST(RoundingBound, SharesOfASampledSoftmaxAreRoundedEach) {
  RoundedObservations seen = observeSource(R"(
    !user = !genrec.domain<@user>
    !items = !genrec.domain<@items>
    !ui = tensor<?xi64, #genrec.rows<@user>>
    !u3 = tensor<?x3xf32, #genrec.rows<@user>>
    !mi = tensor<?xi64, #genrec.rows<@items>>
    !m3 = tensor<?x3xf32, #genrec.rows<@items>>
    genrec.model @m {
      genrec.domain @user
      genrec.domain @items kind catalogue
      genrec.table @item dim 3 {init = #genrec.init<normal, 1.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1 : f64}>}
      genrec.parameter @shift : tensor<3xf32> {init = #genrec.init<normal, 1.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1 : f64}>}
      genrec.program @train mode train {
        %user = genrec.batch : !user
        %items = genrec.catalogue : !items
        %id = genrec.feature %items "id" : (!items) -> !mi
        %one = genrec.mod %id {divisor = 1 : i64} : (!mi) -> !mi
        %vectors = genrec.lookup %one in @item : (!mi) -> !m3
        %shift = genrec.param @shift : tensor<3xf32>
        %query = genrec.broadcast_rows %shift to %user : (tensor<3xf32>, !user) -> !u3
        %target = genrec.feature %user "target" : (!user) -> !ui
        %positive = genrec.resolve %target in %id : (!ui, !mi) -> !ui
        %seed = genrec.constant dense<1.0> : tensor<f32>
        %seeds = genrec.broadcast_rows %seed to %user : (tensor<f32>, !user) -> tensor<?xf32, #genrec.rows<@user>>
        %dquery, %ditems = genrec.sampled_softmax_grad %query, %positive, %vectors, %seeds {negatives = 4 : i64, temperature = 0.7 : f64, stream = 256 : i64} : (!u3, !ui, !m3, tensor<?xf32, #genrec.rows<@user>>) -> (!u3, !m3)
        %sum = genrec.reduce_rows %dquery : (!u3) -> tensor<3xf32>
        genrec.update_parameter @shift by %sum : tensor<3xf32>
      }
    })");
  for (double value : seen.trained.exact["step 0 gradient shift"])
    EXPECT_NEAR(value, 0.0, 1e-14);
  EXPECT_GT(getLargestSpread(seen.trained, "step 0 gradient shift"), 1e-9);
}

} // namespace

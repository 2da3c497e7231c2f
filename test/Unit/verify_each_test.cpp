//===- verify_each_test.cpp - passes that are broken on purpose -----------===//

#include "genrec/Fuzz/VerifyEach.h"
#include "genrec/InitAllDialects.h"
#include "genrec/Pipelines/Pipelines.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace genrec;

namespace {

/// Two losses, so that errors can be told apart by where they are: "click" on line 22, "stay" on
/// line 24.
constexpr const char *kModel = R"mlir(module {
  genrec.model @shop {
    genrec.domain @request
    genrec.domain @event parent @request {column = "events"}
    genrec.table @items dim 4 {init = #genrec.init<normal, 0.5 : f64>, optimizer = #genrec.optimizer<sgd, {lr = 0.1 : f64}>}
    genrec.parameter @w : tensor<4xf32> {init = #genrec.init<normal, 0.5 : f64>, optimizer = #genrec.optimizer<sgd, {lr = 0.1 : f64}>}
    genrec.program @main {
      %0:2 = genrec.batch : !genrec.domain<@request>, !genrec.domain<@event>
      %ids = genrec.feature %0#1 "events.item" {nullable} : (!genrec.domain<@event>) -> tensor<?xi64, #genrec.rows<@event>>
      %valid = genrec.feature_valid %0#1 "events.item" : (!genrec.domain<@event>) -> tensor<?xi1, #genrec.rows<@event>>
      %x = genrec.lookup %ids valid %valid in @items : (tensor<?xi64, #genrec.rows<@event>>, tensor<?xi1, #genrec.rows<@event>>) -> tensor<?x4xf32, #genrec.rows<@event>>
      %pooled = genrec.pool mean %x to %0#0 : (tensor<?x4xf32, #genrec.rows<@event>>, !genrec.domain<@request>) -> tensor<?x4xf32, #genrec.rows<@request>>
      %w = genrec.param @w : tensor<4xf32>
      %scaled = genrec.mul %pooled, %w : (tensor<?x4xf32, #genrec.rows<@request>>, tensor<4xf32>) -> tensor<?x4xf32, #genrec.rows<@request>>
      %logit = genrec.row_reduce sum %scaled : (tensor<?x4xf32, #genrec.rows<@request>>) -> tensor<?xf32, #genrec.rows<@request>>
      %label = genrec.feature %0#0 "label" : (!genrec.domain<@request>) -> tensor<?xf32, #genrec.rows<@request>>
      %dwell = genrec.feature %0#0 "dwell" : (!genrec.domain<@request>) -> tensor<?xf32, #genrec.rows<@request>>
      %difference = genrec.sub %logit, %dwell : (tensor<?xf32, #genrec.rows<@request>>, tensor<?xf32, #genrec.rows<@request>>) -> tensor<?xf32, #genrec.rows<@request>>
      %loss = genrec.bce_with_logits %logit, %label : (tensor<?xf32, #genrec.rows<@request>>, tensor<?xf32, #genrec.rows<@request>>) -> tensor<?xf32, #genrec.rows<@request>>
      %stay = genrec.tanh %difference : tensor<?xf32, #genrec.rows<@request>>

      genrec.loss "click" %loss : tensor<?xf32, #genrec.rows<@request>>

      genrec.loss "stay" %stay : tensor<?xf32, #genrec.rows<@request>>
    }
  }
})mlir";

/// A pass over models that does what a function says.
class Broken : public PassWrapper<Broken, OperationPass<ModelOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Broken)
  explicit Broken(std::function<void(Operation *)> change) : change(std::move(change)) {}
  StringRef getArgument() const override { return "genrec-broken"; }
  void runOnOperation() override {
    getOperation().walk([&](Operation *op) { change(op); });
  }

private:
  std::function<void(Operation *)> change;
};

struct Outcome {
  bool failed = false;
  std::string text;
  unsigned line = 0;
};

/// Runs the pipeline with the broken pass after `step`, watched.
Outcome run(StringRef step, std::function<void(Operation *)> change) {
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(kModel, ParserConfig(&context));
  Outcome outcome;
  if (!module) {
    ADD_FAILURE() << "the model does not parse";
    return outcome;
  }
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    outcome.text += diagnostic.str();
    if (auto place = diagnostic.getLocation()->findInstanceOf<FileLineColLoc>())
      outcome.line = place.getLine();
    return success();
  });
  PassManager pm(&context);
  pm.addInstrumentation(std::make_unique<fuzz::VerifyEach>([&] { outcome.failed = true; }));
  buildGraphPipeline(pm, PipelineOptions(), [&](OpPassManager &models, StringRef after) {
    if (after == step)
      models.addPass(std::make_unique<Broken>(change));
  });
  EXPECT_TRUE(succeeded(pm.run(*module))) << outcome.text;
  return outcome;
}

TEST(VerifyEach, SaysNothingOfPassesThatKeepTheMeaning) {
  Outcome outcome = run("verify-model", [](Operation *) {});
  EXPECT_FALSE(outcome.failed) << outcome.text;
  EXPECT_EQ(outcome.text, "");
}

TEST(VerifyEach, NamesThePassTheValueAndThePlace) {
  Outcome outcome = run("verify-model", [](Operation *op) {
    if (isa<SubOp>(op)) {
      Value first = op->getOperand(0);
      op->setOperand(0, op->getOperand(1));
      op->setOperand(1, first);
    }
  });
  EXPECT_TRUE(outcome.failed);
  EXPECT_NE(outcome.text.find("after pass 'genrec-broken', the meaning of the model has changed: "),
            std::string::npos)
      << outcome.text;
  EXPECT_NE(outcome.text.find("loss stay [0] is "), std::string::npos) << outcome.text;
  EXPECT_EQ(outcome.line, 24u) << outcome.text;
}

TEST(VerifyEach, CatchesWhatOnlyListsOfSeveralRowsShow) {
  Outcome outcome = run("infer-domains", [](Operation *op) {
    if (auto pool = dyn_cast<PoolOp>(op))
      pool.setKind(PoolKind::sum);
  });
  EXPECT_TRUE(outcome.failed);
}

TEST(VerifyEach, CatchesWhatOnlyNullsShow) {
  Outcome outcome = run("infer-domains", [](Operation *op) {
    if (auto lookup = dyn_cast<LookupOp>(op))
      lookup.getValidMutable().clear();
  });
  EXPECT_TRUE(outcome.failed);
  EXPECT_NE(outcome.text.find("genrec-broken"), std::string::npos) << outcome.text;
}

TEST(VerifyEach, CatchesAGradientOffByAThousandth) {
  Outcome outcome = run("differentiate", [](Operation *op) {
    auto update = dyn_cast<UpdateTableOp>(op);
    if (!update)
      return;
    OpBuilder b(op);
    auto scalar = RankedTensorType::get({}, b.getF32Type());
    Value factor =
        ConstantOp::create(b, op->getLoc(), scalar, DenseElementsAttr::get(scalar, 1.001f));
    OpOperand &gradient = update.getGradientsMutable()[0];
    gradient.set(MulOp::create(b, op->getLoc(), gradient.get().getType(), gradient.get(), factor));
  });
  EXPECT_TRUE(outcome.failed);
  EXPECT_NE(outcome.text.find("gradient w [0] is "), std::string::npos) << outcome.text;
}

TEST(VerifyEach, ReportsTheFirstFailureAlone) {
  int calls = 0;
  Outcome outcome = run("infer-domains", [&](Operation *op) {
    calls += isa<PoolOp>(op);
    if (auto pool = dyn_cast<PoolOp>(op))
      pool.setKind(PoolKind::max);
  });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(StringRef(outcome.text).count("the meaning of the model has changed"), 1u)
      << outcome.text;
}

} // namespace

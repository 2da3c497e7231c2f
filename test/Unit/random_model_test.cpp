//===- random_model_test.cpp - models that the fuzzer makes ---------------===//

#include "genrec/Dialect/GenRec/IR/GenRec.h"
#include "genrec/Fuzz/RandomModel.h"

#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringSet.h"

#include <gtest/gtest.h>

using namespace mlir;

static std::string print(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os);
  return text;
}

TEST(RandomModel, EveryModelPassesTheVerifier) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  for (uint64_t seed = 0; seed < 150; ++seed) {
    OwningOpRef<ModuleOp> model = genrec::fuzz::makeRandomModel(&context, seed);
    ASSERT_TRUE(succeeded(verify(*model))) << "seed " << seed << "\n" << print(*model);
  }
}

TEST(RandomModel, TheSameSeedGivesTheSameModel) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  EXPECT_EQ(print(*genrec::fuzz::makeRandomModel(&context, 7)),
            print(*genrec::fuzz::makeRandomModel(&context, 7)));
  EXPECT_NE(print(*genrec::fuzz::makeRandomModel(&context, 7)),
            print(*genrec::fuzz::makeRandomModel(&context, 8)));
}

TEST(RandomModel, AHundredAndFiftySeedsUseEveryModelOp) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  llvm::StringSet<> seen;
  for (uint64_t seed = 0; seed < 150; ++seed)
    genrec::fuzz::makeRandomModel(&context, seed)->walk(
        [&](Operation *op) { seen.insert(op->getName().getStringRef()); });
  for (const char *name :
       {"attention",  "batch",        "bce_with_logits", "bucketize",   "cast",
        "catalogue",  "compare",      "concat_columns",  "concat_domains", "concat_rows",
        "derive",     "dropout",      "embedding",       "fanout",      "feature",
        "feature_valid", "gather_rows", "hash",          "hstu_block",  "l2_normalize",
        "lag",        "layer_norm",   "lead",            "length",      "linear",
        "lookup",     "loss",         "metric",          "mod",         "output",
        "param",      "pool",         "position",        "rank",        "resolve",
        "rms_norm",   "row_reduce",   "sampled_softmax", "scores",      "select",
        "slice_columns", "softmax_cross_entropy", "split_rows", "top_k", "truncate"})
    EXPECT_TRUE(seen.contains(std::string("genrec.") + name)) << name;
}

//===- Coverage.cpp - what random models exercise -------------------------===//

#include "genrec/Fuzz/Coverage.h"

#include "genrec/Dialect/GenRec/IR/GenRec.h"
#include "genrec/Dialect/GenRec/IR/ModelDialectInterface.h"
#include "genrec/Dialect/GenRec/IR/Optimizers.h"
#include "genrec/Dialect/GenRec/Transforms/RewriteCounter.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::fuzz;

/// Whether an attribute is an option, rather than a number or a name.
static bool isChoice(Attribute value) {
  return isa<PoolKindAttr, KeepKindAttr, HashKindAttr, ReduceKindAttr, CompareKindAttr,
             ScoreKindAttr, MetricKindAttr, PadSideAttr, EvictKindAttr, RowElementAttr,
             RowRoundingAttr>(value);
}

static std::string keyword(Attribute value) {
  std::string text;
  llvm::raw_string_ostream os(text);
  value.print(os, /*elideType=*/true);
  // The keyword is the last word of "#genrec<pool_kind sum>".
  StringRef word = StringRef(text).trim("<> ");
  return word.substr(word.find_last_of("< ") + 1).str();
}

static std::string optimizerName(OptimizerKind kind) {
  return "optimizer " + stringifyOptimizerKind(kind).str();
}

void Coverage::addModel(ModuleOp module) {
  module.walk([&](Operation *op) {
    StringRef name = op->getName().stripDialect();
    ++seen[name.str()];
    for (NamedAttribute attribute : op->getAttrDictionary()) {
      std::string option = (name + " " + attribute.getName().getValue()).str();
      attributes.insert(option);
      if (isChoice(attribute.getValue()))
        ++seen[option + "=" + keyword(attribute.getValue())];
      else
        ++seen[option];
      if (auto init = dyn_cast<InitAttr>(attribute.getValue()))
        ++seen["init " + stringifyInitKind(init.getKind()).str()];
      if (auto optimizer = dyn_cast<OptimizerAttr>(attribute.getValue())) {
        ++seen[optimizerName(optimizer.getKind())];
        for (NamedAttribute option : optimizer.getOptions())
          ++seen[optimizerName(optimizer.getKind()) + " " + option.getName().str()];
      }
    }
    if (auto segments = op->getAttrOfType<DenseI32ArrayAttr>("operandSegmentSizes"))
      for (auto [index, size] : llvm::enumerate(segments.asArrayRef()))
        if (size == 1 && index > 0)
          ++seen[(name + " operand " + Twine(index)).str()];
    ++seen[(name + " with " + Twine(op->getNumOperands()) + " operands").str()];
  });
}

/// The number of model ops fused in a row kernel, counted by the names in their locations.
static int64_t countFused(RowKernelOp kernel) {
  llvm::StringSet<> names;
  kernel.getBody().walk([&](Operation *op) {
    op->getLoc()->walk([&](Location loc) {
      if (auto name = dyn_cast<NameLoc>(loc))
        names.insert(name.getName());
      return WalkResult::advance();
    });
  });
  return static_cast<int64_t>(names.size());
}

void Coverage::addLevel(ModelOp model) {
  model.walk([&](Operation *op) {
    ops.insert(op->getName().getStringRef().str());
    if (auto kernel = dyn_cast<RowKernelOp>(op))
      largestKernel = std::max(largestKernel, countFused(kernel));
  });
}

void Coverage::addRewrites(const std::map<std::string, uint64_t> &counts) {
  for (const auto &[name, count] : counts)
    rewrites[name] += count;
}

/// Options that random models do not have, with the reason.
static constexpr StringLiteral excluded[] = {
    "feature padding_id", // batches hold lists without padding
    "feature id_bits",    // set by infer-domains
    "domain source",      // the tests pass catalogues in batches, not files
    "metric note",        // text for reports
    "table members",      // set by merge-tables, whose rewrites are counted
    "scores first",       // set by split-classes, as is the next one
    "scores partial",
};

/// Ops created after form-row-kernels, or for devices alone, and ops whose rewrites are counted
/// instead.
static constexpr StringLiteral excludedOps[] = {
    "genrec.fused_attention_grad", // by fold-epilogues, of factors that round-factors has rounded
    "genrec.launch",               // by outline-kernels
    "genrec.launch_columns",       // by outline-kernels
    "genrec.launched_kernel",      // by outline-kernels
    "genrec.row_search",           // by fuse-transforms
};

std::vector<std::string> Coverage::getMissing(MLIRContext *context) const {
  static constexpr StringLiteral wanted[] = {
#include "CoverageList.inc"
  };
  std::vector<std::string> missing;
  for (StringRef name : wanted)
    if (!seen.count(name.str()))
      missing.push_back(name.str());
  for (RegisteredOperationName op : context->getRegisteredOperations()) {
    if (!hasModelOps(&op.getDialect()))
      continue;
    if (!ops.count(op.getStringRef().str()) && !llvm::is_contained(excludedOps, op.getStringRef()))
      missing.push_back(("op " + op.getStringRef()).str());
    if (seen.count(op.stripDialect().str()))
      for (StringAttr attribute : op.getAttributeNames()) {
        std::string option = (op.stripDialect() + " " + attribute.getValue()).str();
        if (!attributes.count(option) && !llvm::is_contained(excluded, option))
          missing.push_back("attribute " + option);
      }
  }
  for (OptimizerKind kind : getOptimizerKinds()) {
    if (!seen.count(optimizerName(kind)))
      missing.push_back(optimizerName(kind));
    for (const OptimizerOption &option : getOptimizerOptions(kind))
      if (std::string name = optimizerName(kind) + " " + option.name.str(); !seen.count(name))
        missing.push_back(name);
  }
  for (StringRef name : getRewriteNames())
    if (!rewrites.count(name.str()))
      missing.push_back(("rewrite " + name).str());
  if (largestKernel < 5)
    missing.push_back(
        "a row kernel of at least five fused ops (largest: " + std::to_string(largestKernel) + ")");
  return missing;
}

std::string Coverage::toString() const {
  std::string text;
  for (const auto &[name, count] : seen)
    text += llvm::formatv("{0,10}  {1}\n", count, name);
  for (const auto &[name, count] : rewrites)
    text += llvm::formatv("{0,10}  rewrite {1}\n", count, name);
  text += llvm::formatv("{0,10}  fused ops in the largest row kernel\n", largestKernel);
  return text;
}

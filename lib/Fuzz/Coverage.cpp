//===- Coverage.cpp - what a range of seeds has exercised -----------------===//

#include "genrec/Fuzz/Coverage.h"

#include "genrec/Dialect/GenRec/IR/GenRec.h"
#include "genrec/Dialect/GenRec/Transforms/RewriteCounter.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::fuzz;

/// Attributes whose value is a choice, rather than a number or a name.
static bool isChoice(Attribute value) {
  return isa<PoolKindAttr, KeepKindAttr, HashKindAttr, ReduceKindAttr, CompareKindAttr,
             ScoreKindAttr, MetricKindAttr, PadSideAttr>(value);
}

static std::string keyword(Attribute value) {
  std::string text;
  llvm::raw_string_ostream os(text);
  value.print(os, /*elideType=*/true);
  // "#genrec<pool_kind sum>": the last word.
  StringRef word = StringRef(text).trim("<> ");
  return word.substr(word.find_last_of("< ") + 1).str();
}

void Coverage::addModel(ModuleOp module) {
  module.walk([&](Operation *op) {
    StringRef name = op->getName().stripDialect();
    ++seen[name.str()];
    for (NamedAttribute attribute : op->getAttrDictionary()) {
      std::string option = (name + " " + attribute.getName().getValue()).str();
      if (isChoice(attribute.getValue()))
        ++seen[option + "=" + keyword(attribute.getValue())];
      else
        ++seen[option];
      if (auto init = dyn_cast<InitAttr>(attribute.getValue()))
        ++seen["init " + stringifyInitKind(init.getKind()).str()];
      if (auto optimizer = dyn_cast<OptimizerAttr>(attribute.getValue())) {
        std::string kind = "optimizer " + stringifyOptimizerKind(optimizer.getKind()).str();
        ++seen[kind];
        for (NamedAttribute constant : optimizer.getOptions())
          ++seen[kind + " " + constant.getName().str()];
      }
    }
    if (auto segments = op->getAttrOfType<DenseI32ArrayAttr>("operandSegmentSizes"))
      for (auto [index, size] : llvm::enumerate(segments.asArrayRef()))
        if (size == 1 && index > 0)
          ++seen[(name + " operand " + Twine(index)).str()];
    if (isa<LookupOp, ResolveOp, LinearOp, CrossLayerOp, RmsNormOp, TopKOp, RankOp>(op))
      ++seen[(name + " with " + Twine(op->getNumOperands()) + " operands").str()];
  });
}

void Coverage::addKernels(ModuleOp module) {
  module.walk([&](RowKernelOp kernel) {
    llvm::StringSet<> ops;
    kernel.getBody().walk([&](Operation *op) {
      op->getLoc()->walk([&](Location loc) {
        if (auto name = dyn_cast<NameLoc>(loc))
          ops.insert(name.getName());
        return WalkResult::advance();
      });
    });
    largestKernel = std::max<int64_t>(largestKernel, static_cast<int64_t>(ops.size()));
  });
}

void Coverage::addRewrites(const std::map<std::string, uint64_t> &counts) {
  for (const auto &[name, count] : counts)
    rewrites[name] += count;
}

std::vector<std::string> Coverage::getMissing() const {
  static constexpr StringLiteral wanted[] = {
#include "CoverageList.inc"
  };
  std::vector<std::string> missing;
  for (StringRef name : wanted)
    if (!seen.count(name.str()))
      missing.push_back(name.str());
  for (StringRef name : getRewriteNames())
    if (!rewrites.count(name.str()))
      missing.push_back(("rewrite " + name).str());
  if (largestKernel < 5)
    missing.push_back("a row kernel of at least five fused ops (largest: " + std::to_string(largestKernel) + ")");
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

//===- Callees.cpp - the functions that emitted code may call -------------===//

#include "genrec/Target/EmitC/Callees.h"

#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/IR/Builders.h"

#include <set>

using namespace mlir;
using namespace genrec;

#define ABI "genrec_rt/abi.h"
#define SHARED(name) "genrec_rt/kernels/shared/" name ".h"
#define CPU(name) "genrec_rt/kernels/cpu/" name ".h"
#define CUDA(name) "genrec_rt/kernels/cuda/" name ".h"
#define EVERY(name) SHARED(name), SHARED(name)
#define BOTH(name) CPU(name), CUDA(name)

// Sorted by folder, by header, then by name.
static constexpr Callee callees[] = {
    {"genrec_rt_clip_norm", ABI},
    {"genrec_rt_clip_value", ABI},
    {"genrec_rt_collect", ABI, ABI},
    {"genrec_rt_collect_rows", ABI, ABI},
    {"genrec_rt_collected_rows", ABI, ABI},
    {"genrec_rt_contribute", ABI, ABI},
    {"genrec_rt_contribute_rows", ABI, ABI},
    {"genrec_rt_contribute_segments", ABI, ABI},
    {"genrec_rt_distinct_rows", ABI, ABI},
    {"genrec_rt_exact_sums", ABI, ABI},
    {"genrec_rt_merged_keys", ABI, ABI},
    {"genrec_rt_merged_rows", ABI, ABI},
    {"genrec_rt_report_device_loss", "", ABI},
    {"genrec_rt_report_loss", ABI},
    {"genrec_rt_report_metric", ABI, ABI},
    {"genrec_rt_report_output", ABI, ABI},
    {"genrec_rt_require_range", ABI, ABI},
    {"genrec_rt_resolve", ABI, ABI},
    {"genrec_rt_segment_sum", ABI, ABI},
    {"genrec_rt_step_value", ABI},
    {"genrec_rt_store_step_value", "", ABI},
    {"genrec_rt_table_rows", ABI, ABI},
    {"genrec_rt_unique_rows", ABI, ABI},
    // The same header on all targets.
    {"kernels::hashFarm64", EVERY("hash")},
    {"kernels::hashMurmur3", EVERY("hash")},
    {"kernels::hashXxh3", EVERY("hash")},
    {"kernels::keepThreshold", EVERY("random")},
    {"kernels::keeps", EVERY("random")},
    {"kernels::philoxWord", EVERY("random")},
    {"kernels::randomStream", EVERY("random")},
    {"kernels::uniformFromBits", EVERY("random")},
    {"kernels::bf16Values", EVERY("row_values")},
    {"kernels::isHot", EVERY("row_values")},
    {"kernels::joined", EVERY("row_values")},
    {"kernels::lowerHalf", EVERY("row_values")},
    {"kernels::lowerHalves", EVERY("row_values")},
    {"kernels::narrowed", EVERY("row_values")},
    {"kernels::nearestBf16", EVERY("row_values")},
    {"kernels::roundedBy", EVERY("row_values")},
    {"kernels::upperHalf", EVERY("row_values")},
    {"kernels::widened", EVERY("row_values")},
    {"kernels::bucketOf", EVERY("rowbody")},
    {"kernels::clampIndex", EVERY("rowbody")},
    {"kernels::elementAt", EVERY("rowbody")},
    {"kernels::meanDivisor", EVERY("rowbody")},
    {"kernels::remainder", EVERY("rowbody")},
    {"kernels::sumFloats", EVERY("rowbody")},
    {"kernels::absolute", EVERY("rowmath")},
    {"kernels::cos", EVERY("rowmath")},
    {"kernels::erf", EVERY("rowmath")},
    {"kernels::exp", EVERY("rowmath")},
    {"kernels::expm1", EVERY("rowmath")},
    {"kernels::log", EVERY("rowmath")},
    {"kernels::log1p", EVERY("rowmath")},
    {"kernels::maximum", EVERY("rowmath")},
    {"kernels::minimum", EVERY("rowmath")},
    {"kernels::rsqrt", EVERY("rowmath")},
    {"kernels::sigmoid", EVERY("rowmath")},
    {"kernels::sin", EVERY("rowmath")},
    {"kernels::sqrt", EVERY("rowmath")},
    {"kernels::tanh", EVERY("rowmath")},
    // A header per target.
    {"kernels::concatDomains", BOTH("domains")},
    {"kernels::concatRows", BOTH("domains")},
    {"kernels::concatShared", BOTH("domains")},
    {"kernels::deriveGrad", BOTH("domains")},
    {"kernels::fixedRows", BOTH("domains")},
    {"kernels::lengths", BOTH("domains")},
    {"kernels::ownRows", BOTH("domains")},
    {"kernels::parameterRows", BOTH("domains")},
    {"kernels::poolGrad", BOTH("domains")},
    {"kernels::positions", BOTH("domains")},
    {"kernels::shiftRows", BOTH("domains")},
    {"kernels::splitRows", BOTH("domains")},
    {"kernels::stackDomains", BOTH("domains")},
    {"kernels::truncate", BOTH("domains")},
    {"kernels::gatherDot", BOTH("gathered_rows")},
    {"kernels::gatherSoftmax", "", CUDA("gathered_rows")},
    {"kernels::gatherSum", BOTH("gathered_rows")},
    {"kernels::scatterAddOuter", BOTH("gathered_rows")},
    {"kernels::softmaxSum", "", CUDA("gathered_rows")},
    {"kernels::dotInteraction", BOTH("interaction")},
    {"kernels::dotInteractionGradient", BOTH("interaction")},
    {"kernels::launch", BOTH("launch")},
    {"kernels::launchColumns", BOTH("launch")},
    {"kernels::launchSums", BOTH("launch")},
    {"kernels::derivePadded", BOTH("lists")},
    {"kernels::derivePaddedGrad", BOTH("lists")},
    {"kernels::pad", BOTH("lists")},
    {"kernels::pairDomains", BOTH("lists")},
    {"kernels::pairRows", BOTH("lists")},
    {"kernels::pairSum", BOTH("lists")},
    {"kernels::tile", BOTH("lists")},
    {"kernels::tileGrad", BOTH("lists")},
    {"kernels::drawRowNumbers", BOTH("picked_rows")},
    {"kernels::pickLists", BOTH("picked_rows")},
    {"kernels::pickRows", BOTH("picked_rows")},
    {"kernels::fillBits", BOTH("random")},
    {"kernels::fillHalves", BOTH("random")},
    {"kernels::fillUniform", BOTH("random")},
    {"kernels::roundedFactor", BOTH("rounded_factors")},
    {"kernels::addElement", BOTH("rowbody")},
    {"kernels::addRow", BOTH("rowbody")},
    {"kernels::bucketAmong", BOTH("rowbody")},
    {"kernels::chunkSums", BOTH("rowbody")},
    {"kernels::drawRows", BOTH("rowbody")},
    {"kernels::remainderBy", CPU("rowbody"), CUDA("remainder")},
    {"kernels::rowAt", BOTH("rowbody")},
    {"kernels::rowMax", BOTH("rowbody")},
    {"kernels::rowMin", BOTH("rowbody")},
    {"kernels::rowSum", BOTH("rowbody")},
    {"kernels::ownedRows", BOTH("segments")},
    {"kernels::ownedSums", BOTH("segments")},
    {"kernels::segmentSum", BOTH("segments")},
    {"kernels::segmentSums", BOTH("segments")},
    {"kernels::checkFinite", CPU("launch"), CUDA("step")},
    {"kernels::enter", CPU("launch"), CUDA("step")},
    {"kernels::attention", CPU("step_attention"), CUDA("attention/step_attention")},
    {"kernels::attentionGradient", CPU("step_attention"), CUDA("attention/step_attention")},
    {"kernels::crossAttention", CPU("step_attention"), CUDA("attention/step_attention")},
    {"kernels::crossAttentionGradient", CPU("step_attention"), CUDA("attention/step_attention")},
    {"kernels::distinctLinear", BOTH("step_distinct")},
    {"kernels::distinctLinearGradient", BOTH("step_distinct")},
    {"kernels::inBatchSoftmax", BOTH("step_in_batch")},
    {"kernels::inBatchSoftmaxGradient", BOTH("step_in_batch")},
    {"kernels::fusedLinear", BOTH("step_linear")},
    {"kernels::linear", BOTH("step_linear")},
    {"kernels::weightGradient", BOTH("step_linear")},
    {"kernels::rankInLists", BOTH("step_rank")},
    {"kernels::rankListedRows", BOTH("step_rank")},
    {"kernels::rankRows", BOTH("step_rank")},
    {"kernels::scores", BOTH("step_rank")},
    {"kernels::scoresGradient", BOTH("step_rank")},
    {"kernels::topRows", BOTH("step_rank")},
    // CPU only.
    {"kernels::argument", CPU("launch")},
    {"kernels::blockRows", CPU("row_blocks")},
    {"kernels::localRows", CPU("row_blocks")},
    {"kernels::runRowBlocks", CPU("row_blocks")},
    {"kernels::prefetchRow", CPU("rowbody")},
    // CUDA only.
    {"kernels::columnDomain", "", CUDA("column_bodies")},
    {"kernels::runColumns", "", CUDA("column_bodies")},
    {"kernels::blockStep", "", CUDA("lanes")},
    {"kernels::chunkBegin", "", CUDA("lanes")},
    {"kernels::chunkEnd", "", CUDA("lanes")},
    {"kernels::chunkOfTeam", "", CUDA("lanes")},
    {"kernels::columnPointer", "", CUDA("lanes")},
    {"kernels::firstOfPack", "", CUDA("lanes")},
    {"kernels::firstRow", "", CUDA("lanes")},
    {"kernels::isFirstLane", "", CUDA("lanes")},
    {"kernels::loadPack", "", CUDA("lanes")},
    {"kernels::meet", "", CUDA("lanes")},
    {"kernels::meetTeam", "", CUDA("lanes")},
    {"kernels::rowOfBlock", "", CUDA("lanes")},
    {"kernels::rowOfTeam", "", CUDA("lanes")},
    {"kernels::rowStep", "", CUDA("lanes")},
    {"kernels::sharedArray", "", CUDA("lanes")},
    {"kernels::storePack", "", CUDA("lanes")},
    {"kernels::teamRows", "", CUDA("lanes")},
    {"kernels::valueOf", "", CUDA("lanes")},
    {"kernels::domainNumber", "", CUDA("launch")},
    {"kernels::hasFirstRow", "", CUDA("pools")},
    {"kernels::hasLastRow", "", CUDA("pools")},
    {"kernels::launchPoolColumns", "", CUDA("pools")},
    {"kernels::launchPools", "", CUDA("pools")},
    {"kernels::poolStart", "", CUDA("pools")},
    {"kernels::poolUnit", "", CUDA("pools")},
    {"kernels::poolUnits", "", CUDA("pools")},
    {"kernels::pooledLength", "", CUDA("pools")},
    {"kernels::pooledPlace", "", CUDA("pools")},
    {"kernels::clearRowsBehind", "", CUDA("rounded_factors")},
    {"kernels::joinedAttentionGradient", "", CUDA("attention/step_attention")},
    {"kernels::addRows", "", CUDA("rowbody")},
    {"kernels::clearSums", "", CUDA("rowbody")},
    {"kernels::addMultiple", "", CUDA("scattered_terms")},
    {"kernels::behindTerms", "", CUDA("scattered_terms")},
    {"kernels::rowTerms", "", CUDA("scattered_terms")},
    {"kernels::termsOf", "", CUDA("scattered_terms")},
    {"kernels::deviceAddress", "", CUDA("step")},
    {"kernels::fillKeys", "", CUDA("step")},
};

ArrayRef<Callee> genrec::getCallees() { return callees; }

static SmallVector<const KernelDialectInterface *> getPluginKernels(MLIRContext *context) {
  SmallVector<const KernelDialectInterface *> kernels;
  for (Dialect *dialect : context->getLoadedDialects())
    if (auto *own = dialect->getRegisteredInterface<KernelDialectInterface>())
      kernels.push_back(own);
  return kernels;
}

SmallVector<std::string> genrec::getKernelIncludeFolders(MLIRContext *context) {
  SmallVector<std::string> folders;
  for (const KernelDialectInterface *kernels : getPluginKernels(context))
    folders.push_back(kernels->getIncludeFolder());
  return folders;
}

static const Callee *findCallee(ArrayRef<Callee> list, StringRef name) {
  const Callee *found =
      llvm::find_if(list, [&](const Callee &entry) { return entry.name == name; });
  return found == list.end() ? nullptr : found;
}

const Callee *genrec::lookupCallee(StringRef name, MLIRContext *context) {
  if (const Callee *callee = findCallee(callees, name))
    return callee;
  for (const KernelDialectInterface *kernels : getPluginKernels(context))
    if (const Callee *callee = findCallee(kernels->getCallees(), name))
      return callee;
  return nullptr;
}

std::vector<std::string> genrec::listMissingForms(ModuleOp module, TargetKind target) {
  std::set<std::string> missing;
  module.walk([&](emitc::CallOpaqueOp call) {
    const Callee *callee = lookupCallee(call.getCallee(), module.getContext());
    if (callee && callee->getHeader(target).empty())
      missing.insert(callee->name.str());
  });
  return {missing.begin(), missing.end()};
}

LogicalResult genrec::checkCallees(ModuleOp module, TargetKind target) {
  std::set<StringRef> headers = {ABI}, missing;
  WalkResult result = module.walk([&](emitc::CallOpaqueOp call) {
    const Callee *callee = lookupCallee(call.getCallee(), module.getContext());
    if (!callee) {
      call.emitOpError() << "calls '" << call.getCallee()
                         << "', which is not on the list of the runtime's functions or a plugin's";
      return WalkResult::interrupt();
    }
    StringRef header = callee->getHeader(target);
    if (header.empty() && missing.insert(callee->name).second)
      emitError(call.getLoc()) << "op calls '" << callee->name << "', which has no "
                               << (target == TargetKind::cuda ? "CUDA" : "CPU") << " form yet";
    if (header != kLanguageHeader)
      headers.insert(header);
    return WalkResult::advance();
  });
  if (result.wasInterrupted() || !missing.empty())
    return failure();
  OpBuilder builder(module.getContext());
  builder.setInsertionPointToStart(module.getBody());
  for (StringRef header : headers)
    emitc::IncludeOp::create(builder, module.getLoc(), header, /*is_standard_include=*/false);
  return success();
}

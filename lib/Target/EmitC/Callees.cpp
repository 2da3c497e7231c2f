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
#define BOTH(name) CPU(name), CUDA(name)

// Sorted by folder, by header, then by name.
static constexpr Callee callees[] = {
    {"genrec_rt_clip_norm", ABI},
    {"genrec_rt_clip_value", ABI},
    {"genrec_rt_collect", ABI},
    {"genrec_rt_collect_rows", ABI},
    {"genrec_rt_collected_rows", ABI},
    {"genrec_rt_contribute", ABI},
    {"genrec_rt_contribute_rows", ABI},
    {"genrec_rt_contribute_segments", ABI},
    {"genrec_rt_distinct_rows", ABI},
    {"genrec_rt_exact_sum", ABI},
    {"genrec_rt_merged_keys", ABI},
    {"genrec_rt_merged_rows", ABI},
    {"genrec_rt_report_loss", ABI},
    {"genrec_rt_report_metric", ABI},
    {"genrec_rt_report_output", ABI},
    {"genrec_rt_require_range", ABI},
    {"genrec_rt_resolve", ABI},
    {"genrec_rt_segment_sum", ABI},
    {"genrec_rt_step_value", ABI},
    {"genrec_rt_table_rows", ABI},
    {"genrec_rt_unique_rows", ABI},
    // The same header on all targets.
    {"kernels::hashFarm64", SHARED("hash")},
    {"kernels::hashMurmur3", SHARED("hash")},
    {"kernels::hashXxh3", SHARED("hash")},
    {"kernels::keepThreshold", SHARED("random")},
    {"kernels::keeps", SHARED("random")},
    {"kernels::philoxWord", SHARED("random")},
    {"kernels::randomStream", SHARED("random")},
    {"kernels::uniformFromBits", SHARED("random")},
    {"kernels::bucketOf", SHARED("rowbody")},
    {"kernels::clampIndex", SHARED("rowbody")},
    {"kernels::elementAt", SHARED("rowbody")},
    {"kernels::meanDivisor", SHARED("rowbody")},
    {"kernels::remainder", SHARED("rowbody")},
    {"kernels::sumFloats", SHARED("rowbody")},
    {"kernels::absolute", SHARED("rowmath")},
    {"kernels::cos", SHARED("rowmath")},
    {"kernels::erf", SHARED("rowmath")},
    {"kernels::exp", SHARED("rowmath")},
    {"kernels::expm1", SHARED("rowmath")},
    {"kernels::log", SHARED("rowmath")},
    {"kernels::log1p", SHARED("rowmath")},
    {"kernels::maximum", SHARED("rowmath")},
    {"kernels::minimum", SHARED("rowmath")},
    {"kernels::rsqrt", SHARED("rowmath")},
    {"kernels::sin", SHARED("rowmath")},
    {"kernels::sqrt", SHARED("rowmath")},
    {"kernels::tanh", SHARED("rowmath")},
    // A header per target.
    {"kernels::gatherDot", BOTH("gathered_rows")},
    {"kernels::gatherSum", BOTH("gathered_rows")},
    {"kernels::scatterAddOuter", BOTH("gathered_rows")},
    {"kernels::fillBits", BOTH("random")},
    {"kernels::fillUniform", BOTH("random")},
    {"kernels::addElement", BOTH("rowbody")},
    {"kernels::addRow", BOTH("rowbody")},
    {"kernels::bucketAmong", BOTH("rowbody")},
    {"kernels::chunkSums", BOTH("rowbody")},
    {"kernels::drawRows", BOTH("rowbody")},
    {"kernels::rowAt", BOTH("rowbody")},
    {"kernels::rowMax", BOTH("rowbody")},
    {"kernels::rowMin", BOTH("rowbody")},
    {"kernels::rowSum", BOTH("rowbody")},
    {"kernels::segmentSum", BOTH("segments")},
    // CPU only.
    {"kernels::concatDomains", CPU("domains")},
    {"kernels::concatRows", CPU("domains")},
    {"kernels::copyElements", CPU("domains")},
    {"kernels::derive", CPU("domains")},
    {"kernels::deriveGrad", CPU("domains")},
    {"kernels::fixedRows", CPU("domains")},
    {"kernels::lengths", CPU("domains")},
    {"kernels::poolGrad", CPU("domains")},
    {"kernels::positions", CPU("domains")},
    {"kernels::shiftRows", CPU("domains")},
    {"kernels::splitRows", CPU("domains")},
    {"kernels::stackDomains", CPU("domains")},
    {"kernels::truncate", CPU("domains")},
    {"kernels::validRows", CPU("domains")},
    {"kernels::dotInteraction", CPU("interaction")},
    {"kernels::dotInteractionGradient", CPU("interaction")},
    {"kernels::argument", CPU("launch")},
    {"kernels::checkFinite", CPU("launch")},
    {"kernels::enter", CPU("launch")},
    {"kernels::launch", CPU("launch")},
    {"kernels::launchColumns", CPU("launch")},
    {"kernels::launchSums", CPU("launch")},
    {"kernels::derivePadded", CPU("lists")},
    {"kernels::derivePaddedGrad", CPU("lists")},
    {"kernels::pad", CPU("lists")},
    {"kernels::pairDomains", CPU("lists")},
    {"kernels::pairRows", CPU("lists")},
    {"kernels::pairSum", CPU("lists")},
    {"kernels::tile", CPU("lists")},
    {"kernels::tileGrad", CPU("lists")},
    {"kernels::drawRowNumbers", CPU("picked_rows")},
    {"kernels::pickLists", CPU("picked_rows")},
    {"kernels::pickRows", CPU("picked_rows")},
    {"kernels::blockRows", CPU("row_blocks")},
    {"kernels::localRows", CPU("row_blocks")},
    {"kernels::runRowBlocks", CPU("row_blocks")},
    {"kernels::prefetchRow", CPU("rowbody")},
    {"kernels::ownedRows", CPU("segments")},
    {"kernels::ownedSums", CPU("segments")},
    {"kernels::segmentSums", CPU("segments")},
    {"kernels::attention", CPU("step_attention")},
    {"kernels::attentionGradient", CPU("step_attention")},
    {"kernels::crossAttention", CPU("step_attention")},
    {"kernels::crossAttentionGradient", CPU("step_attention")},
    {"kernels::distinctLinear", CPU("step_distinct")},
    {"kernels::distinctLinearGradient", CPU("step_distinct")},
    {"kernels::fusedLinear", CPU("step_linear")},
    {"kernels::linear", CPU("step_linear")},
    {"kernels::weightGradient", CPU("step_linear")},
    {"kernels::rankInLists", CPU("step_rank")},
    {"kernels::rankListedRows", CPU("step_rank")},
    {"kernels::rankRows", CPU("step_rank")},
    {"kernels::scores", CPU("step_rank")},
    {"kernels::scoresGradient", CPU("step_rank")},
    {"kernels::topRows", CPU("step_rank")},
    // CUDA only.
    {"__syncwarp", ""},
    {"kernels::firstRow", CUDA("warp")},
    {"kernels::lane", CUDA("warp")},
    {"kernels::rowStep", CUDA("warp")},
    {"kernels::sharedRow", CUDA("warp")},
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
  const Callee *found = llvm::find_if(list, [&](const Callee &entry) { return entry.name == name; });
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

LogicalResult genrec::checkCallees(ModuleOp module, TargetKind target) {
  std::set<StringRef> headers = {ABI};
  WalkResult result = module.walk([&](emitc::CallOpaqueOp call) {
    const Callee *callee = lookupCallee(call.getCallee(), module.getContext());
    if (!callee) {
      call.emitOpError() << "calls '" << call.getCallee()
                         << "', which is not on the list of the runtime's functions or a plugin's";
      return WalkResult::interrupt();
    }
    bool hasOwn = target == TargetKind::cuda && !callee->cudaHeader.empty();
    StringRef header = hasOwn ? callee->cudaHeader : callee->header;
    if (!header.empty())
      headers.insert(header);
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  OpBuilder builder(module.getContext());
  builder.setInsertionPointToStart(module.getBody());
  for (StringRef header : headers)
    emitc::IncludeOp::create(builder, module.getLoc(), header, /*is_standard_include=*/false);
  return success();
}

//===- Callees.cpp - the functions that emitted code may call -------------===//

#include "genrec/Target/EmitC/Callees.h"

#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/IR/Builders.h"

#include <set>

using namespace mlir;
using namespace genrec;

#define ABI "genrec_rt/abi.h"
#define KERNEL(name) "genrec_rt/kernels/" name ".h"

// Sorted by header, then by name.
static constexpr Callee callees[] = {
    {"genrec_rt_clip_norm", ABI},
    {"genrec_rt_clip_value", ABI},
    {"genrec_rt_distinct_rows", ABI},
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
    {"kernels::concatDomains", KERNEL("domains")},
    {"kernels::concatRows", KERNEL("domains")},
    {"kernels::copyElements", KERNEL("domains")},
    {"kernels::derive", KERNEL("domains")},
    {"kernels::deriveGrad", KERNEL("domains")},
    {"kernels::fixedRows", KERNEL("domains")},
    {"kernels::lengths", KERNEL("domains")},
    {"kernels::poolGrad", KERNEL("domains")},
    {"kernels::positions", KERNEL("domains")},
    {"kernels::shiftRows", KERNEL("domains")},
    {"kernels::splitRows", KERNEL("domains")},
    {"kernels::stackDomains", KERNEL("domains")},
    {"kernels::truncate", KERNEL("domains")},
    {"kernels::validRows", KERNEL("domains")},
    {"kernels::hashFarm64", KERNEL("hash")},
    {"kernels::hashMurmur3", KERNEL("hash")},
    {"kernels::hashXxh3", KERNEL("hash")},
    {"kernels::dotInteraction", KERNEL("interaction")},
    {"kernels::dotInteractionGradient", KERNEL("interaction")},
    {"kernels::argument", KERNEL("launch")},
    {"kernels::checkFinite", KERNEL("launch")},
    {"kernels::enter", KERNEL("launch")},
    {"kernels::launch", KERNEL("launch")},
    {"kernels::launchColumns", KERNEL("launch")},
    {"kernels::launchSums", KERNEL("launch")},
    {"kernels::randomStream", KERNEL("launch")},
    {"kernels::derivePadded", KERNEL("lists")},
    {"kernels::derivePaddedGrad", KERNEL("lists")},
    {"kernels::pad", KERNEL("lists")},
    {"kernels::pairDomains", KERNEL("lists")},
    {"kernels::pairRows", KERNEL("lists")},
    {"kernels::pairSum", KERNEL("lists")},
    {"kernels::tile", KERNEL("lists")},
    {"kernels::tileGrad", KERNEL("lists")},
    {"kernels::cos", KERNEL("rowmath")},
    {"kernels::erf", KERNEL("rowmath")},
    {"kernels::exp", KERNEL("rowmath")},
    {"kernels::expm1", KERNEL("rowmath")},
    {"kernels::log", KERNEL("rowmath")},
    {"kernels::log1p", KERNEL("rowmath")},
    {"kernels::rsqrt", KERNEL("rowmath")},
    {"kernels::sin", KERNEL("rowmath")},
    {"kernels::sqrt", KERNEL("rowmath")},
    {"kernels::tanh", KERNEL("rowmath")},
    {"kernels::fillBits", KERNEL("random")},
    {"kernels::fillUniform", KERNEL("random")},
    {"kernels::keepThreshold", KERNEL("random")},
    {"kernels::keeps", KERNEL("random")},
    {"kernels::philoxWord", KERNEL("random")},
    {"kernels::uniformFromBits", KERNEL("random")},
    {"kernels::absolute", KERNEL("rowmath")},
    {"kernels::addElement", KERNEL("rowbody")},
    {"kernels::addRow", KERNEL("rowbody")},
    {"kernels::bucketAmong", KERNEL("rowbody")},
    {"kernels::bucketOf", KERNEL("rowbody")},
    {"kernels::clampIndex", KERNEL("rowbody")},
    {"kernels::chunkSums", KERNEL("rowbody")},
    {"kernels::drawRows", KERNEL("rowbody")},
    {"kernels::elementAt", KERNEL("rowbody")},
    {"kernels::maximum", KERNEL("rowmath")},
    {"kernels::meanDivisor", KERNEL("rowbody")},
    {"kernels::minimum", KERNEL("rowmath")},
    {"kernels::prefetchRow", KERNEL("rowbody")},
    {"kernels::remainder", KERNEL("rowbody")},
    {"kernels::rowAt", KERNEL("rowbody")},
    {"kernels::rowMax", KERNEL("rowbody")},
    {"kernels::rowMin", KERNEL("rowbody")},
    {"kernels::rowSum", KERNEL("rowbody")},
    {"kernels::sumFloats", KERNEL("rowbody")},
    {"kernels::blockRows", KERNEL("row_blocks")},
    {"kernels::localRows", KERNEL("row_blocks")},
    {"kernels::runRowBlocks", KERNEL("row_blocks")},
    {"kernels::gatherDot", KERNEL("rows")},
    {"kernels::gatherSum", KERNEL("rows")},
    {"kernels::scatterAddOuter", KERNEL("rows")},
    {"kernels::segmentSum", KERNEL("segments")},
    {"kernels::segmentSums", KERNEL("segments")},
    {"kernels::attention", KERNEL("step_attention")},
    {"kernels::attentionGradient", KERNEL("step_attention")},
    {"kernels::crossAttention", KERNEL("step_attention")},
    {"kernels::crossAttentionGradient", KERNEL("step_attention")},
    {"kernels::distinctLinear", KERNEL("step_distinct")},
    {"kernels::distinctLinearGradient", KERNEL("step_distinct")},
    {"kernels::fusedLinear", KERNEL("step_linear")},
    {"kernels::linear", KERNEL("step_linear")},
    {"kernels::weightGradient", KERNEL("step_linear")},
    {"kernels::rankInLists", KERNEL("step_rank")},
    {"kernels::rankListedRows", KERNEL("step_rank")},
    {"kernels::rankRows", KERNEL("step_rank")},
    {"kernels::scores", KERNEL("step_rank")},
    {"kernels::scoresGradient", KERNEL("step_rank")},
    {"kernels::topRows", KERNEL("step_rank")},
    // CUDA only.
    {"__syncwarp", ""},
    {"kernels::firstRow", KERNEL("warp")},
    {"kernels::lane", KERNEL("warp")},
    {"kernels::rowStep", KERNEL("warp")},
    {"kernels::sharedRow", KERNEL("warp")},
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

LogicalResult genrec::checkCallees(ModuleOp module) {
  std::set<StringRef> headers = {ABI};
  WalkResult result = module.walk([&](emitc::CallOpaqueOp call) {
    const Callee *callee = lookupCallee(call.getCallee(), module.getContext());
    if (!callee) {
      call.emitOpError() << "calls '" << call.getCallee()
                         << "', which is not on the list of the runtime's functions or a plugin's";
      return WalkResult::interrupt();
    }
    if (!callee->header.empty())
      headers.insert(callee->header);
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

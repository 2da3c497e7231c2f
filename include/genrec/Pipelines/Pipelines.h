//===- Pipelines.h - the order of genrec's passes ---------------*- C++ -*-===//
//
// The one place that says which passes run, in which order, with which options.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_PIPELINES_PIPELINES_H
#define GENREC_PIPELINES_PIPELINES_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

#include <functional>
#include <string>

namespace genrec {

/// The options of `--genrec-pipeline="target=cpu opt=2"`.
struct PipelineOptions : mlir::PassPipelineOptions<PipelineOptions> {
  Option<TargetKind> target{
      *this, "target", llvm::cl::desc("What to compile for"), llvm::cl::init(TargetKind::cpu),
      llvm::cl::values(clEnumValN(TargetKind::cpu, "cpu", "C++ for the CPU"),
                       clEnumValN(TargetKind::cuda, "cuda", "CUDA C++ for devices"))};
  Option<unsigned> opt{
      *this, "opt",
      llvm::cl::desc("0: a kernel per op; 1: fuse; 2: fuse and recompute what "
                     "is cheap"),
      llvm::cl::init(2)};
  Option<bool> mixedPrecision{*this, "mixed-precision",
                              llvm::cl::desc("Round the factors of all products to bfloat16"),
                              llvm::cl::init(false)};
  Option<bool> pruneColumns{*this, "prune-columns", llvm::cl::desc("Drop columns that nothing needs"),
                            llvm::cl::init(true)};
  Option<bool> sinkFanout{*this, "sink-fanout",
                          llvm::cl::desc("Work per request where impressions share a value"),
                          llvm::cl::init(true)};
  Option<bool> mergeTables{*this, "merge-tables",
                           llvm::cl::desc("Merge tables of one spec"),
                           llvm::cl::init(true)};
  Option<bool> fuseTransforms{*this, "fuse-transforms",
                              llvm::cl::desc("Compute the keys of merged tables in one launch"),
                              llvm::cl::init(true)};
  Option<bool> formInteractions{
      *this, "form-interactions",
      llvm::cl::desc("Compute the dot products of all pairs of vectors as one product"),
      llvm::cl::init(true)};
  Option<bool> pickCatalogueRows{
      *this, "pick-catalogue-rows",
      llvm::cl::desc("Compute the items that a step reads, where it does not read all"),
      llvm::cl::init(true)};
  Option<unsigned> splitClasses{
      *this, "split-classes",
      llvm::cl::desc("Columns of a softmax over many classes that are computed "
                     "at a time; 0: all of them"),
      llvm::cl::init(512)};
  Option<bool> factorLookups{
      *this, "factor-lookups",
      llvm::cl::desc("Multiply a looked-up row once, however often it was found"),
      llvm::cl::init(true)};
  Option<bool> multiplyNegatives{
      *this, "multiply-negatives",
      llvm::cl::desc("Multiply queries by negatives that all rows share as a matrix"),
      llvm::cl::init(true)};
  Option<std::string> compiler{
      *this, "compiler",
      llvm::cl::desc("Name, version and options of the compiler, kept in the "
                     "description of the model"),
      llvm::cl::init("genrec")};
};

/// Called after each step of the pipeline with the pass manager of `genrec.model` and the step's
/// name. The caller may add a pass there that checks or prints the model.
using PipelineHook =
    std::function<void(mlir::OpPassManager &models, llvm::StringRef step)>;

/// Adds the passes from an imported model to row kernels, whose results the interpreter can all
/// evaluate. `pm` is anchored on `builtin.module`.
void buildGraphPipeline(mlir::OpPassManager &pm, const PipelineOptions &options,
                        const PipelineHook &hook = {});

/// Adds the passes that plan the buffers of row kernels for `target`. `pm` is anchored on
/// `builtin.module`.
void buildMemoryPipeline(mlir::OpPassManager &pm, TargetKind target);

/// Adds the passes of buildMemoryPipeline and the one that outlines row kernels into functions.
void buildKernelPipeline(mlir::OpPassManager &pm, TargetKind target);

/// Adds the passes from row kernels to EmitC. `compiler` is stored in the model's description.
void buildLoweringPipeline(mlir::OpPassManager &pm, TargetKind target, llvm::StringRef compiler);

/// Adds all passes, from an imported model to EmitC. `pm` is anchored on `builtin.module`; the hook
/// is called for the steps of the graph pipeline.
void buildPipeline(mlir::OpPassManager &pm, const PipelineOptions &options,
                   const PipelineHook &hook = {});

/// Registers `--genrec-graph-pipeline`, `--genrec-lowering-pipeline` (for the CPU) and
/// `--genrec-pipeline`, which is both.
void registerPipelines();

} // namespace genrec

#endif // GENREC_PIPELINES_PIPELINES_H

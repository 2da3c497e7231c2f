//===- Compiler.h - the steps of genrec-compile -----------------*- C++ -*-===//

#ifndef GENREC_TOOLS_GENREC_COMPILE_COMPILER_H
#define GENREC_TOOLS_GENREC_COMPILE_COMPILER_H

#include "genrec/Report/Explain.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace genrec {

enum class Emission { mlir, cpp, cudaKernels, object, shared, binary };

struct CompilerOptions {
  std::string input;  ///< model file or MLIR
  std::string output; ///< empty: named after the input
  Emission emission = Emission::binary;
  unsigned level = 2;
  bool roundsProducts = false; ///< --mixed-precision
  /// Passes of the pipeline that can be left out.
  bool prunesColumns = true, sinksFanout = true, mergesTables = true, fusesTransforms = true,
       formsInteractions = true, picksCatalogueRows = true, factorsLookups = true,
       multipliesNegatives = true;
  unsigned splitsClasses = 512; ///< columns of a softmax at a time; 0: all of them
  std::string target, march;
  std::string compiler;    ///< empty: the toolchain's
  std::string toolchain;   ///< empty: beside `executable`
  std::string dumpFolder;  ///< empty: no dumps
  std::string cacheFolder; ///< of products of unchanged models; empty: none is kept
  std::string explanation; ///< text, json or html: print what became of the model; empty: a product
  ExplainOptions explain;
  std::string idsOf; ///< counts, or data whose ids are counted, for `explain`; empty: nothing
  std::vector<std::string> catalogues; ///< name=file, which those data are read with
  bool keepsSource = false;
  bool isVerbose = false;
  std::string executable; ///< this program
  std::vector<std::string> plugins;
};

/// Compiles. An error with an empty message was already reported as a diagnostic.
llvm::Error compile(const CompilerOptions &options, mlir::MLIRContext &context);

} // namespace genrec

#endif // GENREC_TOOLS_GENREC_COMPILE_COMPILER_H

//===- Harness.h - models as text, for tests of the interpreter -*- C++ -*-===//

#ifndef GENREC_TEST_UNIT_INTERPRETER_HARNESS_H
#define GENREC_TEST_UNIT_INTERPRETER_HARNESS_H

#include "genrec/Dialect/GenRec/Transforms/Passes.h"
#include "genrec/InitAllDialects.h"
#include "genrec/Interpreter/GradientCheck.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

namespace genrec::test {

/// A module parsed from text.
class ParsedModel {
public:
  explicit ParsedModel(const std::string &text) : context(makeRegistry()) {
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
  }

  ModelOp model() { return *module->getOps<ModelOp>().begin(); }
  ProgramOp program(ProgramMode mode = ProgramMode::all) {
    for (auto program : model().getOps<ProgramOp>())
      if (program.getMode() == mode)
        return program;
    return {};
  }

  /// Programs by mode, blocks decomposed, losses differentiated.
  void differentiate() {
    mlir::PassManager passes(&context);
    mlir::OpPassManager &models = passes.nest<ModelOp>();
    models.addPass(createInferDomains());
    models.addPass(createSpecializeModes());
    models.addPass(createDecomposeBlocks());
    models.addPass(createDifferentiate());
    ASSERT_TRUE(succeeded(passes.run(*module)));
  }

private:
  static const mlir::DialectRegistry &makeRegistry() {
    static const mlir::DialectRegistry *registry = [] {
      auto *made = new mlir::DialectRegistry();
      registerAllDialects(*made);
      return made;
    }();
    return *registry;
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

} // namespace genrec::test

#endif // GENREC_TEST_UNIT_INTERPRETER_HARNESS_H

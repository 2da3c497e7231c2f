//===- DumpAfterEach.h - the IR after each pass, in files -------*- C++ -*-===//

#ifndef GENREC_TOOLS_GENREC_COMPILE_DUMPAFTEREACH_H
#define GENREC_TOOLS_GENREC_COMPILE_DUMPAFTEREACH_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "llvm/Support/Path.h"

namespace genrec {

/// Writes <folder>/<number>-<pass>.mlir after each pass that ran.
class DumpAfterEach : public mlir::PassInstrumentation {
public:
  explicit DumpAfterEach(llvm::StringRef folder) : folder(folder.str()) {}

  void runAfterPass(mlir::Pass *pass, mlir::Operation *op) override {
    llvm::StringRef name = pass->getArgument();
    if (name.empty())
      return;
    name.consume_front("genrec-");
    std::string number = std::to_string(++count);
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, (count < 10 ? "0" : "") + number + "-" + name + ".mlir");
    std::error_code error;
    llvm::raw_fd_ostream os(path, error);
    if (error) {
      op->emitWarning() << "cannot write '" << path << "': " << error.message();
      return;
    }
    mlir::Operation *top = op;
    while (top->getParentOp())
      top = top->getParentOp();
    top->print(os);
    os << "\n";
    os.flush();
    if (os.has_error()) {
      op->emitWarning() << "cannot write '" << path << "': " << os.error().message();
      os.clear_error(); // which would end the program
    }
  }

private:
  std::string folder;
  int count = 0;
};

} // namespace genrec

#endif // GENREC_TOOLS_GENREC_COMPILE_DUMPAFTEREACH_H

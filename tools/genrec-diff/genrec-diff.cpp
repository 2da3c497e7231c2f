//===- genrec-diff.cpp - what changed between two plans -------------------===//

#include "PlanDiff.h"

#include "genrec/ToolVersion.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

using namespace genrec;
using llvm::StringRef;
namespace cl = llvm::cl;

static cl::opt<std::string> before(cl::Positional, cl::Required, cl::desc("<before>"));
static cl::opt<std::string> after(cl::Positional, cl::Required, cl::desc("<after>"));
static cl::list<std::string>
    flags("compile-flag", cl::value_desc("flag"),
          cl::desc("flag of genrec-compile for operands that are models, as "
                   "--compile-flag=--batch=4096; may be repeated"));

/// A symbol's address tells where the program lies.
static int anchor;

/// Has genrec-compile, which lies beside this program, make the plan of a model.
static llvm::Error makePlan(StringRef model, StringRef plan, StringRef self) {
  std::string compiler = (llvm::sys::path::parent_path(self) + "/genrec-compile").str();
  std::vector<StringRef> arguments = {compiler, model, "--explain=json", "-o", plan};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  std::string message;
  int status = llvm::sys::ExecuteAndWait(compiler, arguments, std::nullopt, {}, 0, 0, &message);
  if (status == 0)
    return llvm::Error::success();
  return llvm::createStringError(message.empty() ? "genrec-compile refused '" + model + "'"
                                                 : "cannot run " + compiler + ": " + message);
}

/// A plan that was written before, or of a model.
static llvm::Expected<llvm::json::Object> loadPlan(StringRef path, StringRef self) {
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file)
    return llvm::createStringError("cannot read '" + path + "': " + file.getError().message());
  if (!(*file)->getBuffer().ltrim().starts_with("{")) {
    llvm::SmallString<128> plan;
    if (std::error_code error = llvm::sys::fs::createTemporaryFile("genrec-plan", "json", plan))
      return llvm::createStringError("cannot make a temporary file: " + error.message());
    llvm::FileRemover remover(plan);
    if (llvm::Error error = makePlan(path, plan, self))
      return std::move(error);
    file = llvm::MemoryBuffer::getFile(plan);
    if (!file)
      return llvm::createStringError("cannot read '" + plan + "': " + file.getError().message());
  }
  llvm::Expected<llvm::json::Value> value = llvm::json::parse((*file)->getBuffer());
  if (!value)
    return llvm::createStringError("'" + path +
                                   "' is not a plan: " + llvm::toString(value.takeError()));
  llvm::json::Object *object = value->getAsObject();
  if (!object || !object->getArray("programs"))
    return llvm::createStringError(
        "'" + path + "' is not a plan of genrec-compile --explain=json: it has no \"programs\"");
  return std::move(*object);
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  printVersionAs("genrec-diff");
  hideLibraryOptions();
  cl::ParseCommandLineOptions(
      argc, argv,
      "shows what changed between two plans, and what each change costs per step\n\n"
      "  genrec-compile model.genrec --explain=json -o yesterday.json\n"
      "  genrec-diff yesterday.json today.json\n"
      "  genrec-diff old.genrec new.genrec --compile-flag=--batch=4096\n\n"
      "An operand is a plan or a model. Exit status 0: no difference, 1: some, 2: an error.\n");
  std::string self = llvm::sys::fs::getMainExecutable(argv[0], &anchor);
  llvm::Expected<llvm::json::Object> a = loadPlan(before, self);
  llvm::Expected<llvm::json::Object> b = a ? loadPlan(after, self) : llvm::createStringError("");
  llvm::Error error = llvm::joinErrors(a ? llvm::Error::success() : a.takeError(),
                                       b ? llvm::Error::success() : b.takeError());
  if (error) {
    llvm::errs() << "genrec-diff: error: " << StringRef(llvm::toString(std::move(error))).rtrim()
                 << "\n";
    return 2;
  }
  return printDifferences(*a, *b, llvm::outs()) ? 1 : 0;
}

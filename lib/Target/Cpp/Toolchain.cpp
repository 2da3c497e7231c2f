//===- Toolchain.cpp - the C++ compiler behind genrec-compile -------------===//

#include "genrec/Target/Cpp/Toolchain.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace genrec;

//===----------------------------------------------------------------------===//
// The description
//===----------------------------------------------------------------------===//

std::string Toolchain::getDefaultPath(StringRef executable) {
  SmallString<256> path(sys::path::parent_path(sys::path::parent_path(executable)));
  sys::path::append(path, "share", "genrec", "toolchain.json");
  return std::string(path);
}

static Expected<json::Object> readObject(StringRef path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> file = MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!file)
    return createStringError("cannot read the description of the toolchain, '" + path +
                             "': " + file.getError().message() + "; give another with --toolchain");
  Expected<json::Value> value = json::parse((*file)->getBuffer());
  if (!value)
    return createStringError("'" + path + "' is not JSON: " + toString(value.takeError()));
  if (!value->getAsObject())
    return createStringError("'" + path + "' must hold an object");
  return std::move(*value->getAsObject());
}

/// Reads the lists of texts `lists` of `object`, which is in the file `path`.
static Error readLists(StringRef path, const json::Object &object,
                       ArrayRef<std::pair<StringRef, SmallVector<std::string> &>> lists) {
  for (auto &[key, list] : lists) {
    const json::Array *array = object.getArray(key);
    if (!array)
      return createStringError("'" + path + "' must have a list '" + key + "'");
    for (const json::Value &value : *array)
      list.push_back(value.getAsString().value_or("").str());
  }
  return Error::success();
}

Error Toolchain::readUnit(StringRef path, const json::Object &units, StringRef name,
                          CudaUnit &unit) {
  const json::Object *object = units.getObject(name);
  if (!object)
    return Error::success();
  unit.compiler = object->getString("compiler").value_or("").str();
  unit.precompiled = object->getString("precompiled").value_or("").str();
  return readLists(
      path, *object,
      {{"compile", unit.compile}, {"include", unit.include}, {"libraries", unit.libraries}});
}

Expected<Toolchain> Toolchain::load(StringRef path) {
  Expected<json::Object> object = readObject(path);
  if (!object)
    return object.takeError();
  if (object->getInteger("version").value_or(0) != 1)
    return createStringError("'" + path + "' must be of version 1");
  Toolchain toolchain;
  toolchain.compiler = object->getString("compiler").value_or("").str();
  toolchain.precompiled = object->getString("precompiled").value_or("").str();
  toolchain.nvcc = object->getString("nvcc").value_or("").str();
  if (Error error = readLists(path, *object,
                              {{"compile", toolchain.compile},
                               {"include", toolchain.include},
                               {"link", toolchain.link},
                               {"libraries", toolchain.libraries},
                               {"rpath", toolchain.rpath}}))
    return error;
  if (const json::Object *units = object->getObject("cuda_units")) {
    if (Error error = readUnit(path, *units, "nvcc", toolchain.nvccUnit))
      return error;
    if (Error error = readUnit(path, *units, "emulator", toolchain.emulatorUnit))
      return error;
  }
  return toolchain;
}

const Toolchain::CudaUnit *Toolchain::getUnit() const {
  switch (unitCompiler) {
  case UnitCompiler::host:
    return nullptr;
  case UnitCompiler::nvcc:
    return &nvccUnit;
  case UnitCompiler::emulator:
    return &emulatorUnit;
  }
  llvm_unreachable("every compiler is handled");
}

Error Toolchain::setUnitCompiler(UnitCompiler kind) {
  unitCompiler = kind;
  const CudaUnit *unit = getUnit();
  if (kind == UnitCompiler::nvcc && unit->compiler.empty())
    return createStringError(
        "needs nvcc, which the build of genrec did not find; install the CUDA toolkit 13.0 and "
        "run make build again, or compile with --target=cuda-emulated");
  if (unit && unit->compile.empty())
    return createStringError(
        "this build of genrec has no emulator of CUDA (builds with sanitizers have none)");
  return Error::success();
}

void Toolchain::setCompiler(StringRef name) {
  compiler = name.str();
  precompiled.clear();
  emulatorUnit.precompiled.clear();
}

/// Makes `flag` the only one of `flags` that begins so; false where it is already.
static bool setFlag(SmallVectorImpl<std::string> &flags, StringRef beginning, const Twine &flag) {
  auto begins = [beginning](StringRef other) { return other.starts_with(beginning); };
  std::string wanted = flag.str();
  if (count_if(flags, begins) == 1 && is_contained(flags, wanted))
    return false;
  erase_if(flags, begins);
  flags.push_back(std::move(wanted));
  return true;
}

void Toolchain::setMarch(StringRef march) {
  if (setFlag(compile, "-march=", "-march=" + march))
    precompiled.clear();
}

void Toolchain::setOptimization(StringRef level) {
  if (setFlag(compile, "-O", level))
    precompiled.clear();
}

void Toolchain::setEmulatorOptimization(StringRef level) {
  if (setFlag(emulatorUnit.compile, "-O", level))
    emulatorUnit.precompiled.clear();
}

//===----------------------------------------------------------------------===//
// Running the compiler
//===----------------------------------------------------------------------===//

Expected<std::string> Toolchain::findCompiler() const {
  if (sys::path::has_parent_path(compiler) && sys::fs::can_execute(compiler))
    return compiler;
  if (ErrorOr<std::string> found = sys::findProgramByName(compiler))
    return *found;
  return createStringError("needs the C++ compiler '" + compiler +
                           "', which is not there; install clang 22 or name another with --cxx");
}

/// Adds the precompiled header that a product has, by the flags it is compiled with: of the
/// description (`own`), or the one that was given for shared objects.
static void addPrecompiled(SmallVectorImpl<std::string> &command, Product product, StringRef own,
                           StringRef given) {
  StringRef header = product == Product::shared   ? given
                     : product == Product::header ? StringRef()
                                                  : own;
  if (!header.empty())
    command.append({"-include-pch", header.str()});
}

/// Runs `command`. Returns its output, or an error with it.
static Error run(ArrayRef<std::string> command, bool isVerbose) {
  if (isVerbose)
    errs() << join(command, " ") << "\n";
  SmallString<128> log;
  if (std::error_code error = sys::fs::createTemporaryFile("genrec-compile", "log", log))
    return createStringError("cannot make a temporary file: " + error.message());
  SmallVector<StringRef> arguments(command.begin(), command.end());
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(log), StringRef(log)};
  std::string problem;
  int code = sys::ExecuteAndWait(command[0], arguments, std::nullopt, redirects, 0, 0, &problem);
  std::string said;
  if (ErrorOr<std::unique_ptr<MemoryBuffer>> file = MemoryBuffer::getFile(log))
    said = (*file)->getBuffer().str();
  sys::fs::remove(log);
  if (code == 0)
    return Error::success();
  return createStringError(problem + (problem.empty() ? "" : "\n") + said);
}

Error Toolchain::compileUnit(Product product, StringRef source, StringRef output,
                             bool isVerbose) const {
  const CudaUnit *unit = getUnit();
  std::string program = unit->compiler;
  if (program.empty()) {
    Expected<std::string> found = findCompiler();
    if (!found)
      return found.takeError();
    program = *found;
  }
  SmallVector<std::string> command = {program};
  append_range(command, unit->compile);
  for (const Strings *folders : {&unit->include, &include})
    for (StringRef folder : *folders)
      command.push_back(("-I" + folder).str());
  // Before the source, as options of clang: nvcc makes neither.
  if (product == Product::shared || product == Product::header)
    command.push_back("-fPIC");
  addPrecompiled(command, product, unit->precompiled, precompiledHeader);
  command.append(
      {product == Product::header ? "-xc++-header" : "-c", source.str(), "-o", output.str()});
  return run(command, isVerbose);
}

static Error describeFailure(StringRef program, StringRef source, Error error) {
  return createStringError(
      "'" + program + "' cannot compile or link the C++ code that genrec made, " + source +
      ". Where neither --cxx nor --march asked for something that does "
      "not work, this is a defect of genrec, not of the model: please report it "
      "with that file\n" +
      toString(std::move(error)));
}

Error Toolchain::make(Product product, StringRef source, StringRef output, bool isVerbose) const {
  Expected<std::string> program = findCompiler();
  if (!program)
    return program.takeError();
  std::string input = source.str();
  const CudaUnit *unit = getUnit();
  if (unit) {
    if (product == Product::shared && unitCompiler == UnitCompiler::nvcc)
      return createStringError(
          "a model for a device is made as a binary (--emit=binary, the default): what "
          "loads shared objects, 'genrec-checkpoint import', runs on the CPU and takes "
          "that of the same model without --target=cuda, as checkpoints do not depend "
          "on the target");
    const bool isLinked = product == Product::shared || product == Product::binary;
    input = isLinked ? (output + ".o").str() : output.str();
    if (Error error = compileUnit(product, source, input, isVerbose))
      return describeFailure(unit->compiler.empty() ? *program : unit->compiler, source,
                             std::move(error));
    if (!isLinked)
      return Error::success();
  }
  SmallVector<std::string> command = {*program};
  append_range(command, compile);
  for (StringRef folder : include)
    command.push_back(("-I" + folder).str());
  // No warning if the compiler does not vectorise a loop whose vectorisation was requested.
  command.append({"-Wno-pass-failed", "-fno-math-errno"});
  if (product == Product::object)
    command.push_back("-c");
  if (product == Product::header)
    command.append({"-x", "c++-header", "-fPIC", "-pthread"});
  if (product == Product::shared)
    command.append({"-shared", "-fPIC"});
  if (!unit)
    addPrecompiled(command, product, precompiled, precompiledHeader);
  command.append({input, "-o", output.str()});
  if (product == Product::shared || product == Product::binary)
    append_range(command, link);
  // A shared object uses the runtime of the program that loads it.
  if (product == Product::binary) {
    append_range(command, libraries);
    for (StringRef folder : rpath)
      command.push_back(("-Wl,-rpath," + folder).str());
  }
  if (unit && product == Product::binary)
    append_range(command, unit->libraries);
  Error error = run(command, isVerbose);
  if (unit)
    sys::fs::remove(input);
  if (error)
    return describeFailure(*program, source, std::move(error));
  return Error::success();
}

void Toolchain::visitInputs(llvm::function_ref<void(StringRef)> text,
                            llvm::function_ref<void(StringRef)> file,
                            llvm::function_ref<void(StringRef)> folder) const {
  text(compiler);
  if (Expected<std::string> path = findCompiler())
    file(*path);
  else
    consumeError(path.takeError());
  auto visitLibraries = [&](const Strings &list) {
    for (const std::string &library : list) {
      text(library);
      if (sys::path::is_absolute(library))
        file(library);
    }
  };
  for (const Strings *flags : {&compile, &link, &rpath})
    for (const std::string &flag : *flags)
      text(flag);
  for (const std::string &path : include)
    folder(path);
  text(precompiled);
  visitLibraries(libraries);
  const CudaUnit *unit = getUnit();
  if (!unit)
    return;
  if (!unit->compiler.empty())
    file(unit->compiler);
  for (const std::string &flag : unit->compile)
    text(flag);
  for (const std::string &path : unit->include)
    folder(path);
  text(unit->precompiled);
  visitLibraries(unit->libraries);
}

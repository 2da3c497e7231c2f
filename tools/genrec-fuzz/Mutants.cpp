//===- Mutants.cpp - genrec-fuzz --mutate ---------------------------------===//

#include "Modes.h"

#include "genrec/Fuzz/CheckMutants.h"
#include "genrec/Fuzz/RandomModel.h"
#include "genrec/InitAllDialects.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

#include <set>

using namespace genrec;
using namespace genrec::fuzz;

/// The mutants of a file of lines "<mutant> | <explanation>"; empty lines and lines that start with
/// # are skipped.
static llvm::Expected<std::set<std::string>> readSurvivors(llvm::StringRef path) {
  std::set<std::string> known;
  if (path.empty())
    return known;
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!file)
    return llvm::createStringError("cannot read '" + path + "': " + file.getError().message());
  llvm::SmallVector<llvm::StringRef> lines;
  (*file)->getBuffer().split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef line : lines) {
    if (line.trim().empty() || line.starts_with("#"))
      continue;
    auto [mutant, explanation] = line.split(" | ");
    if (explanation.trim().empty())
      return llvm::createStringError("'" + path + "' has a survivor without explanation: " + line);
    known.insert(mutant.str());
  }
  return known;
}

namespace {
struct Tally {
  int64_t caught = 0, missed = 0, equivalent = 0, unexplained = 0;
};
} // namespace

static void count(const Mutant &mutant, uint64_t seed, bool isJudged, std::set<std::string> &known,
                  Tally &tally) {
  if (mutant.fate == Fate::caught) {
    ++tally.caught;
    return;
  }
  bool isMissed = mutant.fate == Fate::missed;
  ++(isMissed ? tally.missed : tally.equivalent);
  std::string name = "seed " + std::to_string(seed) + " " + mutant.name;
  bool isKnown = known.erase(name);
  tally.unexplained += isJudged && (!isKnown || isMissed);
  if (!isKnown || isMissed)
    llvm::outs() << name << (isMissed ? " | MISSED" : " | equivalent") << "\n";
}

int fuzz::countMutants(uint64_t first, uint64_t last, int64_t mostPerStep,
                       llvm::StringRef survivors) {
  llvm::Expected<std::set<std::string>> known = readSurvivors(survivors);
  if (!known) {
    llvm::errs() << "genrec-fuzz: error: " << llvm::toString(known.takeError()) << "\n";
    return 2;
  }
  mlir::DialectRegistry registry;
  registerAllDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  MutantOptions options;
  options.mostPerStep = mostPerStep;
  Tally tally;
  for (uint64_t seed = first; seed <= last; ++seed) {
    std::string problem;
    mlir::OwningOpRef<mlir::ModuleOp> module = makeRandomModel(&context, seed);
    for (const Mutant &mutant : checkMutants(*module, seed, options, problem))
      count(mutant, seed, !survivors.empty(), *known, tally);
    if (!problem.empty()) {
      llvm::errs() << "genrec-fuzz: seed " << seed << ": " << problem << "\n";
      return 1;
    }
  }
  llvm::outs() << tally.caught << " mutants caught, " << tally.missed << " missed, "
               << tally.equivalent << " equivalent\n";
  if (survivors.empty())
    return 0;
  for (const std::string &name : *known)
    llvm::errs() << "genrec-fuzz: error: '" << survivors << "' lists what did not survive: " << name
                 << "\n";
  if (tally.unexplained)
    llvm::errs() << "genrec-fuzz: error: " << tally.unexplained
                 << " survivors are missed or not in '" << survivors << "'\n";
  return tally.unexplained || !known->empty() ? 1 : 0;
}

//===- Mutants.cpp - genrec-fuzz --mutate ---------------------------------===//

#include "Modes.h"

#include "genrec/Fuzz/BlindSpots.h"
#include "genrec/Fuzz/CheckMutants.h"
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
/// What became of all mutants, and of those that survived but are in the list.
class Tally {
public:
  Tally(const MutantRun &run, std::set<std::string> known) : run(run), known(std::move(known)) {}

  void count(const Mutant &mutant, uint64_t seed);
  /// Prints the sum. The exit status.
  int finish();

private:
  const MutantRun &run;
  std::set<std::string> known; ///< that have not been seen to survive
  int64_t caught = 0, missed = 0, explained = 0, equivalent = 0, unexplained = 0;
};
} // namespace

void Tally::count(const Mutant &mutant, uint64_t seed) {
  if (mutant.fate == Fate::caught) {
    ++caught;
    return;
  }
  bool isMissed = mutant.fate == Fate::missed;
  std::string name = "seed " + std::to_string(seed) + " " + mutant.name;
  bool isKnown = known.erase(name);
  ++(isMissed ? missed : equivalent);
  explained += isMissed && isKnown;
  unexplained += !isKnown && (isMissed || run.explainAll);
  if (!isKnown)
    llvm::outs() << name << (isMissed ? " | MISSED, " + mutant.difference : " | equivalent")
                 << "\n";
}

int Tally::finish() {
  int64_t different = caught + missed;
  llvm::outs() << caught << " mutants caught, " << missed << " missed (" << explained
               << " explained), " << equivalent << " equivalent\n"
               << llvm::formatv(
                      "{0:P3} caught of those that {1} times as many batches tell apart\n",
                      different ? static_cast<double>(caught) / different : 1.0,
                      1 + run.moreBatches);
  if (!run.explainAll)
    known.clear();
  for (const std::string &name : known)
    llvm::errs() << "genrec-fuzz: error: '" << run.survivors
                 << "' lists what did not survive: " << name << "\n";
  if (unexplained)
    llvm::errs() << "genrec-fuzz: error: " << unexplained << " survivors without explanation"
                 << (run.survivors.empty() ? "" : " in '" + run.survivors + "'")
                 << "; each is above with the batches that tell it apart\n";
  return unexplained || !known.empty() ? 1 : 0;
}

int fuzz::countMutants(const MutantRun &run, const mlir::DialectRegistry &dialects) {
  llvm::Expected<std::set<std::string>> known = readSurvivors(run.survivors);
  if (!known) {
    llvm::errs() << "genrec-fuzz: error: " << llvm::toString(known.takeError()) << "\n";
    return 2;
  }
  mlir::MLIRContext context(dialects, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  MutantOptions options;
  options.mostPerStep = run.mostPerStep;
  options.batchKinds = run.batchKinds;
  options.moreBatches = run.moreBatches;
  Tally tally(run, std::move(*known));
  for (uint64_t seed = run.first; seed <= run.last; ++seed) {
    std::string problem;
    ObservableModel model = makeObservableModel(&context, seed);
    for (const Mutant &mutant : checkMutants(*model.module, seed, options, problem))
      tally.count(mutant, seed);
    if (!problem.empty()) {
      llvm::errs() << "genrec-fuzz: seed " << seed << ": " << problem << "\n";
      return 1;
    }
  }
  return tally.finish();
}

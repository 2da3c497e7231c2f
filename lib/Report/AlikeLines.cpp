//===- AlikeLines.cpp - lines of a report that say the same ---------------===//

#include "AlikeLines.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace genrec;

std::string genrec::joinFirst(ArrayRef<std::string> names) {
  std::string list = llvm::join(names.take_front(kMostListed), ", ");
  if (names.size() > kMostListed)
    list += ", and " + std::to_string(names.size() - kMostListed) + " more";
  return list;
}

void AlikeLines::print(
    StringRef indent, raw_ostream &os,
    function_ref<std::string(ArrayRef<std::string> names, StringRef alike)> join) const {
  llvm::StringMap<SmallVector<std::string>> names;
  for (const Line &line : lines)
    names[line.alike].push_back(line.name);
  for (const Line &line : lines) {
    SmallVector<std::string> &all = names[line.alike];
    if (all.empty()) // has been printed
      continue;
    if (all.size() <= kMostListed) {
      os << indent << line.text << "\n";
      continue;
    }
    os << indent << (join ? join(all, line.alike) : joinFirst(all) + line.alike) << "\n";
    all.clear();
  }
}

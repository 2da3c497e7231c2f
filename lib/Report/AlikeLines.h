//===- AlikeLines.h - lines of a report that say the same -------*- C++ -*-===//
//
// A model of hundreds of columns has as many tables, columns and kernels that differ in nothing but
// names. A report says once what is the same of many.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_LIB_REPORT_ALIKELINES_H
#define GENREC_LIB_REPORT_ALIKELINES_H

#include "mlir/Support/LLVM.h"

#include <string>
#include <vector>

namespace genrec {

/// Names in a line, and lines that say the same.
inline constexpr size_t kMostListed = 8;

/// The first of `names`, and how many there are where these are not all.
std::string joinFirst(llvm::ArrayRef<std::string> names);

/// Lines that say something of a name each. More than `kMostListed` that say the same become one,
/// where the first of them was.
class AlikeLines {
public:
  /// `text`: the line. `alike`: what is the same in others, which follows the names where lines are
  /// put together.
  void add(llvm::StringRef name, std::string text, std::string alike) {
    lines.push_back({name.str(), std::move(text), std::move(alike)});
  }
  /// `join`: the line of all `names`, by default the first of them before `alike`.
  void
  print(llvm::StringRef indent, llvm::raw_ostream &os,
        llvm::function_ref<std::string(llvm::ArrayRef<std::string> names, llvm::StringRef alike)>
            join = nullptr) const;

private:
  struct Line {
    std::string name, text, alike;
  };
  std::vector<Line> lines;
};

} // namespace genrec

#endif // GENREC_LIB_REPORT_ALIKELINES_H

//===- PlanPicture.h - graphs as SVG ----------------------------*- C++ -*-===//

#ifndef GENREC_LIB_REPORT_PLANPICTURE_H
#define GENREC_LIB_REPORT_PLANPICTURE_H

#include "llvm/Support/JSON.h"

namespace genrec {

/// The tree of `plan`'s domains: parents left of their children.
void drawDomains(const llvm::json::Object &plan, llvm::raw_ostream &os);

/// A graph of `describeGraph`, in layers from the top down; what is alike in a layer (op and
/// domain) is one box with a count.
void drawGraph(const llvm::json::Object &graph, llvm::raw_ostream &os);

/// `text` with the characters escaped that mean something in HTML.
std::string escapeHtml(llvm::StringRef text);

} // namespace genrec

#endif // GENREC_LIB_REPORT_PLANPICTURE_H

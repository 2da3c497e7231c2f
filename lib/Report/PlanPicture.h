//===- PlanPicture.h - graphs as SVG ----------------------------*- C++ -*-===//

#ifndef GENREC_LIB_REPORT_PLANPICTURE_H
#define GENREC_LIB_REPORT_PLANPICTURE_H

#include "llvm/Support/JSON.h"

namespace genrec {

/// Draws the tree of `plan`'s domains, parents left of their children.
void drawDomains(const llvm::json::Object &plan, llvm::raw_ostream &os);

/// Draws a graph of `describeGraph` in layers from top to bottom. Nodes of a layer with the same op
/// and domain share one box, which shows their number.
void drawGraph(const llvm::json::Object &graph, llvm::raw_ostream &os);

/// Escapes the special characters of HTML in `text`.
std::string escapeHtml(llvm::StringRef text);

} // namespace genrec

#endif // GENREC_LIB_REPORT_PLANPICTURE_H

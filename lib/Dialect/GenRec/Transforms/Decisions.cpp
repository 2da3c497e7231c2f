//===- Decisions.cpp - records decisions of passes ------------------------===//

#include "Decisions.h"

#include "llvm/Support/Path.h"

using namespace mlir;
using namespace genrec;

void Decisions::attachTo(ModelOp model) const {
  if (lines.empty())
    return;
  Builder builder(model.getContext());
  llvm::SetVector<Attribute> all;
  if (auto known = model->getAttrOfType<ArrayAttr>(GenRecDialect::DecisionsAttrHelper::getNameStr()))
    all.insert(known.begin(), known.end());
  for (const std::string &line : lines)
    all.insert(builder.getStringAttr(line));
  model->setDiscardableAttr(GenRecDialect::DecisionsAttrHelper::getNameStr(), builder.getArrayAttr(all.getArrayRef()));
}

void Decisions::forget(ModelOp model, StringRef start) const {
  auto known = model->getAttrOfType<ArrayAttr>(GenRecDialect::DecisionsAttrHelper::getNameStr());
  if (!known)
    return;
  std::string prefix = (pass + ": " + start).str();
  SmallVector<Attribute> kept = llvm::to_vector(llvm::make_filter_range(known, [&](Attribute line) {
    return !cast<StringAttr>(line).getValue().starts_with(prefix);
  }));
  if (kept.empty())
    model->removeAttr(GenRecDialect::DecisionsAttrHelper::getNameStr());
  else
    model->setDiscardableAttr(GenRecDialect::DecisionsAttrHelper::getNameStr(), ArrayAttr::get(model.getContext(), kept));
}

/// The outermost NameLoc in `loc`.
static StringRef findName(Location loc) {
  if (auto name = dyn_cast<NameLoc>(loc))
    return name.getName();
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      if (StringRef name = findName(part); !name.empty())
        return name;
  return {};
}

std::string genrec::placeForUser(Operation *op) {
  auto file = op->getLoc()->findInstanceOf<FileLineColLoc>();
  if (!file)
    return "";
  StringRef name = llvm::sys::path::filename(file.getFilename().getValue());
  return (" (" + name + ":" + Twine(file.getLine()) + ")").str();
}

std::string genrec::nameForUser(Operation *op) {
  if (auto feature = dyn_cast<FeatureOp>(op))
    return "column '" + feature.getColumn().str() + "'";
  StringRef name = findName(op->getLoc()), kind = op->getName().stripDialect();
  return name.empty() ? kind.str() : "'" + name.str() + "' (" + kind.str() + ")";
}

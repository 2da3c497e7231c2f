//===- PlanJson.h - reading plans -------------------------------*- C++ -*-===//
//
// For readers of `--explain=json`; needs no MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_REPORT_PLANJSON_H
#define GENREC_REPORT_PLANJSON_H

#include "llvm/Support/JSON.h"

#include <vector>

namespace genrec {

/// The objects in the array `key` of `object`; none where there is no such array.
inline std::vector<const llvm::json::Object *> getObjects(const llvm::json::Object &object,
                                                          llvm::StringRef key) {
  std::vector<const llvm::json::Object *> objects;
  if (const llvm::json::Array *array = object.getArray(key))
    for (const llvm::json::Value &value : *array)
      if (const llvm::json::Object *entry = value.getAsObject())
        objects.push_back(entry);
  return objects;
}

} // namespace genrec

#endif // GENREC_REPORT_PLANJSON_H

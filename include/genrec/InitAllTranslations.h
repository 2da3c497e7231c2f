//===- InitAllTranslations.h - registration of file formats -----*- C++ -*-===//
//
// The one place where translations are registered; genrec-translate calls it and adds nothing by
// hand.
//
//===----------------------------------------------------------------------===//
#ifndef GENREC_INITALLTRANSLATIONS_H
#define GENREC_INITALLTRANSLATIONS_H

#include "genrec/Model/Model.h"

#include <utility>

namespace genrec {

/// Registers import and export of model files. `registerDialects` adds the dialects that models may
/// have, when a translation is run.
inline void registerAllTranslations(std::function<void(mlir::DialectRegistry &)> registerDialects) {
  registerModelTranslations(std::move(registerDialects));
}

} // namespace genrec

#endif // GENREC_INITALLTRANSLATIONS_H

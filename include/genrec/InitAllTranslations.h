//===- InitAllTranslations.h - registration of file formats -----*- C++ -*-===//
//
// The one place where translations are registered; genrec-translate calls it and adds nothing by
// hand.
//
//===----------------------------------------------------------------------===//
#ifndef GENREC_INITALLTRANSLATIONS_H
#define GENREC_INITALLTRANSLATIONS_H

#include "genrec/Model/Model.h"

namespace genrec {

/// Registers import and export of model files.
inline void registerAllTranslations() { registerModelTranslations(); }

} // namespace genrec

#endif // GENREC_INITALLTRANSLATIONS_H

//===- EnumKinds.h - enum attributes by name --------------------*- C++ -*-===//
//
// The model file stores an enum case as two strings, the attribute's mnemonic ("pool_kind") and the
// keyword ("mean"). Import and export use the same table of them.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_LIB_MODEL_ENUMKINDS_H
#define GENREC_LIB_MODEL_ENUMKINDS_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {

/// One enum attribute. `parse` returns null for an unknown keyword; `print` returns nothing for an
/// attribute of another kind; `keywords` lists the cases for messages.
struct EnumKind {
  llvm::StringRef name;
  mlir::Attribute (*parse)(mlir::MLIRContext *context, llvm::StringRef keyword);
  std::optional<llvm::StringRef> (*print)(mlir::Attribute attribute);
  std::string (*keywords)();
};

/// Every enum attribute that an op of the model level may have.
llvm::ArrayRef<EnumKind> getEnumKinds();

/// The enum attribute with mnemonic `name`, or null.
const EnumKind *findEnumKind(llvm::StringRef name);

/// The cases of a dialect enum as "'a', 'b', 'c'".
template <typename EnumT> std::string listKeywords(unsigned last) {
  std::string text;
  for (unsigned value = 0; value <= last; ++value)
    if (llvm::StringRef name = stringifyEnum(static_cast<EnumT>(value)); !name.empty())
      text += (value ? ", '" : "'") + name.str() + "'";
  return text;
}

} // namespace genrec

#endif // GENREC_LIB_MODEL_ENUMKINDS_H

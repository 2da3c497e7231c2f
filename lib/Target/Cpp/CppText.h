//===- CppText.h - types and constants as C++ text --------------*- C++ -*-===//

#ifndef GENREC_LIB_TARGET_CPP_CPPTEXT_H
#define GENREC_LIB_TARGET_CPP_CPPTEXT_H

#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "llvm/ADT/StringSet.h"

namespace genrec {

/// `type` in C++; "" for a type that has none.
std::string getCppType(mlir::Type type);

/// A declaration of `name`: "float *x", "float x[8]".
std::string getCppDeclaration(mlir::Type type, llvm::StringRef name, bool isConst, bool isRestrict);

/// A constant of `type`; the text of an opaque attribute is taken as it is.
std::string getCppConstant(mlir::Attribute value, mlir::Type type);

/// The initial value of a global that is a struct (`#genrec.fields`), a text, a number or an array of
/// those. An outer array has a line for each element.
std::string getCppInitializer(mlir::Attribute value, bool isOuter = false);

/// Hands out names that are not taken and mean nothing in C++.
class CppNames {
public:
  std::string make(llvm::StringRef wanted);
  /// Names made between the two are free again afterwards.
  void enterScope() { scopes.emplace_back(); }
  void leaveScope();

private:
  llvm::StringSet<> taken;
  std::vector<std::vector<std::string>> scopes = {{}};
};

} // namespace genrec

#endif // GENREC_LIB_TARGET_CPP_CPPTEXT_H

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

/// A constant of `type`. An opaque attribute is printed verbatim.
std::string getCppConstant(mlir::Attribute value, mlir::Type type);

/// The initializer of a global: a struct (`#genrec.fields`), a string, a number, or an array of
/// these. An outer array is printed with one element per line.
std::string getCppInitializer(mlir::Attribute value, bool isOuter = false);

/// Creates names that are unique and not C++ keywords.
class CppNames {
public:
  /// None of `symbols`, those of the unit: they must not be hidden.
  explicit CppNames(const llvm::StringSet<> &symbols) : symbols(symbols) {}

  std::string make(llvm::StringRef wanted);
  /// Names created between enterScope and leaveScope can be used again afterwards.
  void enterScope() { scopes.emplace_back(); }
  void leaveScope();

private:
  using Count = llvm::StringMapEntry<unsigned>;
  struct Scope {
    std::vector<std::string> names;
    std::vector<std::pair<Count *, unsigned>> counts; // and what each was before
  };

  const llvm::StringSet<> &symbols;
  llvm::StringSet<> taken;
  /// Per wanted name, how many of name, name_2, name_3, ... are known to be taken: a function may
  /// want one name for each of a hundred thousand values.
  llvm::StringMap<unsigned> counts;
  std::vector<Scope> scopes = std::vector<Scope>(1);
};

} // namespace genrec

#endif // GENREC_LIB_TARGET_CPP_CPPTEXT_H

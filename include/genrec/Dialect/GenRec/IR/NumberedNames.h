//===- NumberedNames.h - names where a name is taken ------------*- C++ -*-===//

#ifndef GENREC_DIALECT_GENREC_IR_NUMBEREDNAMES_H
#define GENREC_DIALECT_GENREC_IR_NUMBEREDNAMES_H

#include "llvm/ADT/Twine.h"

#include <cstdint>
#include <string>

namespace genrec {

/// The first, second, third, ... of the names that want to be `name`: name, name_2, name_3, ...
inline std::string nameWithNumber(llvm::StringRef name, uint64_t number) {
  return number == 1 ? name.str() : (name + "_" + llvm::Twine(number)).str();
}

} // namespace genrec

#endif // GENREC_DIALECT_GENREC_IR_NUMBEREDNAMES_H

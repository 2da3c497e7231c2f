//===- size.cpp - Sizes that do not wrap around ---------------------------===//

#include "genrec_rt/size.h"

#include "genrec_rt/error.h"

namespace genrec::rt {

void throwTooLarge(const std::string &what) {
  throw Error(what + " would be larger than any machine can hold",
              "use a smaller number: a flag, the data or a file asks for it");
}

} // namespace genrec::rt

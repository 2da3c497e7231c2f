//===- peer_error.h - What another rank failed with -------------*- C++ -*-===//

#ifndef GENREC_RT_COMM_PEER_ERROR_H
#define GENREC_RT_COMM_PEER_ERROR_H

#include "genrec_rt/error.h"

namespace genrec::rt {

/// What runTogether throws where another rank failed. That rank throws what it failed with, and is the one
/// to tell the user.
class PeerError : public Error {
public:
  using Error::Error;
};

} // namespace genrec::rt

#endif // GENREC_RT_COMM_PEER_ERROR_H

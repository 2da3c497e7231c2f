//===- start_thread.h - Threads that may not start ---------------*- C++ -*-===//

#ifndef GENREC_RT_CORE_START_THREAD_H
#define GENREC_RT_CORE_START_THREAD_H

#include "genrec_rt/error.h"

#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace genrec::rt {

/// A thread that runs `body`; throws Error, which says what it was for, where the system has
/// none to give.
template <class Body> std::thread startThread(const std::string &what, Body &&body) {
  try {
    return std::thread(std::forward<Body>(body));
  } catch (const std::system_error &error) {
    throw Error("cannot start a thread to " + what + ": " + error.code().message(),
                "raise the limit of processes (ulimit -u), or end others");
  }
}

} // namespace genrec::rt

#endif // GENREC_RT_CORE_START_THREAD_H

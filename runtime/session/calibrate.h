//===- calibrate.h - Measures a machine's limits -----------------*- C++ -*-===//

#ifndef GENREC_RT_SESSION_CALIBRATE_H
#define GENREC_RT_SESSION_CALIBRATE_H

#include "genrec_rt/roofline.h"

#include <cstdint>
#include <optional>
#include <string>

namespace genrec::rt {

/// The processor's name, as the system gives it.
std::string processorName();

/// Measures for about two seconds with `threads` threads (0: all cores): best of
/// repeated runs.
Roofline calibrate(int32_t threads);

/// Where the measured limits are kept: $GENREC_MACHINE, else machine.json in
/// genrec's folder of $XDG_CACHE_HOME or ~/.cache.
std::string rooflinePath();

/// What was measured on this processor; nothing where the file is missing,
/// damaged or of another processor.
std::optional<Roofline> loadRoofline(const std::string &path);

/// Writes the file, and its folder where that is missing. Throws Error.
void saveRoofline(const Roofline &roofline, const std::string &path);

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_CALIBRATE_H

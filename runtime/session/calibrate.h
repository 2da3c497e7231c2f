//===- calibrate.h - Measures a machine's limits -----------------*- C++ -*-===//

#ifndef GENREC_RT_SESSION_CALIBRATE_H
#define GENREC_RT_SESSION_CALIBRATE_H

#include "genrec_rt/roofline.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace genrec::rt {

/// The processor's name, as the system gives it.
std::string processorName();

/// Measures for about two seconds with `threads` threads (0: all cores): best of
/// repeated runs.
Roofline calibrate(int32_t threads);

/// What was measured on `processor`, or on the device of that name; nothing where the file is
/// missing, damaged or of another one.
std::optional<Roofline> loadRoofline(const std::string &path, const std::string &processor);

/// As lines for a person.
std::string describeRoofline(const Roofline &roofline);

/// Writes what `measure` measures to limitsFile, whose arguments come first, and prints both.
void calibrateInto(const std::string &given, bool ofDevice, const std::string &processor,
                   const std::function<Roofline()> &measure);

/// The file to write: `given`, or else that of rooflinePath. Throws Error where $GENREC_MACHINE
/// names one that has another processor's limits, which may be there to predict that one.
std::string limitsFile(const std::string &given, bool ofDevice, const std::string &processor);

/// Writes the file, and its folder where that is missing. Throws Error.
void saveRoofline(const Roofline &roofline, const std::string &path);

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_CALIBRATE_H

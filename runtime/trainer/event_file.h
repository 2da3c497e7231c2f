//===- event_file.h - Curves for TensorBoard ---------------------*- C++ -*-===//

#ifndef GENREC_RT_TRAINER_EVENT_FILE_H
#define GENREC_RT_TRAINER_EVENT_FILE_H

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace genrec::rt {

/// Writes scalars over steps in TensorBoard's format: records of TensorFlow's
/// record format (length, data, each followed by a masked CRC-32C) that hold
/// `Event` messages of event.proto.
class EventFile {
public:
  /// Begins a new file in `folder`, which is created if missing. Steps after `afterStep` in earlier
  /// files are hidden, because a resumed run repeats them.
  EventFile(const std::string &folder, int64_t afterStep);
  ~EventFile();
  EventFile(const EventFile &) = delete;
  EventFile &operator=(const EventFile &) = delete;

  using Scalars = std::vector<std::pair<std::string, double>>;
  /// Values by tag ("train/loss"), as of now; NaN and infinity are left out.
  void add(int64_t step, const Scalars &scalars);
  /// Flushes, so that TensorBoard sees what was added.
  void flush();

private:
  void write(const std::string &event);

  std::string path;
  std::FILE *file = nullptr;
};

/// CRC-32C (Castagnoli), as RFC 3720 defines it.
uint32_t crc32c(const std::string &data);

} // namespace genrec::rt

#endif // GENREC_RT_TRAINER_EVENT_FILE_H

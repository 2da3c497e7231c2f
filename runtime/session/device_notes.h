//===- device_notes.h - What kernels of a step could not go on with -*- C++ -*-===//
//
// A kernel that finds a row it cannot go on with notes it in the device's memory (genrec_row_note)
// and goes on with zeros. The host reads all notes when the step has ended, with the rest that the
// step hands over, and says of each in its turn what the CPU would have said at once.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_SESSION_DEVICE_NOTES_H
#define GENREC_RT_SESSION_DEVICE_NOTES_H

#include "device_memory.h"
#include "row_failures.h"

#include <vector>

namespace genrec::rt {

/// What a note of a step is about.
struct NoteSubject {
  enum class Kind {
    idBeyondTable,
    idNotInCatalogue,
    valueBeyond,
    notFinite,
    rowNotFinite,
    failure
  } kind;
  int32_t number = -1; ///< of the table, of the feature, or of the op
  const genrec_domain *domain = nullptr;
  RangeRule range{};
  const genrec_domain *items = nullptr; ///< whose count is the rule's when the step has ended
  int64_t rowSize = 1;                  ///< of values that must be finite
  const char *const *reasons = nullptr; ///< of a failure, by number
};

class DeviceNotes {
public:
  explicit DeviceNotes(Device &device)
      : device(device), memory(device, "notes"),
        fetched(device, "notes", DeviceMemory::Kind::pinned) {}

  /// A step begins: nothing is noted. Queued on the device.
  void begin();
  /// Where kernels note it, on the device. Beyond kMost the step fails.
  genrec_row_note *add(StepSlot &slot, const NoteSubject &subject);
  size_t size() const { return subjects.size(); }
  const std::vector<NoteSubject> &all() const { return subjects; }
  /// Those from `count` on are no longer looked at; `subject` is the next one's, whose kernels run
  /// already.
  void drop(size_t count) {
    subjects.erase(subjects.begin() + static_cast<ptrdiff_t>(count), subjects.end());
  }
  void repeat(const NoteSubject &subject) { subjects.push_back(subject); }
  /// Queues a copy of all notes to the host.
  void fetch();
  /// The device has ended: records what note `number` says as the step's failure, if anything.
  void report(StepSlot &slot, size_t number) const;
  /// The same of a step that runs once more: notes what was not finite, if anything.
  void explain(StepSlot &slot, size_t number) const;

private:
  static constexpr size_t kMost = 4096;
  const genrec_row_note &taken(size_t number) const {
    return reinterpret_cast<const genrec_row_note *>(fetched.data())[number];
  }
  genrec_row_note *notes() const { return reinterpret_cast<genrec_row_note *>(memory.data()); }

  Device &device;
  DeviceMemory memory, fetched;
  std::vector<NoteSubject> subjects;
};

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_DEVICE_NOTES_H

//===- note_copy.h - A note of a row on a device, for tests -------*- C++ -*-===//

#ifndef GENREC_TEST_CUDA_NOTE_COPY_H
#define GENREC_TEST_CUDA_NOTE_COPY_H

#include "device_copy.h"

#include "genrec_rt/abi.h"

#include <cstring>

namespace genrec::rt::cuda::test {

/// In which nothing is noted at first.
class NoteCopy {
public:
  NoteCopy() : memory(std::vector{genrec_row_note{GENREC_NO_PLACE, GENREC_NO_PLACE, 0}}) {}

  genrec_row_note *data() { return memory.data(); }
  /// -1: none.
  int64_t row() const {
    const int64_t place = note().place;
    return place == GENREC_NO_PLACE ? -1 : place / GENREC_NOTE_REASONS;
  }
  int reason() const { return static_cast<int>(note().place % GENREC_NOTE_REASONS); }
  int64_t root() const { return note().root; }
  template <class T = int64_t> T value() const {
    T value;
    const genrec_row_note read = note();
    std::memcpy(&value, &read.value, sizeof value);
    return value;
  }

private:
  genrec_row_note note() const { return memory.fetch()[0]; }
  Copy<genrec_row_note> memory;
};

} // namespace genrec::rt::cuda::test

#endif // GENREC_TEST_CUDA_NOTE_COPY_H

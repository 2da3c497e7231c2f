//===- column_text.h - The bytes of a column's strings -----------*- C++ -*-===//
//
// Strings of a column are views into one text. On a device the text lies in the device's memory,
// and so do the views, which are rewritten on their way there, and again when an output brings them
// back.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_SESSION_COLUMN_TEXT_H
#define GENREC_RT_SESSION_COLUMN_TEXT_H

#include "genrec_rt/batch.h"

#include <algorithm>

namespace genrec::rt {

/// Where the text is: on the host, and where it has been copied to.
struct ColumnText {
  const char *host = nullptr;
  int64_t bytes = 0;
  const char *device = nullptr;

  /// The text of `count` strings in `column`: as much of it as they use.
  static ColumnText of(const ColumnBatch &column, const genrec_string *strings, int64_t count) {
    ColumnText text{column.bytes.data()};
    for (int64_t i = 0; i < count; ++i)
      if (strings[i].size > 0)
        text.bytes = std::max(text.bytes, strings[i].data - text.host + strings[i].size);
    return text;
  }

  /// Writes strings of the host as the device sees them.
  void toDevice(const genrec_string *strings, int64_t count, genrec_string *to) const {
    for (int64_t i = 0; i < count; ++i)
      to[i] = {strings[i].size > 0 ? device + (strings[i].data - host) : nullptr, strings[i].size};
  }

  /// Whether a string of the device lies in the text.
  bool has(const genrec_string &string) const {
    return string.data >= device && string.data + string.size <= device + bytes;
  }
  genrec_string toHost(const genrec_string &string) const {
    return {host + (string.data - device), string.size};
  }
};

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_COLUMN_TEXT_H

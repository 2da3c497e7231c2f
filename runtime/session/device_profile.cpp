//===- device_profile.cpp - When the calls of a step run on a device ------===//

#include "device_profile.h"

#include <algorithm>

namespace genrec::rt {

void DeviceProfile::place(int32_t what) {
  if (count == marks.size())
    marks.push_back({what, device.makeMark()});
  marks[count].what = what;
  device.place(*marks[count++].mark);
}

void DeviceProfile::finish(SpanRecorder &spans) {
  if (count == 0)
    return;
  // Of the host's clock only the end is known: now.
  std::vector<int64_t> at(count);
  for (size_t i = 0; i < count; ++i)
    at[i] = static_cast<int64_t>(device.secondsBetween(*marks[0].mark, *marks[i].mark) * 1e9);
  const int64_t shift = profileClock() - *std::max_element(at.begin(), at.end());
  for (size_t i = 0; i < count; ++i) {
    const int32_t what = marks[i].what;
    if (what == kEnd)
      continue;
    size_t end = i + 1; // stages end at the next kEnd, ops at whatever comes next
    while (what < 0 && end + 1 < count && marks[end].what != kEnd)
      ++end;
    if (end < count)
      spans.addSpan({what, at[i] + shift, at[end] + shift});
  }
  count = 0;
}

} // namespace genrec::rt

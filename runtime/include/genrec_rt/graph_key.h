//===- graph_key.h - What a captured step is found by -------------*- C++ -*-===//

#ifndef GENREC_RT_GRAPH_KEY_H
#define GENREC_RT_GRAPH_KEY_H

#include <cstdint>
#include <vector>

namespace genrec::rt {

/// Numbers and places in memory that what a step queues follows from: steps with equal keys queue
/// the same.
class GraphKey {
public:
  void clear() { words.clear(); }
  void add(int64_t number) { words.push_back(number); }
  void addPlace(const void *place) {
    words.push_back(static_cast<int64_t>(reinterpret_cast<uintptr_t>(place)));
  }
  bool operator==(const GraphKey &) const = default;

private:
  std::vector<int64_t> words;
};

} // namespace genrec::rt

#endif // GENREC_RT_GRAPH_KEY_H

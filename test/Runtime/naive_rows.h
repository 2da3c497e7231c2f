//===- naive_rows.h - Rows by rule, as the rules read ------------*- C++ -*-===//

#ifndef GENREC_TEST_RUNTIME_NAIVE_ROWS_H
#define GENREC_TEST_RUNTIME_NAIVE_ROWS_H

#include "genrec_rt/row_rules.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

namespace genrec::rt::test {

/// The rules as they read, over a map.
class NaiveRows {
public:
  explicit NaiveRows(const RowRules &rules) : rules(rules) {}

  void train(const std::vector<int64_t> &ids, int64_t step) {
    for (int64_t id : std::set<int64_t>(ids.begin(), ids.end())) {
      bool hasRow = rows.count(id);
      Sighting &sighting = hasRow ? rows[id] : waiting[id];
      if (sighting.lastStep != step)
        sighting = {step, sighting.steps + 1};
      if (hasRow || sighting.steps < rules.admitAfter)
        continue;
      waiting.erase(id);
      rows[id] = {step, 1};
    }
  }
  /// `seconds`: the time of the step; it never goes back.
  void evict(int64_t step, int64_t seconds = 0) {
    times[step] = times.empty() ? seconds : std::max(seconds, times.rbegin()->second);
    drop(rows, step);
    drop(waiting, step);
  }
  void erase(const std::vector<int64_t> &ids) {
    for (int64_t id : ids) {
      rows.erase(id);
      waiting.erase(id);
    }
  }

  std::map<int64_t, Sighting> rows, waiting;

private:
  int64_t periodOf(int64_t step) const {
    auto time = times.lower_bound(step); // what was seen before the first time counts as seen then
    double length = static_cast<double>(std::max<int64_t>(1, rules.ttlSeconds / 16));
    return static_cast<int64_t>(std::floor(static_cast<double>(time->second) / length));
  }
  bool isTooOld(const Sighting &sighting, int64_t step) const {
    int64_t length = std::max<int64_t>(1, rules.ttlSeconds / 16), now = periodOf(step);
    bool isFirst = step > times.begin()->first && periodOf(step - 1) < now;
    return isFirst && (now - periodOf(sighting.lastStep) - 1) * length + 1 >= rules.ttlSeconds;
  }
  void drop(std::map<int64_t, Sighting> &of, int64_t step) {
    if (rules.ttl && step % std::max<int64_t>(1, rules.ttl / 16) == 0)
      std::erase_if(of,
                    [&](const auto &entry) { return step - entry.second.lastStep >= rules.ttl; });
    if (rules.ttlSeconds)
      std::erase_if(of, [&](const auto &entry) { return isTooOld(entry.second, step); });
    auto size = static_cast<int64_t>(of.size());
    if (!rules.bound || size <= rules.bound)
      return;
    for (int64_t left = size; left > rules.bound - rules.bound / 16; --left)
      of.erase(std::min_element(of.begin(), of.end(), [&](const auto &a, const auto &b) {
        auto [idA, x] = a;
        auto [idB, y] = b;
        if (rules.eviction == Eviction::lfu && x.steps != y.steps)
          return x.steps < y.steps;
        return x.lastStep != y.lastStep ? x.lastStep < y.lastStep : idA < idB;
      }));
  }

  RowRules rules;
  std::map<int64_t, int64_t> times; ///< by step
};

} // namespace genrec::rt::test

#endif // GENREC_TEST_RUNTIME_NAIVE_ROWS_H

//===- State.h - parameters and tables of an interpreted model --*- C++ -*-===//

#ifndef GENREC_INTERPRETER_STATE_H
#define GENREC_INTERPRETER_STATE_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include <map>
#include <string>
#include <vector>

namespace genrec::interpreter {

/// A dense parameter and its optimizer states, one after another.
struct ParameterState {
  int64_t size = 0;  ///< elements of the value
  int64_t width = 1; ///< elements of one row: the last dimension; 1 for a scalar
  int64_t states = 0;
  std::vector<double> memory; ///< (1 + states) * size

  llvm::ArrayRef<double> value() const { return {memory.data(), static_cast<size_t>(size)}; }
  llvm::MutableArrayRef<double> value() { return {memory.data(), static_cast<size_t>(size)}; }
};

/// The admission and eviction rules of a `genrec.table`.
struct RowRules {
  int64_t bounded = 0; ///< the largest number of rows after a step; 0: unbounded
  bool isLfu = false;  ///< evicts the least frequently used row rather than the least recently used
  int64_t ttl = 0;     ///< a row is evicted after this many steps without being seen; 0: never
  int64_t ttlSeconds = 0; ///< the same in seconds; step t has the time t
  int64_t admitAfter = 0; ///< number of steps in which an id must be seen to get a row
  int64_t hotAfter = 0;   ///< number of steps in which a row must be seen to be hot; 0: none is

  bool any() const { return bounded || ttl || ttlSeconds || admitAfter || hotAfter; }
};

/// When training saw an id.
struct Sighting {
  uint64_t lastStep = 0;
  /// steps that saw it since it got its row, or, without one, since it was first seen
  int64_t steps = 0;
};
using Sightings = std::map<int64_t, Sighting>;

/// The rows of an embedding table by id. A row is its value followed by its optimizer states.
struct TableState {
  std::string name;
  int64_t dim = 0;
  int64_t stateFloats = 0; ///< elements of all states of a row
  int64_t idBits = 0;
  RowElement element = RowElement::f32; ///< what values are rounded to
  bool roundsStochastically = false;    ///< by a step
  double initialAccumulator = 0;
  InitAttr init;
  std::map<int64_t, std::vector<double>> rows;
  RowRules rules;
  Sightings seen;    ///< of ids that have rows; empty for a table without rules
  Sightings waiting; ///< of ids that are not admitted yet

  /// Whether the row of `id` is hot: a value of floats, which is rounded where it is read.
  bool isHot(int64_t id) const {
    auto sighting = seen.find(id);
    return rules.hotAfter && sighting != seen.end() && sighting->second.steps >= rules.hotAfter;
  }
};

/// The keys of a merged table: each stands for a row of one of its logical tables.
struct MergedTable {
  std::vector<std::string> members;
  int64_t keyBits = 63; ///< bits of a key that hold the id

  /// The name of the logical table of `key`; empty where `key` belongs to none.
  llvm::StringRef memberOf(int64_t key) const {
    auto number = static_cast<size_t>(static_cast<uint64_t>(key) >> keyBits);
    return number < members.size() ? llvm::StringRef(members[number]) : llvm::StringRef();
  }
  int64_t idOf(int64_t key) const { return key & ((int64_t(1) << keyBits) - 1); }
  int64_t keyOf(size_t member, int64_t id) const {
    return static_cast<int64_t>(member) << keyBits | id;
  }
};

/// The learning rate as a factor of the base rate. t is the 1-based step, p = (t - warmup) / (steps
/// - warmup), at most 1. The factor is t / warmup up to t = warmup, and then: constant 1; linear 1
/// + (final - 1) p; cosine final + (1 - final) (1 + cos(pi p)) / 2. Without `steps` there is no
/// decay.
struct Schedule {
  std::string kind = "constant";
  int64_t warmup = 0;
  int64_t steps = 0;
  double final = 0.0;

  double factor(uint64_t step) const;
};

/// Everything that persists between steps. A copy is a snapshot.
class State {
public:
  /// Parameters get their initial values; tables are empty.
  State(ModelOp model, uint64_t seed);

  /// The row of `id`; a new one with initial values if there is none.
  std::vector<double> &insertRow(TableState &table, int64_t id) const;
  /// Records that training sees `id` in `step`. Returns whether the id has a row or is admitted
  /// now.
  bool admits(TableState &table, int64_t id, uint64_t step) const;
  /// Evicts rows by the tables' rules after `step`.
  void evict(uint64_t step);
  /// The initial value and states of a row.
  std::vector<double> initialRow(const TableState &table, int64_t id) const;

  std::map<std::string, ParameterState, std::less<>> parameters;
  std::map<std::string, TableState, std::less<>> tables; ///< the logical tables
  /// the merged tables, which have no rows of their own
  std::map<std::string, MergedTable, std::less<>> merged;
  uint64_t seed = 0;
  uint64_t stepsDone = 0; ///< finished optimizer steps; the current one is stepsDone + 1
  Schedule schedule;
};

} // namespace genrec::interpreter

#endif // GENREC_INTERPRETER_STATE_H

//===- State.h - parameters and tables of an interpreted model --*- C++ -*-===//

#ifndef GENREC_INTERPRETER_STATE_H
#define GENREC_INTERPRETER_STATE_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include <map>
#include <string>
#include <vector>

namespace genrec::interpreter {

/// The value of a dense parameter and its optimizer states, one after another.
struct ParameterState {
  int64_t size = 0;  ///< elements of the value
  int64_t width = 1; ///< elements of one row: the last size, 1 for a scalar
  int64_t states = 0;
  std::vector<double> memory; ///< (1 + states) * size

  llvm::ArrayRef<double> value() const { return {memory.data(), static_cast<size_t>(size)}; }
  llvm::MutableArrayRef<double> value() { return {memory.data(), static_cast<size_t>(size)}; }
};

/// The rules by which a table's rows come and leave, as `genrec.table` has them.
struct RowRules {
  int64_t bounded = 0;    ///< most rows after a step; 0: any number
  bool isLfu = false;     ///< else least recently seen
  int64_t ttl = 0;        ///< steps without being seen after which rows leave; 0: never
  int64_t admitAfter = 0; ///< steps in which an id must be seen to get a row

  bool any() const { return bounded || ttl || admitAfter; }
};

/// When training saw an id.
struct Sighting {
  uint64_t lastStep = 0;
  int64_t steps = 0; ///< since the row came; of a waiting id, since it waits
};
using Sightings = std::map<int64_t, Sighting>;

/// The rows of an embedding table by id; a row is its value, then its states.
struct TableState {
  std::string name;
  int64_t dim = 0;
  int64_t stateFloats = 0; ///< values of all states of a row
  int64_t idBits = 0;
  double initialAccumulator = 0;
  InitAttr init;
  std::map<int64_t, std::vector<double>> rows;
  RowRules rules;
  Sightings seen;    ///< with rules, of the ids that have rows
  Sightings waiting; ///< of ids that are not admitted yet
};

/// A merged table: which key belongs to which row of which logical table.
struct MergedTable {
  std::vector<std::string> members;
  int64_t keyBits = 63; ///< of the id

  /// The name of the logical table of `key`, empty where no member owns it.
  llvm::StringRef memberOf(int64_t key) const {
    auto number = static_cast<size_t>(static_cast<uint64_t>(key) >> keyBits);
    return number < members.size() ? llvm::StringRef(members[number]) : llvm::StringRef();
  }
  int64_t idOf(int64_t key) const { return key & ((int64_t(1) << keyBits) - 1); }
  int64_t keyOf(size_t member, int64_t id) const { return static_cast<int64_t>(member) << keyBits | id; }
};

/// The learning rate over steps as a factor of the base rate. With t the 1-based
/// step: t / warmup up to t = warmup; then, with p = (t - warmup) / (steps - warmup)
/// at most 1: constant 1, linear 1 + (final - 1) p, cosine
/// final + (1 - final) (1 + cos(pi p)) / 2. Without `steps` nothing decays.
struct Schedule {
  std::string kind = "constant";
  int64_t warmup = 0;
  int64_t steps = 0;
  double final = 0.0;

  double factor(uint64_t step) const;
};

/// Everything that outlives a step. Copyable: a copy is a snapshot.
class State {
public:
  /// Parameters get their initial values, tables have no rows.
  State(ModelOp model, uint64_t seed);

  /// The row of `id`, made with its initial value when there is none.
  std::vector<double> &insertRow(TableState &table, int64_t id) const;
  /// Notes that training sees `id` in `step`; whether it has a row, or gets one now.
  bool admits(TableState &table, int64_t id, uint64_t step) const;
  /// Lets the rows leave that the tables' rules send away after `step`.
  void evict(uint64_t step);
  /// Value and states of a row that nobody has touched yet.
  std::vector<double> initialRow(const TableState &table, int64_t id) const;

  std::map<std::string, ParameterState, std::less<>> parameters;
  std::map<std::string, TableState, std::less<>> tables; ///< logical ones
  std::map<std::string, MergedTable, std::less<>> merged; ///< physical ones, without rows of their own
  uint64_t seed = 0;
  uint64_t stepsDone = 0; ///< optimizer steps; the next is stepsDone + 1
  Schedule schedule;
};

} // namespace genrec::interpreter

#endif // GENREC_INTERPRETER_STATE_H

//===- Tensor.h - values of the interpreter ---------------------*- C++ -*-===//
//
// Rows of values: floats are stored as double, integers as int64_t.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_INTERPRETER_TENSOR_H
#define GENREC_INTERPRETER_TENSOR_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <cassert>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace genrec::interpreter {

/// An element of type `!genrec.row`: a pointer to a row of a table or a parameter. State `slot` of
/// the row is at `value + slot * slotStride`.
struct RowHandle {
  double *value = nullptr; ///< null: the row of zeros, which updates skip
  int64_t slotStride = 0;
  /// Of a table row: identifies it in random streams, by the table's name and the row's id.
  uint64_t identity = 0;
  /// Whether the value is a float, of which only updates read more than the upper half.
  bool isHot = false;

  bool isZero() const { return !value; }
};

/// A row-major matrix: `rows` rows of `width` elements each (1 for row shape []). A shared tensor
/// is stored as one row.
class Tensor {
public:
  using Floats = std::vector<double>;
  using Integers = std::vector<int64_t>; ///< booleans are 0 and 1
  using Strings = std::vector<std::string>;
  using Handles = std::vector<RowHandle>;

  Tensor() = default;
  /// `rows` rows of zeros, empty strings or handles of the row of zeros, by `T`.
  template <class T> static Tensor make(int64_t rows, int64_t width, bool shared = false) {
    Tensor tensor;
    tensor.rows = rows;
    tensor.width = width;
    tensor.shared = shared;
    tensor.data = std::vector<T>(static_cast<size_t>(rows * width));
    return tensor;
  }

  int64_t size() const { return rows * width; }
  bool isFloat() const { return std::holds_alternative<Floats>(data); }
  bool isInteger() const { return std::holds_alternative<Integers>(data); }
  bool isString() const { return std::holds_alternative<Strings>(data); }
  bool isHandle() const { return std::holds_alternative<Handles>(data); }

  template <class T> std::vector<T> &as() {
    auto *values = std::get_if<std::vector<T>>(&data);
    assert(values && "a tensor of another element type");
    return *values;
  }
  template <class T> const std::vector<T> &as() const {
    return const_cast<Tensor *>(this)->as<T>();
  }
  Floats &floats() { return as<double>(); }
  const Floats &floats() const { return as<double>(); }
  Integers &integers() { return as<int64_t>(); }
  const Integers &integers() const { return as<int64_t>(); }
  const Strings &strings() const { return as<std::string>(); }
  const Handles &handles() const { return as<RowHandle>(); }

  /// The index of element `column` of row `row`. A shared tensor is broadcast to all rows, and a
  /// row of one element along the row.
  size_t at(int64_t row, int64_t column) const {
    return static_cast<size_t>((shared ? 0 : row) * width + (width == 1 ? 0 : column));
  }
  /// The floats of one row.
  const double *row(int64_t row) const { return floats().data() + (shared ? 0 : row) * width; }
  double *row(int64_t row) { return floats().data() + (shared ? 0 : row) * width; }
  llvm::ArrayRef<double> valuesOf(int64_t row) const {
    return {this->row(row), static_cast<size_t>(width)};
  }

  int64_t rows = 0;
  int64_t width = 1;
  bool shared = false;
  std::variant<Floats, Integers, Strings, Handles> data;
};

/// The rows of one domain in one batch. A list is the rows of one parent row; in a root domain
/// every row is a list of its own.
struct DomainRows {
  int64_t count = 0;
  std::vector<int64_t> offsets;   ///< for each list its first row, then `count`; empty for a root
  std::vector<int64_t> parent;    ///< for each row its list; empty for a root
  std::vector<uint64_t> identity; ///< for each row the key of its random streams
  const DomainRows *above = nullptr; ///< the parent's rows; null for a root and a step domain
  /// For each row where it comes from: its row in the batch, in the source of a truncate, or in
  /// source `part[row]` of a concat_domains. Empty: row r comes from row r.
  std::vector<int64_t> source;
  std::vector<int32_t> part;

  bool isRoot() const { return offsets.empty(); }
  int64_t sourceOf(int64_t row) const { return source.empty() ? row : source[row]; }
  /// The row of domain `ancestor` that `row` belongs to.
  int64_t ancestorRow(int64_t row, const DomainRows &ancestor) const;
  void forEachList(llvm::function_ref<void(int64_t begin, int64_t end)> body) const;
};

} // namespace genrec::interpreter

#endif // GENREC_INTERPRETER_TENSOR_H

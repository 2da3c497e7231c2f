//===- list_rows.cu - Moving rows between domains on the device -----------===//
//
// One kernel moves rows, by whose result they are: giant lists cost what their rows
// do. What differs is where a row comes from.
//
//===----------------------------------------------------------------------===//

#include "genrec_rt/kernels/cuda/list_rows.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/domain_view.h"

#include <bit>

namespace genrec::rt::cuda {

namespace {

/// Base-2 logarithm of how many lanes share `units`: up to a warp.
int lanesShift(int64_t units) {
  return std::min(5, static_cast<int>(std::bit_width(static_cast<uint64_t>(units - 1))));
}

//===----------------------------------------------------------------------===//
// Where row `row` of a result comes from: null is a row of zeros
//===----------------------------------------------------------------------===//

struct Places {
  const char *values;
  int64_t step;

  explicit Places(RowsIn x) : values(static_cast<const char *>(x.values)), step(x.step) {}
  __device__ const char *at(int64_t row) const { return values + row * step; }
};

/// The first row of `source`'s list that a truncated list of `length` keeps.
__device__ int64_t keptBegin(const genrec_domain *source, int64_t list, int64_t length, bool last) {
  return last ? listEnd(source, list) - length : listBegin(source, list);
}

struct ToTruncated {
  const genrec_domain *source, *domain;
  bool last;
  Places x;

  __device__ const char *operator()(int64_t row) const {
    if (row >= source->count)
      return nullptr;
    const int64_t list = listOfRow(source, row), begin = listBegin(domain, list),
                  length = listEnd(domain, list) - begin;
    const int64_t ordinal = row - keptBegin(source, list, length, last);
    return ordinal >= 0 && ordinal < length ? x.at(begin + ordinal) : nullptr;
  }
};

/// Where the rows of `source`'s list begin in the lengthened list.
__device__ int64_t ownBegin(const genrec_domain *source, const genrec_domain *domain, int64_t list,
                            bool front) {
  return front ? listEnd(domain, list) - listLength(source, list) : listBegin(domain, list);
}

struct FromShorter {
  const genrec_domain *source, *domain;
  bool front;
  Places x;

  __device__ const char *operator()(int64_t row) const {
    if (row >= domain->count)
      return nullptr;
    const int64_t list = listOfRow(domain, row);
    const int64_t ordinal = row - ownBegin(source, domain, list, front);
    return ordinal >= 0 && ordinal < listLength(source, list)
               ? x.at(listBegin(source, list) + ordinal)
               : nullptr;
  }
};

struct FromLonger {
  const genrec_domain *source, *domain;
  bool front;
  Places x;

  __device__ const char *operator()(int64_t row) const {
    if (row >= source->count)
      return nullptr;
    const int64_t list = listOfRow(source, row);
    return x.at(ownBegin(source, domain, list, front) + row - listBegin(source, list));
  }
};

/// Rows of part `part` of a joined list; a part that is the domain above has one.
__device__ int64_t partLength(const genrec_domain *part, const genrec_domain *above, int64_t list) {
  return part == above ? 1 : listLength(part, list);
}
__device__ int64_t partBegin(const genrec_domain *part, const genrec_domain *above, int64_t list) {
  return part == above ? list : listBegin(part, list);
}

struct FromParts {
  const genrec_domain *domain;
  JoinedRows parts;

  __device__ const char *operator()(int64_t row) const {
    if (row >= domain->count)
      return nullptr;
    const genrec_domain *above = domain->parent_domain;
    const int64_t list = listOfRow(domain, row);
    int64_t ordinal = row - listBegin(domain, list);
    int part = 0;
    for (int64_t rows; ordinal >= (rows = partLength(parts.domains[part], above, list)); ++part)
      ordinal -= rows;
    const RowsIn &x = parts.values[part];
    return static_cast<const char *>(x.values) +
           (partBegin(parts.domains[part], above, list) + ordinal) * x.step;
  }
};

struct FromJoined {
  const genrec_domain *domain;
  JoinedDomains parts;
  int number;
  Places x;

  __device__ const char *operator()(int64_t row) const {
    const genrec_domain *above = domain->parent_domain, *own = parts.parts[number];
    if (row >= own->count)
      return nullptr;
    const int64_t list = own == above ? row : listOfRow(own, row);
    int64_t from = listBegin(domain, list) + row - partBegin(own, above, list);
    for (int part = 0; part < number; ++part)
      from += partLength(parts.parts[part], above, list);
    return x.at(from);
  }
};

struct FromLater {
  const genrec_domain *domain;
  int64_t distance;
  Places x;
  bool *valid;

  __device__ const char *operator()(int64_t row) const {
    if (row >= domain->count)
      return nullptr;
    const int64_t list = listOfRow(domain, row), from = row + distance;
    return from >= listBegin(domain, list) && from < listEnd(domain, list) ? x.at(from) : nullptr;
  }
  __device__ void note(int64_t row, bool found) const { valid[row] = found; }
};

struct FromSecond {
  const genrec_domain *second, *domain;
  Places x;

  __device__ const char *operator()(int64_t pair) const {
    if (pair >= domain->count)
      return nullptr;
    const int64_t row = domain->parent[pair], list = listOfRow(domain->parent_domain, row);
    return x.at(listBegin(second, list) + pair - domain->offsets[row]);
  }
};

/// Here a row is one of the `count` pieces of a parent's row.
struct FromKept {
  const genrec_domain *lists;
  int64_t count;
  bool last;
  Places x;

  __device__ const char *operator()(int64_t piece) const {
    const int64_t list = piece / count, ordinal = piece % count;
    if (list >= listCount(lists))
      return nullptr;
    const int64_t kept = min(listLength(lists, list), count);
    return ordinal < kept ? x.at(keptBegin(lists, list, kept, last) + ordinal) : nullptr;
  }
};

struct ToKept {
  const genrec_domain *lists;
  int64_t count, bytes; ///< of a piece
  bool last;
  Places x;

  __device__ const char *operator()(int64_t row) const {
    if (row >= lists->count)
      return nullptr;
    const int64_t list = listOfRow(lists, row), kept = min(listLength(lists, list), count);
    const int64_t ordinal = row - keptBegin(lists, list, kept, last);
    return ordinal >= 0 && ordinal < kept ? x.at(list) + ordinal * bytes : nullptr;
  }
};

//===----------------------------------------------------------------------===//
// Moving
//===----------------------------------------------------------------------===//

/// 2^`shift` threads have a row, in words of `Unit`, so that short rows keep all lanes of a warp
/// busy.
template <class Unit, class From>
__global__ void __launch_bounds__(kThreads)
    moveRows(From from, int64_t rows, int64_t units, int shift, Unit *out) {
  const int64_t lanes = int64_t(1) << shift, first = threadInGrid() & (lanes - 1);
  for (int64_t row = threadInGrid() >> shift; row < rows; row += threadsInGrid() >> shift) {
    const auto *source = reinterpret_cast<const Unit *>(from(row));
    for (int64_t u = first; u < units; u += lanes)
#if defined(GENREC_SIMT)
      storeWhole(out + row * units + u, source ? loadWhole<Unit>(source + u) : Unit{});
#else // so a register less
      out[row * units + u] = source ? loadWhole<Unit>(source + u) : Unit{};
#endif
    if constexpr (requires { from.note(row, true); })
      if (first == 0)
        from.note(row, source != nullptr);
  }
}

template <class Unit, class From>
void moveUnits(const From &from, const RowsOut &out, cudaStream_t stream) {
  const int64_t units = out.bytes / static_cast<int64_t>(sizeof(Unit));
  const int shift = lanesShift(units);
  GENREC_CUDA_LAUNCH(stream, shapeOfThreads(out.capacity << shift, kThreads),
                     (moveRows<Unit, From>), from, out.capacity, units, shift,
                     static_cast<Unit *>(out.values));
}

/// `places` is what all addresses of rows that are read are multiples of, beside the result's.
template <class From>
void move(const From &from, const RowsOut &out, uint64_t places, cudaStream_t stream) {
  if (out.capacity == 0 || out.bytes == 0)
    return;
  places |= static_cast<uint64_t>(out.bytes) | reinterpret_cast<uintptr_t>(out.values);
  if (places % 16 == 0)
    moveUnits<uint4>(from, out, stream);
  else if (places % 8 == 0)
    moveUnits<uint64_t>(from, out, stream);
  else if (places % 4 == 0)
    moveUnits<uint32_t>(from, out, stream);
  else
    moveUnits<uint8_t>(from, out, stream);
}

uint64_t placesOf(const RowsIn &x) {
  return reinterpret_cast<uintptr_t>(x.values) | static_cast<uint64_t>(x.step);
}

//===----------------------------------------------------------------------===//
// What is not moved
//===----------------------------------------------------------------------===//

/// A thread per row and column of the result.
__global__ void __launch_bounds__(kThreads)
    sumPairs(const genrec_domain *second, const genrec_domain *domain, int64_t width,
             const float *x, int64_t ldX, float *out, int64_t capacity) {
  const genrec_domain *first = domain->parent_domain;
  for (int64_t i = threadInGrid(); i < capacity * width; i += threadsInGrid()) {
    const int64_t row = i / width, column = i % width;
    float total = 0;
    if (row < second->count) {
      const int64_t list = listOfRow(second, row), ordinal = row - listBegin(second, list);
      const int64_t end = listEnd(first, list);
      for (int64_t other = listBegin(first, list); other < end; ++other)
        total += x[(domain->offsets[other] + ordinal) * ldX + column];
    }
    out[i] = total;
  }
}

__global__ void __launch_bounds__(kThreads)
    writePositions(const genrec_domain *domain, bool fromEnd, int64_t *out, int64_t capacity) {
  for (int64_t row = threadInGrid(); row < capacity; row += threadsInGrid()) {
    const bool exists = row < domain->count;
    const int64_t list = exists ? listOfRow(domain, row) : 0;
    out[row] = !exists   ? 0
               : fromEnd ? listEnd(domain, list) - 1 - row
                         : row - listBegin(domain, list);
  }
}

__global__ void __launch_bounds__(kThreads)
    writeLengths(__grid_constant__ const CountedLists lists, int64_t capacity) {
  const genrec_domain *children = lists.children[blockIdx.y];
  int64_t *out = lists.out[blockIdx.y];
  for (int64_t list = threadInGrid(); list < capacity; list += threadsInGrid())
    out[list] = list < listCount(children) ? listLength(children, list) : 0;
}

/// The gradient at the end of a list that the pool chose; a thread per row and column.
__global__ void __launch_bounds__(kThreads)
    writeEndGradients(const genrec_domain *domain, bool last, int64_t width, const float *gradient,
                      int64_t ldGradient, float *out, int64_t capacity) {
  for (int64_t i = threadInGrid(); i < capacity * width; i += threadsInGrid()) {
    const int64_t row = i / width;
    float value = 0;
    if (row < domain->count) {
      const int64_t list = listOfRow(domain, row);
      if (row == (last ? listEnd(domain, list) - 1 : listBegin(domain, list)))
        value = gradient[list * ldGradient + i % width];
    }
    out[i] = value;
  }
}

/// A block per list, 2^`shift` threads per row: the first of the greatest of each column, then the
/// gradient there. A NaN is chosen where it comes first, as nothing is greater.
__global__ void __launch_bounds__(kThreads)
    writeMaxGradients(const genrec_domain *domain, int shift, int64_t width, const float *x,
                      int64_t ldX, const float *gradient, int64_t ldGradient, float *out,
                      int64_t capacity) {
  __shared__ float values[kThreads];
  __shared__ int64_t rows[kThreads];
  const int lanes = 1 << shift, thread = static_cast<int>(threadIdx.x);
  const int64_t step = kThreads >> shift;
  for (int64_t list = blockIdx.x; list < listCount(domain); list += gridDim.x) {
    const int64_t begin = listBegin(domain, list), end = listEnd(domain, list);
    for (int64_t base = 0; base < width; base += lanes) {
      const int64_t column = base + (thread & (lanes - 1));
      float most = 0;
      int64_t chosen = -1;
      for (int64_t row = begin + (thread >> shift); row < end && column < width; row += step) {
        float value = x[row * ldX + column];
        value = row == begin && value != value ? __builtin_inff() : value;
        if (value == value && (chosen < 0 || value > most))
          most = value, chosen = row;
      }
      values[thread] = most;
      rows[thread] = chosen;
      __syncthreads();
      for (int by = kThreads / 2; by >= lanes; by /= 2) {
        if (thread < by && rows[thread + by] >= 0) {
          const float other = values[thread + by];
          const bool isLater = rows[thread + by] > rows[thread];
          if (rows[thread] < 0 || other > values[thread] || (other == values[thread] && !isLater))
            values[thread] = other, rows[thread] = rows[thread + by];
        }
        __syncthreads();
      }
      chosen = rows[thread & (lanes - 1)];
      for (int64_t row = begin + (thread >> shift); row < end && column < width; row += step)
        out[row * width + column] = row == chosen ? gradient[list * ldGradient + column] : 0.0f;
      __syncthreads(); // the next columns write the rows
    }
  }
  for (int64_t i = domain->count * width + threadInGrid(); i < capacity * width;
       i += threadsInGrid())
    out[i] = 0;
}

} // namespace

void deriveRowsGradient(const genrec_domain *source, const genrec_domain *domain, bool last,
                        RowsIn x, RowsOut out, cudaStream_t stream) {
  move(ToTruncated{source, domain, last, Places(x)}, out, placesOf(x), stream);
}

void lengthenRows(const genrec_domain *source, const genrec_domain *domain, bool front, RowsIn x,
                  RowsOut out, cudaStream_t stream) {
  move(FromShorter{source, domain, front, Places(x)}, out, placesOf(x), stream);
}

void lengthenRowsGradient(const genrec_domain *source, const genrec_domain *domain, bool front,
                          RowsIn x, RowsOut out, cudaStream_t stream) {
  move(FromLonger{source, domain, front, Places(x)}, out, placesOf(x), stream);
}

void joinRows(const genrec_domain *domain, const JoinedRows &parts, RowsOut out,
              cudaStream_t stream) {
  uint64_t places = 0;
  for (int part = 0; part < parts.count; ++part)
    places |= placesOf(parts.values[part]);
  move(FromParts{domain, parts}, out, places, stream);
}

void splitJoinedRows(const genrec_domain *domain, const JoinedDomains &parts, int number, RowsIn x,
                     RowsOut out, cudaStream_t stream) {
  move(FromJoined{domain, parts, number, Places(x)}, out, placesOf(x), stream);
}

void shiftListRows(const genrec_domain *domain, int64_t distance, RowsIn x, RowsOut out,
                   bool *valid, cudaStream_t stream) {
  move(FromLater{domain, distance, Places(x), valid}, out, placesOf(x), stream);
}

void pairedRows(const genrec_domain *second, const genrec_domain *domain, RowsIn x, RowsOut out,
                cudaStream_t stream) {
  move(FromSecond{second, domain, Places(x)}, out, placesOf(x), stream);
}

void addPairs(const genrec_domain *second, const genrec_domain *domain, int64_t width,
              const float *x, int64_t ldX, float *out, int64_t capacity, cudaStream_t stream) {
  if (capacity * width > 0)
    GENREC_CUDA_LAUNCH(stream, shapeOfThreads(capacity * width, kThreads), sumPairs, second, domain,
                       width, x, ldX, out, capacity);
}

void tileRows(const genrec_domain *lists, int64_t count, bool last, RowsIn x, RowsOut out,
              cudaStream_t stream) {
  if (count > 0)
    move(FromKept{lists, count, last, Places(x)},
         RowsOut{out.values, out.capacity * count, out.bytes / count}, placesOf(x), stream);
}

void tileRowsGradient(const genrec_domain *lists, int64_t count, bool last, RowsIn x, RowsOut out,
                      cudaStream_t stream) {
  move(ToKept{lists, count, out.bytes, last, Places(x)}, out, placesOf(x), stream);
}

void listPositions(const genrec_domain *domain, bool fromEnd, int64_t *out, int64_t capacity,
                   cudaStream_t stream) {
  if (capacity > 0)
    GENREC_CUDA_LAUNCH(stream, shapeOfThreads(capacity, kThreads), writePositions, domain, fromEnd,
                       out, capacity);
}

void listLengths(const CountedLists &lists, int count, int64_t capacity, cudaStream_t stream) {
  if (capacity == 0)
    return;
  LaunchShape shape = shapeOfThreads(capacity, kThreads);
  shape.grid.y = static_cast<unsigned>(count);
  GENREC_CUDA_LAUNCH(stream, shape, writeLengths, lists, capacity);
}

void listPoolGradient(ListChoice choice, const genrec_domain *domain, int64_t lists, int64_t width,
                      const float *x, int64_t ldX, const float *gradient, int64_t ldGradient,
                      float *out, int64_t capacity, cudaStream_t stream) {
  if (capacity * width == 0)
    return;
  if (choice != ListChoice::max)
    GENREC_CUDA_LAUNCH(stream, shapeOfThreads(capacity * width, kThreads), writeEndGradients,
                       domain, choice == ListChoice::last, width, gradient, ldGradient, out,
                       capacity);
  else
    GENREC_CUDA_LAUNCH(stream, shapeOfThreads(lists * kThreads, kThreads), writeMaxGradients,
                       domain, lanesShift(width), width, x, ldX, gradient, ldGradient, out,
                       capacity);
}

} // namespace genrec::rt::cuda

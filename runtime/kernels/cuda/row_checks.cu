//===- row_checks.cu - Whether values are what they may be ----------------===//

#include "genrec_rt/kernels/cuda/row_checks.h"

#include "genrec_rt/kernels/cuda/bf16.h"
#include "genrec_rt/kernels/cuda/domain_view.h"
#include "genrec_rt/kernels/cuda/row_notes.h"

namespace genrec::rt::cuda {

namespace {

template <class T>
__global__ void __launch_bounds__(kThreads) findBeyond(DeviceRange c, RowNote *note) {
  const auto *values = static_cast<const T *>(c.values);
  const double last = c.items ? static_cast<double>(c.items->count) - 1 : c.high;
  const double most = last < c.high ? last : c.high;
  for (int64_t row = threadInGrid(); row < c.domain->count; row += threadsInGrid()) {
    const auto value = static_cast<double>(values[row]);
    const bool isWithin = value >= c.low && value <= most; // false for NaN
    if (!isWithin && !(c.valid && !c.valid[row]) && !(c.weight && c.weight[row] == 0))
      noteRow(note, c.domain, row);
  }
}

__global__ void __launch_bounds__(kThreads) findNonFinite(DeviceFloats c, RowNote *note) {
  const int64_t count = (c.domain ? c.domain->count : 1) * c.rowSize;
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid())
    if (!isFinite(c.values[i / c.rowSize * c.stride + i % c.rowSize]))
      noteRow(note, nullptr, i);
}

__device__ bool isFiniteAt(const DeviceRows &c, const float *row, int64_t at) {
  return isFinite(c.isBf16 ? toFloat(reinterpret_cast<const Bf16 *>(row)[at]) : row[at]);
}

__global__ void __launch_bounds__(kThreads) findNonFiniteRow(DeviceRows c, RowNote *note) {
  for (int64_t row = threadInGrid(); row < c.domain->count; row += threadsInGrid()) {
    const float *values = c.rows[row];
    if (!values || values == c.zeros)
      continue;
    int64_t at = 0;
    while (at < c.dim && isFiniteAt(c, values, at))
      ++at;
    if (at < c.dim)
      noteRow(note, nullptr, row);
  }
}

/// Rows of `rowSize` elements are `stride` elements apart.
__global__ void keepValue(RowNote *note, const char *values, int64_t bytes, int64_t rowSize,
                          int64_t stride) {
  if (note->place == GENREC_NO_PLACE)
    return;
  const int64_t i = note->place / GENREC_NOTE_REASONS;
  const char *from = values + (i / rowSize * stride + i % rowSize) * bytes;
  auto *to = reinterpret_cast<char *>(&note->value);
  for (int64_t byte = 0; byte < bytes; ++byte)
    to[byte] = from[byte];
}

} // namespace

void checkRange(const DeviceRange &range, genrec_row_note *note, cudaStream_t stream) {
  if (range.count == 0)
    return;
  const LaunchShape shape = shapeOfThreads(range.count, kThreads);
  int64_t bytes = 4;
  switch (range.type) {
  case GENREC_I32:
    GENREC_CUDA_LAUNCH(stream, shape, findBeyond<int32_t>, range, note);
    break;
  case GENREC_I64:
    bytes = 8;
    GENREC_CUDA_LAUNCH(stream, shape, findBeyond<int64_t>, range, note);
    break;
  case GENREC_F64:
    bytes = 8;
    GENREC_CUDA_LAUNCH(stream, shape, findBeyond<double>, range, note);
    break;
  default:
    GENREC_CUDA_LAUNCH(stream, shape, findBeyond<float>, range, note);
  }
  keepNotedValue(note, range.values, bytes, stream);
}

void checkFinite(const DeviceFloats &floats, genrec_row_note *note, cudaStream_t stream) {
  const int64_t most = floats.count * floats.rowSize;
  if (most == 0)
    return;
  GENREC_CUDA_LAUNCH(stream, shapeOfThreads(most, kThreads), findNonFinite, floats, note);
  GENREC_CUDA_LAUNCH(stream, (LaunchShape{1, 1}), keepValue, note,
                     reinterpret_cast<const char *>(floats.values), 4, floats.rowSize,
                     floats.stride);
}

void checkRows(const DeviceRows &rows, genrec_row_note *note, cudaStream_t stream) {
  if (rows.count == 0)
    return;
  GENREC_CUDA_LAUNCH(stream, shapeOfThreads(rows.count, kThreads), findNonFiniteRow, rows, note);
  keepNotedValue(note, rows.keys, sizeof *rows.keys, stream);
}

void keepNotedValue(genrec_row_note *note, const void *values, int64_t bytes, cudaStream_t stream) {
  GENREC_CUDA_LAUNCH(stream, (LaunchShape{1, 1}), keepValue, note,
                     static_cast<const char *>(values), bytes, int64_t(1), int64_t(1));
}

} // namespace genrec::rt::cuda

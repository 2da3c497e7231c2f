//===- row_picks.cu - Rows that a step picks, on the device ---------------===//

#include "genrec_rt/kernels/cuda/row_picks.h"

#include "genrec_rt/kernels/cuda/row_checks.h"
#include "genrec_rt/kernels/cuda/row_notes.h"
#include "genrec_rt/kernels/shared/random.h"
#include "length_scan.h"

namespace genrec::rt::cuda {

namespace {

constexpr int64_t kRowsPerWord = 64;

__global__ void __launch_bounds__(kThreads)
    drawRows(const genrec_domain *source, const genrec_domain *domain, int64_t capacity,
             DrawStream stream, int64_t count, int64_t *out) {
  const kernels::RandomStream random = kernels::randomStream(stream.step, stream.op);
  const auto rows = static_cast<uint32_t>(source->count);
  const int64_t used = domain ? domain->count : 1;
  for (int64_t i = threadInGrid(); i < capacity * count; i += threadsInGrid()) {
    const int64_t row = i / count;
    int64_t drawn = 0;
    if (row < used)
      drawn = kernels::drawIndex(kernels::philoxWord(random, domain ? domain->identity[row] : 0,
                                                     static_cast<uint64_t>(i % count)),
                                 rows);
    out[i] = drawn;
  }
}

/// Which rows of the source are picked: a bit per row, and per word the bits before it.
struct PickedBits {
  const genrec_domain *source;
  Word *bits;
  int64_t *before;

  __device__ int64_t lists() const { return (source->count + kRowsPerWord - 1) / kRowsPerWord; }
  __device__ int64_t length(int64_t word) const { return __popcll(bits[word]); }
  __device__ int64_t place(int64_t row) const {
    const Word below = (Word(1) << (row % kRowsPerWord)) - 1;
    return before[row / kRowsPerWord] + __popcll(bits[row / kRowsPerWord] & below);
  }
};

/// What there are of a part's numbers. A source without rows has no row for any number.
__device__ int64_t numberCount(const PickedNumbers &part) {
  return part.domain ? part.domain->count * part.width : part.width;
}

__global__ void __launch_bounds__(kThreads) markRows(PickedNumbers part, PickedBits picked) {
  const int64_t count = picked.source->count > 0 ? numberCount(part) : 0;
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid()) {
    const int64_t row = part.numbers[i];
    if (row < 0)
      continue;
    const Word bit = Word(1) << (row % kRowsPerWord);
    Word *word = picked.bits + row / kRowsPerWord;
    // Most rows that are named often are marked by now.
    if (!(loadRelaxed(word) & bit))
      atomicOr(word, bit);
  }
}

struct DescribePicked {
  PickedRows picked;

  __device__ void operator()(int64_t, int64_t total, int64_t) const {
    genrec_domain &domain = *picked.domain;
    domain.count = domain.max_length = total;
    domain.offsets = nullptr;
    domain.parent = nullptr;
    domain.identity = picked.identity;
    domain.parent_domain = nullptr;
  }
};

/// A thread per word of bits.
__global__ void __launch_bounds__(kThreads) listRows(PickedBits bits, PickedRows picked) {
  for (int64_t word = threadInGrid(); word < bits.lists(); word += threadsInGrid()) {
    int64_t place = bits.before[word];
    for (Word left = bits.bits[word]; left; left &= left - 1, ++place) {
      const int64_t row = word * kRowsPerWord + __ffsll(static_cast<long long>(left)) - 1;
      picked.rows[place] = row;
      picked.identity[place] = bits.source->identity[row];
    }
  }
}

__global__ void __launch_bounds__(kThreads) placeNumbers(PickedNumbers part, PickedBits bits) {
  const int64_t count = numberCount(part);
  const int64_t capacity = part.domain ? part.capacity * part.width : part.width;
  for (int64_t i = threadInGrid(); i < capacity; i += threadsInGrid()) {
    const int64_t row = i < count ? part.numbers[i] : 0;
    const bool names = i < count && row >= 0 && bits.source->count > 0;
    part.places[i] = names ? bits.place(row) : row;
  }
}

__global__ void __launch_bounds__(kThreads)
    findIds(const genrec_domain *domain, int64_t capacity, const int64_t *ids, const uint8_t *valid,
            CatalogueSlots slots, int64_t *rows, RowNote *missing) {
  for (int64_t row = threadInGrid(); row < capacity; row += threadsInGrid()) {
    const bool looks = row < domain->count && (!valid || valid[row]);
    const int64_t found = looks ? slots.slots[slots.find(ids[row])].row : -1;
    rows[row] = found;
    if (looks && found < 0 && missing)
      noteRow(missing, domain, row);
  }
}

int64_t wordsOf(int64_t rows) { return blocksFor(rows, kRowsPerWord); }

} // namespace

void drawNumbers(const genrec_domain *source, const genrec_domain *domain, int64_t capacity,
                 const DrawStream &stream, int64_t count, int64_t *out, cudaStream_t on) {
  const int64_t rows = domain ? capacity : 1;
  if (rows * count > 0)
    GENREC_CUDA_LAUNCH(on, shapeOfThreads(rows * count, kThreads), drawRows, source, domain, rows,
                       stream, count, out);
}

int64_t pickMemoryBytes(int64_t capacity) { return kListScratchBytes + 16 * wordsOf(capacity); }

void pickNumberedRows(const genrec_domain *source, int64_t capacity, int64_t parts,
                      const PickedNumbers *numbers, const PickedRows &picked, cudaStream_t stream) {
  const int64_t words = wordsOf(capacity);
  auto *memory = static_cast<char *>(picked.memory) + kListScratchBytes;
  const PickedBits bits{source, reinterpret_cast<Word *>(memory),
                        reinterpret_cast<int64_t *>(memory) + words};
  auto forEachPart = [&](auto kernel) {
    for (const PickedNumbers *part = numbers; part < numbers + parts; ++part)
      if (const int64_t count = (part->domain ? part->capacity : 1) * part->width; count > 0)
        GENREC_CUDA_LAUNCH(stream, shapeOfThreads(count, kThreads), kernel, *part, bits);
  };
  if (words > 0)
    GENREC_CUDA_CHECK(cudaMemsetAsync(bits.bits, 0, static_cast<size_t>(words) * 8, stream));
  forEachPart(markRows);
  scan::run(bits, words, bits.before, DescribePicked{picked}, picked.memory, stream);
  if (words > 0)
    GENREC_CUDA_LAUNCH(stream, shapeOfThreads(words, kThreads), listRows, bits, picked);
  forEachPart(placeNumbers);
}

void resolveRows(const genrec_domain *domain, int64_t capacity, const int64_t *ids,
                 const uint8_t *valid, const CatalogueSlots &slots, int64_t *rows,
                 genrec_row_note *missing, cudaStream_t stream) {
  if (capacity == 0)
    return;
  GENREC_CUDA_LAUNCH(stream, shapeOfThreads(capacity, kThreads), findIds, domain, capacity, ids,
                     valid, slots, rows, missing);
  if (missing)
    keepNotedValue(missing, ids, sizeof *ids, stream);
}

} // namespace genrec::rt::cuda

//===- decode_memory.cpp - Where Arrow's buffers come from ----------------===//

#include "decode_memory.h"

#include "genrec_rt/buffer.h"

#include <arrow/memory_pool.h>
#include <arrow/status.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

namespace genrec::rt {

namespace {

/// allocateAligned as Arrow asks for it: large buffers are pages of their own.
class DecodeMemory final : public arrow::MemoryPool {
public:
  using MemoryPool::Allocate;
  using MemoryPool::Free;
  using MemoryPool::Reallocate;

  arrow::Status Allocate(int64_t size, int64_t alignment, uint8_t **out) override {
    if (alignment > kAlignment)
      return arrow::Status::Invalid("memory aligned to ", alignment, " bytes, more than ",
                                    kAlignment);
    try {
      *out = static_cast<uint8_t *>(allocateAligned(size));
    } catch (const std::bad_alloc &) {
      return arrow::Status::OutOfMemory("cannot allocate ", size, " bytes");
    }
    held += size;
    total += size;
    ++count;
    int64_t most = peak;
    while (held > most && !peak.compare_exchange_weak(most, held))
      ;
    return arrow::Status::OK();
  }

  arrow::Status Reallocate(int64_t oldSize, int64_t newSize, int64_t alignment,
                           uint8_t **memory) override {
    uint8_t *moved = nullptr;
    ARROW_RETURN_NOT_OK(Allocate(newSize, alignment, &moved));
    std::memcpy(moved, *memory, static_cast<size_t>(std::min(oldSize, newSize)));
    Free(*memory, oldSize, alignment);
    *memory = moved;
    return arrow::Status::OK();
  }

  void Free(uint8_t *memory, int64_t size, int64_t) override {
    freeAligned(memory, size);
    held -= size;
  }

  int64_t bytes_allocated() const override { return held; }
  int64_t max_memory() const override { return peak; }
  int64_t total_bytes_allocated() const override { return total; }
  int64_t num_allocations() const override { return count; }
  std::string backend_name() const override { return "genrec"; }

private:
  static constexpr int64_t kAlignment = 64;
  std::atomic<int64_t> held{0}, peak{0}, total{0}, count{0};
};

} // namespace

arrow::MemoryPool *decodeMemory() {
  // Never destroyed, because buffers may outlive static objects.
  static auto *memory = new DecodeMemory;
  return memory;
}

} // namespace genrec::rt

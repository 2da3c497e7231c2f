//===- host_copies.h - Copies through pinned memory --------------*- C++ -*-===//

#ifndef GENREC_RT_SESSION_HOST_COPIES_H
#define GENREC_RT_SESSION_HOST_COPIES_H

#include "device_memory.h"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace genrec::rt {

/// Copies between any memory of the host and a device, through two pieces of pinned memory: while
/// the device fills or reads one, the host empties or fills the other. Small copies share a piece.
class HostCopies {
public:
  static constexpr int64_t kPieceBytes = int64_t(8) << 20;
  explicit HostCopies(Device &device, int64_t pieceBytes = kPieceBytes);
  HostCopies(const HostCopies &) = delete;
  HostCopies &operator=(const HostCopies &) = delete;

  /// To the device, after what its queue has; the host's memory may change at once.
  void in(void *to, const void *host, int64_t bytes);
  /// To the host, after what the queue has. The bytes are there after `finish`.
  void out(void *host, const void *from, int64_t bytes);
  /// Waits until all are done.
  void finish();

private:
  /// What arrives in a piece, and where it goes.
  struct Arrival {
    void *host;
    int64_t at, bytes;
  };
  struct Piece {
    std::unique_ptr<DeviceMemory> memory;
    std::unique_ptr<DeviceMark> mark;
    std::vector<Arrival> arrivals;
    int64_t used = 0;
  };

  /// Room for some of `bytes`, which it says, in a piece that is open.
  char *take(int64_t &bytes);
  /// Of a piece that the device is done with: its bytes go where they belong, and it is empty.
  static void empty(Piece &piece);

  Device &device;
  const int64_t pieceBytes;
  std::array<Piece, 2> pieces;
  size_t open = 0;
};

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_HOST_COPIES_H

//===- host_copies.cpp - Copies through pinned memory ---------------------===//

#include "host_copies.h"

#include <algorithm>
#include <cstring>

namespace genrec::rt {

HostCopies::HostCopies(Device &device, int64_t pieceBytes)
    : device(device), pieceBytes(pieceBytes) {
  for (Piece &piece : pieces)
    piece.memory = std::make_unique<DeviceMemory>(device, "copies", DeviceMemory::Kind::pinned);
}

void HostCopies::empty(Piece &piece) {
  for (const Arrival &arrival : piece.arrivals)
    std::memcpy(arrival.host, piece.memory->data() + arrival.at,
                static_cast<size_t>(arrival.bytes));
  piece.arrivals.clear();
  piece.used = 0;
}

char *HostCopies::take(int64_t &bytes) {
  if (pieces[open].used == pieceBytes) {
    if (!pieces[open].mark)
      pieces[open].mark = device.makeMark();
    device.place(*pieces[open].mark);
    open = 1 - open;
    if (pieces[open].used > 0)
      device.await(*pieces[open].mark);
    empty(pieces[open]);
  }
  Piece &piece = pieces[open];
  bytes = std::min(bytes, pieceBytes - piece.used);
  char *at = piece.memory->ensure(pieceBytes) + piece.used;
  piece.used += bytes;
  return at;
}

void HostCopies::in(void *to, const void *host, int64_t bytes) {
  for (int64_t done = 0; done < bytes;) {
    int64_t some = bytes - done;
    char *pinned = take(some);
    std::memcpy(pinned, static_cast<const char *>(host) + done, static_cast<size_t>(some));
    device.copyIn(static_cast<char *>(to) + done, pinned, some);
    done += some;
  }
}

void HostCopies::out(void *host, const void *from, int64_t bytes) {
  for (int64_t done = 0; done < bytes;) {
    int64_t some = bytes - done;
    char *pinned = take(some);
    device.copyOut(pinned, static_cast<const char *>(from) + done, some);
    Piece &piece = pieces[open];
    piece.arrivals.push_back(
        {static_cast<char *>(host) + done, pinned - piece.memory->data(), some});
    done += some;
  }
}

void HostCopies::finish() {
  if (pieces[open].used > 0)
    device.synchronize();
  for (Piece &piece : pieces)
    empty(piece);
}

} // namespace genrec::rt

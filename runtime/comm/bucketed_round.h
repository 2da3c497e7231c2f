//===- bucketed_round.h - Messages whose size the sender knows --*- C++ -*-===//

#ifndef GENREC_RT_COMM_BUCKETED_ROUND_H
#define GENREC_RT_COMM_BUCKETED_ROUND_H

#include "genrec_rt/buffer.h"
#include "genrec_rt/comm.h"

#include <cstdint>
#include <span>
#include <vector>

namespace genrec::rt {

/// What travels in the messages of a round beside other things. Both ends know its sizes.
class Rider {
public:
  virtual ~Rider() = default;
  /// What rank `from` sends to rank `to`: a multiple of 8.
  virtual int64_t getBytes(int32_t from, int32_t to) const = 0;
  virtual void write(int32_t to, char *message) = 0;
  /// The message may be written to, and stays until the next round.
  virtual void read(int32_t from, char *message) = 0;
};

/// A round of messages, one to each rank, whose sizes only their senders know. Both ends of a pair
/// remember the sizes of its messages before, and so agree on the room of the next one: a message
/// that fits travels in one exchange, its size in band. Where one does not, a bit that every
/// message has tells all ranks to make a second exchange, of what is left over.
class BucketedRound {
public:
  explicit BucketedRound(const Communicator &comm);

  /// Forgets sizes. All ranks do so at the same time, or before the first exchange.
  void reset();

  /// Begins messages of `bytes[r]` to rank r; what came before is gone.
  void layOut(std::span<const int64_t> bytes);
  /// Where the message to a rank is written, aligned to 64 bytes.
  char *outgoing(int32_t to) { return memory.data() + starts[to] + kHeaderBytes; }
  /// Collective.
  void exchange(Communicator &comm);
  /// A round of nothing else.
  void exchange(Communicator &comm, Rider &rider);
  /// What a rank sent, aligned to 64 bytes, until the next `layOut`; it may be written to. The
  /// message to this rank itself is not copied.
  std::span<char> incoming(int32_t from);

  /// Second exchanges so far.
  int64_t overflows() const { return overflowCount; }

private:
  struct Header {
    int64_t bytes;     ///< of the message behind it
    int64_t overflows; ///< whether any message of the sender is larger than its room
  };
  static constexpr int64_t kHeaderBytes = 64;
  static constexpr int64_t kFirstRoom = 4096;

  static int64_t nextRoom(int64_t room, int64_t bytes);
  int64_t total(int32_t to) const { return kHeaderBytes + outgoingBytes[to]; }
  void exchangeRest(Communicator &comm);

  int32_t ranks, rank;
  std::vector<int64_t> outgoingBytes, starts;
  GrowBuffer<char> memory;
  std::vector<GrowBuffer<char>> received; ///< by rank, with header
  std::vector<int64_t> receivedBytes;     ///< without
  std::vector<int64_t> sendRooms, receiveRooms;
  GrowBuffer<char> larger;
  int64_t overflowCount = 0;

  // Scratch.
  std::vector<SendPart> sendParts;
  std::vector<ReceivePart> receiveParts;
  std::vector<int64_t> came;
};

} // namespace genrec::rt

#endif // GENREC_RT_COMM_BUCKETED_ROUND_H

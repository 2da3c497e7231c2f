//===- bucketed_round.cpp - messages whose size the sender knows ----------===//

#include "bucketed_round.h"

#include <algorithm>
#include <cstring>
#include <utility>

using namespace genrec::rt;

BucketedRound::BucketedRound(const Communicator &comm)
    : ranks(comm.getSize()), rank(comm.getRank()), outgoingBytes(ranks), starts(ranks),
      received(ranks), receivedBytes(ranks), sendRooms(ranks, kFirstRoom),
      receiveRooms(ranks, kFirstRoom), sendParts(ranks), receiveParts(ranks), came(ranks) {}

void BucketedRound::reset() {
  std::fill(sendRooms.begin(), sendRooms.end(), kFirstRoom);
  std::fill(receiveRooms.begin(), receiveRooms.end(), kFirstRoom);
}

/// Both ends compute it. A quarter more than the last message, and not much less than before.
int64_t BucketedRound::nextRoom(int64_t room, int64_t bytes) {
  constexpr int64_t kStep = 1024;
  int64_t wanted = (bytes + bytes / 4 + kStep) / kStep * kStep;
  return std::clamp(std::max(wanted, room - room / 32), kFirstRoom, Communicator::kMostRoom);
}

void BucketedRound::layOut(std::span<const int64_t> bytes) {
  int64_t end = 0;
  for (int32_t to = 0; to < ranks; ++to) {
    outgoingBytes[to] = bytes[to];
    starts[to] = end;
    end += (total(to) + 63) / 64 * 64;
  }
  memory.ensure(end);
}

void BucketedRound::exchange(Communicator &comm) {
  Header header{0, 0};
  for (int32_t to = 0; to < ranks; ++to)
    header.overflows |= to != rank && total(to) > sendRooms[to];
  for (int32_t other = 0; other < ranks; ++other) {
    header.bytes = outgoingBytes[other];
    std::memcpy(memory.data() + starts[other], &header, sizeof header);
    bool isOther = other != rank;
    sendParts[other] = {memory.data() + starts[other],
                        isOther ? std::min(total(other), sendRooms[other]) : 0};
    int64_t room = isOther ? receiveRooms[other] : 0;
    receiveParts[other] = {received[other].ensure(room), room};
  }
  comm.exchangeUpTo(sendParts, receiveParts, came);

  bool isMore = header.overflows != 0;
  receivedBytes[rank] = outgoingBytes[rank];
  for (int32_t from = 0; from < ranks; ++from) {
    if (from == rank)
      continue;
    Header theirs{-1, 0};
    if (came[from] >= kHeaderBytes)
      std::memcpy(&theirs, received[from].data(), sizeof theirs);
    if (theirs.bytes < 0 || came[from] != std::min(theirs.bytes + kHeaderBytes, receiveRooms[from]))
      throw CommError("rank " + std::to_string(from) + " sent " + std::to_string(came[from]) +
                      " bytes that are no message");
    receivedBytes[from] = theirs.bytes;
    isMore |= theirs.overflows != 0;
  }
  if (isMore)
    exchangeRest(comm);
  for (int32_t other = 0; other < ranks; ++other) {
    sendRooms[other] = nextRoom(sendRooms[other], total(other));
    receiveRooms[other] = nextRoom(receiveRooms[other], kHeaderBytes + receivedBytes[other]);
  }
}

void BucketedRound::exchange(Communicator &comm, Rider &rider) {
  std::vector<int64_t> bytes(ranks);
  for (int32_t to = 0; to < ranks; ++to)
    bytes[to] = rider.getBytes(rank, to);
  layOut(bytes);
  for (int32_t to = 0; to < ranks; ++to)
    rider.write(to, outgoing(to));
  exchange(comm);
  for (int32_t from = 0; from < ranks; ++from) {
    if (receivedBytes[from] != rider.getBytes(from, rank))
      throw Error("rank " + std::to_string(from) + " sends " + std::to_string(receivedBytes[from]) +
                  " bytes where " + std::to_string(rider.getBytes(from, rank)) + " are expected");
    rider.read(from, incoming(from).data());
  }
}

void BucketedRound::exchangeRest(Communicator &comm) {
  ++overflowCount;
  for (int32_t other = 0; other < ranks; ++other) {
    sendParts[other] = {};
    receiveParts[other] = {};
    if (other == rank)
      continue;
    int64_t sent = std::min(total(other), sendRooms[other]);
    sendParts[other] = {memory.data() + starts[other] + sent, total(other) - sent};
    int64_t room = receiveRooms[other], whole = kHeaderBytes + receivedBytes[other];
    if (whole <= room)
      continue;
    larger.ensure(whole);
    std::memcpy(larger.data(), received[other].data(), room);
    std::swap(larger, received[other]);
    receiveParts[other] = {received[other].data() + room, whole - room};
  }
  comm.exchange(sendParts, receiveParts);
}

std::span<char> BucketedRound::incoming(int32_t from) {
  char *message = from == rank ? outgoing(rank) : received[from].data() + kHeaderBytes;
  return {message, static_cast<size_t>(receivedBytes[from])};
}

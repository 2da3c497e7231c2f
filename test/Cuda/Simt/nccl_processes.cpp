//===- nccl_processes.cpp - NCCL between processes of one machine ---------===//

#include "nccl_processes.h"

#include "simt.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

using namespace simt;

namespace {

using Clock = std::chrono::steady_clock;

/// How long a rank waits for others, in the call itself.
std::chrono::seconds longest() { return std::chrono::seconds(patienceOr(300)); }

/// Before the bytes of a send.
struct Header {
  uint64_t group; ///< its number among the groups of the communicator with sends to the receiver
  uint64_t bytes;
};

/// A name that no file has, which ends with the process.
sockaddr_un addressOf(const std::string &id, int rank, socklen_t &length) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "genrec " + id + " " + std::to_string(rank);
  const size_t bytes = std::min(name.size(), sizeof(address.sun_path) - 1);
  std::memcpy(address.sun_path + 1, name.data(), bytes);
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes);
  return address;
}

/// Connects to a lower rank, which may not listen yet.
int connectTo(const std::string &id, int peer, int rank, Clock::time_point until,
              const std::atomic<bool> &isCancelled) {
  socklen_t length;
  const sockaddr_un address = addressOf(id, peer, length);
  const int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  while (connect(made, reinterpret_cast<const sockaddr *>(&address), length) != 0) {
    if (Clock::now() > until || isCancelled) {
      close(made);
      return -1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const int32_t mine = rank;
  if (write(made, &mine, sizeof mine) == sizeof mine)
    return made;
  close(made);
  return -1;
}

/// The next higher rank that connects; its number in `peer`.
int acceptFrom(int listening, int32_t &peer, Clock::time_point until,
               const std::atomic<bool> &isCancelled) {
  pollfd waits{listening, POLLIN, 0};
  while (poll(&waits, 1, /*milliseconds=*/10) != 1)
    if (Clock::now() > until || isCancelled)
      return -1;
  const int made = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
  if (made >= 0 && recv(made, &peer, sizeof peer, MSG_WAITALL) == sizeof peer)
    return made;
  if (made >= 0)
    close(made);
  return -1;
}

/// What goes to a peer, or comes from it, in a group.
struct Stream {
  struct Piece {
    char *memory;
    size_t bytes;
  };
  std::vector<Piece> pieces;
  size_t piece = 0, done = 0;

  bool isOver() {
    while (piece < pieces.size() && done == pieces[piece].bytes) {
      ++piece;
      done = 0;
    }
    return piece == pieces.size();
  }
  char *at() const { return pieces[piece].memory + done; }
  size_t left() const { return pieces[piece].bytes - done; }
};

} // namespace

std::unique_ptr<ProcessRanks> ProcessRanks::meet(const std::string &id, int ranks, int rank,
                                                 std::string &problem,
                                                 const std::atomic<bool> &isCancelled) {
  const Clock::time_point until = Clock::now() + longest();
  std::unique_ptr<ProcessRanks> made(new ProcessRanks(ranks, rank));
  socklen_t length;
  const sockaddr_un address = addressOf(id, rank, length);
  const int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind(listening, reinterpret_cast<const sockaddr *>(&address), length) != 0 ||
      listen(listening, ranks) != 0)
    problem = std::string("cannot listen: ") + std::strerror(errno);
  for (int peer = 0; peer < rank && problem.empty(); ++peer)
    if ((made->sockets[peer] = connectTo(id, peer, rank, until, isCancelled)) < 0)
      problem = "rank " + std::to_string(peer) + " does not come";
  for (int left = ranks - 1 - rank; left > 0 && problem.empty(); --left) {
    int32_t peer = -1;
    const int socket = acceptFrom(listening, peer, until, isCancelled);
    if (socket < 0 || peer <= rank || peer >= ranks)
      problem = std::to_string(left) + " ranks above do not come";
    else
      made->sockets[peer] = socket;
  }
  close(listening);
  for (int socket : made->sockets)
    if (socket >= 0)
      (void)fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
  return problem.empty() ? std::move(made) : nullptr;
}

ProcessRanks::~ProcessRanks() {
  for (int socket : sockets)
    if (socket >= 0)
      close(socket);
}

std::string ProcessRanks::exchange(std::span<const Transfer> transfers) {
  std::vector<Header> headers(transfers.size()); // of sends, and as they came
  std::vector<Stream> out(sockets.size()), in(sockets.size());
  std::vector<const Transfer *> sends; // to this rank itself
  for (size_t i = 0; i < transfers.size(); ++i) {
    const Transfer &transfer = transfers[i];
    Stream &stream = (transfer.isSend ? out : in)[transfer.peer];
    uint64_t &groups = (transfer.isSend ? sentTo : receivedFrom)[transfer.peer];
    groups += stream.pieces.empty();
    headers[i] = {groups, transfer.bytes};
    stream.pieces.push_back({reinterpret_cast<char *>(&headers[i]), sizeof(Header)});
    stream.pieces.push_back({transfer.memory, transfer.bytes});
  }
  if (!out[rank].pieces.empty() || !in[rank].pieces.empty())
    return "a rank sends to itself, which is not emulated between processes";
  // A header is looked at before the bytes behind it are taken.
  auto check = [&](int peer) -> std::string {
    const Stream &stream = in[peer];
    if (stream.piece % 2 != 0 || stream.done != sizeof(Header))
      return {};
    const auto &header = *reinterpret_cast<const Header *>(stream.pieces[stream.piece].memory);
    const size_t expected = stream.pieces[stream.piece + 1].bytes;
    if (header.group == receivedFrom[peer] && header.bytes == expected)
      return {};
    return "NCCL calls do not match: rank " + std::to_string(peer) + " sends " +
           std::to_string(header.bytes) + " bytes in its group " + std::to_string(header.group) +
           " for rank " + std::to_string(rank) + ", which receives " + std::to_string(expected) +
           " in its group " + std::to_string(receivedFrom[peer]) + " from there";
  };
  Clock::time_point last = Clock::now();
  while (true) {
    std::vector<pollfd> waits;
    for (size_t peer = 0; peer < sockets.size(); ++peer) {
      const int events = (out[peer].isOver() ? 0 : POLLOUT) | (in[peer].isOver() ? 0 : POLLIN);
      if (events)
        waits.push_back({sockets[peer], static_cast<short>(events), 0});
    }
    if (waits.empty())
      return {};
    if (poll(waits.data(), waits.size(), 1000) < 0 && errno != EINTR)
      return std::string("cannot wait for ranks: ") + std::strerror(errno);
    for (const pollfd &ready : waits) {
      const int peer = static_cast<int>(std::ranges::find(sockets, ready.fd) - sockets.begin());
      if (ready.revents & POLLOUT) {
        const ssize_t sent = send(ready.fd, out[peer].at(), out[peer].left(), MSG_NOSIGNAL);
        out[peer].done += sent > 0 ? static_cast<size_t>(sent) : 0;
        if (sent < 0 && errno != EAGAIN && errno != EINTR)
          return "rank " + std::to_string(peer) + " is gone";
        last = Clock::now();
      }
      if (ready.revents & (POLLIN | POLLHUP) && !in[peer].isOver()) {
        const ssize_t came = recv(ready.fd, in[peer].at(), in[peer].left(), 0);
        if (came == 0 || (came < 0 && errno != EAGAIN && errno != EINTR))
          return "rank " + std::to_string(peer) + " is gone";
        in[peer].done += came > 0 ? static_cast<size_t>(came) : 0;
        last = Clock::now();
        if (std::string problem = check(peer); !problem.empty())
          return problem;
      }
    }
    if (Clock::now() - last > longest()) {
      const auto late = std::ranges::find(sockets, waits.front().fd) - sockets.begin();
      return "waited " + std::to_string(longest().count()) + " s for rank " + std::to_string(late);
    }
  }
}

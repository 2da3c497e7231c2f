//===- exchange_probe.cpp - What a round and a byte take ------------------===//

#include "exchange_probe.h"

#include "device_memory.h"

#include <algorithm>
#include <chrono>
#include <vector>

namespace genrec::rt {

namespace {

constexpr int64_t kProbeBytes = 256 << 10, kSmallBytes = 64;
constexpr int kSmallRounds = 9, kLargeRounds = 3;

/// Memory of messages to and from other ranks.
class Messages {
public:
  Messages(int64_t bytes, Device *device) {
    if (!device) {
      onHost.resize(static_cast<size_t>(bytes));
      data = onHost.data();
      return;
    }
    onDevice = std::make_unique<DeviceMemory>(*device, "probe of exchanges");
    data = onDevice->ensure(bytes);
    device->fill(data, 0, bytes);
  }
  char *data = nullptr;

private:
  std::vector<char> onHost;
  std::unique_ptr<DeviceMemory> onDevice;
};

/// What a round with so many bytes to each other rank takes: the median of some.
double timeRound(Communicator &comm, int64_t bytes, int rounds, Device *device) {
  const int32_t ranks = comm.getSize();
  Messages out(bytes, device), in(ranks * bytes, device);
  std::vector<SendPart> send(ranks, {out.data, bytes});
  std::vector<ReceivePart> receive(ranks);
  for (int32_t from = 0; from < ranks; ++from)
    receive[from] = {in.data + from * bytes, bytes};
  send[comm.getRank()] = {};
  receive[comm.getRank()] = {};
  const CommMemory memory =
      device ? CommMemory{CommMemory::Kind::device, device->stream()} : CommMemory{};
  std::vector<double> seconds;
  if (device)
    device->synchronize();
  comm.barrier(); // or the first round waits for the slowest rank
  for (int round = 0; round < rounds; ++round) {
    auto begin = std::chrono::steady_clock::now();
    comm.exchange(send, receive, memory);
    if (device)
      device->synchronize();
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + rounds / 2, seconds.end());
  return seconds[rounds / 2];
}

} // namespace

int64_t probeBytes(const Communicator &comm) {
  return std::max<int64_t>(kProbeBytes / (comm.getSize() - 1), kSmallBytes);
}

RoundTimes timeRounds(Communicator &comm, Device *device) {
  return {timeRound(comm, kSmallBytes, kSmallRounds, device),
          timeRound(comm, probeBytes(comm), kLargeRounds, device)};
}

double measureCopyRate(Device &device) {
  constexpr int64_t kBytes = int64_t(16) << 20;
  constexpr double kLeastSeconds = 1e-9;
  DeviceMemory from(device, "probe of copies"), to(device, "probe of copies");
  from.ensure(kBytes);
  to.ensure(kBytes);
  device.fill(from.data(), 0, kBytes);
  const std::unique_ptr<DeviceMark> begin = device.makeMark(), end = device.makeMark();
  device.place(*begin);
  device.copyWithin(to.data(), from.data(), kBytes);
  device.place(*end);
  device.await(*end);
  return 2.0 * static_cast<double>(kBytes) /
         std::max(device.secondsBetween(*begin, *end), kLeastSeconds);
}

} // namespace genrec::rt

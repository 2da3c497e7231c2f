//===- float_messages.cu - Floats that ranks with devices exchange --------===//

#include "float_messages.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/domain_view.h"
#include "tables.h"

#include <vector>

namespace genrec::rt::cuda {

namespace {

__global__ void __launch_bounds__(kThreads)
    narrowKernel(const float *from, int64_t count, Bf16 *to) {
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid())
    to[i] = fromFloat<Bf16>(from[i]);
}

__global__ void __launch_bounds__(kThreads)
    widenKernel(const Bf16 *from, int64_t count, float *to) {
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid())
    to[i] = toFloat(from[i]);
}

/// Elements of a message whose floats are narrow: messages begin where a cache line may.
int64_t narrowRoom(const FloatPart &part) {
  constexpr int64_t kAlign = 64;
  return (part.values + 2 * part.others + kAlign - 1) / kAlign * kAlign;
}

int64_t narrowRoom(std::span<const FloatPart> parts) {
  int64_t room = 0;
  for (const FloatPart &part : parts)
    room += narrowRoom(part);
  return room;
}

void copyOthers(void *to, const void *from, int64_t floats, cudaStream_t stream) {
  if (floats > 0)
    GENREC_CUDA_CHECK(cudaMemcpyAsync(to, from, static_cast<size_t>(floats) * sizeof(float),
                                      cudaMemcpyDeviceToDevice, stream));
}

void narrow(const FloatPart &part, Bf16 *to, cudaStream_t stream) {
  if (part.values > 0)
    GENREC_CUDA_LAUNCH(stream, shapeOfThreads(part.values, kThreads), narrowKernel, part.data,
                       part.values, to);
  copyOthers(to + part.values, part.data + part.values, part.others, stream);
}

void widen(const Bf16 *from, const FloatPart &part, cudaStream_t stream) {
  if (part.values > 0)
    GENREC_CUDA_LAUNCH(stream, shapeOfThreads(part.values, kThreads), widenKernel, from,
                       part.values, part.data);
  copyOthers(part.data + part.values, from + part.values, part.others, stream);
}

} // namespace

int64_t FloatMessages::bytesOf(const FloatPart &part) const {
  return part.values * (isNarrow ? 2 : 4) + part.others * 4;
}

int64_t FloatMessages::exchange(Communicator &on, std::span<const FloatPart> send,
                                std::span<const FloatPart> receive, cudaStream_t stream) {
  std::vector<SendPart> out;
  std::vector<ReceivePart> in;
  int64_t bytes = 0;
  for (size_t peer = 0; peer < send.size(); ++peer) {
    out.push_back({send[peer].data, bytesOf(send[peer])});
    in.push_back({receive[peer].data, bytesOf(receive[peer])});
    bytes += in.back().bytes;
  }
  const CommMemory onDevice{CommMemory::Kind::device, stream};
  if (!isNarrow) {
    on.exchange(out, in, onDevice);
    return bytes;
  }
  Bf16 *to = sent.ensure(roomFor(narrowRoom(send)), stream),
       *from = received.ensure(roomFor(narrowRoom(receive)), stream);
  for (size_t peer = 0; peer < send.size(); ++peer) {
    narrow(send[peer], to, stream);
    out[peer].data = to;
    in[peer].data = from;
    to += narrowRoom(send[peer]);
    from += narrowRoom(receive[peer]);
  }
  on.exchange(out, in, onDevice);
  for (size_t peer = 0; peer < send.size(); ++peer)
    widen(static_cast<const Bf16 *>(in[peer].data), receive[peer], stream);
  return bytes;
}

} // namespace genrec::rt::cuda

//===- float_messages.h - Floats that ranks with devices exchange -*- C++ -*-===//

#ifndef GENREC_RT_RANKS_CUDA_FLOAT_MESSAGES_H
#define GENREC_RT_RANKS_CUDA_FLOAT_MESSAGES_H

#include "genrec_rt/comm.h"
#include "genrec_rt/cuda/memory.h"
#include "genrec_rt/kernels/cuda/bf16.h"

#include <span>
#include <string>

namespace genrec::rt::cuda {

/// What goes to a peer or comes from it: values, and other floats behind them; of the device.
struct FloatPart {
  float *data = nullptr;
  int64_t values = 0;
  int64_t others = 0;

  int64_t floats() const { return values + others; }
};

/// Exchanges of floats. Where they are narrow, values travel as bf16, rounded to the nearest, ties
/// to even: half of the bytes.
class FloatMessages {
public:
  FloatMessages(const std::string &name, bool isNarrow)
      : isNarrow(isNarrow), sent(name + ".narrow_sent"), received(name + ".narrow_received") {}

  /// Sends `send[r]` to rank r and receives `receive[r]` from it, in the order of `stream`. Returns
  /// the bytes that come from other ranks. Collective.
  int64_t exchange(Communicator &on, std::span<const FloatPart> send,
                   std::span<const FloatPart> receive, cudaStream_t stream);

private:
  int64_t bytesOf(const FloatPart &part) const;

  bool isNarrow;
  DeviceArray<Bf16> sent, received;
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_RANKS_CUDA_FLOAT_MESSAGES_H

//===- nccl_data.h - Sums of values of NCCL's types --------------*- C++ -*-===//

#ifndef GENREC_TEST_CUDA_SIMT_NCCL_DATA_H
#define GENREC_TEST_CUDA_SIMT_NCCL_DATA_H

#include "bf16_value.h"
#include "nccl.h"

#include <algorithm>
#include <cstring>

namespace simt {

inline size_t bytesOf(ncclDataType_t type) {
  constexpr size_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return kBytes[type];
}

/// Calls body(a value of the type that sums have, load, store); half is not emulated.
template <class Body> void withType(ncclDataType_t type, Body body) {
  auto plain = [&]<class T>(T) {
    body(
        [](const char *at) {
          T v;
          std::memcpy(&v, at, sizeof(T));
          return v;
        },
        [](char *at, T v) { std::memcpy(at, &v, sizeof(T)); });
  };
  switch (type) {
  case ncclInt8:
    return plain(int8_t());
  case ncclUint8:
    return plain(uint8_t());
  case ncclInt32:
    return plain(int32_t());
  case ncclUint32:
    return plain(uint32_t());
  case ncclInt64:
    return plain(int64_t());
  case ncclUint64:
    return plain(uint64_t());
  case ncclFloat32:
    return plain(float());
  case ncclFloat64:
    return plain(double());
  case ncclBfloat16:
    return body([](const char *at) { return bf16At(at); },
                [](char *at, float v) { storeBf16(at, v); });
  case ncclFloat16:
    fail("NCCL sums of half are not emulated");
  }
}

/// to[i] = to[i] op from[i]
inline void reduceInto(char *to, const char *from, size_t count, ncclDataType_t type,
                       ncclRedOp_t op) {
  const size_t bytes = bytesOf(type);
  withType(type, [&](auto load, auto store) {
    using T = decltype(load(from));
    for (size_t i = 0; i < count; ++i) {
      const T a = load(to + i * bytes), b = load(from + i * bytes);
      store(to + i * bytes, op == ncclProd  ? static_cast<T>(a * b)
                            : op == ncclMax ? std::max(a, b)
                            : op == ncclMin ? std::min(a, b)
                                            : static_cast<T>(a + b));
    }
  });
}

inline void divide(char *to, size_t count, ncclDataType_t type, int by) {
  const size_t bytes = bytesOf(type);
  withType(type, [&](auto load, auto store) {
    using T = decltype(load(to));
    for (size_t i = 0; i < count; ++i)
      store(to + i * bytes, static_cast<T>(load(to + i * bytes) / static_cast<T>(by)));
  });
}

} // namespace simt

#endif // GENREC_TEST_CUDA_SIMT_NCCL_DATA_H

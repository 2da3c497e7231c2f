//===- prepared_source.h - Batches of samples that were made before -*- C++ -*-===//

#ifndef GENREC_TEST_CUDA_PREPARED_SOURCE_H
#define GENREC_TEST_CUDA_PREPARED_SOURCE_H

#include "../Runtime/prepared_source.h"
#include "device_model.h"

namespace genrec::rt::cuda::test {

class PreparedSource : public rt::test::PreparedSource {
public:
  using rt::test::PreparedSource::PreparedSource;
  explicit PreparedSource(const std::vector<Samples> &samples)
      : rt::test::PreparedSource(made(samples)) {}

private:
  static std::vector<Batch> made(const std::vector<Samples> &samples) {
    std::vector<Batch> batches;
    for (const Samples &each : samples)
      batches.push_back(batchOf(each));
    return batches;
  }
};

} // namespace genrec::rt::cuda::test

#endif // GENREC_TEST_CUDA_PREPARED_SOURCE_H

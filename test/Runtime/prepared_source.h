//===- prepared_source.h - Batches that were made before ---------*- C++ -*-===//

#ifndef GENREC_TEST_RUNTIME_PREPARED_SOURCE_H
#define GENREC_TEST_RUNTIME_PREPARED_SOURCE_H

#include "genrec_rt/session.h"

#include <utility>
#include <vector>

namespace genrec::rt::test {

/// Hands out batches that were made before; none is waited for.
class PreparedSource : public BatchSource {
public:
  explicit PreparedSource(std::vector<Batch> made) : batches(std::move(made)) {}
  bool next(Batch &batch) override {
    if (at == batches.size())
      return false;
    std::swap(batch, batches[at++]);
    return true;
  }

private:
  std::vector<Batch> batches;
  size_t at = 0;
};

} // namespace genrec::rt::test

#endif // GENREC_TEST_RUNTIME_PREPARED_SOURCE_H

//===- row_rules_test.cpp - Rows that come and leave by rule --------------===//

#include "../Runtime/row_rules_conformance.h"
#include "cuda_store.h"

#include "genrec_rt/cuda/memory.h"

namespace genrec::rt::test {
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, RowRulesConformance, CudaStore);
namespace {

TEST(CudaRowRules, RowsThatStayKeepTheirPlaces) {
  CudaStore store(ruledConfig({.bound = 32}));
  std::vector<int64_t> ids(40);
  std::iota(ids.begin(), ids.end(), 0);
  auto rows = store.train(ids, 1);
  store.train({35, 36, 37, 38, 39}, 2);
  store.evict(2);
  for (int64_t id : store.ids())
    EXPECT_EQ(store.find({id})[0], rows[static_cast<size_t>(id)]) << id;
  EXPECT_EQ(store.size(), 30);
}

TEST(CudaRowRules, NothingIsAllocatedInTheSteadyState) {
  CudaStore store(ruledConfig({.bound = 50, .ttl = 9, .admitAfter = 2}));
  int64_t before = 0;
  for (int64_t step = 1; step <= 24; ++step) {
    std::vector<int64_t> ids(40);
    for (size_t i = 0; i < ids.size(); ++i)
      ids[i] = step / 3 * 20 + static_cast<int64_t>(i);
    store.train(ids, step);
    store.evict(step);
    if (step == 18)
      before = cuda::namedAllocations("movie");
  }
  EXPECT_EQ(cuda::namedAllocations("movie"), before);
}

TEST(CudaRowRules, ACacheHasNone) {
  try {
    CudaStore store(ruledConfig({.bound = 8}), cuda::CacheLimit{8});
    FAIL();
  } catch (const Error &error) {
    EXPECT_STREQ(error.what(), "cache 'movie' has rules about rows, which are a table's");
  }
}

} // namespace
} // namespace genrec::rt::test

//===- test_pool.h - A thread pool as long as a test has it ------*- C++ -*-===//

#ifndef GENREC_TEST_RUNTIME_TEST_POOL_H
#define GENREC_TEST_RUNTIME_TEST_POOL_H

#include "genrec_rt/parallel.h"

#include <cstdint>

namespace genrec::rt::test {

struct TestPool {
  explicit TestPool(int32_t threads) : pool(genrec_rt_pool_create(threads)) {}
  ~TestPool() { genrec_rt_pool_destroy(pool); }
  TestPool(const TestPool &) = delete;

  genrec_rt_pool *pool;
};

} // namespace genrec::rt::test

#endif // GENREC_TEST_RUNTIME_TEST_POOL_H

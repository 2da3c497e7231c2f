//===- loaded_object_test.cpp - Kernels of an object loaded at run time ---===//

#include "simt_fixture.h"

#include <dlfcn.h>
#include <numeric>

namespace genrec::rt::cuda::test {
namespace {

using testing::HasSubstr;

/// Loaded/reversed.cpp.
class LoadedObject {
public:
  LoadedObject() : object(dlopen(GENREC_LOADED_OBJECT, RTLD_NOW | RTLD_LOCAL)) {
    EXPECT_NE(object, nullptr) << dlerror();
    if (object)
      reverse = reinterpret_cast<decltype(reverse)>(dlsym(object, "genrecReverse"));
  }
  ~LoadedObject() {
    if (object)
      dlclose(object);
  }

  void (*reverse)(int *data, int blocks, bool hasBarrier) = nullptr;

private:
  void *object;
};

/// The same in the program.
__global__ void reverseHere(int *data) {
  __shared__ int tile[64];
  int *mine = data + blockIdx.x * 64;
  tile[threadIdx.x] = mine[threadIdx.x];
  __syncthreads();
  mine[threadIdx.x] = tile[63 - threadIdx.x];
}

TEST_P(Simt, LoadedObjectsHaveSharedMemoryOfTheirOwn) {
  constexpr int kBlocks = 5, kCount = kBlocks * 64;
  int *data = device(kCount);
  std::vector<int> values(kCount);
  std::iota(values.begin(), values.end(), 0);
  GENREC_CUDA_CHECK(cudaMemcpy(data, values.data(), kCount * 4, cudaMemcpyHostToDevice));
  auto reverseOwn = [&] { EXPECT_EQ(accusation(kBlocks, 64, 0, reverseHere, data), "none"); };
  // Loaded twice: what is known of an object goes with it.
  for (int round = 0; round < 2; ++round) {
    {
      LoadedObject loaded;
      ASSERT_NE(loaded.reverse, nullptr);
      EXPECT_NO_THROW(loaded.reverse(data, kBlocks, true)) << simt::errorMessage();
      reverseOwn();
      EXPECT_NO_THROW(loaded.reverse(data, kBlocks, true)) << simt::errorMessage();
    }
    reverseOwn();
  }
  EXPECT_EQ(host(data, kCount), values); // reversed eight times
}

TEST_P(Simt, SharedMemoryOfLoadedObjectsIsChecked) {
  int *data = device(64);
  LoadedObject loaded;
  ASSERT_NE(loaded.reverse, nullptr);
  EXPECT_ANY_THROW(loaded.reverse(data, 1, false));
  EXPECT_THAT(simt::errorMessage(), testing::AnyOf(HasSubstr("race in shared memory"),
                                                   HasSubstr("uninitialised shared memory")));
}

} // namespace
} // namespace genrec::rt::cuda::test

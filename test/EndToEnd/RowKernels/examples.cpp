//===- examples.cpp - Every kernel of a model on both targets -------------===//
//
// Built by test_cuda_kernels.py from what genrec-compile prints for a model and, in GENREC_KERNELS,
// a list of its kernels made of their signatures. Each kernel runs on random memory of the size of
// its numbers, over domains that have the same rows and lists. Prints a line per kernel, "<kernel>
// same", or "differs" with the first difference.
//
//===----------------------------------------------------------------------===//

#include "both_targets.h"
#include "genrec_rt/kernels/cpu/segments.h"
#include "genrec_rt/kernels/cuda/pools.h"
#include "genrec_rt/kernels/cuda/segments_warp.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

/// An argument of a kernel behind the step.
struct Argument {
  enum Kind { floats, integers, flags, words, rows, segments, strings, parts, domain } kind;
  bool isConst;
};

struct Kernel {
  const char *name;
  genrec_rt_chunk_fn onCpu;
  genrec::rt::kernels::RowMapping mapping;
  std::vector<Argument> arguments;
  int64_t rows; ///< to run it on, of every domain
  /// At least the widest row, in elements.
  int64_t width;
  bool addsUp;                  ///< the last argument is memory of sums
  bool gathers;                 ///< products of gathered rows, which add in another order
  std::vector<int64_t> results; ///< floats of those that it adds up
  const genrec::rt::kernels::SumShape *shapes;
  /// Of one that splits lists: its last argument is memory of parts.
  const genrec::rt::kernels::PoolShape *pools;
  void (*onDevice)(const genrec::rt::cuda::LaunchShape &, const genrec_step *, void *const *);
};

/// A program of columns.
struct Program {
  genrec_rt_chunk_fn onCpu;
  int64_t rows, width; ///< as those of a kernel
};

struct Columns {
  const char *name;
  std::vector<Program> programs;
  std::vector<genrec::rt::kernels::ColumnShape> shapes;
  std::vector<Argument> arguments; ///< of all columns
  void (*onDevice)(genrec_step *, void *const *);
};

#include GENREC_KERNELS

/// Memory of the device for the parts of a launch of lists; on the CPU nobody asks.
extern "C" void *genrec_rt_thread_scratch(genrec_step *, int64_t bytes) {
  void *memory = nullptr;
  GENREC_CUDA_CHECK(cudaMalloc(&memory, static_cast<size_t>(bytes)));
  return memory;
}

namespace {

namespace launches = genrec::rt::kernels;

#if !defined(GENREC_ROWS)
#define GENREC_ROWS 37
#endif
constexpr int64_t kRows = GENREC_ROWS, kDomains = 1024;
/// Fewer than there are rows, so that they pick any.
constexpr int64_t kPicked = 30;

/// Memory of an argument: what the CPU and what a device gets.
struct Memory {
  std::vector<char> cpu;
  char *device = nullptr;
  bool isFloats = true;
  void *forCpu = nullptr, *forDevice = nullptr;

  void make(int64_t bytes) {
    cpu.resize(static_cast<size_t>(bytes) + 64);
    GENREC_CUDA_CHECK(cudaMalloc(&device, cpu.size()));
  }
  char *begin() { // of a cache line
    return cpu.data() + (64 - reinterpret_cast<uintptr_t>(cpu.data()) % 64) % 64;
  }
  void upload() {
    GENREC_CUDA_CHECK(cudaMemcpy(device, begin(), cpu.size() - 64, cudaMemcpyHostToDevice));
    forCpu = begin();
    forDevice = device;
  }
};

void fillFloats(char *to, int64_t count, float least) {
  for (int64_t i = 0; i < count; ++i) {
    float value = least + static_cast<float>(generator() % 1000) / 1000 * (1 - least);
    std::memcpy(to + 4 * i, &value, 4);
  }
}

void fillIntegers(char *to, int64_t count, int64_t least) {
  for (int64_t i = 0; i < count; ++i) {
    int64_t value = least + static_cast<int64_t>(generator() % static_cast<uint64_t>(kPicked));
    std::memcpy(to + 8 * i, &value, 8);
  }
}

/// Handles of `rows`, each of `floats`, behind the rows themselves.
void makeRows(Memory &memory, int64_t floats) {
  memory.make(kRows * floats * 4);
  fillFloats(memory.begin(), kRows * floats, 0.01f);
  memory.upload();
  auto **cpu = shared<float *>(kRows), **device = shared<float *>(kRows);
  for (int64_t row = 0; row < kRows; ++row) {
    cpu[row] = reinterpret_cast<float *>(memory.begin()) + row * floats;
    device[row] = reinterpret_cast<float *>(memory.device) + row * floats;
  }
  memory.forCpu = static_cast<void *>(cpu);
  memory.forDevice = static_cast<void *>(device);
}

/// Gradients of distinct rows: two or three of each, in any order.
void makeSegments(Memory &memory, int64_t width) {
  constexpr int64_t kMost = 3 * kRows;
  auto *offsets = shared<int64_t>(kRows + 1), *members = shared<int64_t>(kMost);
  auto *order = shared<uint32_t>(kMost);
  offsets[0] = 0;
  for (int64_t row = 0; row < kRows; ++row)
    offsets[row + 1] = offsets[row] + 1 + static_cast<int64_t>(generator() % 3);
  for (int64_t i = 0; i < offsets[kRows]; ++i) {
    order[i] = static_cast<uint32_t>((i * 7 + 3) % offsets[kRows]);
    members[i] = order[i];
  }
  auto *gradients = shared<float>(kMost * width);
  randomize(gradients, kMost * width);
  auto *device = shared<genrec::rt::cuda::SegmentSums>(1);
  *device = {};
  device->terms = {gradients, width, nullptr, nullptr, order};
  device->offsets = offsets;
  device->dim = width;
  auto **parts = shared<const float *>(1);
  auto *strides = shared<int64_t>(1);
  parts[0] = gradients;
  strides[0] = width;
  auto *cpu = shared<kernels::SegmentSums>(1);
  *cpu = {offsets, members, parts, strides, offsets[kRows]};
  memory.make(64);
  memory.upload();
  memory.forCpu = cpu;
  memory.forDevice = device;
}

void makeStrings(Memory &memory, int64_t count) {
  constexpr int64_t kMost = 400;
  auto *bytes = shared<char>(kMost);
  for (int64_t i = 0; i < kMost; ++i)
    bytes[i] = static_cast<char>(generator());
  memory.make(count * static_cast<int64_t>(sizeof(genrec_string)));
  for (int64_t i = 0; i < count; ++i) {
    const auto from = static_cast<int64_t>(generator() % 100);
    genrec_string text{bytes + from, i < 300 ? i : static_cast<int64_t>(generator() % 300)};
    std::memcpy(memory.begin() + i * static_cast<int64_t>(sizeof(text)), &text, sizeof(text));
  }
  memory.upload();
}

void makeMemory(Memory &memory, const Argument &argument, int64_t width, int64_t leastIndex) {
  const int64_t count = (kRows + 27) * width;
  memory.isFloats = argument.kind == Argument::floats || argument.kind == Argument::rows;
  switch (argument.kind) {
  case Argument::rows:
    return makeRows(memory, (6 * width + 15) / 16 * 16);
  case Argument::segments:
    return makeSegments(memory, width);
  case Argument::strings:
    return makeStrings(memory, kRows);
  case Argument::parts:  // which the launch makes
  case Argument::domain: // of those that are all alike, the first
    memory.forDevice = nullptr;
    return memory.make(1);
  case Argument::floats:
    memory.make(count * 4);
    fillFloats(memory.begin(), count, argument.isConst ? -1 : 0.01f);
    break;
  case Argument::integers:
    memory.make(count * 8);
    fillIntegers(memory.begin(), count, leastIndex);
    break;
  case Argument::words:
    memory.make(count * 8);
    fillIntegers(memory.begin(), count, 0);
    break;
  case Argument::flags:
    memory.make(count);
    for (int64_t i = 0; i < count; ++i)
      memory.begin()[i] = static_cast<char>(generator() % 2);
    break;
  }
  memory.upload();
}

bool isSame(float a, float b, bool isClose) {
  if (std::isnan(a) && std::isnan(b))
    return true;
  return isClose ? std::fabs(a - b) <= 1e-4f * (1 + std::fabs(a)) : std::memcmp(&a, &b, 4) == 0;
}

/// Compares what the targets left; what they got was the same.
std::string compare(Memory &memory, bool isClose) {
  std::vector<char> device(memory.cpu.size() - 64);
  GENREC_CUDA_CHECK(
      cudaMemcpy(device.data(), memory.device, device.size(), cudaMemcpyDeviceToHost));
  if (!memory.isFloats)
    return std::memcmp(device.data(), memory.begin(), device.size()) == 0 ? "" : " in integers";
  for (size_t at = 0; at + 4 <= device.size(); at += 4) {
    float a, b;
    std::memcpy(&a, memory.begin() + at, 4);
    std::memcpy(&b, device.data() + at, 4);
    if (!isSame(a, b, isClose))
      return " at " + std::to_string(at / 4) + ": " + std::to_string(a) + " on the CPU, " +
             std::to_string(b) + " on the device";
  }
  return "";
}

void report(const char *name, std::vector<Memory> &memory, const std::vector<Argument> &arguments,
            bool isClose, std::string difference) {
  for (size_t i = 0; i < memory.size() && difference.empty(); ++i)
    if (arguments[i].kind != Argument::parts && arguments[i].kind != Argument::domain &&
        (!arguments[i].isConst || arguments[i].kind == Argument::rows))
      if (difference = compare(memory[i], isClose); !difference.empty())
        difference = " argument " + std::to_string(i) + difference;
  std::printf("%s %s%s\n", name, difference.empty() ? "same" : "differs", difference.c_str());
  anyDiffers |= !difference.empty();
}

/// The sums that a kernel adds up, on both targets.
class Sums {
public:
  Sums(const Kernel &kernel, const genrec_step *step)
      : kernel(kernel), results(makeResults(kernel)), chunkedRoom(results.size()),
        scatteredRoom(results.size()),
        device(step, kernel.shapes, results, chunkedRoom.data(), scatteredRoom.data()),
        chunks(launches::cutRows(kernel.rows, device.floats)) {
    for (int64_t size : kernel.results)
      floats += (size + 15) / 16 * 16;
    const int64_t words = device.words + chunks.count * device.floats;
    GENREC_CUDA_CHECK(cudaMalloc(&memory, static_cast<size_t>(words * 4 + device.scratchBytes)));
    device.place(memory);
  }

  /// Runs the kernel with what both targets get. The device's rows are added up as on the CPU: sums
  /// over all rows by chunks, those into rows that an index picks as by one chunk.
  void run(void **onCpu, void **onDevice, const genrec_step *step) {
    addOnCpu(onCpu, {kernel.rows, 1}, whole);
    if (device.floats)
      addOnCpu(onCpu, chunks, chunked);
    onDevice[kernel.arguments.size() - 1] = memory;
    for (const launches::ScatteredSum &sum : device.scattered)
      launches::clearTerms(kStream, sum);
    const int64_t rows = device.floats ? chunks.count : kernel.rows;
    kernel.onDevice(launches::detail::shapeOf(kernel.mapping, rows, rows), step, onDevice);
    if (device.floats)
      launches::addChunks(kStream, &step->domains[0], memory + device.words, device.floats,
                          device.chunked);
    for (const launches::ScatteredSum &sum : device.scattered)
      launches::addTerms(kStream, sum, memory + device.words + chunks.count * device.floats);
  }

  std::string compare() {
    int64_t at = 0;
    for (size_t i = 0; i < kernel.results.size(); ++i) {
      std::vector<float> found(static_cast<size_t>(kernel.results[i]));
      GENREC_CUDA_CHECK(
          cudaMemcpy(found.data(), results[i].to, found.size() * 4, cudaMemcpyDeviceToHost));
      const std::vector<float> &expected = kernel.shapes[i].terms ? whole : chunked;
      for (size_t k = 0; k < found.size(); ++k)
        if (float cpu = expected[static_cast<size_t>(at) + k];
            !isSame(cpu, found[k], kernel.gathers))
          return " sum " + std::to_string(i) + " at " + std::to_string(k) + ": " +
                 std::to_string(cpu) + " on the CPU, " + std::to_string(found[k]) +
                 " on the device";
      at += (kernel.results[i] + 15) / 16 * 16;
    }
    return "";
  }

private:
  static std::vector<launches::SumResult> makeResults(const Kernel &kernel) {
    std::vector<launches::SumResult> results;
    for (int64_t size : kernel.results) {
      float *to = nullptr;
      GENREC_CUDA_CHECK(cudaMalloc(&to, static_cast<size_t>(size) * 4));
      results.push_back({to, size});
    }
    return results;
  }

  /// Runs the chunks and adds them up, in the tree of both targets, to `sums`.
  void addOnCpu(void **arguments, launches::RowChunks cut, std::vector<float> &sums) {
    sums.assign(static_cast<size_t>(cut.count * floats) + 16, 0);
    auto address = reinterpret_cast<uintptr_t>(sums.data());
    auto *aligned = reinterpret_cast<float *>((address + 63) / 64 * 64);
    arguments[kernel.arguments.size()] = aligned;
    for (int64_t chunk = 0; chunk < cut.count; ++chunk)
      kernel.onCpu(static_cast<void *>(arguments), chunk * cut.grain,
                   std::min(kernel.rows, (chunk + 1) * cut.grain), chunk);
    for (int64_t by = 1; by < cut.count; by *= 2)
      for (int64_t i = 0; i + by < cut.count; i += 2 * by)
        for (int64_t k = 0; k < floats; ++k)
          aligned[i * floats + k] += aligned[(i + by) * floats + k];
    std::memmove(sums.data(), aligned, static_cast<size_t>(floats) * 4);
  }

  const Kernel &kernel;
  const std::vector<launches::SumResult> results;
  std::vector<launches::SumResult> chunkedRoom;
  std::vector<launches::ScatteredSum> scatteredRoom;
  launches::detail::SumMemory device;
  const launches::RowChunks chunks;
  int64_t floats = 0; ///< of all results
  float *memory = nullptr;
  std::vector<float> whole, chunked; ///< the CPU's, by one chunk and by the device's
};

/// As queuePools does.
void runPools(const Kernel &kernel, genrec_step *step, std::vector<void *> &onDevice) {
  const genrec_domain *domain = &step->domains[kernel.pools->domain];
  const int64_t slots = launches::slotsOf(domain + kernel.pools->depth, domain);
  float *parts = nullptr;
  if (slots > 0)
    GENREC_CUDA_CHECK(
        cudaMalloc(&parts, static_cast<size_t>(launches::partFloats(*kernel.pools, slots)) * 4));
  onDevice.push_back(parts);
  kernel.onDevice(launches::detail::shapeOf(kernel.mapping, kernel.rows + slots, 64), step,
                  onDevice.data());
  const launches::PooledLists lists(domain + kernel.pools->depth, domain, *kernel.pools,
                                    onDevice.data(), parts);
  if (slots > 0)
    launches::poolParts(kStream, *kernel.pools, &lists, 1);
}

void runKernel(const Kernel &kernel, genrec_step *step) {
  std::vector<Memory> memory(kernel.arguments.size() - (kernel.addsUp || kernel.pools ? 1 : 0));
  for (size_t i = 0; i < memory.size(); ++i)
    makeMemory(memory[i], kernel.arguments[i], kernel.width, kernel.gathers ? 0 : -1);
  for (int64_t i = 0; i < kDomains; ++i)
    step->domains[i].count = kernel.rows;
  std::vector<void *> onCpu{step}, onDevice;
  for (Memory &one : memory) {
    onCpu.push_back(one.forCpu);
    onDevice.push_back(one.forDevice);
  }
  if (kernel.addsUp) {
    onCpu.push_back(nullptr);
    onDevice.push_back(nullptr);
    Sums sums(kernel, step);
    sums.run(onCpu.data(), onDevice.data(), step);
    return report(kernel.name, memory, kernel.arguments, kernel.gathers, sums.compare());
  }
  kernel.onCpu(static_cast<void *>(onCpu.data()), 0, kernel.rows, 0);
  if (kernel.pools) {
    runPools(kernel, step, onDevice);
    return report(kernel.name, memory, kernel.arguments, kernel.gathers, "");
  }
  kernel.onDevice(launches::detail::shapeOf(kernel.mapping, kernel.rows, kernel.rows), step,
                  onDevice.data());
  report(kernel.name, memory, kernel.arguments, kernel.gathers, "");
}

void runColumns(const Columns &columns, genrec_step *step) {
  std::vector<Memory> memory(columns.arguments.size());
  std::vector<void *> onDevice;
  size_t next = 0;
  for (const genrec::rt::kernels::ColumnShape &shape : columns.shapes) {
    const Program &program = columns.programs[static_cast<size_t>(shape.program)];
    std::vector<void *> onCpu{step};
    for (int32_t i = 0; i < shape.pointers; ++i, ++next) {
      // None is 0: there are divisors among them.
      makeMemory(memory[next], columns.arguments[next], program.width, 1);
      onCpu.push_back(memory[next].forCpu);
      onDevice.push_back(memory[next].forDevice);
    }
    step->domains[shape.domain].count = program.rows;
    program.onCpu(static_cast<void *>(onCpu.data()), 0, program.rows, 0);
  }
  columns.onDevice(step, onDevice.data());
  report(columns.name, memory, columns.arguments, false, "");
}

/// Domains of kRows rows, each below the one before: some of its lists are empty, one is long.
genrec_domain *makeDomains() {
  auto *domains = shared<genrec_domain>(kDomains);
  auto *offsets = shared<int64_t>(kRows + 1), *parent = shared<int64_t>(kRows);
  auto *identity = shared<uint64_t>(kRows);
  offsets[0] = 0;
  for (int64_t row = 0; row < kRows; ++row) {
    const int64_t wanted = row == 20   ? kRows / 4
                           : row == 22 ? kRows / 5
                                       : static_cast<int64_t>(generator() % 3);
    const int64_t left = kRows - offsets[row];
    offsets[row + 1] = offsets[row] + (row + 1 == kRows ? left : std::min(wanted, left));
    for (int64_t child = offsets[row]; child < offsets[row + 1]; ++child)
      parent[child] = row;
    identity[row] = generator() * uint64_t(0x9E3779B97F4A7C15);
  }
  // The domain above any is as good as that behind it.
  for (int64_t i = 0; i < kDomains; ++i)
    domains[i] = {kRows, kRows,      offsets, parent, identity, domains + (i + 1) % kDomains,
                  kRows, domains + i};
  return domains;
}

} // namespace

int main(int argc, char **argv) {
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  generator.seed(argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 1);
  genrec_step *step = makeStep(makeDomains());
  step->seed = 5;
  step->step = 3;
  for (const Kernel &kernel : allKernels)
    runKernel(kernel, step);
  for (int64_t i = 0; i < kDomains; ++i)
    step->domains[i].count = kRows;
  for (const Columns &columns : allColumns)
    runColumns(columns, step);
  return anyDiffers;
}

//===- calibrate.cpp - Measures a machine's limits ------------------------===//

#include "calibrate.h"

#include "../core/aside_file.h"
#include "../core/json.h"
#include "../core/text.h"
#include "../core/threads.h"
#include "genrec_rt/buffer.h"
#include "genrec_rt/error.h"
#include "genrec_rt/kernels/cpu/gemm.h"
#include "genrec_rt/parallel.h"
#include "profile.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

namespace genrec::rt {

namespace {

constexpr double kSecondsPerMeasurement = 0.1;
/// Working sets: within the caches of a core, those that cores share, memory.
constexpr int64_t kWorkingSets[] = {int64_t(256) << 10, int64_t(4) << 20, int64_t(16) << 20,
                                    int64_t(128) << 20};
constexpr int64_t kRowFloats = 64;

/// The least seconds of `body`, which is run for a while.
template <class Body> double leastSeconds(const Body &body) {
  body();
  double least = 1e9, all = 0;
  while (all < kSecondsPerMeasurement) {
    int64_t begin = profileClock();
    body();
    double seconds = static_cast<double>(profileClock() - begin) * 1e-9;
    least = std::min(least, seconds);
    all += std::max(seconds, 1e-9);
  }
  return std::max(least, 1e-9);
}

float *filled(GrowBuffer<float> &memory, int64_t count) {
  float *values = memory.ensure(count);
  for (int64_t i = 0; i < count; ++i)
    values[i] = 0.001f * static_cast<float>(i % 97);
  return values;
}

/// Products of many rows with a small matrix, as recommendation models have them.
double productRate(genrec_rt_pool *pool) {
  constexpr int64_t kRows = 8192, kInner = 256, kColumns = 64;
  GrowBuffer<float> x, w, y;
  GrowBuffer<char> scratch;
  const float *from = filled(x, kRows * kInner), *weight = filled(w, kInner * kColumns);
  float *to = filled(y, kRows * kColumns);
  char *space = scratch.ensure(kernels::matmulDynamicScratchBytes(kInner, kColumns));
  double seconds = leastSeconds([&] {
    kernels::matmulDynamic(pool, false, kRows, kInner, kColumns, from, kInner, weight, kColumns, to,
                           kColumns, false, space);
  });
  return 2.0 * kRows * kInner * kColumns / seconds;
}

/// A polynomial of every element of rows in a core's cache.
double elementwiseRate(genrec_rt_pool *pool, int32_t threads) {
  constexpr int64_t kFloats = 2048, kRepeats = 64, kTerms = 8;
  GrowBuffer<float> memory;
  float *values = filled(memory, kFloats * threads);
  double seconds = leastSeconds([&] {
    parallelFor(pool, threads, 1, [&](int64_t chunk, int64_t, int64_t) {
      float *row = values + chunk * kFloats;
      for (int64_t repeat = 0; repeat < kRepeats; ++repeat)
        for (int64_t i = 0; i < kFloats; ++i) {
          float x = row[i], sum = 0.1f;
          for (int64_t term = 0; term < kTerms; ++term)
            sum = sum * x + 0.01f;
          row[i] = sum;
        }
    });
  });
  return 2.0 * kTerms * kRepeats * kFloats * threads / seconds;
}

/// Bytes read and written per second.
double copyRate(genrec_rt_pool *pool, int64_t bytes) {
  int64_t floats = bytes / 8; // half to read, half to write
  GrowBuffer<float> from, to;
  const float *source = filled(from, floats);
  float *target = filled(to, floats);
  double seconds = leastSeconds([&] {
    parallelFor(pool, floats, 8192, [&](int64_t begin, int64_t end, int64_t) {
      for (int64_t i = begin; i < end; ++i)
        target[i] = source[i] + 1.0f;
    });
  });
  return 8.0 * static_cast<double>(floats) / seconds;
}

/// Bytes of rows, added up in random order, per second.
double gatherRate(genrec_rt_pool *pool, int32_t threads, int64_t bytes) {
  int64_t rows = bytes / (4 * kRowFloats);
  int64_t picks = std::min<int64_t>(rows, 65536);
  GrowBuffer<float> table, sums;
  GrowBuffer<int64_t> indices;
  const float *values = filled(table, rows * kRowFloats);
  float *sum = filled(sums, kRowFloats * threads);
  int64_t *picked = indices.ensure(picks);
  uint64_t state = 88172645463325252u; // xorshift64 (Marsaglia, 2003)
  for (int64_t i = 0; i < picks; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    picked[i] = static_cast<int64_t>(state % static_cast<uint64_t>(rows));
  }
  double seconds = leastSeconds([&] {
    parallelFor(pool, picks, 512, [&](int64_t begin, int64_t end, int64_t) {
      float *to = sum + genrec_rt_worker_index() * kRowFloats;
      for (int64_t i = begin; i < end; ++i) {
        if (i + 8 < end)
          __builtin_prefetch(values + picked[i + 8] * kRowFloats);
        const float *row = values + picked[i] * kRowFloats;
        for (int64_t k = 0; k < kRowFloats; ++k)
          to[k] += row[k];
      }
    });
  });
  return 4.0 * kRowFloats * static_cast<double>(picks) / seconds;
}

Json ratesToJson(const std::vector<Bandwidth> &rates) {
  auto list = Json::array();
  for (const Bandwidth &rate : rates)
    list.push_back({{"bytes", rate.bytes}, {"bytes_per_second", rate.bytesPerSecond}});
  return list;
}

std::vector<Bandwidth> ratesFromJson(const Json &list) {
  std::vector<Bandwidth> rates;
  for (const auto &entry : list)
    rates.push_back({entry.at("bytes"), entry.at("bytes_per_second")});
  return rates;
}

} // namespace

std::string processorName() {
  std::ifstream cpus("/proc/cpuinfo");
  for (std::string line; std::getline(cpus, line);)
    if (line.rfind("model name", 0) == 0)
      return line.substr(std::min(line.find(':') + 2, line.size()));
  return "unknown";
}

Roofline calibrate(int32_t threads) {
  threads = threads > 0 ? threads : defaultThreads();
  std::unique_ptr<genrec_rt_pool, PoolDeleter> pool(genrec_rt_pool_create(threads));
  if (!pool)
    throw Error("cannot start " + std::to_string(threads) + " threads");
  Roofline roofline;
  roofline.processor = processorName();
  roofline.threads = threads;
  roofline.productFlops = productRate(pool.get());
  roofline.flops = elementwiseRate(pool.get(), threads);
  roofline.launchSeconds =
      leastSeconds([&] { parallelFor(pool.get(), threads, 1, [](int64_t, int64_t, int64_t) {}); });
  for (int64_t bytes : kWorkingSets) {
    auto size = static_cast<double>(bytes);
    roofline.copies.push_back({size, copyRate(pool.get(), bytes)});
    roofline.gathers.push_back({size, gatherRate(pool.get(), threads, bytes)});
  }
  return roofline;
}

std::optional<Roofline> loadRoofline(const std::string &path, const std::string &processor) {
  try {
    std::ifstream file(path);
    if (!file)
      return std::nullopt;
    Json json = Json::parse(file);
    Roofline roofline;
    roofline.processor = json.at("processor");
    roofline.threads = json.at("threads");
    roofline.flops = json.at("flops_per_second");
    roofline.productFlops = json.at("product_flops_per_second");
    roofline.launchSeconds = json.at("launch_seconds");
    roofline.copies = ratesFromJson(json.at("copies"));
    roofline.gathers = ratesFromJson(json.at("gathers"));
    roofline.bf16Flops = json.value("bf16_flops_per_second", 0.0);
    if (roofline.isMeasured() && roofline.processor == processor)
      return roofline;
  } catch (const std::exception &) { // damaged: as if it were not there
  }
  return std::nullopt;
}

std::string limitsFile(const std::string &given, bool ofDevice, const std::string &processor) {
  if (!given.empty())
    return given;
  std::string path = rooflinePath(ofDevice);
  std::ifstream file(path);
  const Json known = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  const bool isTold =
      known.is_object() && known.contains("processor") && known["processor"].is_string();
  const std::string other = isTold ? known["processor"].get<std::string>() : processor;
  if (std::getenv("GENREC_MACHINE") && other != processor)
    throw Error("$GENREC_MACHINE is '" + path + "', which has the limits of " + other +
                    ", not of " + processor,
                "unset it, or pass --out <file>");
  return path;
}

std::string describeRoofline(const Roofline &roofline) {
  std::string text = roofline.processor;
  if (roofline.threads > 0)
    text += ", " + std::to_string(roofline.threads) + " threads";
  text += "\n  matrix products     " + formatted("%10.1f GFLOP/s\n", roofline.productFlops * 1e-9);
  if (roofline.bf16Flops > 0)
    text += "  … of bfloat16       " + formatted("%10.1f GFLOP/s\n", roofline.bf16Flops * 1e-9);
  text += "  elementwise         " + formatted("%10.1f GFLOP/s\n", roofline.flops * 1e-9);
  text += "  starting a kernel   " + formatted("%10.2f us\n", roofline.launchSeconds * 1e6);
  for (size_t i = 0; i < roofline.copies.size(); ++i)
    text += formatted("  of %7.2f MB       ", roofline.copies[i].bytes / (1 << 20)) +
            formatted("%10.1f GB/s read and written, ", roofline.copies[i].bytesPerSecond * 1e-9) +
            formatted("%.1f GB/s in rows of 256 bytes at random\n",
                      roofline.gathers[i].bytesPerSecond * 1e-9);
  return text;
}

void saveRoofline(const Roofline &roofline, const std::string &path) {
  Json json = {{"processor", roofline.processor},
               {"threads", roofline.threads},
               {"flops_per_second", roofline.flops},
               {"product_flops_per_second", roofline.productFlops},
               {"launch_seconds", roofline.launchSeconds},
               {"copies", ratesToJson(roofline.copies)},
               {"gathers", ratesToJson(roofline.gathers)}};
  if (roofline.bf16Flops > 0)
    json["bf16_flops_per_second"] = roofline.bf16Flops;
  std::error_code ignored; // writing says what is wrong
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  writeFile(path, toText(json, 1) + "\n");
}

void calibrateInto(const std::string &given, bool ofDevice, const std::string &processor,
                   const std::function<Roofline()> &measure) {
  const std::string path = limitsFile(given, ofDevice, processor);
  const Roofline roofline = measure();
  saveRoofline(roofline, path);
  std::printf("%swritten to %s\n", describeRoofline(roofline).c_str(), path.c_str());
}

} // namespace genrec::rt

// Transforms of many columns, by the kernels that compiled models run (columns.py).
//
//   bench-cuda-columns [--dry-run] [--only <group>] [<file.json>]
//
// small: 100 columns of 10 k values, a value per row, from enqueue until done, as the host sees it.
// ragged: 600 columns of 100 k values each in lists of up to 20, of which the last 15 are kept: the
// truncated domain is made, and all columns run; rates count values read and written.
// lists: means of rows of 16 floats of 100 lists of up to 50 ids each, of 2,048 users: all in one
// launch, and one after the other by the same kernel; rates count the rows that are read.

#include "timing.h"

#include "columns_kernels.h"

#include "genrec_rt/kernels/cuda/list_domains.h"

#include <chrono>

namespace {

using namespace genrec::bench;
using namespace genrec::rt::cuda;

/// The domains of the models, as they number them.
enum Domain { kUsers, kEvents, kRecent, kDomains };

int64_t *parentsOf(Arrays &arrays, const std::vector<int64_t> &offsets) {
  std::vector<int64_t> parents;
  for (size_t list = 0; list + 1 < offsets.size(); ++list)
    parents.insert(parents.end(), static_cast<size_t>(offsets[list + 1] - offsets[list]),
                   static_cast<int64_t>(list));
  return arrays.of(parents);
}

/// A step over `domains`, which lie at `there` on the device.
genrec_step makeStep(Arrays &arrays, std::vector<genrec_domain> &domains, genrec_domain *there) {
  GENREC_CUDA_CHECK(cudaMemcpy(there, domains.data(), domains.size() * sizeof(genrec_domain),
                               cudaMemcpyHostToDevice));
  genrec_step seen{}, step{};
  seen.domains = there;
  step.domains = domains.data();
  step.device = arrays.of(std::vector<genrec_step>{seen});
  return step;
}

/// The columns of a model: their rows, and what launchColumns takes.
class Columns {
public:
  /// Lists of `longest` entries and less; 1: a value per row.
  Columns(int64_t valuesEach, int64_t longest) {
    std::mt19937_64 random(7);
    std::vector<int64_t> offsets = {0};
    while (offsets.back() < valuesEach) {
      const auto length = longest == 1 ? 1 : static_cast<int64_t>(random() % (longest + 1));
      offsets.push_back(std::min(valuesEach, offsets.back() + length));
      kept += std::min(offsets.back() - offsets[offsets.size() - 2], kMost);
    }
    const auto lists = static_cast<int64_t>(offsets.size()) - 1;
    auto *there = arrays.of<genrec_domain>(kDomains);
    recent = {there + kRecent,
              kept,
              lists,
              arrays.of<int64_t>(lists + 1),
              arrays.of<int64_t>(kept),
              arrays.of<uint64_t>(kept),
              arrays.of<char>(kListScratchBytes)};
    const auto *identity = arrays.of(std::vector<uint64_t>(static_cast<size_t>(valuesEach)));
    events = there + kEvents;
    domains = {{lists, lists, nullptr, nullptr, nullptr, nullptr, lists, there},
               {valuesEach, valuesEach, arrays.of(offsets), parentsOf(arrays, offsets), identity,
                there, longest, there + kEvents},
               {kept, kept, recent.offsets, recent.parent, recent.identity, there, kMost,
                there + kRecent}};
    step = makeStep(arrays, domains, there);
    rows = longest == 1 ? lists : kept;
    valuesOfColumn = valuesEach;
  }

  /// Truncates the lists, where they are truncated, and runs `kernel` for all columns.
  template <int Count, class Kernel>
  void run(const kernels::ColumnShape (&shapes)[Count], Kernel kernel, bool isCut,
           cudaStream_t stream) {
    if (pointers.empty()) {
      for (int c = 0; c < Count; ++c)
        addPointers(shapes[c], c);
      GENREC_CUDA_CHECK(cudaDeviceSynchronize()); // a copy may be under way behind its call
    }
    step.stream = stream;
    if (isCut)
      truncateLists(events, kMost, /*last=*/true, recent, stream);
    kernels::launchColumns(&step, shapes, kernel, pointers.data());
  }
  /// Bytes of what is read and written of `columns`.
  double megabytes(int64_t columns) const { return 8e-6 * static_cast<double>(2 * kept * columns); }

private:
  static constexpr int64_t kMost = 15; ///< KEPT of columns.py

  /// A column's ids, what it differs by from others (a divisor, if there is one, and its table's
  /// bits), and its keys.
  void addPointers(const kernels::ColumnShape &shape, int64_t column) {
    pointers.push_back(
        arrays.of(randomIds(valuesOfColumn, 1000000000, static_cast<uint64_t>(column))));
    if (shape.pointers == 4)
      pointers.push_back(arrays.of(std::vector<int64_t>{100000 + column}));
    if (shape.pointers >= 3)
      pointers.push_back(arrays.of(std::vector<int64_t>{column << 52}));
    pointers.push_back(arrays.of<int64_t>(rows));
  }

  Arrays arrays;
  std::vector<genrec_domain> domains;
  NewLists recent;
  genrec_domain *events = nullptr;
  genrec_step step{};
  int64_t kept = 0, rows = 0, valuesOfColumn = 0;
  std::vector<void *> pointers;
};

void small(Report &report, cudaStream_t stream) {
  auto enqueueToDone = [&](auto run) {
    std::vector<double> times;
    for (int i = 0; i < 3 * kRepeats; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      run();
      GENREC_CUDA_CHECK(cudaStreamSynchronize(stream));
      const std::chrono::duration<double, std::micro> time =
          std::chrono::steady_clock::now() - begin;
      times.push_back(time.count());
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  };
  Columns bucketed(10000, 1), hashed(10000, 1);
  report.add("bucketize 100 x 10 k, enqueue to done", enqueueToDone([&] {
               using namespace small_bucketed;
               bucketed.run(run_transform_columns_columns, run_transform_columns, false, stream);
             }),
             "us");
  report.add("hash and mod 100 x 10 k, enqueue to done", enqueueToDone([&] {
               using namespace small_hashed;
               hashed.run(run_transform_columns_columns, run_transform_columns, false, stream);
             }),
             "us");
}

void ragged(Report &report, cudaStream_t stream) {
  auto measure = [&](const std::string &program, const auto &shapes, auto kernel) {
    Columns columns(100000, 20);
    const double time = coldMilliseconds(
        stream, kRepeats, [&](cudaStream_t s) { columns.run(shapes, kernel, true, s); });
    report.add("truncate" + program + ", 600 ragged columns, 60 M values",
               columns.megabytes(std::size(shapes)) / time, "GB/s");
  };
  measure(", hash and mod", ragged_hashed::run_transform_columns_columns,
          ragged_hashed::run_transform_columns);
  measure(" and bucketize", ragged_bucketed::run_transform_columns_columns,
          ragged_bucketed::run_transform_columns);
}

/// Lists of rows of one table, and what launchPoolColumns takes. No list has several parts.
class Lists {
public:
  Lists() {
    std::mt19937_64 random(9);
    auto *there = arrays.of<genrec_domain>(kLists + 1);
    auto *table = arrays.of(std::vector<float>(kRows * kWidth, 0.5f));
    domains.push_back(
        {kListUsers, kListUsers, nullptr, nullptr, nullptr, nullptr, kListUsers, there});
    for (int list = 0; list < kLists; ++list) {
      std::vector<int64_t> offsets = {0};
      std::vector<float *> handles;
      for (int64_t user = 0; user < kListUsers; ++user) {
        for (auto left = static_cast<int64_t>(random() % (kLongest + 1)); left > 0; --left)
          handles.push_back(table + static_cast<int64_t>(random() % kRows) * kWidth);
        offsets.push_back(static_cast<int64_t>(handles.size()));
      }
      rows += offsets.back();
      domains.push_back({offsets.back(), offsets.back(), arrays.of(offsets),
                         parentsOf(arrays, offsets), nullptr, there, kLongest, there + list + 1});
      pointers.insert(pointers.end(),
                      {arrays.of(handles), arrays.of<float>(kListUsers * kWidth), nullptr,
                       kernels::domainNumber(list + 1), kernels::domainNumber(0)});
    }
    step = makeStep(arrays, domains, there);
    for (genrec_domain &domain : domains) // as the host has them
      domain.parent_domain = domain.parent_domain ? domains.data() : nullptr;
    GENREC_CUDA_CHECK(cudaDeviceSynchronize());
  }

  /// Pools `Count` lists, from the first of `shapes` on.
  template <int Count, class Kernel>
  void run(const kernels::ColumnShape (&shapes)[Count], Kernel kernel,
           const kernels::PoolShape &pools, int first, cudaStream_t stream) {
    step.stream = stream;
    const kernels::PoolColumns<Count> taken(&step, shapes, pools);
    kernels::queuePoolColumns(&step, shapes, kernel, pointers.data() + 5 * first, pools, 0, taken,
                              nullptr);
  }
  double megabytes() const { return 4e-6 * static_cast<double>(rows * kWidth); }

  static constexpr int kLists = 100; ///< LISTS of columns.py

private:
  static constexpr int64_t kListUsers = 2048, kLongest = 50, kRows = 1000000, kWidth = 16;

  Arrays arrays;
  std::vector<genrec_domain> domains;
  std::vector<void *> pointers;
  genrec_step step{};
  int64_t rows = 0;
};

void lists(Report &report, cudaStream_t stream) {
  using namespace pooled_lists;
  const auto &shapes = run_row_l0_pool_and_99_more_columns;
  static_assert(std::size(run_row_l0_pool_and_99_more_columns) == Lists::kLists);
  const auto &pools = row_l0_pool_pools;
  Lists pooled;
  auto add = [&](const char *name, auto run) {
    const double time = coldMilliseconds(stream, kRepeats, run);
    report.add(name, 1000 * time, "us");
    report.add(std::string(name) + ", rows read", pooled.megabytes() / time, "GB/s");
  };
  add("means of 100 lists in one launch",
      [&](cudaStream_t s) { pooled.run(shapes, run_row_l0_pool_and_99_more, pools, 0, s); });
  add("means of 100 lists, a launch each", [&](cudaStream_t s) {
    for (int list = 0; list < Lists::kLists; ++list) {
      const genrec::rt::kernels::ColumnShape own[] = {shapes[list]};
      pooled.run(own, run_row_l0_pool_and_99_more, pools, list, s);
    }
  });
}

} // namespace

int main(int argc, char **argv) {
  return run("columns", argc, argv, {{"small", small}, {"ragged", ragged}, {"lists", lists}});
}

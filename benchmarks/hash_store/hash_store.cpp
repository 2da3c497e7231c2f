// The embedding store beside hash maps: find and find-or-insert with millions of keys.
//
//   hash_store <threads> <keys> <batch> <rounds> [<only contestants with this in their name>]
//
// Prints one JSON object: nanoseconds per id of every round, by task and contestant,
// and what reading a random cache line of as many slots takes.

#include "contestants.h"

#include "../common/machine.h"

#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

namespace {

using bench::Contestant;
using genrec::rt::splitMix64;

struct Sizes {
  int64_t keys, batch;
  int rounds;
};

/// Key `number` of an endless sequence of distinct ids. splitMix64 is a bijection, so
/// what the store hashes is not in any order either.
int64_t keyOf(int64_t number) {
  return static_cast<int64_t>(splitMix64(static_cast<uint64_t>(number) ^ 0x5bd1e995));
}

/// Touches as much memory as a contestant may take for `keys` more, and gives it back. A guest
/// tells its host of memory that is free for seconds, and waits for it again at the first touch, 20
/// times as long as the page takes otherwise: none of that is to be in anybody's time.
void touchMemory(int64_t keys) {
  int64_t bytes = keys * 128;
  void *memory = genrec::rt::allocateAligned(bytes);
  std::memset(memory, 1, static_cast<size_t>(bytes));
  genrec::rt::freeAligned(memory, bytes);
}

/// Nanoseconds per id, by task and contestant.
class Times {
public:
  explicit Times(int threads) : threads(threads) {}
  template <class Body> double measure(int64_t count, const Body &body) {
    return bench::secondsOf(threads, body) * 1e9 / static_cast<double>(count);
  }
  void add(const std::string &task, const std::string &name, double nanoseconds) {
    all[task][name].push_back(nanoseconds);
  }
  void print() const {
    const char *between = "";
    for (const auto &[task, byName] : all) {
      std::printf("%s\n  \"%s\": {", between, task.c_str());
      const char *inner = "";
      for (const auto &[name, values] : byName) {
        std::printf("%s\n   \"%s\": [", inner, name.c_str());
        for (size_t i = 0; i < values.size(); ++i)
          std::printf("%s%.3f", i ? ", " : "", values[i]);
        std::printf("]");
        inner = ",";
      }
      std::printf("}");
      between = ",";
    }
  }

private:
  int threads;
  std::map<std::string, std::map<std::string, std::vector<double>>> all;
};

class Run {
public:
  Run(genrec_rt_pool *pool, Sizes sizes, const std::string &only)
      : sizes(sizes), all(bench::contestants(pool, only)), ids(static_cast<size_t>(sizes.batch)),
        rows(ids.size()) {}

  /// From nothing to all keys, a batch of new ids after the other: all grow into fresh memory,
  /// then into memory that they have.
  void build(Times &times) {
    for (int round = 0; round < sizes.rounds; ++round) {
      for (auto &one : all)
        one->clear();
      malloc_trim(0);
      insertAll("insert, growing", times);
      for (auto &one : all)
        one->makeRoom(sizes.keys);
      insertAll("insert", times);
    }
  }

  /// One id of `missingIn` is of no key (0: every id is found).
  void find(const char *task, int64_t missingIn, Times &times) {
    for (int round = 0; round < sizes.rounds; ++round) {
      int64_t present = draw(missingIn, /*fresh=*/int64_t(1) << 40);
      forEach(round, [&](Contestant &one) {
        times.add(task, one.name, times.measure(sizes.batch, [&] {
          one.find(ids.data(), sizes.batch, rows.data());
        }));
        check(sizes.batch - std::count(rows.begin(), rows.end(), nullptr) == present, one.name);
      });
    }
  }

  /// One id of `newIn` is new.
  void findOrInsert(const char *task, int64_t newIn, Times &times) {
    for (int round = 0; round < sizes.rounds; ++round) {
      int64_t present = draw(newIn, known);
      forEach(round, [&](Contestant &one) {
        touchMemory(sizes.batch);
        times.add(task, one.name, times.measure(sizes.batch, [&] {
          one.findOrInsert(ids.data(), sizes.batch, rows.data());
        }));
      });
      known += sizes.batch - present;
      checkSizes();
    }
  }

private:
  void insertAll(const char *task, Times &times) {
    std::map<std::string, double> total;
    for (int64_t first = 0; first < sizes.keys; first += sizes.batch) {
      int64_t count = std::min(sizes.batch, sizes.keys - first);
      for (int64_t i = 0; i < count; ++i)
        ids[static_cast<size_t>(i)] = keyOf(first + i);
      for (auto &one : all) {
        touchMemory(sizes.keys);
        total[one->name] += static_cast<double>(count) * times.measure(count, [&] {
          one->findOrInsert(ids.data(), count, rows.data());
        });
      }
    }
    for (auto &one : all)
      times.add(task, one->name, total[one->name] / static_cast<double>(sizes.keys));
    known = sizes.keys;
    checkSizes();
  }
  /// A batch of ids of known keys, but one of `otherIn` the next of a row of others;
  /// returns how many are known.
  int64_t draw(int64_t otherIn, int64_t firstOther) {
    int64_t others = 0;
    for (int64_t &id : ids)
      id = otherIn && random.below(otherIn) == 0 ? keyOf(firstOther + others++)
                                                 : keyOf(random.below(known));
    return sizes.batch - others;
  }
  /// Every contestant; another one begins each round.
  template <class Body> void forEach(int round, const Body &body) {
    for (size_t i = 0; i < all.size(); ++i)
      body(*all[(i + static_cast<size_t>(round)) % all.size()]);
  }
  void checkSizes() const {
    for (const auto &one : all)
      check(one->size() == known, one->name);
  }
  static void check(bool isRight, const std::string &name) {
    if (isRight)
      return;
    std::fprintf(stderr, "hash_store: error: %s does not hold what was put in\n", name.c_str());
    std::exit(1);
  }

  Sizes sizes;
  std::vector<std::unique_ptr<Contestant>> all;
  std::vector<int64_t> ids;
  std::vector<float *> rows;
  int64_t known = 0;
  bench::Random random;
};

} // namespace

int main(int argc, char **argv) {
  if (argc != 5 && argc != 6) {
    std::fprintf(stderr,
                 "usage: hash_store <threads> <keys> <batch> <rounds> [<part of a name>]\n");
    return 2;
  }
  // What a peer frees while it grows stays in the process: it need not fault pages in again.
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
  int threads = std::atoi(argv[1]);
  genrec_rt_pool *pool = genrec_rt_pool_create(threads);
  Sizes sizes{std::atoll(argv[2]), std::atoll(argv[3]), std::atoi(argv[4])};
  Times times(threads);
  Run run(pool, sizes, argc > 5 ? argv[5] : "");
  run.build(times);
  run.find("find", 0, times);
  run.find("find, half missing", 2, times);
  run.findOrInsert("find or insert, one in 16 new", 16, times);
  std::printf("{\"nanoseconds_per_id\": {");
  times.print();
  // The store's keys take 16 bytes a slot, in at least 4/3 slots a key.
  int64_t slots = 1;
  while (slots * 3 < sizes.keys * 4)
    slots *= 2;
  std::printf("\n },\n \"nanoseconds_per_random_line\": %.3f}\n",
              bench::secondsPerRandomLine(pool, threads, slots * 16) * 1e9);
  genrec_rt_pool_destroy(pool);
  return 0;
}

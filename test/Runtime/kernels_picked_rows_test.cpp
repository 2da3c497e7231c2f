// Rows picked from a domain, and lists of picked rows, against sets and lists of rows.

#include "kernels_testing.h"

#include "genrec_rt/kernels/cpu/picked_rows.h"

#include <map>
#include <set>

namespace {

namespace k = genrec::rt::kernels;
using namespace genrec::rt::kernels::test;
using Numbers = std::vector<int64_t>;

/// A root of `count` rows, with identities that are no row numbers.
struct Root {
  explicit Root(int64_t count) {
    for (int64_t row = 0; row < count; ++row)
      identity.push_back(static_cast<uint64_t>(7 * row + 1000));
    d.count = d.capacity = count;
    d.identity = identity.data();
  }

  genrec_domain d = {};
  std::vector<uint64_t> identity;
};

struct Picked {
  genrec_domain d = {};
  Numbers rows;
  std::vector<uint64_t> identity;
  std::vector<Numbers> to;
};

Picked pick(Step &step, const Root &source, const std::vector<Numbers> &numbers) {
  Picked result;
  std::set<int64_t> distinct;
  std::vector<const int64_t *> from;
  std::vector<int64_t *> to;
  Numbers counts;
  for (const Numbers &part : numbers) {
    distinct.insert(part.begin(), part.end());
    from.push_back(part.data());
    counts.push_back(static_cast<int64_t>(part.size()));
    result.to.emplace_back(part.size(), -77);
  }
  for (Numbers &part : result.to)
    to.push_back(part.data());
  result.rows.assign(distinct.size(), -77);
  result.identity.assign(distinct.size(), 77);
  result.d.capacity = 123;
  Scratch memory((source.d.count + 63) / 64 * 16);
  k::pickRows(step, &source.d, &result.d, static_cast<int64_t>(numbers.size()), from.data(),
              counts.data(), to.data(), result.rows.data(), result.identity.data(), memory.data());
  return result;
}

void checkPicked(const Root &source, const std::vector<Numbers> &numbers, const Picked &picked) {
  std::set<int64_t> distinct;
  for (const Numbers &part : numbers)
    distinct.insert(part.begin(), part.end());
  distinct.erase(-1);
  ASSERT_EQ(picked.d.count, static_cast<int64_t>(distinct.size()));
  EXPECT_EQ(picked.d.max_length, picked.d.count);
  EXPECT_EQ(picked.d.capacity, 123); // the runtime's
  EXPECT_EQ(picked.d.offsets, nullptr);
  std::map<int64_t, int64_t> places;
  for (int64_t row : distinct) {
    size_t place = places.size();
    places[row] = static_cast<int64_t>(place);
    EXPECT_EQ(picked.rows[place], row);
    EXPECT_EQ(picked.d.identity[place], source.d.identity[row]);
  }
  for (size_t part = 0; part < numbers.size(); ++part)
    for (size_t i = 0; i < numbers[part].size(); ++i) {
      int64_t row = numbers[part][i];
      EXPECT_EQ(picked.to[part][i], row < 0 ? -1 : places[row]);
    }
}

KERNEL_TEST(KernelsPickedRows, HaveTheOrderOfTheirSource) {
  Step step(3);
  // Words of 64 rows: none, the first and last of a word, whole words, a part of one.
  for (int64_t count : {1, 63, 64, 65, 200}) {
    Root source(count);
    Numbers all, ends = {0, count - 1, 0, -1};
    for (int64_t row = count - 1; row >= 0; --row)
      all.push_back(row);
    for (const std::vector<Numbers> &numbers : std::vector<std::vector<Numbers>>{
             {{}}, {{-1, -1}}, {ends}, {all}, {ends, {}, {count / 2}}, {{count / 2, -1}, all}})
      checkPicked(source, numbers, pick(step, source, numbers));
  }
}

KERNEL_TEST(KernelsPickedRows, ManyNumbersOnAnyNumberOfThreads) {
  Root source(100000);
  Random random(3);
  std::vector<Numbers> numbers(3);
  for (Numbers &part : numbers)
    for (int i = 0; i < 50000; ++i)
      part.push_back(random.below(20) ? random.below(random.below(2) ? 100000 : 50) : -1);
  Step alone(1), together(3);
  Picked one = pick(alone, source, numbers), three = pick(together, source, numbers);
  checkPicked(source, numbers, one);
  EXPECT_EQ(one.rows, three.rows);
  EXPECT_EQ(one.to, three.to);
}

KERNEL_TEST(KernelsPickedRows, ASourceWithoutRowsHasNoneToPick) {
  Step step(2);
  Root source(0);
  Picked picked = pick(step, source, {{0, -1, 0}});
  EXPECT_EQ(picked.d.count, 0);
  EXPECT_EQ(picked.to[0], (Numbers{0, -1, 0})); // as they are: what reads them reads nothing else
}

KERNEL_TEST(KernelsPickedRows, DrawnNumbersAreThoseOfTheRowsStream) {
  Step step(2);
  Root source(1000), each(70);
  constexpr int64_t kCount = 300; // more than are drawn at once
  auto word = [&](uint64_t row, int64_t element) {
    return k::philoxWord({5, 9, 17}, row, static_cast<uint64_t>(element));
  };
  Numbers common(kCount), own(static_cast<size_t>(70 * kCount));
  k::drawRowNumbers(step, &source.d, nullptr, 17, kCount, common.data());
  k::drawRowNumbers(step, &source.d, &each.d, 17, kCount, own.data());
  for (int64_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(common[static_cast<size_t>(i)], k::drawIndex(word(0, i), 1000));
    for (int64_t row : {0, 1, 69})
      EXPECT_EQ(own[static_cast<size_t>(row * kCount + i)],
                k::drawIndex(word(each.identity[static_cast<size_t>(row)], i), 1000));
  }
}

KERNEL_TEST(KernelsPickedRows, ListsOfPickedRows) {
  Step step(3);
  Root items(5), tags(9), above(4);
  const Numbers lengths = {2, 0, 4, 0, 3};
  Numbers begins = {0};
  for (int64_t length : lengths)
    begins.push_back(begins.back() + length);
  tags.d.offsets = begins.data();
  tags.d.parent_domain = &items.d;
  for (const Numbers &parents : std::vector<Numbers>{{}, {1}, {2}, {0, 1, 3, 4}, {4, 2, 2, 0}}) {
    above.d.count = static_cast<int64_t>(parents.size());
    Numbers offsets(parents.size() + 1), parent(16), rows(16), expected;
    std::vector<uint64_t> identity(16);
    genrec_domain lists = {};
    k::pickLists(step, &tags.d, &above.d, parents.data(), &lists, offsets.data(), parent.data(),
                 identity.data(), rows.data());
    int64_t longest = 0;
    for (size_t list = 0; list < parents.size(); ++list) {
      EXPECT_EQ(offsets[list], static_cast<int64_t>(expected.size()));
      auto from = static_cast<size_t>(parents[list]);
      longest = std::max(longest, lengths[from]);
      for (int64_t row = begins[from]; row < begins[from + 1]; ++row) {
        size_t place = expected.size();
        expected.push_back(row);
        EXPECT_EQ(parent[place], static_cast<int64_t>(list));
        EXPECT_EQ(identity[place], tags.identity[static_cast<size_t>(row)]);
      }
    }
    rows.resize(expected.size());
    EXPECT_EQ(rows, expected);
    EXPECT_EQ(lists.count, static_cast<int64_t>(expected.size()));
    EXPECT_EQ(lists.max_length, longest);
    EXPECT_EQ(lists.parent_domain, &above.d);
  }
}

} // namespace

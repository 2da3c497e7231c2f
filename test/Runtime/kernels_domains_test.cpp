// Derived domains and moves between domains against lists of lists.

#include "kernels_testing.h"

#include "genrec_rt/kernels/cpu/domains.h"

#include <algorithm>

namespace {

namespace k = genrec::rt::kernels;
using namespace genrec::rt::kernels::test;
using genrec::rt::mixIdentity;
using Ids = std::vector<int64_t>;

/// A domain that owns what its descriptor points at. The identity of row r is 1000 * salt + r.
struct Domain {
  genrec_domain d = {};
  Ids offsets, parent;
  std::vector<uint64_t> identity;

  static Domain root(int64_t count, uint64_t salt = 1) {
    Domain result;
    result.fill(count, salt);
    return result;
  }
  static Domain child(const Domain &above, const Ids &lengths, uint64_t salt = 2) {
    Domain result;
    result.offsets = {0};
    for (size_t list = 0; list < lengths.size(); ++list) {
      result.offsets.push_back(result.offsets.back() + lengths[list]);
      result.parent.insert(result.parent.end(), static_cast<size_t>(lengths[list]),
                           static_cast<int64_t>(list));
      result.d.max_length = std::max(result.d.max_length, lengths[list]);
    }
    result.fill(result.offsets.back(), salt);
    result.d.offsets = result.offsets.data();
    result.d.parent = result.parent.data();
    result.d.parent_domain = &above.d;
    return result;
  }
  /// Room for a derived domain of up to `rows` rows in `lists` lists, full of what nothing should
  /// read.
  static Domain room(int64_t lists, int64_t rows) {
    Domain result;
    result.offsets.assign(static_cast<size_t>(lists) + 1, -77);
    result.parent.assign(static_cast<size_t>(rows), -77);
    result.identity.assign(static_cast<size_t>(rows), 77);
    result.d.capacity = 123;
    return result;
  }
  int64_t begin(int64_t list) const { return d.offsets ? d.offsets[list] : list; }
  int64_t length(int64_t list) const {
    return d.offsets ? d.offsets[list + 1] - d.offsets[list] : 1;
  }

private:
  void fill(int64_t count, uint64_t salt) {
    for (int64_t row = 0; row < count; ++row)
      identity.push_back(1000 * salt + static_cast<uint64_t>(row));
    d.count = d.capacity = count;
    d.identity = identity.data();
  }
};

/// Where offset scans break: no list, one, empty ones in front, at the end and everywhere, one row,
/// one list with all, and more lists than a chunk of the parallel-for holds.
std::vector<Ids> shapes() {
  Ids many(600);
  for (size_t list = 0; list < many.size(); ++list)
    many[list] = static_cast<int64_t>(list * 7 % 5) * (list % 3 != 0);
  return {{}, {0}, {1}, {4}, {0, 0, 0}, {0, 3, 0, 0, 2, 0}, {1, 1, 1}, {0, 0, 9}, {9, 0, 0}, many};
}

/// Rows of `width` values with `gap` unused ones between them.
std::vector<float> makeValues(int64_t rows, int64_t width, int64_t gap, float first = 1) {
  std::vector<float> values(static_cast<size_t>(rows * (width + gap)), NAN);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < width; ++i)
      values[static_cast<size_t>(row * (width + gap) + i)] =
          first + static_cast<float>(row * width + i);
  return values;
}

template <bool Last>
Domain makeTruncated(Step &step, const Domain &source, int64_t lists, int64_t most) {
  Domain kept = Domain::room(lists, source.d.count);
  k::truncate<Last>(step, &source.d, &kept.d, most, kept.offsets.data(), kept.parent.data(),
                    kept.identity.data());
  return kept;
}

template <bool Last> void checkTruncate(const Ids &lengths, int64_t most) {
  Step step;
  Domain root = Domain::root(static_cast<int64_t>(lengths.size())),
         source = Domain::child(root, lengths);
  Domain kept = makeTruncated<Last>(step, source, root.d.count, most);
  constexpr int64_t kWidth = 3, kGap = 2, kLd = kWidth + kGap;
  std::vector<float> back(static_cast<size_t>(source.d.count * kWidth), NAN);
  std::vector<float> gradient = makeValues(kept.d.count, kWidth, kGap, 500);
  k::deriveGrad<Last>(step, &source.d, &kept.d, kWidth, gradient.data(), kLd, back.data());
  int64_t row = 0, longest = 0;
  for (int64_t list = 0; list < root.d.count; ++list) {
    int64_t length = std::min(source.length(list), most),
            skipped = Last ? source.length(list) - length : 0;
    ASSERT_EQ(kept.offsets[static_cast<size_t>(list)], row);
    longest = std::max(longest, length);
    for (int64_t i = 0; i < source.length(list); ++i) {
      int64_t from = source.begin(list) + i;
      bool isKept = i >= skipped && i < skipped + length;
      for (int64_t c = 0; c < kWidth; ++c) {
        ASSERT_EQ(back[static_cast<size_t>(from * kWidth + c)],
                  isKept ? gradient[static_cast<size_t>(row * kLd + c)] : 0.0f);
      }
      if (!isKept)
        continue;
      ASSERT_EQ(kept.parent[static_cast<size_t>(row)], list);
      ASSERT_EQ(kept.identity[static_cast<size_t>(row)],
                source.identity[static_cast<size_t>(from)]);
      ++row;
    }
  }
  EXPECT_EQ(kept.d.count, row);
  EXPECT_EQ(kept.offsets.back(), row);
  EXPECT_EQ(kept.d.max_length, longest);
  EXPECT_EQ(kept.d.capacity, 123) << "the runtime has set it";
  EXPECT_EQ(kept.d.parent_domain, &root.d);
}

KERNEL_TEST(KernelsDomains, TruncateKeepsRowsAndTheirIdentities) {
  for (const Ids &lengths : shapes())
    for (int64_t most : {0, 1, 2, 3, 4, 100}) {
      checkTruncate<true>(lengths, most);
      checkTruncate<false>(lengths, most);
    }
}

KERNEL_TEST(KernelsDomains, RowsOfARootAreListsOfTheirOwn) {
  Step step;
  Domain root = Domain::root(3);
  Domain kept = makeTruncated<true>(step, root, 3, 1);
  EXPECT_EQ(kept.offsets, (Ids{0, 1, 2, 3}));
  EXPECT_EQ(kept.identity, root.identity);
  Domain none = makeTruncated<true>(step, root, 3, 0);
  EXPECT_EQ(none.d.count, 0);
}

void checkConcat(const Ids &first, const Ids &second) {
  Step step;
  Domain root = Domain::root(static_cast<int64_t>(first.size()));
  Domain a = Domain::child(root, first, 2), b = Domain::child(root, second, 3);
  int64_t rows = a.d.count + root.d.count + b.d.count;
  Domain joined = Domain::room(root.d.count, rows);
  k::concatDomains(step, &root.d, &joined.d, joined.offsets.data(), joined.parent.data(),
                   joined.identity.data(), &a.d, &root.d, &b.d);
  constexpr int64_t kWidth = 2;
  std::vector<float> x = makeValues(a.d.count, kWidth, 1, 1),
                     y = makeValues(root.d.count, kWidth, 0, 3000),
                     z = makeValues(b.d.count, kWidth, 3, 7000);
  std::vector<float> out(static_cast<size_t>(rows * kWidth), NAN);
  k::concatRows<float>(step, &joined.d, kWidth, out.data(), &a.d, x.data(), kWidth + 1, &root.d,
                       y.data(), kWidth, &b.d, z.data(), kWidth + 3);
  const Domain *parts[] = {&a, &root, &b};
  std::vector<float> expected;
  int64_t row = 0, longest = 0;
  for (int64_t list = 0; list < root.d.count; ++list) {
    ASSERT_EQ(joined.offsets[static_cast<size_t>(list)], row);
    int64_t start = row;
    for (uint64_t part = 0; part < 3; ++part)
      for (int64_t i = 0; i < parts[part]->length(list); ++i, ++row) {
        int64_t from = parts[part]->begin(list) + i;
        ASSERT_EQ(joined.parent[static_cast<size_t>(row)], list);
        ASSERT_EQ(joined.identity[static_cast<size_t>(row)],
                  mixIdentity(parts[part]->identity[static_cast<size_t>(from)], part));
        float start0 = part == 0 ? 1 : part == 1 ? 3000 : 7000;
        for (int64_t c = 0; c < kWidth; ++c)
          expected.push_back(start0 + static_cast<float>(from * kWidth + c));
      }
    longest = std::max(longest, row - start);
  }
  EXPECT_EQ(joined.d.count, rows);
  EXPECT_EQ(joined.d.max_length, longest);
  EXPECT_EQ(out, expected);
  // What was joined comes apart again.
  for (int64_t part = 0; part < 3; ++part) {
    std::vector<float> split(static_cast<size_t>(parts[part]->d.count * kWidth), NAN);
    k::splitRows(step, &joined.d, kWidth, out.data(), kWidth, split.data(), part, &a.d, &root.d,
                 &b.d);
    EXPECT_EQ(split, makeValues(parts[part]->d.count, kWidth, 0,
                                part == 0   ? 1
                                : part == 1 ? 3000
                                            : 7000));
  }
}

KERNEL_TEST(KernelsDomains, ConcatJoinsPerParentAndSplitUndoesIt) {
  for (const Ids &first : shapes()) {
    Ids reversed(first.rbegin(), first.rend());
    checkConcat(first, reversed);
    checkConcat(first, Ids(first.size(), 0));
    checkConcat(first, Ids(first.size(), 1));
  }
}

void checkShift(const Ids &lengths, int64_t distance) {
  Step step;
  Domain root = Domain::root(static_cast<int64_t>(lengths.size())),
         domain = Domain::child(root, lengths);
  constexpr int64_t kWidth = 2, kLd = 3;
  std::vector<float> x = makeValues(domain.d.count, kWidth, kLd - kWidth);
  std::vector<float> out(static_cast<size_t>(domain.d.count * kWidth), NAN);
  auto valid = std::make_unique<bool[]>(static_cast<size_t>(domain.d.count));
  k::shiftRows(step, &domain.d, distance, kWidth, x.data(), kLd, out.data(), valid.get());
  for (int64_t list = 0; list < root.d.count; ++list)
    for (int64_t i = 0; i < domain.length(list); ++i) {
      bool exists = i + distance >= 0 && i + distance < domain.length(list);
      int64_t row = domain.begin(list) + i;
      ASSERT_EQ(valid[static_cast<size_t>(row)], exists);
      for (int64_t c = 0; c < kWidth; ++c)
        ASSERT_EQ(out[static_cast<size_t>(row * kWidth + c)],
                  exists ? x[static_cast<size_t>((row + distance) * kLd + c)] : 0.0f);
    }
}

KERNEL_TEST(KernelsDomains, LeadAndLagStayInTheirList) {
  for (const Ids &lengths : shapes())
    for (int64_t distance : {-9, -2, -1, 1, 2, 9})
      checkShift(lengths, distance);
}

KERNEL_TEST(KernelsDomains, PositionsAndLengths) {
  for (const Ids &lengths : shapes()) {
    Step step;
    Domain root = Domain::root(static_cast<int64_t>(lengths.size())),
           domain = Domain::child(root, lengths);
    Ids forward(static_cast<size_t>(domain.d.count), -1), backward = forward,
                                                          found(lengths.size(), -1);
    k::positions<false>(step, &domain.d, forward.data());
    k::positions<true>(step, &domain.d, backward.data());
    Ids others(lengths.rbegin(), lengths.rend()), foundOthers(lengths.size(), -1);
    Domain other = Domain::child(root, others);
    const genrec_domain *lists[] = {&domain.d, &other.d};
    int64_t *out[] = {found.data(), foundOthers.data()};
    k::lengths(step, 2, lists, out);
    EXPECT_EQ(found, lengths);
    EXPECT_EQ(foundOthers, others);
    Ids expectedForward, expectedBackward;
    for (int64_t length : lengths)
      for (int64_t i = 0; i < length; ++i) {
        expectedForward.push_back(i);
        expectedBackward.push_back(length - 1 - i);
      }
    EXPECT_EQ(forward, expectedForward);
    EXPECT_EQ(backward, expectedBackward);
  }
}

KERNEL_TEST(KernelsDomains, PoolGradientGoesToTheRowThatWasChosen) {
  Step step;
  Domain root = Domain::root(4), domain = Domain::child(root, {3, 0, 1, 2});
  // Columns: a tie at the front, a greatest in the middle; the last list is a tie.
  std::vector<float> x = {5, 1, 5, 2, 3, 0, -1, -2, 4, 4, 4, 4},
                     gradient = {10, 20, 30, 40, 50, 60, 70, 80};
  std::vector<float> max(12, NAN), first(12, NAN), last(12, NAN);
  k::poolGrad<k::PoolChoice::max>(step, &domain.d, 2, x.data(), 2, gradient.data(), 2, max.data());
  k::poolGrad<k::PoolChoice::first>(step, &domain.d, 2, x.data(), 2, gradient.data(), 2,
                                    first.data());
  k::poolGrad<k::PoolChoice::last>(step, &domain.d, 2, x.data(), 2, gradient.data(), 2,
                                   last.data());
  EXPECT_EQ(max, (std::vector<float>{10, 0, 0, 20, 0, 0, 50, 60, 70, 80, 0, 0}))
      << "ties go to the first";
  EXPECT_EQ(first, (std::vector<float>{10, 20, 0, 0, 0, 0, 50, 60, 70, 80, 0, 0}));
  EXPECT_EQ(last, (std::vector<float>{0, 0, 0, 0, 10, 20, 50, 60, 0, 0, 70, 80}));
}

KERNEL_TEST(KernelsDomains, FixedRowsAreOneList) {
  for (int64_t count : {0, 1, 7}) {
    Domain domain = Domain::child(Domain::root(1), {5});
    k::fixedRows(&domain.d, count);
    EXPECT_EQ(domain.d.count, count);
    EXPECT_EQ(domain.d.max_length, count);
    EXPECT_EQ(domain.d.parent_domain, nullptr);
    EXPECT_EQ(domain.d.capacity, 5) << "the runtime has set it";
  }
}

} // namespace

//===- list_domains_test.cpp - Domains made, and rows moved between them --===//
//
// Against the CPU's calls, to the bit.
//
//===----------------------------------------------------------------------===//

#include "domain_copies.h"
#include "scratch.h"

#include "genrec_rt/kernels/cpu/lists.h"
#include "genrec_rt/kernels/cpu/picked_rows.h"
#include "genrec_rt/kernels/cuda/list_domains.h"
#include "genrec_rt/kernels/cuda/list_rows.h"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <numeric>

namespace genrec::rt::cuda::test {
namespace {

using Host = std::unique_ptr<HostDomain>;

/// Rows that buffers have beyond those in use.
constexpr int64_t kSpare = 37;

/// Users, their lists, and a second list of each.
struct Lists {
  std::mt19937_64 random;
  Host users, events, others;
  DeviceDomain usersThere, eventsThere, othersThere;
  genrec_step step = {};

  explicit Lists(const Lengths &lengths, uint64_t seed = 3)
      : random(seed), users(makeRoot(static_cast<int64_t>(lengths.size()), random)),
        events(makeLists(*users, lengths, random)),
        others(makeLists(*users, shifted(lengths), random)), usersThere(*users),
        eventsThere(*events, &usersThere), othersThere(*others, &usersThere) {}

  int64_t lists() const { return users->view.count; }

  static Lengths shifted(const Lengths &lengths) {
    Lengths result;
    for (size_t i = 0; i < lengths.size(); ++i)
      result.push_back(lengths[(i + 1) % lengths.size()] % 5);
    return result;
  }
};

/// A domain made on both sides.
struct Made {
  Host host;
  DeviceDomain there;
  Scratch scratch{kListScratchBytes};
  NewLists made;

  /// With room for `lists` more and rows more than there are.
  Made(int64_t lists, int64_t capacity)
      : host(makeRoom(lists, capacity)), there(lists + kSpare, capacity),
        made{there.get(),         capacity,
             lists + kSpare,      there.offsets.data(),
             there.parent.data(), there.identity.data(),
             scratch.data()} {}

  /// Of lists below `above`.
  void expectEqual(const char *what, const DeviceDomain &above) {
    const genrec_domain got = there.fetch(), &expected = host->view;
    EXPECT_EQ(got.parent_domain, above.get()) << what;
    ASSERT_EQ(got.count, expected.count) << what;
    EXPECT_EQ(got.max_length, expected.max_length) << what;
    EXPECT_EQ(got.offsets, there.offsets.data());
    EXPECT_EQ(got.parent, there.parent.data());
    EXPECT_EQ(got.identity, there.identity.data());
    const int64_t lists = expected.parent_domain->count;
    auto offsets = there.offsets.fetch();
    auto parent = there.parent.fetch();
    auto identity = there.identity.fetch();
    EXPECT_TRUE(
        std::equal(host->offsets.begin(), host->offsets.begin() + lists + 1, offsets.begin()))
        << what;
    EXPECT_TRUE(std::equal(host->parent.begin(), host->parent.begin() + got.count, parent.begin()))
        << what;
    EXPECT_TRUE(
        std::equal(host->identity.begin(), host->identity.begin() + got.count, identity.begin()))
        << what;
  }
};

/// Moves random rows on both sides and compares all rows of the result, spare ones too. Rows that
/// are read begin `shiftIn` elements behind aligned memory, those of the result `shiftOut`.
template <class T>
void expectSameRows(int64_t width, int64_t ldX, int64_t rowsIn_, int64_t rowsOut_, const char *what,
                    const std::function<void(const T *, T *)> &onHost,
                    const std::function<void(RowsIn, RowsOut)> &onDevice, int64_t shiftIn = 0,
                    int64_t shiftOut = 0) {
  std::mt19937_64 random(11);
  const auto x = randomValues<T>(shiftIn + rowsIn_ * ldX, random);
  std::vector<T> expected(static_cast<size_t>((rowsOut_ + kSpare) * width));
  onHost(x.data() + shiftIn, expected.data());
  expected.insert(expected.begin(), static_cast<size_t>(shiftOut), T(99));
  Copy<T> in(x), out(std::vector<T>(expected.size(), T(99)));
  onDevice(rowsIn(in.data() + shiftIn, ldX),
           rowsOut(out.data() + shiftOut, rowsOut_ + kSpare, width));
  EXPECT_EQ(out.fetch(), expected) << what << ", width " << width;
}

/// For rows of floats that are aligned to 16 bytes and such that are not, for one reason each, of 8
/// bytes and 1, and more words than lanes.
template <class Host, class Device>
void expectSameMove(int64_t rowsIn_, int64_t rowsOut_, const char *what, const Host &onHost,
                    const Device &onDevice) {
  auto run = [&]<class T>(T, int64_t width, int64_t ldX, int64_t shiftIn = 0,
                          int64_t shiftOut = 0) {
    expectSameRows<T>(
        width, ldX, rowsIn_, rowsOut_, what,
        [&](const T *x, T *out) { onHost(width, x, ldX, out); },
        [&](RowsIn x, RowsOut out) { onDevice(x, out); }, shiftIn, shiftOut);
  };
  run(float(), 3, 4);
  run(float(), 8, 12);
  run(float(), 4, 5);
  run(float(), 4, 4, 1, 0);
  run(float(), 4, 4, 0, 1);
  if (rowsIn_ < 1000)
    run(float(), 37, 37);
  run(int64_t(), 1, 1);
  run(uint8_t(), 1, 2);
}

template <bool Last> void testTruncated(Lists &lists) {
  Made made(lists.lists(), lists.events->view.count + kSpare);
  kernels::truncate<Last>(&lists.step, &lists.events->view, &made.host->view, 3,
                          made.host->offsets.data(), made.host->parent.data(),
                          made.host->identity.data());
  truncateLists(lists.eventsThere.get(), 3, Last, made.made, testStream());
  made.expectEqual("truncated", lists.usersThere);
  const genrec_domain *source = &lists.events->view, *domain = &made.host->view;
  expectSameMove(
      domain->count, source->count, "deriveGrad",
      [&](int64_t width, auto *x, int64_t ldX, auto *out) {
        kernels::deriveGrad<Last>(&lists.step, source, domain, width, x, ldX, out);
      },
      [&](RowsIn x, RowsOut out) {
        deriveRowsGradient(lists.eventsThere.get(), made.there.get(), Last, x, out, testStream());
      });
}

TEST(ListDomains, Truncated) {
  for (const Lengths &lengths : listShapes()) {
    Lists lists(lengths);
    testTruncated<true>(lists);
    testTruncated<false>(lists);
  }
}

template <bool Front> void testLengthened(Lists &lists) {
  Made made(lists.lists(), lists.events->view.count + 3 * lists.lists());
  kernels::pad<Front>(&lists.step, &lists.events->view, &made.host->view, 3,
                      made.host->offsets.data(), made.host->parent.data(),
                      made.host->identity.data());
  lengthenLists(lists.eventsThere.get(), 3, Front, made.made, testStream());
  made.expectEqual("lengthened", lists.usersThere);
  const genrec_domain *source = &lists.events->view, *domain = &made.host->view;
  expectSameMove(
      source->count, domain->count, "derivePadded",
      [&](int64_t width, auto *x, int64_t ldX, auto *out) {
        kernels::derivePadded<Front>(&lists.step, source, domain, width, x, ldX, out);
      },
      [&](RowsIn x, RowsOut out) {
        lengthenRows(lists.eventsThere.get(), made.there.get(), Front, x, out, testStream());
      });
  expectSameMove(
      domain->count, source->count, "derivePaddedGrad",
      [&](int64_t width, auto *x, int64_t ldX, auto *out) {
        kernels::derivePaddedGrad<Front>(&lists.step, source, domain, width, x, ldX, out);
      },
      [&](RowsIn x, RowsOut out) {
        lengthenRowsGradient(lists.eventsThere.get(), made.there.get(), Front, x, out,
                             testStream());
      });
}

TEST(ListDomains, Lengthened) {
  for (const Lengths &lengths : listShapes()) {
    Lists lists(lengths);
    testLengthened<true>(lists);
    testLengthened<false>(lists);
  }
}

/// Rows of one of three parts lie where no word of 16 bytes may: joined as they are elsewhere.
void testJoinedAnywhere(genrec_step &step, const genrec_domain *const (&parts)[3],
                        genrec_domain *const (&there)[3], const genrec_domain &joined,
                        const genrec_domain *joinedThere) {
  constexpr int64_t kWidth = 4;
  for (int odd = 0; odd < 3; ++odd) {
    std::vector<std::vector<float>> values;
    std::deque<Copy<float>> copies;
    JoinedRows rows;
    for (int part = 0; part < 3; ++part) {
      values.emplace_back(static_cast<size_t>(parts[part]->count * kWidth + 1));
      std::iota(values.back().begin(), values.back().end(), static_cast<float>(1000 * part));
      const int64_t behind = part == odd;
      copies.emplace_back(values.back());
      rows.domains[part] = there[part];
      rows.values[part] = rowsIn(copies.back().data() + behind, kWidth);
      values.back().erase(values.back().begin(), values.back().begin() + behind);
    }
    rows.count = 3;
    std::vector<float> expected(static_cast<size_t>(joined.count * kWidth));
    kernels::concatRows(&step, &joined, kWidth, expected.data(), parts[0], values[0].data(), kWidth,
                        parts[1], values[1].data(), kWidth, parts[2], values[2].data(), kWidth);
    Copy<float> out{std::vector<float>(expected.size())};
    joinRows(joinedThere, rows, rowsOut(out.data(), joined.count, kWidth), testStream());
    EXPECT_EQ(out.fetch(), expected) << odd;
  }
}

/// Lists of `others`, rows of `above` and lists of `events`, joined below `above`.
void testJoined(genrec_step &step, const HostDomain &aboveHost, const DeviceDomain &aboveThere,
                const HostDomain &othersHost, const DeviceDomain &othersThere,
                const HostDomain &eventsHost, const DeviceDomain &eventsThere) {
  const genrec_domain *above = &aboveHost.view, *events = &eventsHost.view,
                      *others = &othersHost.view;
  Made made(above->count, events->count + others->count + above->count);
  HostDomain &host = *made.host;
  kernels::concatDomains(&step, above, &host.view, host.offsets.data(), host.parent.data(),
                         host.identity.data(), others, above, events);
  genrec_domain *there[] = {othersThere.get(), aboveThere.get(), eventsThere.get()};
  joinLists(aboveThere.get(), {{there[0], there[1], there[2]}, 3}, made.made, testStream());
  made.expectEqual("joined", aboveThere);
  const genrec_domain *parts[] = {others, above, events};
  for (int number = 0; number < 3; ++number)
    expectSameMove(
        host.view.count, parts[number]->count, "splitRows",
        [&](int64_t width, auto *x, int64_t ldX, auto *out) {
          kernels::splitRows(&step, &host.view, width, x, ldX, out, number, others, above, events);
        },
        [&](RowsIn x, RowsOut out) {
          splitJoinedRows(made.there.get(), {{there[0], there[1], there[2]}, 3}, number, x, out,
                          testStream());
        });
  // One matrix holds the rows of all parts; the second begins a row later, the third two.
  const int64_t most = std::max({events->count, others->count, above->count}) + 2;
  expectSameMove(
      most, host.view.count, "concatRows",
      [&](int64_t width, auto *x, int64_t ldX, auto *out) {
        kernels::concatRows(&step, &host.view, width, out, others, x, ldX, above, x + ldX, ldX,
                            events, x + 2 * ldX, ldX);
      },
      [&](RowsIn x, RowsOut out) {
        JoinedRows rows;
        for (const genrec_domain *part : there) {
          rows.domains[rows.count] = part;
          rows.values[rows.count] = {static_cast<const char *>(x.values) + rows.count * x.step,
                                     x.step};
          ++rows.count;
        }
        joinRows(made.there.get(), rows, out, testStream());
      });
  testJoinedAnywhere(step, {others, above, events}, {there[0], there[1], there[2]}, host.view,
                     made.there.get());
}

TEST(ListDomains, Joined) {
  for (const Lengths &lengths : listShapes()) {
    Lists lists(lengths);
    testJoined(lists.step, *lists.users, lists.usersThere, *lists.others, lists.othersThere,
               *lists.events, lists.eventsThere);
  }
}

/// What lists are joined below has lists of its own, whose lengths are others.
TEST(ListDomains, JoinedBelowLists) {
  Lists lists({3, 0, 1, 4});
  const Host first = makeLists(*lists.events, {2, 0, 1, 5, 3, 0, 0, 1}, lists.random),
             second = makeLists(*lists.events, {0, 4, 1, 1, 0, 2, 0, 3}, lists.random);
  const DeviceDomain firstThere(*first, &lists.eventsThere),
      secondThere(*second, &lists.eventsThere);
  testJoined(lists.step, *lists.events, lists.eventsThere, *first, firstThere, *second,
             secondThere);
}

TEST(ListDomains, Paired) {
  for (const Lengths &lengths : listShapes()) {
    if (std::accumulate(lengths.begin(), lengths.end(), int64_t(0)) > 3000)
      continue;
    Lists lists(lengths);
    const genrec_domain *first = &lists.others->view, *second = &lists.events->view;
    int64_t pairs = 0;
    for (int64_t row = 0; row < first->count; ++row)
      pairs += lengths[static_cast<size_t>(first->parent[row])];
    Made made(first->count, pairs + kSpare);
    HostDomain &host = *made.host;
    kernels::pairDomains(&lists.step, first, second, &host.view, host.offsets.data(),
                         host.parent.data(), host.identity.data());
    pairLists(lists.othersThere.get(), lists.eventsThere.get(), made.made, testStream());
    made.expectEqual("paired", lists.othersThere);
    expectSameMove(
        second->count, pairs, "pairRows",
        [&](int64_t width, auto *x, int64_t ldX, auto *out) {
          kernels::pairRows(&lists.step, second, &host.view, width, x, ldX, out);
        },
        [&](RowsIn x, RowsOut out) {
          pairedRows(lists.eventsThere.get(), made.there.get(), x, out, testStream());
        });
    expectSameRows<float>(
        3, 5, pairs, second->count, "pairSum",
        [&](const float *x, float *out) {
          kernels::pairSum(&lists.step, second, &host.view, 3, x, 5, out);
        },
        [&](RowsIn x, RowsOut out) {
          addPairs(lists.eventsThere.get(), made.there.get(), 3,
                   static_cast<const float *>(x.values), 5, static_cast<float *>(out.values),
                   out.capacity, testStream());
        });
  }
}

TEST(ListDomains, Taken) {
  for (const Lengths &lengths : listShapes()) {
    if (lengths.empty())
      continue;
    Lists lists(lengths);
    // Every third user, some of them twice.
    std::vector<int64_t> parents;
    for (int64_t user = 0; user < lists.lists(); user += 3)
      parents.insert(parents.end(), static_cast<size_t>(1 + user % 2), user);
    Host above = makeRoot(static_cast<int64_t>(parents.size()), lists.random);
    DeviceDomain aboveThere(*above);
    int64_t capacity = kSpare;
    for (int64_t parent : parents)
      capacity += lengths[static_cast<size_t>(parent)];
    Made made(above->view.count, capacity);
    std::vector<int64_t> rows(static_cast<size_t>(capacity));
    HostDomain &host = *made.host;
    kernels::pickLists(&lists.step, &lists.events->view, &above->view, parents.data(), &host.view,
                       host.offsets.data(), host.parent.data(), host.identity.data(), rows.data());
    Copy<int64_t> parentsThere(parents), rowsThere{std::vector<int64_t>(rows.size())};
    takeLists(lists.eventsThere.get(), aboveThere.get(), parentsThere.data(), rowsThere.data(),
              made.made, testStream());
    made.expectEqual("taken", aboveThere);
    EXPECT_EQ(rowsThere.fetch(), rows);
  }
}

TEST(ListDomains, FixedRows) {
  HostDomain expected;
  kernels::fixedRows(&expected.view, 12);
  DeviceDomain made(0, 0);
  makeFixedRows(made.get(), 12, testStream());
  const genrec_domain got = made.fetch();
  EXPECT_EQ(got.count, 12);
  EXPECT_EQ(got.max_length, 12);
  EXPECT_EQ(got.offsets, nullptr);
  EXPECT_EQ(got.parent_domain, nullptr);
}

TEST(ListRows, Shifted) {
  for (const Lengths &lengths : listShapes())
    for (int64_t distance : {1, -2, 0}) {
      Lists lists(lengths);
      const int64_t rows = lists.events->view.count;
      const size_t room = static_cast<size_t>(rows + kSpare);
      std::unique_ptr<bool[]> expected(new bool[room]());
      expectSameMove(
          rows, rows, "shiftRows",
          [&](int64_t width, auto *x, int64_t ldX, auto *out) {
            kernels::shiftRows(&lists.step, &lists.events->view, distance, width, x, ldX, out,
                               expected.get());
          },
          [&](RowsIn x, RowsOut out) {
            Copy<uint8_t> valid(std::vector<uint8_t>(room, 9));
            shiftListRows(lists.eventsThere.get(), distance, x, out,
                          reinterpret_cast<bool *>(valid.data()), testStream());
            const auto got = valid.fetch();
            EXPECT_TRUE(std::equal(got.begin(), got.end(), expected.get()));
          });
    }
}

TEST(ListRows, PositionsAndLengths) {
  for (const Lengths &lengths : listShapes()) {
    Lists lists(lengths);
    const size_t rows = static_cast<size_t>(lists.events->view.count + kSpare);
    for (bool fromEnd : {false, true}) {
      std::vector<int64_t> expected(rows);
      if (fromEnd)
        kernels::positions<true>(&lists.step, &lists.events->view, expected.data());
      else
        kernels::positions<false>(&lists.step, &lists.events->view, expected.data());
      Copy<int64_t> got(std::vector<int64_t>(rows, 9));
      listPositions(lists.eventsThere.get(), fromEnd, got.data(), static_cast<int64_t>(rows),
                    testStream());
      EXPECT_EQ(got.fetch(), expected);
    }
    std::vector<int64_t> expected(lengths);
    expected.resize(lengths.size() + kSpare);
    Lengths others = Lists::shifted(lengths);
    others.resize(expected.size());
    Copy<int64_t> got(std::vector<int64_t>(expected.size(), 9)),
        gotOthers(std::vector<int64_t>(expected.size(), 9));
    listLengths(
        {{lists.eventsThere.get(), lists.othersThere.get()}, {got.data(), gotOthers.data()}}, 2,
        static_cast<int64_t>(expected.size()), testStream());
    EXPECT_EQ(got.fetch(), expected);
    EXPECT_EQ(gotOthers.fetch(), others);
  }
}

template <bool Last> void testTiled(Lists &lists) {
  const genrec_domain *events = &lists.events->view;
  constexpr int64_t kCount = 4;
  auto tiled = [&]<class T>(T, int64_t width, int64_t ldX) {
    expectSameRows<T>(
        kCount * width, ldX, events->count, lists.lists(), "tile",
        [&](const T *x, T *out) {
          // Of a matrix with rows of ldX elements, the first `width` are read.
          kernels::tile<Last>(&lists.step, events, kCount, width, x, ldX, out);
        },
        [&](RowsIn x, RowsOut out) {
          tileRows(lists.eventsThere.get(), kCount, Last, x, out, testStream());
        });
    expectSameRows<T>(
        width, kCount * width + 1, lists.lists(), events->count, "tileGrad",
        [&](const T *x, T *out) {
          kernels::tileGrad<Last>(&lists.step, events, kCount, width, x, kCount * width + 1, out);
        },
        [&](RowsIn x, RowsOut out) {
          tileRowsGradient(lists.eventsThere.get(), kCount, Last, x, out, testStream());
        });
  };
  tiled(float(), 4, 4);
  tiled(float(), 3, 5);
  tiled(int64_t(), 1, 1);
}

TEST(ListRows, Tiled) {
  for (const Lengths &lengths : listShapes()) {
    Lists lists(lengths);
    testTiled<true>(lists);
    testTiled<false>(lists);
  }
}

template <kernels::PoolChoice Choice>
void testPoolGradient(Lists &lists, ListChoice choice, int64_t width) {
  const genrec_domain *events = &lists.events->view;
  const int64_t ldX = width + 2, ldGradient = width + 1;
  auto x = randomValues<float>(events->count * ldX, lists.random);
  for (float &value : x)
    value = static_cast<int>(value) % 3 == 0    ? 1500.0f // equal greatest ones
            : static_cast<int>(value) % 50 == 1 ? __builtin_nanf("")
                                                : value;
  const auto gradient = randomValues<float>(lists.lists() * ldGradient, lists.random);
  std::vector<float> expected(static_cast<size_t>((events->count + kSpare) * width));
  kernels::poolGrad<Choice>(&lists.step, events, width, x.data(), ldX, gradient.data(), ldGradient,
                            expected.data());
  Copy<float> xThere(x), gradientThere(gradient), out(std::vector<float>(expected.size(), 9));
  listPoolGradient(choice, lists.eventsThere.get(), lists.lists() + kSpare, width, xThere.data(),
                   ldX, gradientThere.data(), ldGradient, out.data(), events->count + kSpare,
                   testStream());
  EXPECT_EQ(out.fetch(), expected) << "width " << width;
}

TEST(ListRows, PoolGradients) {
  for (const Lengths &lengths : listShapes())
    for (int64_t width : {1, 5, 40}) {
      if (lengths.size() > 1000) // a block each
        continue;
      Lists lists(lengths);
      testPoolGradient<kernels::PoolChoice::max>(lists, ListChoice::max, width);
      testPoolGradient<kernels::PoolChoice::first>(lists, ListChoice::first, width);
      testPoolGradient<kernels::PoolChoice::last>(lists, ListChoice::last, width);
    }
}

} // namespace
} // namespace genrec::rt::cuda::test

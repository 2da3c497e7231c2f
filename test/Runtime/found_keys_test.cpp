//===- found_keys_test.cpp - By which keys a step found its rows ----------===//

#include "../../runtime/session/found_keys.h"

#include <array>
#include <gtest/gtest.h>

namespace genrec::rt {
namespace {

TEST(FoundKeys, AreThoseOfTheLastCallThatWroteTheHandles) {
  std::array<float *, 20> memory = {};
  float *const *handles = memory.data();
  const std::array<int64_t, 6> first = {10, 11, 12, 13, 14, 15}, second = {20, 21, 22, 23, 24, 25};
  FoundKeys keys;
  EXPECT_EQ(keys.find(handles, 1), nullptr);
  keys.note(handles, first.data(), 6);
  keys.note(handles + 6, second.data(), 6);
  keys.note(handles + 12, first.data(), 0);
  // Parts of one lookup, and not of two.
  ASSERT_NE(keys.find(handles + 2, 4), nullptr);
  EXPECT_EQ(keys.find(handles + 2, 4)[0], 12);
  EXPECT_EQ(keys.find(handles + 6, 6)[5], 25);
  EXPECT_EQ(keys.find(handles + 5, 2), nullptr);
  EXPECT_EQ(keys.find(handles + 12, 1), nullptr);
  // What another lookup writes over is not known any more, but for its own.
  keys.note(handles + 4, second.data(), 4);
  EXPECT_EQ(keys.find(handles, 1), nullptr);
  EXPECT_EQ(keys.find(handles + 8, 1), nullptr);
  EXPECT_EQ(keys.find(handles + 7, 1)[0], 23);
  keys.forget(handles + 8, 12);
  EXPECT_EQ(keys.find(handles + 4, 4)[0], 20);
  keys.forget(handles + 7, 1);
  EXPECT_EQ(keys.find(handles + 4, 1), nullptr);
  keys.note(handles, first.data(), 6);
  keys.clear();
  EXPECT_EQ(keys.find(handles, 1), nullptr);
}

} // namespace
} // namespace genrec::rt

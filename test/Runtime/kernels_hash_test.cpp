// Published hashes against published values.

#include "genrec_rt/kernels/shared/hash_strings.h"

#include <gtest/gtest.h>

#include <string>

namespace genrec::rt::kernels {
namespace {

constexpr uint64_t kLow63 = (uint64_t{1} << 63) - 1;

genrec_string view(const std::string &text) {
  return {text.data(), static_cast<int64_t>(text.size())};
}

std::string repeated(int times) {
  std::string text;
  while (times-- > 0)
    text += "test";
  return text;
}

TEST(KernelsHash, FarmHashIsAsPublished) {
  auto expect = [](const std::string &text, int64_t seed, uint64_t value) {
    EXPECT_EQ(hashFarm64(view(text), seed, 63), static_cast<int64_t>(value & kLow63)) << text;
  };
  // Guava's tests, BigQuery's documentation, and FarmHash itself for 40 bytes.
  expect(repeated(1), 0, 8581389452482819506u);
  expect(repeated(8), 0, static_cast<uint64_t>(-4196240717365766262));
  expect(repeated(64), 0, 3500507768004279527u);
  expect("1footrue", 0, static_cast<uint64_t>(-1541654101129638711));
  expect("2applefalse", 0, 2794438866806483259u);
  expect("3true", 0, static_cast<uint64_t>(-4880158226897771312));
  expect(repeated(10), 0, 6185812923901077055u);
  expect(repeated(10), 7, 14334265163303968062u);
}

TEST(KernelsHash, OthersAreAsPublished) {
  EXPECT_EQ(hashXxh3(view(""), 0, 63), 0x2D06800538D394C2);
  EXPECT_EQ(hashMurmur3(view(""), 0, 63), 0);
  EXPECT_EQ(hashMurmur3(view("hello"), 0, 63), static_cast<int64_t>(0xCBD8A7B341BD9B02 & kLow63));
}

/// The CPU's is a library's; devices have ours.
TEST(KernelsHash, StringsHaveOneXxh3) {
  std::string text;
  for (int i = 0; i < 3000; ++i)
    text += static_cast<char>(i * 131 + i / 8 * 7);
  for (int64_t size = 0; size < 2900; size += size < 600 ? 1 : 97)
    for (int64_t seed : {int64_t(0), int64_t(1), int64_t(0x123456789ABCDEF), int64_t(-1)})
      EXPECT_EQ(detail::cutHash(detail::xxh3(text.data() + 3, static_cast<uint64_t>(size),
                                             static_cast<uint64_t>(seed)),
                                63),
                hashXxh3(genrec_string{text.data() + 3, size}, seed, 63))
          << size << " bytes, seed " << seed;
}

TEST(KernelsHash, IntegersAreTheirBytes) {
  constexpr int64_t value = 0x4847464544434241;
  EXPECT_EQ(hashXxh3(value, 9, 63), hashXxh3(view("ABCDEFGH"), 9, 63));
  EXPECT_EQ(hashMurmur3(value, 9, 63), hashMurmur3(view("ABCDEFGH"), 9, 63));
  EXPECT_EQ(hashFarm64(value, 9, 63), hashFarm64(view("ABCDEFGH"), 9, 63));
  EXPECT_EQ(hashFarm64(value, 9, 20), hashFarm64(value, 9, 63) & 0xFFFFF);
}

} // namespace
} // namespace genrec::rt::kernels

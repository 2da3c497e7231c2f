//===- definitions_test.cpp - bits that everyone must agree on ------------===//
//
// The interpreter's definitions of random words, identities, hashes and initial
// values against published test vectors and against the runtime's, which were
// written apart.
//
//===----------------------------------------------------------------------===//

#include "../../../lib/Interpreter/Random.h"
#include "genrec_rt/identity.h"
#include "genrec_rt/kernels/shared/init.h"

#include "mlir/IR/MLIRContext.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace genrec;
using namespace genrec::interpreter;

// The vectors that come with Random123, for Philox4x32-10.
TEST(Definitions, PhiloxGivesThePublishedWords) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, 0, 0), (Words{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, ~0u, ~0u),
            (Words{0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}));
  EXPECT_EQ(philox({0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344}, 0xA4093822, 0x299F31D0),
            (Words{0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}));
}

TEST(Definitions, RandomWordsAreTheRuntimes) {
  for (uint64_t seed : {0ull, 1ull, ~0ull})
    for (uint64_t step : {0ull, 7ull})
      for (uint32_t stream : {0u, 256u, 70001u})
        for (uint64_t row : {0ull, 5ull, 0x123456789ABCDEFull})
          for (uint64_t element : {0ull, 15ull, 16ull, 63ull, 64ull, 1000ull, (3ull << 20) + 17})
            ASSERT_EQ(randomWord(seed, step, stream, row, element),
                      rt::kernels::philoxWord({seed, step, stream}, row, element))
                << seed << ' ' << step << ' ' << stream << ' ' << row << ' ' << element;
}

TEST(Definitions, IdentitiesAreTheRuntimes) {
  for (int64_t position : {0ll, 1ll, 1ll << 40})
    EXPECT_EQ(interpreter::rootIdentity(position), rt::rootIdentity(position));
  for (uint64_t identity : {0ull, 3ull, ~0ull})
    for (uint64_t ordinal : {0ull, 1ull, 1ull << 20})
      EXPECT_EQ(childIdentity(identity, ordinal), rt::mixIdentity(identity, ordinal));
}

TEST(Definitions, HashesAreThePublished) {
  EXPECT_EQ(hashBytes(HashKind::xxh3, "", 0), 0x2D06800538D394C2u);
  EXPECT_EQ(hashBytes(HashKind::murmur3, "", 0), 0u);
  EXPECT_EQ(hashBytes(HashKind::murmur3, "hello", 0), 0xCBD8A7B341BD9B02u);
  EXPECT_EQ(hashBytes(HashKind::murmur3, "The quick brown fox jumps over the lazy dog", 0),
            0xE34BBC7BBC071B6Cu);
  // Only the low half of the seed counts, and bytes are little-endian.
  EXPECT_EQ(hashBytes(HashKind::murmur3, "a", 5),
            hashBytes(HashKind::murmur3, "a", 5 | 1ull << 40));
  // FarmHash's Fingerprint64, as Guava's tests and BigQuery's documentation publish it; the
  // last one by FarmHash itself, for the lengths that those leave out.
  EXPECT_EQ(int64_t(hashBytes(HashKind::farmhash64, "test", 0)), 8581389452482819506);
  std::string repeated;
  for (int i = 0; i < 64; ++i)
    repeated += "test";
  EXPECT_EQ(int64_t(hashBytes(HashKind::farmhash64, repeated.substr(0, 32), 0)),
            -4196240717365766262);
  EXPECT_EQ(int64_t(hashBytes(HashKind::farmhash64, repeated, 0)), 3500507768004279527);
  EXPECT_EQ(int64_t(hashBytes(HashKind::farmhash64, "1footrue", 0)), -1541654101129638711);
  EXPECT_EQ(int64_t(hashBytes(HashKind::farmhash64, "2applefalse", 0)), 2794438866806483259);
  EXPECT_EQ(int64_t(hashBytes(HashKind::farmhash64, "3true", 0)), -4880158226897771312);
  EXPECT_EQ(hashBytes(HashKind::farmhash64, repeated.substr(0, 40), 0), 6185812923901077055u);
  EXPECT_EQ(hashBytes(HashKind::farmhash64, repeated.substr(0, 40), 7), 14334265163303968062u);
  EXPECT_EQ(hashInteger(HashKind::xxh3, 0x4847464544434241, 9),
            hashBytes(HashKind::xxh3, "ABCDEFGH", 9));
}

// The runtime evaluates polynomials to 1e-8; the interpreter inverts erfc.
TEST(Definitions, InitialValuesAreTheRuntimes) {
  mlir::MLIRContext context;
  context.loadDialect<GenRecDialect>();
  mlir::Builder builder(&context);
  using rt::kernels::Distribution;
  struct Case {
    genrec::InitKind kind;
    Distribution runtime;
    double scale;
  } cases[] = {{genrec::InitKind::normal, Distribution::normal, 0.02},
               {genrec::InitKind::truncated_normal, Distribution::truncatedNormal, 1.5},
               {genrec::InitKind::uniform, Distribution::uniform, 0.1},
               {genrec::InitKind::xavier_uniform, Distribution::uniform, std::sqrt(6.0 / 12.0)},
               {genrec::InitKind::xavier_normal, Distribution::normal, std::sqrt(2.0 / 12.0)}};
  for (const Case &c : cases) {
    bool isXavier =
        c.kind == genrec::InitKind::xavier_uniform || c.kind == genrec::InitKind::xavier_normal;
    auto init = InitAttr::get(&context, c.kind, builder.getF64FloatAttr(isXavier ? 1.0 : c.scale));
    double sum = 0, squares = 0;
    std::vector<double> values(50);
    for (uint64_t row = 0; row < 200; ++row) {
      fillInitialRow(init, 42, "movies", row, 2.0, 10.0, values);
      for (auto [column, value] : llvm::enumerate(values)) {
        double expected = rt::kernels::initialValue(c.runtime, 0.0f, static_cast<float>(c.scale),
                                                    42, rt::nameHash("movies"), row,
                                                    static_cast<uint32_t>(column));
        // One unit in the last place of a float.
        ASSERT_NEAR(value, expected, 0x1p-23 * std::abs(expected)) << row << ' ' << column;
        sum += value;
        squares += value * value;
      }
    }
    // Variances of the unit distributions: 1, of a normal cut at 2 deviations 0.7737, 1/3.
    double variance = c.runtime == Distribution::normal            ? 1.0
                      : c.runtime == Distribution::truncatedNormal ? 0.7737
                                                               : 1.0 / 3.0;
    EXPECT_NEAR(sum / 10000, 0.0, 0.05 * c.scale);
    EXPECT_NEAR(squares / 10000, variance * c.scale * c.scale, 0.05 * c.scale * c.scale);
  }
  auto constant =
      InitAttr::get(&context, genrec::InitKind::constant, builder.getF64FloatAttr(-3.0));
  double value = 0.0;
  fillInitialRow(constant, 1, "t", 5, 1, 1, value);
  EXPECT_EQ(value, -3.0);
}

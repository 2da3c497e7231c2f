// Hashes against vectors that the python packages xxhash 4.1.0 and mmh3 5.3.1 gave, which wrap the
// reference implementations of xxHash (Collet) and MurmurHash3 (Appleby).

#include "genrec_rt/kernels/shared/hash.h"

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

namespace {

using namespace genrec::rt::kernels;

/// The bytes (7 i + 3) mod 251 for i in [0, size), and their hashes.
struct TextVector {
  int64_t size, seed;
  uint64_t xxh3, murmur3;
};
/// An id, hashed as its 8 little-endian bytes.
struct IdVector {
  int64_t id, seed;
  uint64_t xxh3, murmur3;
};

const TextVector kTexts[] = {
    {0, 0, 0x2D06800538D394C2, 0x0000000000000000},
    {1, 0, 0x13E608BC156DEFED, 0x726AC6DD306A3E59},
    {3, 0, 0xA9088DDA485B481C, 0x6E3FEBCAF3B53DCE},
    {4, 0, 0x6D9253B16C8B1ED3, 0x0E29ED82DED0AA06},
    {7, 0, 0x8E8291AD89127E2E, 0xBECBBF54236CE3A1},
    {8, 0, 0x60539DB630471163, 0xA5EE2A9A9132D3BD},
    {9, 0, 0xFEFF668361D723A8, 0x51BA2EA10AFADBB6},
    {15, 0, 0x9EC169F4A98231C1, 0xBA6A4B5E80ADE4F4},
    {16, 0, 0xB8C859B0F030B585, 0xC4B099C52F8F4EA1},
    {17, 0, 0x714A04408E79B80F, 0xD4AE4B39FE53B127},
    {31, 0, 0xED41AC283D0674B3, 0x9D91FEDFF00436FB},
    {32, 0, 0x19FF4EE1D6BA1A55, 0x65BDB8DD080643FF},
    {33, 0, 0x3E44983AD21679C8, 0xB16757D8C4F72F1A},
    {64, 0, 0x38BCDE5122F74956, 0x1CBECCE6E69571CF},
    {128, 0, 0x4634AE6A253A60E4, 0x3E2F3FDB67DB4FCA},
    {129, 0, 0xC095B9B1B087722D, 0x6D732B6B27987C6D},
    {240, 0, 0x887AF00281F75D38, 0x6FF0DCD51F78FFB4},
    {241, 0, 0x82B1DE299F6E411E, 0x0F8FE2A82B237AFE},
    {512, 0, 0xC5AECD4D330685C6, 0x295F75B231A49FE8},
    {1000, 0, 0xD45F5A87C5C20462, 0x9CD829AA1643D6D9},
    {0, 7, 0x913AE0873E9B7EB8, 0xF402C55AC5DEC98F},
    {1, 7, 0xFCCB07FC3FF947CF, 0x8697A0B7DFE34E15},
    {3, 7, 0xD6838AC160687B17, 0x288434E020B92611},
    {4, 7, 0x5497E75923C9EB6C, 0x9EAE2449F68CFFEB},
    {7, 7, 0x49C4DF385D0D6D6A, 0xDC84613BA07E9A94},
    {8, 7, 0xE8FE83B4B560D1B5, 0x8FD1DA0F49F3D994},
    {9, 7, 0x019FE640CF317FA4, 0xD8B5D020127EBE13},
    {15, 7, 0x970CB556AB1998F2, 0x190F8B8D743FE26B},
    {16, 7, 0xF31C0991BE992D83, 0x1E1EF87432DF4FD5},
    {17, 7, 0xA9D0F620B84891D0, 0x02E76DA3D10BF239},
    {31, 7, 0xA6587D71C2FE4163, 0x0110128399E8C58A},
    {32, 7, 0xA462DDCCCB3BDDA7, 0xFAEC72F44089E5F6},
    {33, 7, 0xA3F3EAB3AF23FE99, 0x5D648EED699BCF14},
    {64, 7, 0x9F065CE340CF3BF8, 0xB182ED5FB56525AE},
    {128, 7, 0x056918B05A8DE66A, 0x3C1B09F65371BDA9},
    {129, 7, 0x94F77C551F0E45A5, 0x90DA85CF966D11CD},
    {240, 7, 0x3020C54654C1EE4C, 0x5ED8B3A9F6399F06},
    {241, 7, 0x4D06D845E7D97BBE, 0x0DEB3A15625AC5DB},
    {512, 7, 0x7BF48DC24281E517, 0x74F841751F167333},
    {1000, 7, 0x736D77438092D985, 0x54E76287A23E9199},
};
const IdVector kIds[] = {
    {0, 0, 0xC77B3ABB6F87ACD9, 0x28DF63B7CC57C3CB},
    {1, 0, 0x2FBC593564DB792E, 0x004403B7FB05C44A},
    {-1, 0, 0x5111C7E47D784413, 0xA0E4B27A1ABAED73},
    {42, 0, 0xD5A6F8C838DF27C8, 0xB6ACC39989D27DF8},
    {(int64_t{1} << 52) - 1, 0, 0x787F22DA063100EE, 0x0F4F4925AB0D4655},
    {INT64_MIN, 0, 0x828F2476789A0E5F, 0x01159DFEB4593227},
    {INT64_MAX, 0, 0xA233CF376558DF46, 0x6C76EBCBDAD669D4},
    {0, 1, 0x9E51AD6D2F3E695C, 0x73269217E5476F20},
    {1, 1, 0x85671091EDA75EB5, 0x3D9D8BA8F33BDC48},
    {-1, 1, 0x7B016D4CCC01C9BF, 0xC59E33222BA7784C},
    {42, 1, 0x67572691C5ABFC9C, 0x8130AD322B330F0F},
    {(int64_t{1} << 52) - 1, 1, 0x9C28565820359F92, 0x68421ED652028C2F},
    {INT64_MIN, 1, 0xE9E81420D7CA0631, 0x131AF5CE61D259DB},
    {INT64_MAX, 1, 0x081AEDD03DCFAB63, 0x42E689CE8D58C91C},
    {0, 123456789, 0x2A3920287E3E15D1, 0x374D58BD88CF7388},
    {1, 123456789, 0x83660BF0D449FA8C, 0x3072EABE0805BB0F},
    {-1, 123456789, 0xF087D3CD24755A89, 0x134C8AA7A6188DF2},
    {42, 123456789, 0x0DE0BFFCA847B571, 0x7C947071DB669F9A},
    {(int64_t{1} << 52) - 1, 123456789, 0xD046129DA80CEA5B, 0xCF1CD58B5FE30626},
    {INT64_MIN, 123456789, 0x5D164EAD7057317F, 0x7E377D0ED7B36D6D},
    {INT64_MAX, 123456789, 0x10CF2382E8C9D7D6, 0xB7D695D4883A9231},
};

int64_t cut(uint64_t hash, int bits) {
  return static_cast<int64_t>(hash & ((uint64_t{1} << bits) - 1));
}

/// Every number of bits that genrec.hash may ask for.
constexpr int kMostBits = 63;

TEST(Hash, TextsOfEveryLengthClassAgreeWithTheReference) {
  for (const TextVector &vector : kTexts) {
    std::string text;
    for (int64_t i = 0; i < vector.size; ++i)
      text += static_cast<char>((7 * i + 3) % 251);
    genrec_string view = {text.data(), static_cast<int64_t>(text.size())};
    EXPECT_EQ(hashXxh3(view, vector.seed, kMostBits), cut(vector.xxh3, kMostBits)) << vector.size;
    EXPECT_EQ(hashMurmur3(view, vector.seed, kMostBits), cut(vector.murmur3, kMostBits))
        << vector.size;
  }
}

TEST(Hash, IdsAgreeWithTheReferenceAtEveryNumberOfBits) {
  for (const IdVector &vector : kIds)
    for (int bits = 1; bits <= kMostBits; ++bits) {
      ASSERT_EQ(hashXxh3(vector.id, vector.seed, bits), cut(vector.xxh3, bits))
          << vector.id << " " << bits;
      ASSERT_EQ(hashMurmur3(vector.id, vector.seed, bits), cut(vector.murmur3, bits))
          << vector.id << " " << bits;
    }
}

TEST(Hash, AnIdHashesAsItsEightBytes) {
  // 0x0807060504030201 has the bytes 1 to 8.
  const char bytes[] = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(hashXxh3(int64_t{0x0807060504030201}, 5, 40), hashXxh3(genrec_string{bytes, 8}, 5, 40));
  EXPECT_EQ(hashMurmur3(int64_t{0x0807060504030201}, 5, 40),
            hashMurmur3(genrec_string{bytes, 8}, 5, 40));
}

TEST(Hash, AnEmptyTextMayHaveNoData) {
  EXPECT_EQ(hashXxh3(genrec_string{nullptr, 0}, 0, kMostBits), cut(kTexts[0].xxh3, kMostBits));
  EXPECT_EQ(hashMurmur3(genrec_string{nullptr, 0}, 0, kMostBits),
            cut(kTexts[0].murmur3, kMostBits));
}

TEST(Hash, MurmurTakesTheLowHalfOfTheSeedAndXxh3AllOfIt) {
  int64_t wide = (int64_t{1} << 32) + 7;
  EXPECT_EQ(hashMurmur3(int64_t{42}, wide, kMostBits), hashMurmur3(int64_t{42}, 7, kMostBits));
  EXPECT_NE(hashXxh3(int64_t{42}, wide, kMostBits), hashXxh3(int64_t{42}, 7, kMostBits));
}

} // namespace

//===- safetensors_test.cpp - Named tensors in one file -------------------===//

#include "genrec_rt/safetensors.h"

#include "../../runtime/core/aside_file.h"
#include "TinyData.h"
#include "error_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace genrec::rt::test {
namespace {

/// A file from a header and bytes, as any writer of the format might make it.
void writeRaw(const std::string &path, const std::string &header, const std::string &bytes,
              uint64_t length = 0) {
  if (length == 0)
    length = header.size();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char *>(&length), 8);
  file << header << bytes;
}

TEST(Safetensors, WhatIsWrittenIsRead) {
  TestFolder folder;
  std::vector<float> weight = {1, 2, 3, 4, 5, 6};
  std::vector<int64_t> ids = {-1, 1ll << 50};
  float scalar = 7;
  SafetensorsWriter writer;
  writer.note("model", "tiny");
  writer.add("weight", weight.data(), {3, 2});
  writer.add("ids", ids.data(), {2});
  writer.add("scalar", &scalar, {});
  writer.add("empty", weight.data(), {0, 4});
  int64_t size = writer.write(folder / "a");
  EXPECT_EQ(size, static_cast<int64_t>(std::filesystem::file_size(folder / "a")));

  SafetensorsReader reader(folder / "a");
  EXPECT_EQ(reader.tensors().size(), 4u);
  EXPECT_EQ(describe(reader.tensor("weight")), "F32 [3, 2]");
  EXPECT_EQ(reader.tensor("weight").begin % 8, 0);
  std::vector<float> values(3);
  reader.readFloats("weight", 2, 3, values.data());
  EXPECT_EQ(values, (std::vector<float>{3, 4, 5}));
  std::vector<int64_t> read(2);
  reader.readIntegers("ids", 0, 2, read.data());
  EXPECT_EQ(read, ids);
  EXPECT_EQ(reader.tensor("scalar").count(), 1);
  EXPECT_EQ(reader.tensor("empty").count(), 0);
}

TEST(Safetensors, OtherTypesBecomeFloats) {
  TestFolder folder;
  std::string bytes(12, '\0');
  double half = 0.5;
  uint16_t two = 0x4000, bf16 = 0x4040; // 2 as f16, 3 as bf16
  std::memcpy(bytes.data(), &half, 8);
  std::memcpy(bytes.data() + 8, &two, 2);
  std::memcpy(bytes.data() + 10, &bf16, 2);
  writeRaw(folder / "a",
           R"({"d":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},)"
           R"("h":{"dtype":"F16","shape":[1],"data_offsets":[8,10]},)"
           R"("b":{"dtype":"BF16","shape":[1],"data_offsets":[10,12]}})",
           bytes);
  SafetensorsReader reader(folder / "a");
  float d, h, b;
  reader.readFloats("d", 0, 1, &d);
  reader.readFloats("h", 0, 1, &h);
  reader.readFloats("b", 0, 1, &b);
  EXPECT_EQ(d, 0.5f);
  EXPECT_EQ(h, 2.0f);
  EXPECT_EQ(b, 3.0f);
}

TEST(Safetensors, DamageIsNamed) {
  TestFolder folder;
  std::string path = folder / "a";
  auto errorFor = [&](const std::string &header, const std::string &bytes, uint64_t length = 0) {
    writeRaw(path, header, bytes, length);
    return messageOf([&] { SafetensorsReader reader(path); });
  };
  std::ofstream(path) << "abc";
  EXPECT_EQ(messageOf([&] { SafetensorsReader reader(path); }),
            path + ": is no safetensors file: it has 3 bytes");
  EXPECT_EQ(messageOf([&] { SafetensorsReader reader(folder.path); }),
            folder.path + ": is no safetensors file: it is no file but a folder or the like");
  EXPECT_EQ(errorFor("{}", "", 1ull << 60),
            path + ": is no safetensors file or truncated: its header should have "
                   "1152921504606846976 bytes, the file has 10");
  EXPECT_EQ(errorFor("nonsense", ""), path + ": broken header: no JSON object");
  EXPECT_EQ(errorFor(R"({"a":{"dtype":"F32"}})", ""),
            path + ": broken header: field 'shape' of 'a' is missing");
  EXPECT_EQ(errorFor(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "1234"),
            path + ": broken header: tensor 'a' is F32 [2] and has 4 bytes");
  EXPECT_EQ(errorFor(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", "12345678"),
            path +
                ": broken header: field 'shape' of 'a' is [-2], each must be an integer from 0 on");
  EXPECT_EQ(errorFor(R"({"a":{"dtype":"F32","shape":[9999999999,9999999999,99],)"
                     R"("data_offsets":[0,8]}})",
                     "12345678"),
            path +
                ": broken header: tensor 'a' is F32 [9999999999, 9999999999, 99] and has 8 bytes");
  EXPECT_EQ(errorFor(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "1234"),
            path + ": is truncated: tensor 'a' ends at byte 70, the file has 66");
  EXPECT_EQ(messageOf([&] { SafetensorsReader reader(folder / "none"); }),
            "cannot open " + folder / "none" + ": No such file or directory");
}

/// Whatever a header says is held to the file before anything is made of it.
TEST(Safetensors, NoValueOfAHeaderIsTrusted) {
  TestFolder folder;
  std::string path = folder / "a";
  auto errorFor = [&](const std::string &tensors, const std::string &bytes) {
    writeRaw(path, "{" + tensors + "}", bytes);
    std::string message = messageOf([&] { SafetensorsReader reader(path); });
    std::string begin = path + ": ";
    return message.rfind(begin, 0) == 0 ? message.substr(begin.size()) : message;
  };
  auto tensor = [](const std::string &name, const std::string &type, const std::string &shape,
                   const std::string &offsets) {
    return "\"" + name + R"(":{"dtype":")" + type + R"(","shape":)" + shape +
           R"(,"data_offsets":)" + offsets + "}";
  };
  EXPECT_EQ(errorFor(tensor("a", "F31", "[2147483648]", "[0,8]"), "12345678"),
            "broken header: field 'dtype' of 'a' is 'F31', which safetensors do not have");
  EXPECT_EQ(errorFor(tensor("a", "F32", "[2147483648]", "[0,0]"), ""),
            "broken header: tensor 'a' is F32 [2147483648] and has 0 bytes");
  EXPECT_EQ(errorFor(tensor("a", "F32", "[18446744073709551615]", "[0,4]"), "1234"),
            "broken header: field 'shape' of 'a' is [18446744073709551615], each must be an "
            "integer from 0 on");
  EXPECT_EQ(errorFor(tensor("a", "F32", "[1.0]", "[0,4]"), "1234"),
            "broken header: field 'shape' of 'a' is [1.0], each must be an integer from 0 on");
  EXPECT_EQ(errorFor(tensor("a", "F32", "[1]", "[0,4]") + "," + tensor("b", "F32", "[1]", "[0,4]"),
                     "1234"),
            "broken header: tensor 'b' begins at byte 115, the one before it ends at 119");
  EXPECT_EQ(errorFor(tensor("a", "F32", "[1]", "[4,8]"), "12345678"),
            "broken header: tensor 'a' begins at byte 66, the one before it ends at 62");
  EXPECT_EQ(errorFor(tensor("a", "F32", "[1]", "[0,4]"), "12345"),
            "broken header: the tensors end at byte 66, the file at 67");
  EXPECT_EQ(errorFor(tensor("a", "F32", "[1]", "[4,0]"), "1234"),
            "broken header: field 'data_offsets' of 'a' is no pair of a begin and an end");
  EXPECT_EQ(errorFor(tensor("a", "F32", "[1]", "[0,9223372036854775807]"), "1234"),
            "is truncated: tensor 'a' ends at byte 9223372036854775887, the file has 84");
  EXPECT_EQ(errorFor(tensor("a", "F32", "[1]", "[0,4]") + "," + tensor("a", "F32", "[1]", "[0,4]"),
                     "1234"),
            "broken header: field 'a' is there twice");
}

TEST(Safetensors, ValuesThatAreNotFiniteAreNamedWhereTheyMayNotBe) {
  TestFolder folder;
  std::vector<float> values = {1, 2, 3, 4, NAN, 6, 7, HUGE_VALF};
  SafetensorsWriter writer;
  writer.add("weight", values.data(), {4, 2});
  EXPECT_EQ(messageOf([&] { writer.writeWithDigest(folder / "b", /*finiteOnly=*/true); }),
            "there is a NaN or an infinity in tensor 'weight', row 2");
  EXPECT_FALSE(std::filesystem::exists(folder / "b"));
  EXPECT_EQ(writer.writeWithDigest(folder / "a").notFinite, "tensor 'weight', row 2");
  SafetensorsReader any(folder / "a"), finite(folder / "a", {nullptr, true});
  std::vector<float> read(8);
  any.readFloats("weight", 0, 8, read.data());
  EXPECT_EQ(read[7], HUGE_VALF);
  finite.readFloats("weight", 0, 4, read.data());
  EXPECT_EQ(messageOf([&] { finite.readFloats("weight", 0, 8, read.data()); }),
            folder / "a" + ": tensor 'weight' holds a NaN in row 2");
  EXPECT_EQ(messageOf([&] { finite.readFloats("weight", 6, 2, read.data()); }),
            folder / "a" + ": tensor 'weight' holds an infinity in row 3");
  EXPECT_EQ(messageOf([&] { any.readFloats("weight", 6, 3, read.data()); }),
            folder / "a" + ": tensor 'weight' is F32 [4, 2], elements 6 and 3 more are read");
}

/// Blocks of a tensor are read in any order and in any pieces.
TEST(Safetensors, EveryBlockIsHeldToItsChecksum) {
  TestFolder folder;
  const int64_t count = 3 * TensorDigest::kBlockBytes / 8 + 5;
  std::vector<int64_t> numbers(count), read(count);
  for (int64_t i = 0; i < count; ++i)
    numbers[i] = i * i;
  SafetensorsWriter writer;
  writer.add("numbers", numbers.data(), {count});
  writer.add("none", numbers.data(), {0, 3});
  TensorDigest digest = writer.writeWithDigest(folder / "a");
  EXPECT_EQ(digest.blocks.at("numbers").size(), 4u);
  {
    SafetensorsReader reader(folder / "a", {&digest, false});
    reader.readIntegers("numbers", count - 7, 7, read.data());
    EXPECT_EQ(read[6], numbers[count - 1]);
    reader.readIntegers("numbers", 1, count - 1, read.data());
    EXPECT_TRUE(std::equal(read.begin(), read.end() - 1, numbers.begin() + 1));
    reader.verifyRest();
  }
  // The first byte of the third block.
  auto at = static_cast<std::streamoff>(digest.bytes - 5 * 8 - TensorDigest::kBlockBytes);
  std::fstream file(folder / "a", std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  auto byte = static_cast<char>(file.get() ^ 1);
  file.seekp(at);
  file.put(byte);
  file.close();
  SafetensorsReader reader(folder / "a", {&digest, false});
  reader.readIntegers("numbers", 0, 100, read.data());
  EXPECT_EQ(messageOf([&] { reader.verifyRest(); }),
            folder / "a" + ": is damaged: bytes " + std::to_string(at) + " to " +
                std::to_string(at + TensorDigest::kBlockBytes) +
                ", of tensor 'numbers', have another checksum than the manifest says");
}

TEST(Safetensors, MissingTensorsAndWrongTypesAreNamed) {
  TestFolder folder;
  float one = 1;
  SafetensorsWriter writer;
  writer.add("weight", &one, {1});
  writer.write(folder / "a");
  SafetensorsReader reader(folder / "a");
  int64_t integer;
  EXPECT_EQ(messageOf([&] { reader.tensor("wieght"); }),
            folder / "a" + ": has no tensor 'wieght'; it has weight");
  EXPECT_EQ(messageOf([&] { reader.readIntegers("weight", 0, 1, &integer); }),
            folder / "a" + ": tensor 'weight' is F32 [1], integers are read");
  SafetensorsWriter twice;
  twice.add("weight", &one, {1});
  twice.add("weight", &one, {1});
  EXPECT_EQ(messageOf([&] { twice.write(folder / "b"); }),
            "two tensors of the model are called 'weight'");
}

TEST(AsideFile, NothingIsLeftOfAFileThatWasNotCommitted) {
  TestFolder folder;
  writeFile(folder / "a", "old");
  {
    AsideFile file(folder / "a");
    file.write("new", 3);
    EXPECT_TRUE(std::filesystem::exists(folder / "a.partial"));
  }
  EXPECT_EQ(readText(folder / "a"), "old");
  EXPECT_FALSE(std::filesystem::exists(folder / "a.partial"));
  writeFile(folder / "a", "newer");
  EXPECT_EQ(readText(folder / "a"), "newer");
}

TEST(AsideFile, AFullDiskIsNamed) {
  if (!std::filesystem::exists("/dev/full"))
    GTEST_SKIP() << "no /dev/full here";
  TestFolder folder;
  std::filesystem::create_symlink("/dev/full", folder / "a.partial");
  EXPECT_EQ(messageOf([&] { writeFile(folder / "a", "text"); }),
            "cannot write " + folder / "a.partial" + ": No space left on device");
  EXPECT_EQ(messageOf([&] { writeFile(folder / "none/a", "text"); }),
            "cannot create " + folder / "none/a.partial" + ": No such file or directory");
}

} // namespace
} // namespace genrec::rt::test

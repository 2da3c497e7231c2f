//===- safetensors_test.cpp - Named tensors in one file -------------------===//

#include "genrec_rt/safetensors.h"

#include "../../runtime/checkpoint/aside_file.h"
#include "TinyData.h"
#include "genrec_rt/error.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

namespace genrec::rt::test {
namespace {

std::string messageOf(const std::function<void()> &body) {
  try {
    body();
  } catch (const Error &error) {
    return error.what();
  }
  return "no error";
}

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
  EXPECT_EQ(errorFor("{}", "", 1ull << 60),
            path + ": is no safetensors file or truncated: its header should have "
                   "1152921504606846976 bytes, the file has 10");
  EXPECT_EQ(errorFor("nonsense", ""), path + ": broken header: no JSON object");
  EXPECT_EQ(errorFor(R"({"a":{"dtype":"F32"}})", ""),
            path + ": broken header: tensor 'a' lacks dtype, shape or data_offsets");
  EXPECT_EQ(errorFor(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "1234"),
            path + ": broken header: tensor 'a' is F32 [2] and has 4 bytes");
  EXPECT_EQ(errorFor(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", "12345678"),
            path + ": broken header: tensor 'a' has a broken shape");
  EXPECT_EQ(errorFor(R"({"a":{"dtype":"F32","shape":[9999999999,9999999999,99],)"
                     R"("data_offsets":[0,8]}})",
                     "12345678"),
            path + ": broken header: tensor 'a' has a broken shape");
  EXPECT_EQ(errorFor(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "1234"),
            path + ": is truncated: tensor 'a' ends at byte 70, the file has 66");
  EXPECT_EQ(messageOf([&] { SafetensorsReader reader(folder / "none"); }),
            "cannot open " + folder / "none" + ": No such file or directory");
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

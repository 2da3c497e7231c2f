//===- dataset_files_test.cpp - Which files are read, and that they stay --===//

#include "../../runtime/data/file_identity.h"
#include "ReadingModel.h"
#include "TinyModel.h"

#include <arrow/io/file.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>

#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace genrec::rt::test {
namespace {

namespace fs = std::filesystem;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

//===-- folders ---------------------------------------------------------------===//

TEST(DatasetFiles, FoldersAreReadThroughLinksAndInAnyCase) {
  TestFolder folder, elsewhere;
  auto touch = [](const std::string &path) { std::ofstream(path) << "x"; };
  fs::create_directories(folder / "in/deep");
  touch(folder / "in/b.PARQUET");
  touch(folder / "in/a.parq");
  touch(folder / "in/c.Pq");
  touch(folder / "in/notes.txt");
  touch(folder / "in/_SUCCESS");
  touch(folder / "in/deep/d.parquet");
  touch(elsewhere / "e.parquet");
  fs::create_directory_symlink(elsewhere.path, folder / "in/link");
  fs::create_directory_symlink(elsewhere.path, folder / "in/more");    // read once
  fs::create_directory_symlink(folder / "in", folder / "in/deep/loop"); // its own parent
  fs::create_symlink(folder / "nowhere", folder / "in/gone.parquet");

  std::vector<std::string> notes;
  auto files = listFiles(folder / "in", &notes);
  for (std::string &file : files)
    file = fs::path(file).lexically_relative(folder / "in");
  EXPECT_THAT(files, ElementsAre("a.parq", "b.PARQUET", "c.Pq", "deep/d.parquet", "link/e.parquet"));
  EXPECT_THAT(notes, ElementsAre("skipped in '" + folder / "in" +
                                 "': deep/loop, more (a folder that is read already); gone.parquet "
                                 "(links to nothing); _SUCCESS (names that begin with . or _ are "
                                 "hidden); notes.txt (no .parquet, .parq or .pq files)"));
  listFiles(folder / "in/a.parq", &notes);
  EXPECT_EQ(notes.size(), 1u);

  fs::create_directories(folder / "other");
  touch(folder / "other/a.csv");
  Message message = errorOf([&] { listFiles(folder / "other"); });
  EXPECT_EQ(message.text, "folder '" + folder / "other" + "' holds no .parquet file");
  EXPECT_THAT(message.help, HasSubstr("a.csv"));
}

/// Without root's right to read everything.
class AsNobody {
public:
  explicit AsNobody(const TestFolder &folder) {
    fs::permissions(folder.path, fs::perms(0755));
    if (isRoot)
      EXPECT_EQ(seteuid(65534), 0);
  }
  ~AsNobody() {
    if (isRoot)
      EXPECT_EQ(seteuid(0), 0);
  }

private:
  bool isRoot = geteuid() == 0;
};

/// What is told of `path`, where the folder "in" has the permissions `mode`.
Message unreadable(const std::string &path, int mode) {
  TestFolder folder;
  ReadingModel model = userModel();
  fs::create_directories(folder / "in");
  fs::create_directories(folder / "out");
  writeUsers(folder, 8, 4, 4);
  fs::rename(folder / "part-000.parquet", folder / "in/a.parquet");
  fs::rename(folder / "part-001.parquet", folder / "out/a.parquet");
  fs::create_symlink(folder / "in/a.parquet", folder / "out/link");
  fs::permissions(folder / "in/a.parquet", fs::perms(0));
  fs::permissions(folder / "in", fs::perms(mode));
  Message message;
  {
    AsNobody nobody(folder);
    message = errorOf([&] { Dataset(model.description, {&model.program}, folder / path, {}); });
  }
  fs::permissions(folder / "in", fs::perms(0755));
  for (size_t at; (at = message.text.find(folder.path)) != std::string::npos;)
    message.text.replace(at, folder.path.size(), "F");
  return message;
}

TEST(DatasetFiles, WhatMayNotBeReadIsNamed) {
  for (int mode : {0000, 0400})
    for (const char *path : {".", "in", "in/deep/a.parquet", "**/*.parquet", "in/a.parquet,b"}) {
      Message message = unreadable(path, mode);
      EXPECT_THAT(message.text, AnyOf("folder 'F/in' cannot be read: Permission denied",
                                      "folder 'F/./in' cannot be read: Permission denied"))
          << path;
      EXPECT_THAT(message.help, HasSubstr("let this user read it and enter it")) << path;
    }
  for (const char *path : {"out/link", "out"})
    EXPECT_EQ(unreadable(path, 0).text, "folder 'F/out/link' cannot be read: Permission denied");
  Message file = unreadable("in", 0755);
  EXPECT_THAT(file.text, StartsWith("F/in/a.parquet: cannot be read: "));
  EXPECT_THAT(file.text, HasSubstr("Permission denied"));
  EXPECT_THAT(file.help, HasSubstr("let this user read it"));
}

//===-- files that are replaced -----------------------------------------------===//

class Replaced : public testing::Test {
protected:
  /// Reads some row groups of data that is decoded again each time, changes the file, and
  /// reads on: what happens then.
  Message readAround(const std::function<void(const std::string &file)> &change) {
    TestFolder folder;
    writeUsers(folder, 40, 40, 10);
    const std::string file = folder / "part-000.parquet";
    ReadingModel model = userModel();
    DatasetOptions options;
    options.memoryBudget = 1;
    Dataset data(model.description, {&model.program}, file, options);
    auto readAll = [&] {
      Batch batch(model.description);
      EpochOptions epoch;
      epoch.batch = 7;
      for (auto source = data.epoch(epoch); source->next(batch);)
        batch.reset();
    };
    readAll();
    change(file);
    Message message = errorOf(readAll);
    if (message.text.starts_with(file))
      message.text = message.text.substr(file.size());
    return message;
  }
};

void rewrite(const std::string &path, int64_t add) {
  std::string json = "[";
  for (int64_t u = 0; u < 40; ++u)
    json += (u == 0 ? "[" : ",[") + std::to_string(u + add) +
            ",0,0,[{\"movie\":1},{\"movie\":2}]]";
  writeParquet(path, *tableOf(tinySchema(), json + "]"), 10);
}

TEST_F(Replaced, AFileThatStaysIsRead) { EXPECT_EQ(readAround([](const auto &) {}).text, "no error"); }

TEST_F(Replaced, AnotherFileOfItsNameIsNoticed) {
  EXPECT_EQ(readAround([](const std::string &file) {
              rewrite(file + ".new", 1);
              fs::rename(file + ".new", file);
            }).text,
            ": was replaced while it is read: another file has its name");
}

TEST_F(Replaced, WritingIntoItIsNoticed) {
  EXPECT_THAT(readAround([](const std::string &file) { rewrite(file, 1); }).text,
              HasSubstr(": was replaced while it is read: it "));
  // Of equal layout and length: some values of a column chunk are others.
  EXPECT_EQ(readAround([](const std::string &file) {
              std::fstream(file, std::ios::in | std::ios::out).seekp(30).put('?');
            }).text,
            ": was replaced while it is read: it was written to");
}

TEST_F(Replaced, AFooterThatIsAnotherIsNoticedWhateverTheTimesSay) {
  EXPECT_EQ(readAround([](const std::string &file) {
              struct stat before{};
              ASSERT_EQ(stat(file.c_str(), &before), 0);
              std::fstream(file, std::ios::in | std::ios::out)
                  .seekp(before.st_size - 20)
                  .put('?');
              struct timespec times[2] = {before.st_atim, before.st_mtim};
              ASSERT_EQ(utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
            }).text,
            ": was replaced while it is read: its footer is another one");
}

TEST_F(Replaced, AFileThatIsGoneIsNamed) {
  EXPECT_THAT(readAround([](const std::string &file) { fs::remove(file); }).text,
              HasSubstr("cannot be read: Failed to open local file"));
}

//===-- footers that cannot be true -------------------------------------------===//

/// Every byte of a footer changed to every one of some values: the file is refused, or read
/// with the rows that its footer says. (Rows below 0 were once read for ever.)
TEST(DatasetFiles, DamagedFootersEndInAnError) {
  TestFolder folder;
  ReadingModel model = userModel();
  writeUsers(folder, 40, 40, 40);
  const std::string file = folder / "part-000.parquet", damaged = folder / "damaged.parquet";
  const std::string whole = readText(file);
  uint32_t length = 0;
  std::memcpy(&length, whole.data() + whole.size() - 8, sizeof length);
  // What follows is the schema as Arrow writes it, which has checks of its own.
  const size_t begin = whole.size() - 8 - length, end = whole.find("ARROW:schema");
  ASSERT_NE(end, std::string::npos);
  int64_t refused = 0, read = 0, negative = 0;
  for (size_t at = begin; at < end; ++at)
    for (unsigned char value : {0x01, 0xff}) {
      std::string text = whole;
      text[at] = static_cast<char>(value);
      std::ofstream(damaged, std::ios::binary) << text;
      Message message = errorOf([&] {
        Dataset data(model.description, {&model.program}, damaged, {});
        int64_t rows = 0;
        EpochOptions options;
        options.batch = 16;
        Batch batch(model.description);
        for (auto source = data.epoch(options); source->next(batch); batch.reset())
          rows += batch.rows;
        EXPECT_EQ(rows, data.rows());
      });
      ++(message.text == "no error" ? read : refused);
      negative += message.text.find("its footer is damaged: the file has -1 rows") != std::string::npos;
    }
  EXPECT_GT(refused, 100);
  EXPECT_GT(read, 100);
  EXPECT_GE(negative, 1);
}

} // namespace
} // namespace genrec::rt::test

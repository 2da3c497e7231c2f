//===- checkpoint_damage_test.cpp - Damage is named, never used -----------===//
//
// GENREC_CORRUPTIONS=10000 makes so many random changes to a checkpoint's files
// instead of some hundreds.
//
//===----------------------------------------------------------------------===//

#include "../../runtime/checkpoint/json_fields.h"
#include "../../runtime/checkpoint/manifest.h"
#include "CheckpointTesting.h"

#include <cstdlib>
#include <map>
#include <random>

#include <unistd.h>

namespace genrec::rt::test {
namespace {

/// One random change of each kind that disks, copies and people make.
class Corruptor {
public:
  explicit Corruptor(uint64_t seed) : random(seed) {}

  std::string change(std::string text, std::string &kind) {
    switch (below(7)) {
    case 0:
      kind = "flipped bit";
      text[below(text.size())] ^= static_cast<char>(1 << below(8));
      return text;
    case 1:
      kind = "truncation";
      text.resize(below(text.size()));
      return text;
    case 2:
      kind = "overwritten word";
      for (size_t at = below(text.size()), i = 0; i < 8 && at + i < text.size(); ++i)
        text[at + i] = static_cast<char>(below(256));
      return text;
    case 3: {
      kind = "swapped blocks";
      size_t size = 1 + below(std::min<size_t>(text.size() / 2, 512));
      size_t first = below(text.size() - 2 * size + 1),
             second = first + size + below(text.size() - first - 2 * size + 1);
      std::swap_ranges(text.begin() + static_cast<std::ptrdiff_t>(first),
                       text.begin() + static_cast<std::ptrdiff_t>(first + size),
                       text.begin() + static_cast<std::ptrdiff_t>(second));
      return text;
    }
    case 4:
      kind = "appended bytes";
      return text + std::string(1 + below(64), below(2) ? ' ' : '\0');
    case 5: {
      kind = "zeroed piece";
      size_t at = below(text.size()), size = 1 + below(1024);
      std::fill_n(text.begin() + static_cast<std::ptrdiff_t>(at), std::min(size, text.size() - at),
                  '\0');
      return text;
    }
    default: {
      kind = "lost piece";
      size_t at = below(text.size());
      return text.erase(at, 1 + below(64));
    }
    }
  }

  size_t below(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random); }

private:
  std::mt19937_64 random;
};

/// Every change must be found, whatever it is: none is harmless enough to pass.
TEST(CheckpointDamage, EveryRandomChangeIsNamed) {
  const char *asked = std::getenv("GENREC_CORRUPTIONS");
  int64_t count = asked ? std::atoll(asked) : 700;
  TestFolder folder;
  Session session(tinyModel(), seeded());
  CheckpointWriter writer(folder.path, {});
  for (int i = 0; i < 2; ++i) {
    trainSome(session, 4);
    writer.save(session, stateOf(session));
  }
  std::vector<std::string> files = {"manifest.json", "step-8/manifest.json",
                                    "step-8/model.safetensors"};
  std::map<std::string, std::string> whole;
  for (const std::string &file : files)
    whole[file] = bytesOf(folder / file);
  Corruptor corruptor(1);
  std::map<std::string, int64_t> named;
  for (int64_t i = 0; i < count; ++i) {
    // Most bytes are tensors', but a manifest is as important.
    const std::string &file = files[corruptor.below(4) % 3];
    std::string kind, changed;
    do
      changed = corruptor.change(whole[file], kind);
    while (changed == whole[file]); // equal blocks were swapped
    writeText(folder / file, changed);
    alarm(60); // hanging ends the test
    Session restored(tinyModel(), seeded());
    std::string message = messageOf([&] {
      CheckpointReader reader(folder.path);
      reader.restore(restored, i % 2 ? RestoreFor::training : RestoreFor::inference);
    });
    alarm(0);
    ASSERT_NE(message.find(folder.path), std::string::npos)
        << i << ": " << kind << " of " << file << " was not named: " << message;
    ++named[file + ", " + kind];
    writeText(folder / file, whole[file]);
  }
  Session restored(tinyModel(), seeded());
  EXPECT_EQ(loadCheckpoint(folder.path, restored).step, 8u);
  EXPECT_EQ(trainedState(restored), trainedState(session));
  if (asked)
    for (const auto &[what, times] : named)
      std::printf("%6lld %s\n", static_cast<long long>(times), what.c_str());
}

//===-- values that checksums do not question -------------------------------===//

/// A manifest of version 1 has no checksum, so that anything may be in it.
TEST(CheckpointDamage, EveryFieldIsHeldToItsTypeAndRange) {
  using Json = nlohmann::json;
  TestFolder folder;
  Session session(tinyModel(), seeded());
  trainSome(session, 2);
  auto errorFor = [&](const Json &changes) {
    saveVersion1(folder.path, session, changes);
    Session restored(tinyModel(), seeded());
    std::string message = messageOf([&] { loadCheckpoint(folder.path, restored); });
    std::string begin = folder / "manifest.json" + ": is damaged: field ";
    return message.rfind(begin, 0) == 0 ? message.substr(begin.size()) : message;
  };
  std::string natural = ", it must be an integer from 0 on";
  EXPECT_EQ(errorFor({}), "no error");
  EXPECT_EQ(errorFor({{"rows_in_epoch", 601}}),
            "'rows_in_epoch' is 601, it must be an integer from 0 to 600");
  EXPECT_EQ(errorFor({{"rows_in_epoch", -1}}),
            "'rows_in_epoch' is -1, it must be an integer from 0 to 600");
  EXPECT_EQ(errorFor({{"data_rows", -1}}), "'data_rows' is -1" + natural);
  EXPECT_EQ(errorFor({{"step", -2}}), "'step' is -2" + natural);
  EXPECT_EQ(errorFor({{"step", 18446744073709551615ull}}),
            "'step' is 18446744073709551615" + natural);
  EXPECT_EQ(errorFor({{"step", 2.5}}), "'step' is 2.5" + natural);
  EXPECT_EQ(errorFor({{"epoch", 0}}), "'epoch' is 0, it must be an integer from 1 on");
  EXPECT_EQ(errorFor({{"batch", 0}}), "'batch' is 0, it must be an integer from 1 on");
  EXPECT_EQ(errorFor({{"seed", 1e308}}),
            "'seed' is 1e+308, it must be an integer from 0 to 2^64 - 1");
  EXPECT_EQ(errorFor({{"seed", -1}}), "'seed' is -1, it must be an integer from 0 to 2^64 - 1");
  EXPECT_EQ(errorFor({{"shuffle", 1}}), "'shuffle' is 1, it must be true or false");
  EXPECT_EQ(errorFor({{"history", "[]"}}), "'history' is no list");
  EXPECT_EQ(errorFor({{"history", Json::array({3})}}),
            "'history' is [3], it must be a list of objects");
  EXPECT_EQ(errorFor({{"epoch_losses", {{{"sum", "x"}, {"weight", 1}}}}}),
            "'sum' of 'epoch_losses[0]' is \"x\", it must be a number");
  EXPECT_EQ(errorFor({{"epoch_losses", Json::array()}}),
            "'" + folder.path + "' was trained for 0 losses, the model has 1");
  EXPECT_EQ(errorFor({{"tensors", "../step-2/model.safetensors"}}),
            "'tensors' is '../step-2/model.safetensors', not like step-1/model.safetensors");
  EXPECT_EQ(errorFor({{"tensor_bytes", 1e18}}), "'tensor_bytes' is 1e+18, it must be an integer "
                                                "from 8 on");
  EXPECT_EQ(errorFor({{"model", nullptr}}), "'model' is null, it must be a string");
  EXPECT_EQ(errorFor({{"version", 99}}),
            folder / "manifest.json" + ": has version 99, this binary reads up to 3");
  EXPECT_EQ(errorFor({{"version", 0}}), "'version' is 0, it must be an integer from 1 on");
  EXPECT_EQ(errorFor({{"version", 2}}),
            folder / "manifest.json" + ": is damaged: it does not begin with its checksum");
}

TEST(CheckpointDamage, ANumberThatIsNoDoubleIsNoJson) {
  EXPECT_EQ(messageOf([] { JsonDocument("{\"a\": 1e999}", "f", "is damaged"); }),
            "f: is damaged: no JSON object");
}

/// Where numbers of rows and types of tensors do not fit, although the file's size agrees.
TEST(CheckpointDamage, TensorsAreHeldToTheModel) {
  TestFolder folder;
  Session session(tinyModel(), seeded());
  trainSome(session, 2);
  std::vector<int64_t> ids(100000, 5);
  std::vector<float> floats(100000);
  auto errorFor = [&](const std::function<void(SafetensorsWriter &)> &add) {
    saveVersion1(folder.path, session);
    SafetensorsWriter all;
    addModelTensors(all, session, /*states=*/true);
    SafetensorsWriter writer =
        all.filtered([](const std::string &name) { return name != "movie.ids"; });
    add(writer);
    int64_t bytes = writer.write(folder / "a");
    saveVersion1(folder.path, session, {{"tensor_bytes", bytes}});
    std::filesystem::rename(folder / "a", folder / "step-2/model.safetensors");
    Session fresh(tinyModel(), seeded());
    return messageOf([&] { loadCheckpoint(folder.path, fresh); });
  };
  auto rows = session.table(0).size();
  EXPECT_NE(errorFor([&](SafetensorsWriter &writer) {
              writer.add("movie.ids", ids.data(), {100000});
            }).find("'movie.ids' has 100000 rows, 'movie.values' has " + std::to_string(rows)),
            std::string::npos);
  EXPECT_NE(errorFor([&](SafetensorsWriter &writer) {
              writer.add("movie.ids", floats.data(), {rows});
            }).find("integers are read"),
            std::string::npos);
  EXPECT_NE(errorFor([&](SafetensorsWriter &writer) {
              writer.add("movie.ids", ids.data(), {rows});
            }).find("'movie.ids' holds an id twice"),
            std::string::npos);
}

} // namespace
} // namespace genrec::rt::test

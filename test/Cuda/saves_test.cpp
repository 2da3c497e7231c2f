//===- saves_test.cpp - What a save of a session on a device costs --------===//
//
// Tables that share a store are saved table by table. A save holds the bytes of a session on the
// host, and asks the device no more often where there are more tables.
//
//===----------------------------------------------------------------------===//

#include "device_model.h"

#include "genrec_rt/checkpoint.h"
#include "genrec_rt/safetensors.h"
#include "genrec_rt/session.h"
#include "simt.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <unistd.h>
#include <vector>

namespace genrec::rt::cuda::test {
namespace {

constexpr int64_t kKeyBits = 20;

/// The model with `members` tables more, in groups of their own by `dims`.
class SharedTables {
public:
  SharedTables(int32_t members, const std::vector<int64_t> &dims, bool hasRules)
      : model(deviceModel()) {
    for (int32_t i = 0; i < members; ++i)
      names.push_back("shared" + std::to_string(i));
    tables.push_back(model.tables[0]);
    for (int32_t i = 0; i < members; ++i) {
      const auto which = static_cast<size_t>(i) % dims.size();
      genrec_table_desc table = model.tables[0];
      table.name = names[static_cast<size_t>(i)].c_str();
      table.dim = dims[which];
      table.optimizer = {GENREC_OPTIMIZER_ADAM, 2, kRate, 0, 0};
      table.group = static_cast<int32_t>(which) + 1;
      table.key = i / static_cast<int64_t>(dims.size()) << kKeyBits;
      table.key_bits = kKeyBits;
      if (hasRules) {
        table.ttl = 100;
        table.admit_after = 2;
        table.element = GENREC_ROW_BF16;
        table.hot_after = 3;
      }
      tables.push_back(table);
    }
    model.tables = tables.data();
    model.table_count = static_cast<int32_t>(tables.size());
  }

  genrec_model_desc onDevice() const { return model; }
  genrec_model_desc onHost() const {
    genrec_model_desc host = model;
    host.device = nullptr;
    return host;
  }

private:
  genrec_model_desc model;
  std::vector<std::string> names;
  std::vector<genrec_table_desc> tables;
};

SessionOptions oneThread() {
  SessionOptions options;
  options.threads = 1;
  return options;
}

/// Rows in every other table, in turns; of tables with rules some that are hot, and ids that wait.
void fill(Session &session) {
  for (const int64_t round : {0, 1})
    for (int32_t i = 0; i < session.model().table_count; i += 2) {
      std::vector<int64_t> ids;
      for (int64_t n = 0; n < 3 + i % 5; ++n)
        ids.push_back((n * 7919 + i * 31 + round * 5) % (1 << kKeyBits));
      const auto count = static_cast<int64_t>(ids.size());
      TableView table = session.table(i);
      TableRows rows = table.findOrInsert(ids.data(), count);
      const StoreConfig &config = table.configuration();
      if (config.rules.any()) {
        std::vector<Sighting> sightings;
        for (int64_t n = 0; n < count; ++n)
          sightings.push_back({n + 1, 1 + n % 4});
        rows.writeSightings(sightings.data());
        table.waiting()->findOrInsert(ids.data(), 2).writeSightings(sightings.data());
      }
      std::vector<float> values(static_cast<size_t>(count * config.dim)),
          states(static_cast<size_t>(count * config.stateFloats()));
      for (size_t n = 0; n < values.size(); ++n)
        values[n] = 0.1F * static_cast<float>(n + static_cast<size_t>(i));
      for (size_t n = 0; n < states.size(); ++n)
        states[n] = 0.3F * static_cast<float>(n);
      rows.writeValues(values.data());
      rows.write(config.stateOffset(), config.stateFloats(), states.data());
    }
}

/// The bytes of a file with all of a session's tensors.
std::string save(Session &session) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("genrec-saves-" + std::to_string(getpid()));
  SafetensorsWriter writer;
  addModelTensors(writer, session, /*states=*/true);
  writer.writeWithDigest(path.string(), /*finiteOnly=*/true);
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::filesystem::remove(path);
  return bytes;
}

struct Asked {
  int64_t waits, launches, allocations;
};

/// How often the second save of a session asks its device.
Asked ask(Session &session) {
  save(session);
  const Asked before{simt::waitCount(), simt::launchCount(), simt::allocationCount()};
  save(session);
  return {simt::waitCount() - before.waits, simt::launchCount() - before.launches,
          simt::allocationCount() - before.allocations};
}

TEST(Saves, HaveTheBytesOfTheHost) {
  for (bool hasRules : {false, true}) {
    const SharedTables tables(9, {4, 6}, hasRules);
    Session device(tables.onDevice(), oneThread()), host(tables.onHost(), oneThread());
    fill(device);
    fill(host);
    EXPECT_EQ(save(device), save(host)) << hasRules;
    EXPECT_EQ(simt::errorMessage(), "");
  }
}

TEST(Saves, AskTheDeviceByStoreAndNotByTable) {
  for (bool hasRules : {false, true}) {
    std::vector<Asked> asked;
    for (int32_t members : {8, 80}) {
      const SharedTables tables(members, {4, 6}, hasRules);
      Session session(tables.onDevice(), oneThread());
      fill(session);
      asked.push_back(ask(session));
    }
    EXPECT_EQ(asked[1].waits, asked[0].waits);
    EXPECT_EQ(asked[1].launches, asked[0].launches);
    EXPECT_EQ(asked[1].allocations, asked[0].allocations);
  }
}

} // namespace
} // namespace genrec::rt::cuda::test

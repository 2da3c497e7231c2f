//===- Retrieval.cpp - histories with the next item held out --------------===//

#include "Datasets.h"
#include "ParquetOutput.h"
#include "References.h"

#include <algorithm>

using namespace genrec::datagen;

namespace {

enum Kind : uint64_t { UserKind = 2 };

struct Event {
  int64_t item;
  int64_t time;
};

struct History {
  std::vector<Event> events;
  std::vector<bool> seen; ///< by item, without the last event's
  Taste taste;            ///< at the last event
};

const std::shared_ptr<arrow::DataType> timeType =
    arrow::timestamp(arrow::TimeUnit::SECOND, "UTC");

std::shared_ptr<arrow::Schema> getSchema(bool training) {
  std::vector<std::shared_ptr<arrow::Field>> event = {
      arrow::field("item", arrow::int64(), false),
      arrow::field("time", timeType, false),
      arrow::field("tags", arrow::list(arrow::field("tag", arrow::int64(), false)),
                   false),
      arrow::field("next", arrow::int64(), false)};
  auto history =
      arrow::list(arrow::field("event", arrow::struct_(event), false));
  std::vector<std::shared_ptr<arrow::Field>> fields = {
      arrow::field("user", arrow::int64(), false),
      arrow::field("history", history, false)};
  if (!training)
    fields.push_back(arrow::field("held_out", arrow::int64(), false));
  return arrow::schema(fields);
}

History drawHistory(const World &world, const DatasetOptions &options,
                    int64_t user) {
  Random random = Random::forEntity(options.world.seed, UserKind, user);
  History history;
  history.seen.assign(options.world.items, false);
  history.taste = world.drawTaste(random);
  // Lengths are spread like those of real histories: many short, few long.
  int64_t length = 5 + int64_t(random.exponential(options.meanEvents - 5));
  length = std::min(length, options.world.items / 4);
  int64_t time = 1577836800 + random.index(30 * 86400); // from 2020-01-01 UTC
  int64_t last = -1;
  for (int64_t event = 0; event < length; ++event) {
    if (event > 0) {
      if (last >= 0)
        history.seen[last] = true;
      world.drift(history.taste, random);
    }
    // Nobody meets an item twice: draws that would are made again, which
    // leaves the distribution over unseen items as it is.
    int64_t item = world.drawItem(history.taste, last, random);
    for (int attempt = 0; attempt < 1000 && history.seen[item]; ++attempt)
      item = world.drawItem(history.taste, last, random);
    if (history.seen[item])
      break; // this taste is exhausted
    time += 30 + int64_t(random.exponential(random.chance(0.1) ? 86400 : 300));
    history.events.push_back({item, time});
    last = item;
  }
  if (!history.events.empty())
    history.seen[history.events.back().item] = false;
  return history;
}

/// Appends events [0, count) of `history`, each with the item after it.
void appendEvents(TableWriter &rows, const World &world, const History &history,
                  size_t count) {
  auto &list = rows.column<arrow::ListBuilder>(1);
  check(list.Append(), "history");
  auto &event = static_cast<arrow::StructBuilder &>(*list.value_builder());
  auto &item = static_cast<arrow::Int64Builder &>(*event.field_builder(0));
  auto &time = static_cast<arrow::TimestampBuilder &>(*event.field_builder(1));
  auto &tags = static_cast<arrow::ListBuilder &>(*event.field_builder(2));
  auto &tag = static_cast<arrow::Int64Builder &>(*tags.value_builder());
  auto &next = static_cast<arrow::Int64Builder &>(*event.field_builder(3));
  for (size_t i = 0; i < count; ++i) {
    check(event.Append(), "history");
    check(item.Append(firstItemId + history.events[i].item), "item");
    check(time.Append(history.events[i].time), "time");
    check(tags.Append(), "tags");
    for (int64_t id : world.getTags(history.events[i].item))
      check(tag.Append(id), "tags");
    check(next.Append(firstItemId + history.events[i + 1].item), "next");
  }
}

void writeItems(const World &world, const std::string &path) {
  TableWriter rows(arrow::schema(
      {arrow::field("item", arrow::int64(), false),
       arrow::field("tags", arrow::list(arrow::field("tag", arrow::int64(), false)),
                    false)}));
  for (int64_t item = 0; item < world.getOptions().items; ++item) {
    check(rows.column<arrow::Int64Builder>(0).Append(firstItemId + item), path);
    auto &tags = rows.column<arrow::ListBuilder>(1);
    check(tags.Append(), path);
    for (int64_t id : world.getTags(item))
      check(static_cast<arrow::Int64Builder &>(*tags.value_builder()).Append(id),
            path);
  }
  rows.write(path);
}

} // namespace

int64_t genrec::datagen::writeRetrieval(const DatasetOptions &options) {
  World world(options.world);
  std::vector<History> histories;
  std::vector<double> popularity(options.world.items, 0.0);
  int64_t events = 0;
  for (int64_t user = 0; user < options.users; ++user) {
    histories.push_back(drawHistory(world, options, user));
    const std::vector<Event> &own = histories.back().events;
    events += int64_t(own.size());
    for (size_t i = 0; i + 1 < own.size(); ++i)
      popularity[own[i].item] += 1;
  }

  TableWriter train(getSchema(true)), valid(getSchema(false));
  RankingReference popular("popularity"), informed("informed ranking");
  for (int64_t user = 0; user < options.users; ++user) {
    const History &history = histories[user];
    size_t count = history.events.size();
    if (count < 3)
      continue;
    check(train.column<arrow::Int64Builder>(0).Append(user + 1), "user");
    appendEvents(train, world, history, count - 2);
    check(valid.column<arrow::Int64Builder>(0).Append(user + 1), "user");
    appendEvents(valid, world, history, count - 1);
    int64_t target = history.events.back().item;
    check(valid.column<arrow::Int64Builder>(2).Append(firstItemId + target),
          "held_out");
    popular.add(popularity, history.seen, target);
    informed.add(world.getNextDistribution(history.taste,
                                           history.events[count - 2].item),
                 history.seen, target);
  }
  train.write(options.folder + "/train.parquet");
  valid.write(options.folder + "/valid.parquet");
  writeItems(world, options.folder + "/items.parquet");
  writeText(options.folder + "/references.json",
            "{\"" + popular.getName() + "\": " + popular.toJson() + ",\n \"" +
                informed.getName() + "\": " + informed.toJson() + "}\n");
  return events;
}

//===- Requests.cpp - requests, impressions and tags with clicks ----------===//

#include "Datasets.h"
#include "ParquetOutput.h"
#include "References.h"

#include <algorithm>

using namespace genrec::datagen;

namespace {

enum Kind : uint64_t { UserKind = 3 };

struct Impression {
  int64_t item;
  int64_t position;
  double probability; ///< of a click, the generator's own
  float label;
};

struct Request {
  int64_t user;
  int64_t time;
  std::vector<int64_t> interest; ///< what the user once said they like; may be empty
  std::vector<Impression> impressions;
};

std::shared_ptr<arrow::DataType> listOf(const char *name) {
  return arrow::list(arrow::field(name, arrow::int64(), false));
}

std::shared_ptr<arrow::Schema> getSchema() {
  auto impression = arrow::struct_(
      {arrow::field("item", arrow::int64(), false),
       arrow::field("position", arrow::int64(), false),
       arrow::field("label", arrow::float32(), false),
       arrow::field("tags", listOf("tag"), false)});
  return arrow::schema(
      {arrow::field("user", arrow::int64(), false),
       arrow::field("time", arrow::timestamp(arrow::TimeUnit::SECOND, "UTC"),
                    false),
       arrow::field("interest", listOf("topic"), false),
       arrow::field("impression",
                    arrow::list(arrow::field("shown", impression, false)),
                    false)});
}

/// Clicks follow taste first, then place on the page, then popularity.
double getClickProbability(const World &world, const Taste &taste, int64_t item,
                           int64_t position) {
  double rank = double(item / world.getOptions().topics);
  double logit = -2.6 + 4.0 * world.getAffinity(taste, item) -
                 0.12 * double(position) + 0.8 / (1.0 + 0.2 * rank);
  return 1.0 / (1.0 + std::exp(-logit));
}

Request drawRequest(const World &world, const DatasetOptions &options,
                    int64_t user, const Taste &taste, int64_t time,
                    Random &random) {
  Request request{user, time, {}, {}};
  if (!random.chance(0.2))
    for (int64_t topic : taste.topics)
      request.interest.push_back(firstTagId + topic);
  // One request in twenty shows nothing.
  int64_t count = random.chance(0.05)
                      ? 0
                      : 1 + int64_t(random.exponential(options.meanImpressions - 1));
  for (int64_t position = 0; position < std::min<int64_t>(count, 64); ++position) {
    int64_t item = random.chance(0.4)
                       ? world.drawItem(taste, -1, random)
                       : random.index(options.world.items);
    double probability = getClickProbability(world, taste, item, position);
    request.impressions.push_back(
        {item, position, probability, random.chance(probability) ? 1.0f : 0.0f});
  }
  return request;
}

void append(TableWriter &rows, const World &world, const Request &request) {
  check(rows.column<arrow::Int64Builder>(0).Append(request.user + 1), "user");
  check(rows.column<arrow::TimestampBuilder>(1).Append(request.time), "time");
  auto &interest = rows.column<arrow::ListBuilder>(2);
  check(interest.Append(), "interest");
  for (int64_t topic : request.interest)
    check(static_cast<arrow::Int64Builder &>(*interest.value_builder())
              .Append(topic),
          "interest");
  auto &list = rows.column<arrow::ListBuilder>(3);
  check(list.Append(), "impression");
  auto &shown = static_cast<arrow::StructBuilder &>(*list.value_builder());
  auto &tags = static_cast<arrow::ListBuilder &>(*shown.field_builder(3));
  for (const Impression &impression : request.impressions) {
    check(shown.Append(), "impression");
    check(static_cast<arrow::Int64Builder &>(*shown.field_builder(0))
              .Append(firstItemId + impression.item),
          "item");
    check(static_cast<arrow::Int64Builder &>(*shown.field_builder(1))
              .Append(impression.position),
          "position");
    check(static_cast<arrow::FloatBuilder &>(*shown.field_builder(2))
              .Append(impression.label),
          "label");
    check(tags.Append(), "tags");
    for (int64_t tag : world.getTags(impression.item))
      check(static_cast<arrow::Int64Builder &>(*tags.value_builder()).Append(tag),
            "tags");
  }
}

/// AUC of the item's own click rate in training, and of the true probability.
std::string getReferences(const std::vector<Request> &requests,
                          const std::vector<bool> &validation, int64_t items) {
  std::vector<double> clicks(items, 1.0), shown(items, 10.0);
  std::vector<double> popularity, informed;
  std::vector<float> labels;
  for (size_t r = 0; r < requests.size(); ++r)
    if (!validation[r])
      for (const Impression &impression : requests[r].impressions) {
        clicks[impression.item] += impression.label;
        shown[impression.item] += 1;
      }
  for (size_t r = 0; r < requests.size(); ++r)
    if (validation[r])
      for (const Impression &impression : requests[r].impressions) {
        popularity.push_back(clicks[impression.item] / shown[impression.item]);
        informed.push_back(impression.probability);
        labels.push_back(impression.label);
      }
  char text[160];
  std::snprintf(text, sizeof(text),
                "{\"popularity\": {\"auc\": %.6f},\n \"informed ranking\": "
                "{\"auc\": %.6f}}\n",
                computeAuc(popularity, labels), computeAuc(informed, labels));
  return text;
}

} // namespace

int64_t genrec::datagen::writeRequests(const DatasetOptions &options) {
  World world(options.world);
  std::vector<Request> requests;
  int64_t impressions = 0;
  for (int64_t user = 0; user < options.users; ++user) {
    Random random = Random::forEntity(options.world.seed, UserKind, user);
    Taste taste = world.drawTaste(random);
    int64_t time = 1577836800;
    int64_t count = 1 + int64_t(random.exponential(options.meanRequests - 1));
    for (int64_t i = 0; i < count; ++i) {
      time += 60 + int64_t(random.exponential(86400));
      world.drift(taste, random);
      requests.push_back(drawRequest(world, options, user, taste, time, random));
      impressions += int64_t(requests.back().impressions.size());
    }
  }
  std::sort(
      requests.begin(), requests.end(),
      [](const Request &a, const Request &b) {
        return std::pair(a.time, a.user) < std::pair(b.time, b.user);
      });

  // The last tenth in time is held out.
  std::vector<bool> validation(requests.size());
  TableWriter train(getSchema()), valid(getSchema());
  for (size_t r = 0; r < requests.size(); ++r) {
    validation[r] = r >= requests.size() - requests.size() / 10;
    append(validation[r] ? valid : train, world, requests[r]);
  }
  train.write(options.folder + "/train.parquet");
  valid.write(options.folder + "/valid.parquet");
  writeText(options.folder + "/references.json",
            getReferences(requests, validation, options.world.items));
  return impressions;
}

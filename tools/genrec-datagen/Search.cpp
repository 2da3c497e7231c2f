//===- Search.cpp - a search log of hundreds of columns -------------------===//

#include "Datasets.h"
#include "ParquetOutput.h"
#include "References.h"
#include "SearchColumns.h"

#include <algorithm>
#include <deque>

using namespace genrec::datagen;

namespace {

// What an entity's random stream is for, after those of World and Requests.
enum Kind : uint64_t { SearcherKind = 5, MomentKind = 6 };

constexpr size_t mostClicks = 30;
constexpr size_t mostSearches = 12;
constexpr int64_t wordsPerTopic = 20;

struct Click {
  int64_t item, time;
};
struct Search {
  int64_t topic, word, time;
};

struct Impression {
  int64_t item, position;
  double clickProbability, orderProbability; ///< the generator's own; of an order, given a click
  bool clicked, ordered;
};

struct Request {
  int64_t user, time;
  uint64_t moment; ///< names the request to what is drawn for it
  Search search;
  std::vector<Impression> impressions;
  std::vector<Click> clicks;    ///< before this request, oldest first
  std::vector<Search> searches; ///< before this request, oldest first
};

using Columns = std::array<std::vector<SearchColumn>, ownerCount>;

double getProbability(double logit) { return 1.0 / (1.0 + std::exp(-logit)); }

std::string getQuery(const Search &search) {
  return "topic " + std::to_string(search.topic) + " word " + std::to_string(search.word);
}

/// What a column of `request` (or of one of its impressions) is a function of.
uint64_t getEntity(const SearchColumn &column, const Request &request,
                   const Impression *impression) {
  uint64_t moment = request.moment + (impression ? 1 + uint64_t(impression->position) : 0);
  if (column.drawn)
    return moment;
  return impression ? uint64_t(impression->item) : uint64_t(request.user);
}

/// Draws requests, user by user, so that histories are what the user did before.
class SearchLog {
public:
  SearchLog(const DatasetOptions &options, const Columns &columns)
      : options(options), columns(columns), world(options.world) {}

  std::vector<Request> draw() {
    std::vector<Request> requests;
    for (int64_t user = 0; user < options.users; ++user)
      drawUser(user, requests);
    std::sort(requests.begin(), requests.end(), [](const Request &a, const Request &b) {
      return std::pair(a.time, a.user) < std::pair(b.time, b.user);
    });
    return requests;
  }

private:
  void drawUser(int64_t user, std::vector<Request> &requests) {
    Random random = Random::forEntity(options.world.seed, SearcherKind, uint64_t(user));
    Taste taste = world.drawTaste(random);
    int64_t time = 1577836800;
    std::deque<Click> clicks;
    std::deque<Search> searches;
    // One user in twenty is new: empty lists are part of real data.
    if (!random.chance(0.05))
      for (int64_t event = 4 + random.index(12); event > 0; --event)
        clicks.push_back({world.drawItem(taste, -1, random), time += 30 + random.index(86400)});
    int64_t count = 1 + int64_t(random.exponential(options.meanRequests - 1));
    for (int64_t i = 0; i < count; ++i) {
      time += 60 + int64_t(random.exponential(86400));
      world.drift(taste, random);
      Request request = drawRequest(user, taste, time, random);
      request.clicks.assign(clicks.begin(), clicks.end());
      request.searches.assign(searches.begin(), searches.end());
      for (const Impression &impression : request.impressions)
        if (impression.clicked)
          clicks.push_back({impression.item, time});
      searches.push_back(request.search);
      while (clicks.size() > mostClicks)
        clicks.pop_front();
      while (searches.size() > mostSearches)
        searches.pop_front();
      requests.push_back(std::move(request));
    }
  }

  Request drawRequest(int64_t user, const Taste &taste, int64_t time, Random &random) {
    int64_t wanted = world.getTopic(world.drawItem(taste, -1, random));
    Request request{user, time, 0, {wanted, random.index(wordsPerTopic), time}, {}, {}, {}};
    request.moment = Random::forEntity(options.world.seed, MomentKind, random.next()).next();
    // What was searched for matters most, what the user likes within it as well.
    Taste sought{{wanted}, {1.0}};
    int64_t count =
        std::min<int64_t>(64, 1 + int64_t(random.exponential(options.meanImpressions - 1)));
    for (int64_t position = 0; position < count; ++position) {
      int64_t item = random.chance(0.6) ? world.drawItem(sought, -1, random)
                                        : random.index(options.world.items);
      Impression impression{item, position, 0, 0, false, false};
      double click = -2.2 - 0.1 * double(position), order = -0.8;
      click += 1.5 * world.getAffinity(sought, item) + 2.0 * world.getAffinity(taste, item);
      order += 1.5 * world.getAffinity(taste, item);
      for (Owner owner : {Owner::Request, Owner::Impression})
        addEffects(columns[size_t(owner)], request,
                   owner == Owner::Impression ? &impression : nullptr, click, order);
      impression.clickProbability = getProbability(click);
      impression.orderProbability = getProbability(order);
      impression.clicked = random.chance(impression.clickProbability);
      // Drawn in any case: what comes next does not depend on it.
      bool wouldOrder = random.chance(impression.orderProbability);
      impression.ordered = impression.clicked && wouldOrder;
      request.impressions.push_back(impression);
    }
    return request;
  }

  void addEffects(const std::vector<SearchColumn> &owned, const Request &request,
                  const Impression *impression, double &click, double &order) const {
    for (const SearchColumn &column : owned) {
      if (column.clickWeight == 0 && column.orderWeight == 0)
        continue;
      uint64_t entity = getEntity(column, request, impression);
      double effect = getEffect(column, getQuantile(options.world.seed, column, entity));
      click += column.clickWeight * effect;
      order += column.orderWeight * effect;
    }
  }

  const DatasetOptions &options;
  const Columns &columns;
  World world;
};

/// Writes requests as rows of the schema of `columns`.
class SearchWriter {
public:
  SearchWriter(const Columns &columns, uint64_t seed)
      : columns(columns), seed(seed), rows(getSchema(columns)) {}

  void append(const Request &request);
  void write(const std::string &path) { rows.write(path); }

private:
  static std::shared_ptr<arrow::Schema> getSchema(const Columns &columns);

  void appendOwned(Owner owner, const std::vector<arrow::ArrayBuilder *> &builders, size_t first,
                   int64_t now, auto getEntityOf) {
    const std::vector<SearchColumn> &owned = columns[size_t(owner)];
    for (size_t i = 0; i < owned.size(); ++i)
      appendValue(*builders[first + i], owned[i],
                  getQuantile(seed, owned[i], getEntityOf(owned[i])), now);
  }
  /// The list at `index`, with a row begun for `request`; `fields` are the builders of its struct.
  arrow::StructBuilder &beginList(int index, std::vector<arrow::ArrayBuilder *> &fields) {
    auto &list = rows.column<arrow::ListBuilder>(index);
    check(list.Append(), "a list");
    auto &entry = static_cast<arrow::StructBuilder &>(*list.value_builder());
    fields.clear();
    for (int field = 0; field < entry.num_fields(); ++field)
      fields.push_back(entry.field_builder(field));
    return entry;
  }

  const Columns &columns;
  uint64_t seed;
  TableWriter rows;
};

template <typename Builder> void put(arrow::ArrayBuilder *builder, const auto &value) {
  check(static_cast<Builder *>(builder)->Append(value), "a named column");
}

std::shared_ptr<arrow::Schema> SearchWriter::getSchema(const Columns &columns) {
  auto time = arrow::timestamp(arrow::TimeUnit::SECOND, "UTC");
  std::array<arrow::FieldVector, ownerCount> fields;
  fields[size_t(Owner::Request)] = {arrow::field("user", arrow::int64(), false),
                                    arrow::field("request_id", arrow::int64(), false),
                                    arrow::field("time", time, false),
                                    arrow::field("query", arrow::utf8(), false)};
  fields[size_t(Owner::Impression)] = {arrow::field("item", arrow::int64(), false),
                                       arrow::field("position", arrow::int64(), false),
                                       arrow::field("click", arrow::float32(), false),
                                       arrow::field("order", arrow::float32(), true)};
  fields[size_t(Owner::Click)] = {arrow::field("item", arrow::int64(), false),
                                  arrow::field("time", time, false)};
  fields[size_t(Owner::Search)] = {arrow::field("query", arrow::utf8(), false),
                                   arrow::field("time", time, false)};
  for (size_t owner = 0; owner < ownerCount; ++owner)
    for (const SearchColumn &column : columns[owner])
      fields[owner].push_back(getField(column));
  arrow::FieldVector &root = fields[size_t(Owner::Request)];
  for (auto [name, owner] : {std::pair("impression", Owner::Impression),
                             {"clicks", Owner::Click},
                             {"searches", Owner::Search}})
    root.push_back(arrow::field(
        name, arrow::list(arrow::field("entry", arrow::struct_(fields[size_t(owner)]), false)),
        false));
  return arrow::schema(root);
}

void SearchWriter::append(const Request &request) {
  std::vector<arrow::ArrayBuilder *> fields;
  int lists = 4 + int(columns[size_t(Owner::Request)].size());
  for (int field = 0; field < lists; ++field)
    fields.push_back(&rows.column<arrow::ArrayBuilder>(field));
  put<arrow::Int64Builder>(fields[0], request.user + 1);
  put<arrow::Int64Builder>(fields[1], int64_t(request.moment >> 12));
  put<arrow::TimestampBuilder>(fields[2], request.time);
  put<arrow::StringBuilder>(fields[3], getQuery(request.search));
  appendOwned(Owner::Request, fields, 4, request.time,
              [&](const SearchColumn &column) { return getEntity(column, request, nullptr); });

  arrow::StructBuilder &shown = beginList(lists, fields);
  for (const Impression &impression : request.impressions) {
    check(shown.Append(), "impression");
    put<arrow::Int64Builder>(fields[0], firstItemId + impression.item);
    put<arrow::Int64Builder>(fields[1], impression.position);
    put<arrow::FloatBuilder>(fields[2], impression.clicked ? 1.0f : 0.0f);
    if (impression.clicked)
      put<arrow::FloatBuilder>(fields[3], impression.ordered ? 1.0f : 0.0f);
    else
      check(fields[3]->AppendNull(), "order");
    appendOwned(Owner::Impression, fields, 4, request.time, [&](const SearchColumn &column) {
      return getEntity(column, request, &impression);
    });
  }

  arrow::StructBuilder &clicked = beginList(lists + 1, fields);
  for (const Click &click : request.clicks) {
    check(clicked.Append(), "clicks");
    put<arrow::Int64Builder>(fields[0], firstItemId + click.item);
    put<arrow::TimestampBuilder>(fields[1], click.time);
    appendOwned(Owner::Click, fields, 2, click.time, [&](const SearchColumn &column) {
      return column.drawn ? uint64_t(click.time) : uint64_t(click.item);
    });
  }

  arrow::StructBuilder &searched = beginList(lists + 2, fields);
  for (const Search &search : request.searches) {
    check(searched.Append(), "searches");
    put<arrow::StringBuilder>(fields[0], getQuery(search));
    put<arrow::TimestampBuilder>(fields[1], search.time);
    appendOwned(Owner::Search, fields, 2, search.time, [&](const SearchColumn &column) {
      return column.drawn ? uint64_t(search.time)
                          : uint64_t(search.topic * wordsPerTopic + search.word);
    });
  }
}

/// AUC of the true probabilities, of clicks and of orders among what was clicked.
std::string getReferences(const std::vector<Request> &requests, size_t firstHeldOut) {
  std::vector<double> clicks, orders;
  std::vector<float> clicked, ordered;
  for (size_t r = firstHeldOut; r < requests.size(); ++r)
    for (const Impression &impression : requests[r].impressions) {
      clicks.push_back(impression.clickProbability);
      clicked.push_back(impression.clicked);
      if (!impression.clicked)
        continue;
      orders.push_back(impression.orderProbability);
      ordered.push_back(impression.ordered);
    }
  char text[160];
  std::snprintf(text, sizeof(text), "{\"informed ranking\": {\"click\": %.6f, \"order\": %.6f}}\n",
                computeAuc(clicks, clicked), computeAuc(orders, ordered));
  return text;
}

} // namespace

int64_t genrec::datagen::writeSearch(const DatasetOptions &options) {
  Columns columns = planSearchColumns(options.columns);
  std::vector<Request> requests = SearchLog(options, columns).draw();
  // The last tenth in time is held out.
  size_t firstHeldOut = requests.size() - requests.size() / 10;
  int64_t impressions = 0;
  for (bool heldOut : {false, true}) {
    SearchWriter rows(columns, options.world.seed);
    for (size_t r = heldOut ? firstHeldOut : 0; r < (heldOut ? requests.size() : firstHeldOut);
         ++r) {
      rows.append(requests[r]);
      impressions += int64_t(requests[r].impressions.size());
    }
    rows.write(options.folder + (heldOut ? "/valid.parquet" : "/train.parquet"));
  }
  writeText(options.folder + "/references.json", getReferences(requests, firstHeldOut));
  return impressions;
}

//===- genrec-datagen.cpp - makes data sets with known truth --------------===//

#include "Datasets.h"

#include "../../runtime/core/command_line.h"
#include "genrec/Version.h"

#include <cstdio>
#include <exception>
#include <filesystem>

using namespace genrec::datagen;
using genrec::rt::between;
using genrec::rt::reportParseError;

static const char description[] =
    "Makes a data set whose truth is known, as Parquet files that compiled models read.\n"
    "\n"
    "Items have topics and are popular by Zipf's law; users have tastes that drift. The same\n"
    "options and seed give the same files. references.json holds what two rankers reach on the\n"
    "held-out part: 'popularity' knows counts only, 'informed ranking' knows each user's true\n"
    "taste, so a model is somewhere between.\n"
    "\n"
    "Kinds:\n"
    "  retrieval  train.parquet: user, history list<item, time, tags, next>\n"
    "             valid.parquet: user, history list<item, time, tags, next>, held_out\n"
    "             items.parquet: item, tags\n"
    "  requests   train.parquet, valid.parquet: user, time, interest list<topic>,\n"
    "             impression list<item, position, label, tags list<tag>>; the last tenth in\n"
    "             time is valid.parquet\n"
    "  search     train.parquet, valid.parquet: user, request_id, time, query,\n"
    "             impression list<item, position, click, order, …>, clicks list<item, time, …>,\n"
    "             searches list<query, time, …>, and hundreds of numbered columns among them,\n"
    "             named after what they hold: id, text, level, value, time, amount, ratio, count\n";

static void addFlags(CLI::App &app, DatasetOptions &options, std::string &kind) {
  app.set_version_flag("--version",
                       "genrec-datagen " GENREC_VERSION ", built with " GENREC_BUILT_WITH);
  app.add_option("--kind", kind, "what to make: retrieval, requests or search")
      ->check(CLI::IsMember({"retrieval", "requests", "search"}))
      ->capture_default_str();
  app.add_option("--out", options.folder, "folder for the files (made if missing)")->required();
  app.add_option("--seed", options.world.seed, "seed")->capture_default_str();
  app.add_option("--users", options.users, "number of users")
      ->check(between(1, 100000000))
      ->capture_default_str();
  app.add_option("--items", options.world.items, "number of items")
      ->check(between(100, 100000000))
      ->capture_default_str();
  app.add_option("--topics", options.world.topics, "number of topics, at most one per four items")
      ->check(between(1, 100000))
      ->capture_default_str();
  app.add_option("--events", options.meanEvents, "retrieval: mean length of a history")
      ->check(between(6.0, 1e6))
      ->capture_default_str();
  app.add_option("--requests", options.meanRequests, "requests, search: mean requests per user")
      ->check(between(1.0, 1e6))
      ->capture_default_str();
  app.add_option("--impressions", options.meanImpressions,
                 "requests, search: mean impressions per request")
      ->check(between(1.0, 64.0))
      ->capture_default_str();
  app.add_option("--columns", options.columns, "search: number of feature columns")
      ->check(between(20, 100000))
      ->capture_default_str();
  app.add_option("--zipf", options.world.zipf, "exponent of item popularity within a topic")
      ->check(between(0.0, 5.0))
      ->capture_default_str();
  app.add_option("--drift", options.world.drift, "chance per event that a taste changes")
      ->check(between(0.0, 1.0))
      ->capture_default_str();
}

int main(int argc, char **argv) {
  CLI::App app{description, "genrec-datagen"};
  DatasetOptions options;
  std::string kind = "retrieval";
  addFlags(app, options, kind);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return reportParseError("genrec-datagen", app, error);
  }
  if (options.world.topics > options.world.items / 4) {
    std::fprintf(
        stderr,
        "genrec-datagen: error: %lld topics need at least %lld items; pass --items or --topics\n",
        (long long)options.world.topics, (long long)options.world.topics * 4);
    return 1;
  }
  try {
    std::filesystem::create_directories(options.folder);
    bool retrieval = kind == "retrieval";
    int64_t count = retrieval          ? writeRetrieval(options)
                    : kind == "search" ? writeSearch(options)
                                       : writeRequests(options);
    std::printf("generated %lld users, %lld %s (seed %llu) in %s\n", (long long)options.users,
                (long long)count, retrieval ? "events" : "impressions",
                (unsigned long long)options.world.seed, options.folder.c_str());
  } catch (const std::exception &error) {
    std::fprintf(stderr, "genrec-datagen: error: %s\n", error.what());
    return 1;
  }
  return 0;
}

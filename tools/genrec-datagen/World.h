//===- World.h - the items and users that data is drawn from ----*- C++ -*-===//
//
// Items belong to topics; within a topic they are popular by Zipf's law. A user
// has a taste, a few topics with weights, that drifts from event to event. The
// next item follows either the taste or, now and then, the item before it. All
// of it is known, so that data drawn from it comes with the best possible ranking.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TOOLS_DATAGEN_WORLD_H
#define GENREC_TOOLS_DATAGEN_WORLD_H

#include "Random.h"

#include <array>

namespace genrec::datagen {

struct WorldOptions {
  uint64_t seed = 1;
  int64_t items = 2000;
  int64_t topics = 24;
  int64_t tags = 200;
  double zipf = 1.0;        ///< Exponent of popularity within a topic.
  double drift = 0.02;      ///< Chance per event that a taste changes.
  double follow = 0.3;      ///< Chance that an event follows the one before.
};

/// Ids are item indices plus this: like real ones, they do not start at 0.
constexpr int64_t firstItemId = 1001;
constexpr int64_t firstTagId = 1;

/// A user's taste at one moment: topics and their weights, which sum to 1.
struct Taste {
  std::vector<int64_t> topics;
  std::vector<double> weights;
};

class World {
public:
  explicit World(const WorldOptions &options);

  const WorldOptions &getOptions() const { return options; }
  const std::vector<int64_t> &getTags(int64_t item) const { return tags[item]; }
  int64_t getTopic(int64_t item) const { return item % options.topics; }

  Taste drawTaste(Random &random) const;
  void drift(Taste &taste, Random &random) const;

  /// Draws the next item after `last` (-1: none).
  int64_t drawItem(const Taste &taste, int64_t last, Random &random) const;

  /// P(next = item) for every item: the distribution that drawItem draws from.
  std::vector<double> getNextDistribution(const Taste &taste,
                                          int64_t last) const;
  /// The taste's own share of it for one item, relative to a uniform choice.
  double getAffinity(const Taste &taste, int64_t item) const;

private:
  static constexpr std::array<double, 3> followerWeights = {0.5, 0.3, 0.2};

  WorldOptions options;
  std::vector<std::vector<int64_t>> topicItems;
  std::vector<Weighted> topicPopularity;
  std::vector<std::array<int64_t, 3>> followers;
  std::vector<std::vector<int64_t>> tags;
};

} // namespace genrec::datagen

#endif // GENREC_TOOLS_DATAGEN_WORLD_H

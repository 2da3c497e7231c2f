//===- World.cpp - the items and users that data is drawn from ------------===//

#include "World.h"

#include <algorithm>

using namespace genrec::datagen;

namespace {
// What an entity's random stream is for.
enum Kind : uint64_t { ItemKind = 1 };
} // namespace

World::World(const WorldOptions &options) : options(options) {
  topicItems.resize(options.topics);
  for (int64_t item = 0; item < options.items; ++item)
    topicItems[getTopic(item)].push_back(item);
  for (const std::vector<int64_t> &members : topicItems) {
    std::vector<double> weights;
    for (size_t rank = 0; rank < members.size(); ++rank)
      weights.push_back(std::pow(double(rank + 1), -options.zipf));
    topicPopularity.emplace_back(weights);
  }

  std::vector<double> tagWeights;
  for (int64_t tag = 0; tag < options.tags; ++tag)
    tagWeights.push_back(1.0 / double(tag + 1));
  Weighted tagPopularity(tagWeights);
  for (int64_t item = 0; item < options.items; ++item) {
    Random random = Random::forEntity(options.seed, ItemKind, item);
    int64_t topic = getTopic(item);
    std::array<int64_t, 3> follower;
    for (int64_t &f : follower)
      f = topicItems[topic][topicPopularity[topic].draw(random)];
    followers.push_back(follower);

    // One item in ten has no tags: empty lists are part of real data.
    std::vector<int64_t> own;
    if (!random.chance(0.1)) {
      own.push_back(firstTagId + topic % options.tags);
      for (int64_t extra = random.index(4); extra > 0; --extra)
        own.push_back(firstTagId + tagPopularity.draw(random));
    }
    std::sort(own.begin(), own.end());
    own.erase(std::unique(own.begin(), own.end()), own.end());
    tags.push_back(own);
  }
}

Taste World::drawTaste(Random &random) const {
  Taste taste;
  int64_t count = 1 + random.index(std::min<int64_t>(4, options.topics));
  double total = 0;
  for (int64_t i = 0; i < count; ++i) {
    taste.topics.push_back(random.index(options.topics));
    taste.weights.push_back(0.2 + random.exponential(1.0));
    total += taste.weights.back();
  }
  for (double &weight : taste.weights)
    weight /= total;
  return taste;
}

void World::drift(Taste &taste, Random &random) const {
  if (random.chance(options.drift))
    taste.topics[random.index(int64_t(taste.topics.size()))] =
        random.index(options.topics);
}

int64_t World::drawItem(const Taste &taste, int64_t last,
                        Random &random) const {
  if (last >= 0 && random.chance(options.follow)) {
    double point = random.uniform();
    for (size_t i = 0; i + 1 < followerWeights.size(); ++i) {
      if (point < followerWeights[i])
        return followers[last][i];
      point -= followerWeights[i];
    }
    return followers[last].back();
  }
  double point = random.uniform();
  size_t chosen = 0;
  while (chosen + 1 < taste.weights.size() && point >= taste.weights[chosen])
    point -= taste.weights[chosen++];
  int64_t topic = taste.topics[chosen];
  return topicItems[topic][topicPopularity[topic].draw(random)];
}

std::vector<double> World::getNextDistribution(const Taste &taste,
                                               int64_t last) const {
  std::vector<double> result(options.items, 0.0);
  double tasteShare = last >= 0 ? 1.0 - options.follow : 1.0;
  for (size_t t = 0; t < taste.topics.size(); ++t) {
    const std::vector<int64_t> &members = topicItems[taste.topics[t]];
    for (size_t rank = 0; rank < members.size(); ++rank)
      result[members[rank]] +=
          tasteShare * taste.weights[t] *
          topicPopularity[taste.topics[t]].probability(int64_t(rank));
  }
  if (last >= 0)
    for (size_t i = 0; i < followerWeights.size(); ++i)
      result[followers[last][i]] += options.follow * followerWeights[i];
  return result;
}

double World::getAffinity(const Taste &taste, int64_t item) const {
  double affinity = 0;
  for (size_t t = 0; t < taste.topics.size(); ++t)
    if (taste.topics[t] == getTopic(item))
      affinity += taste.weights[t];
  return affinity;
}

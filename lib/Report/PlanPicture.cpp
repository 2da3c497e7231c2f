//===- PlanPicture.cpp - graphs as SVG ------------------------------------===//

#include "PlanPicture.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <functional>
#include <map>

using namespace genrec;
using llvm::ArrayRef;
using llvm::StringRef;
namespace json = llvm::json;

static constexpr int kBoxWidth = 150, kBoxHeight = 34, kGapX = 18, kGapY = 40, kMargin = 12;
static constexpr size_t kMostLetters = 22;

std::string genrec::escapeHtml(StringRef text) {
  std::string escaped;
  for (char c : text) {
    switch (c) {
    case '<':
      escaped += "&lt;";
      break;
    case '>':
      escaped += "&gt;";
      break;
    case '&':
      escaped += "&amp;";
      break;
    case '"':
      escaped += "&quot;";
      break;
    default:
      escaped += c;
    }
  }
  return escaped;
}

/// Cuts after a whole UTF-8 character.
static std::string shorten(StringRef text) {
  size_t letters = 0, bytes = 0;
  for (; bytes < text.size(); ++bytes)
    if ((static_cast<unsigned char>(text[bytes]) & 0xc0) != 0x80 && ++letters > kMostLetters)
      return text.take_front(bytes).str() + "…";
  return text.str();
}

/// A colour derived from the name, so that it is the same in every picture.
static std::string getColour(StringRef name) {
  uint32_t hash = 2166136261u; // FNV-1a
  for (char c : name)
    hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return llvm::formatv("hsl({0},55%,88%)", hash % 360).str();
}

namespace {
struct Box {
  std::string label, below, title, colour;
  int x = 0, y = 0;
};

void openPicture(int width, int height, llvm::raw_ostream &os) {
  os << llvm::formatv("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
                      "viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" font-size=\"11\">\n",
                      width, height);
}

void drawBox(const Box &box, llvm::raw_ostream &os) {
  os << llvm::formatv(
      "<g class=\"node\"><title>{0}</title><rect x=\"{1}\" y=\"{2}\" width=\"{3}\" height=\"{4}\" "
      "rx=\"5\" fill=\"{5}\" stroke=\"#888\"/>",
      escapeHtml(box.title), box.x, box.y, kBoxWidth, kBoxHeight, box.colour);
  int middle = box.x + kBoxWidth / 2;
  os << llvm::formatv("<text x=\"{0}\" y=\"{1}\" text-anchor=\"middle\">{2}</text>", middle,
                      box.y + 14, escapeHtml(shorten(box.label)));
  os << llvm::formatv("<text x=\"{0}\" y=\"{1}\" text-anchor=\"middle\" fill=\"#666\" "
                      "font-size=\"9\">{2}</text></g>\n",
                      middle, box.y + 27, escapeHtml(shorten(box.below)));
}

void drawEdge(int fromX, int fromY, int toX, int toY, bool isDown, llvm::raw_ostream &os) {
  int midX = isDown ? fromX : (fromX + toX) / 2, midY = isDown ? (fromY + toY) / 2 : fromY;
  int endX = isDown ? toX : midX, endY = isDown ? midY : toY;
  os << llvm::formatv(
      "<path d=\"M{0},{1} C{2},{3} {4},{5} {6},{7}\" fill=\"none\" stroke=\"#aaa\"/>\n", fromX,
      fromY, midX, midY, endX, endY, toX, toY);
}
} // namespace

//===----------------------------------------------------------------------===//
// Domains
//===----------------------------------------------------------------------===//

void genrec::drawDomains(const json::Object &plan, llvm::raw_ostream &os) {
  struct Entry {
    Box box;
    std::string parent;
  };
  llvm::MapVector<StringRef, Entry> entries;
  if (const json::Array *domains = plan.getArray("domains"))
    for (const json::Value &value : *domains) {
      const json::Object *domain = value.getAsObject();
      if (!domain || domain->getString("kind") == StringRef("step"))
        continue;
      StringRef name = domain->getString("name").value_or("");
      Entry &entry = entries[name];
      entry.parent = domain->getString("parent").value_or("").str();
      entry.box = {name.str(), domain->getString("kind").value_or("").str(), name.str(),
                   getColour(name)};
    }
  llvm::StringMap<std::vector<StringRef>> children;
  for (auto &[name, entry] : entries)
    children[entry.parent].push_back(name);
  // Depth first, so that the rows of a subtree are adjacent.
  int rows = 0, deepest = 0;
  std::function<void(StringRef, int)> place = [&](StringRef parent, int depth) {
    for (StringRef name : children.lookup(parent)) {
      Entry &entry = entries[name];
      int before = rows;
      entry.box.x = kMargin + depth * (kBoxWidth + 3 * kGapX);
      entry.box.y = kMargin + rows * (kBoxHeight + kGapY / 3);
      deepest = std::max(deepest, depth);
      place(name, depth + 1);
      if (rows == before)
        ++rows;
    }
  };
  place("", 0);
  openPicture(2 * kMargin + (deepest + 1) * (kBoxWidth + 3 * kGapX),
              2 * kMargin + rows * (kBoxHeight + kGapY / 3) + 4, os);
  for (auto &[name, entry] : entries)
    if (auto *parent = entries.find(StringRef(entry.parent)); parent != entries.end())
      drawEdge(parent->second.box.x + kBoxWidth, parent->second.box.y + kBoxHeight / 2, entry.box.x,
               entry.box.y + kBoxHeight / 2, /*isDown=*/false, os);
  for (auto &[name, entry] : entries)
    drawBox(entry.box, os);
  os << "</svg>\n";
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

namespace {
/// A simple form of Sugiyama's method (Sugiyama, Tagawa, Toda, 1981): the layer of a box is its
/// longest path from the inputs; sweeps then order each layer by the mean position of the
/// neighbours of its boxes.
class LayeredPicture {
public:
  explicit LayeredPicture(const json::Object &graph);
  void draw(llvm::raw_ostream &os);

private:
  struct Group {
    Box box;
    int64_t count = 0;
    int layer = 0;
    double place = 0;
    std::vector<int> above, below; ///< groups with edges to and from this one
  };

  void order();
  void sweep(bool isDown);

  std::vector<Group> groups;
  std::vector<std::vector<int>> layers;
  std::map<std::pair<int, int>, int64_t> edges; ///< the number of edges between two groups
};
} // namespace

LayeredPicture::LayeredPicture(const json::Object &graph) {
  const json::Array *nodes = graph.getArray("nodes"), *links = graph.getArray("edges");
  if (!nodes || !links)
    return;
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (const json::Value &value : *links)
    if (const json::Array *link = value.getAsArray(); link && link->size() == 2)
      pairs.emplace_back((*link)[0].getAsInteger().value_or(0),
                         (*link)[1].getAsInteger().value_or(0));
  // Nodes are in topological order.
  std::vector<int> layerOf(nodes->size(), 0), groupOf(nodes->size(), 0);
  llvm::sort(pairs, [](auto &a, auto &b) {
    return std::pair(a.second, a.first) < std::pair(b.second, b.first);
  });
  for (auto [from, to] : pairs)
    layerOf[to] = std::max(layerOf[to], layerOf[from] + 1);
  std::map<std::tuple<int, std::string, std::string>, int> known;
  for (const auto &[number, value] : llvm::enumerate(*nodes)) {
    const json::Object *node = value.getAsObject();
    if (!node)
      continue;
    std::string label = node->getString("label").value_or("").str(),
                op = node->getString("op").value_or("").str();
    std::string domain = node->getString("domain").value_or("").str();
    // Kernels are grouped by name, other nodes by op.
    bool hasOwnName = op == "row_kernel";
    auto [entry, isNew] =
        known.try_emplace({layerOf[number], domain, hasOwnName ? label : op}, groups.size());
    if (isNew) {
      groups.push_back({});
      groups.back().layer = layerOf[number];
      groups.back().box = {label, domain, node->getString("from").value_or("").str(),
                           getColour(domain)};
    }
    Group &group = groups[entry->second];
    if (++group.count > 1)
      group.box.label = (hasOwnName ? label : op) + " ×" + std::to_string(group.count);
    groupOf[number] = entry->second;
  }
  for (auto [from, to] : pairs)
    ++edges[{groupOf[from], groupOf[to]}];
  order();
}

void LayeredPicture::sweep(bool isDown) {
  std::map<int, double> wanted;
  for (size_t step = 0; step < layers.size(); ++step) {
    std::vector<int> &layer = layers[isDown ? step : layers.size() - 1 - step];
    for (int group : layer) {
      const std::vector<int> &joined = isDown ? groups[group].above : groups[group].below;
      double sum = 0;
      for (int other : joined)
        sum += groups[other].place;
      wanted[group] = joined.empty() ? groups[group].place : sum / joined.size();
    }
    std::stable_sort(layer.begin(), layer.end(),
                     [&](int a, int b) { return wanted[a] < wanted[b]; });
    for (const auto &[place, group] : llvm::enumerate(layer))
      groups[group].place = static_cast<double>(place) - static_cast<double>(layer.size()) / 2;
  }
}

void LayeredPicture::order() {
  for (const auto &[edge, count] : edges) {
    groups[edge.first].below.push_back(edge.second);
    groups[edge.second].above.push_back(edge.first);
  }
  for (const auto &[number, group] : llvm::enumerate(groups)) {
    if (layers.size() <= static_cast<size_t>(group.layer))
      layers.resize(group.layer + 1);
    layers[group.layer].push_back(static_cast<int>(number));
  }
  for (bool isDown : {true, false, true, false})
    sweep(isDown);
  size_t widest = 0;
  for (const auto &layer : layers)
    widest = std::max(widest, layer.size());
  for (const auto &[depth, layer] : llvm::enumerate(layers)) {
    int shift = static_cast<int>(widest - layer.size()) * (kBoxWidth + kGapX) / 2;
    for (const auto &[place, group] : llvm::enumerate(layer)) {
      groups[group].box.x = kMargin + shift + static_cast<int>(place) * (kBoxWidth + kGapX);
      groups[group].box.y = kMargin + static_cast<int>(depth) * (kBoxHeight + kGapY);
    }
  }
}

void LayeredPicture::draw(llvm::raw_ostream &os) {
  int width = 0, height = 0;
  for (const Group &group : groups) {
    width = std::max(width, group.box.x + kBoxWidth + kMargin);
    height = std::max(height, group.box.y + kBoxHeight + kMargin);
  }
  openPicture(width, height, os);
  for (const auto &[edge, count] : edges) {
    const Box &from = groups[edge.first].box, &to = groups[edge.second].box;
    drawEdge(from.x + kBoxWidth / 2, from.y + kBoxHeight, to.x + kBoxWidth / 2, to.y,
             /*isDown=*/true, os);
  }
  for (const Group &group : groups)
    drawBox(group.box, os);
  os << "</svg>\n";
}

void genrec::drawGraph(const json::Object &graph, llvm::raw_ostream &os) {
  LayeredPicture(graph).draw(os);
}

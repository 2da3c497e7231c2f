//===- chained_rows.cpp - A table's rows in a checkpoint's files -----------===//

#include "chained_rows.h"

#include "genrec_rt/owner.h"
#include "saved_tables.h"

#include <algorithm>
#include <unordered_map>

namespace genrec::rt {

static std::vector<int64_t> integersOf(const SafetensorsReader &file, const std::string &tensor) {
  std::vector<int64_t> values(static_cast<size_t>(file.tensor(tensor).count()));
  forBlocks(file.tensor(tensor).count(), [&](int64_t first, int64_t count) {
    file.readIntegers(tensor, first, count, values.data() + first);
  });
  return values;
}

std::vector<std::string> tableNames(const SafetensorsReader &file) {
  constexpr std::string_view kValues = ".values";
  std::vector<std::string> names;
  for (const auto &[tensor, description] : file.tensors())
    if (tensor.ends_with(kValues)) {
      std::string name = tensor.substr(0, tensor.size() - kValues.size());
      if (file.has(name + ".ids"))
        names.push_back(name);
    }
  return names;
}

ChainedRows::ChainedRows(std::vector<const SafetensorsReader *> linkList, const std::string &table)
    : links(std::move(linkList)), table(table) {
  std::unordered_map<int64_t, Place> byId;
  for (size_t link = 0; link < links.size(); ++link) {
    if (links[link]->has(table + ".removed.ids"))
      for (int64_t id : integersOf(*links[link], table + ".removed.ids"))
        byId.erase(id);
    std::vector<int64_t> ids = integersOf(*links[link], table + ".ids");
    for (size_t row = 0; row < ids.size(); ++row)
      byId[ids[row]] = {ids[row], static_cast<int64_t>(row), static_cast<int32_t>(link)};
  }
  uint64_t hash = hashTableName(table);
  std::vector<std::pair<int32_t, Place>> sorted;
  sorted.reserve(byId.size());
  for (const auto &[id, place] : byId)
    sorted.emplace_back(getSlice(hash, id), place);
  std::sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) {
    return std::pair(a.first, a.second.id) < std::pair(b.first, b.second.id);
  });
  places.reserve(sorted.size());
  for (const auto &[slice, place] : sorted)
    places.push_back(place);
}

int64_t ChainedRows::widthOf(const std::string &suffix) const {
  int64_t width = 1;
  const std::vector<int64_t> &shape = links.back()->tensor(table + suffix).shape;
  for (size_t i = 1; i < shape.size(); ++i)
    width *= shape[i];
  return width;
}

void ChainedRows::read(const std::string &suffix, const int64_t *rows, int64_t count, int64_t width,
                       float *to) const {
  for (int64_t i = 0; i < count;) {
    const Place &first = places[static_cast<size_t>(rows[i])];
    int64_t run = 1; // rows that are neighbours in their file
    while (i + run < count) {
      const Place &next = places[static_cast<size_t>(rows[i + run])];
      if (next.link != first.link || next.row != first.row + run)
        break;
      ++run;
    }
    links[static_cast<size_t>(first.link)]->readFloats(table + suffix, first.row * width,
                                                       run * width, to + i * width);
    i += run;
  }
}

} // namespace genrec::rt

//===- text.cpp - Words of error messages ---------------------------------===//

#include "text.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <utility>

namespace genrec::rt {

std::string withThousands(int64_t number) {
  std::string digits = std::to_string(number);
  size_t first = number < 0 ? 1 : 0;
  for (size_t end = digits.size(); end > first + 3; end -= 3)
    digits.insert(end - 3, ",");
  return digits;
}

std::string formatted(const char *format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string listNames(const std::vector<std::string> &names, size_t most) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < most; ++i)
    text += (i ? ", " : "") + names[i];
  if (names.size() > most)
    text += " and " + std::to_string(names.size() - most) + " more";
  return names.empty() ? "none" : text;
}

std::string shellWord(const std::string &word) {
  const auto isPlain = [](unsigned char c) {
    return std::isalnum(c) || c >= 0x80 || std::strchr("_-./=:,+@%", c);
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), isPlain))
    return word;
  std::string quoted = "'";
  for (char c : word)
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

/// Letters that are missing, too many, wrong, or swapped with their neighbour.
static size_t editDistance(const std::string &a, const std::string &b) {
  std::vector<size_t> beforeLast, last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    beforeLast = std::exchange(last, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j - 1] + (a[i - 1] != b[j - 1]), last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], beforeLast[j - 2] + 1);
    }
  }
  return row[b.size()];
}

static std::string inLowerCase(std::string name) {
  for (char &letter : name)
    letter = 'A' <= letter && letter <= 'Z' ? static_cast<char>(letter + 'a' - 'A') : letter;
  return name;
}

std::string closestName(const std::string &name, const std::vector<std::string> &candidates) {
  std::string best;
  size_t least = std::max<size_t>(name.size() / 3, 1) + 1;
  for (const std::string &candidate : candidates) {
    bool isOfOtherCase = inLowerCase(name) == inLowerCase(candidate);
    size_t distance = isOfOtherCase ? 0 : editDistance(name, candidate);
    if (distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

std::string suggestion(const std::string &name, const std::vector<std::string> &candidates) {
  std::string closest = closestName(name, candidates);
  return closest.empty() ? "" : "did you mean '" + closest + "'?";
}

} // namespace genrec::rt

#include "controller/api/suggest.h"

#include <algorithm>
#include <array>
#include <string>

namespace paceline::api {

namespace {

constexpr std::size_t kMaxCompared = 64;
constexpr std::size_t kLeastAbbreviation = 2, kLeastEnding = 4;  // shorter ones may be anything

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// "lR" of learningRate.
std::string initials(std::string_view name) {
  std::string letters;
  for (const char c : name) {
    if (letters.empty() || (c >= 'A' && c <= 'Z')) letters += c;
  }
  return letters;
}

}  // namespace

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return lower(x) == lower(y); });
}

int edit_distance(std::string_view a, std::string_view b) {
  a = a.substr(0, kMaxCompared);
  b = b.substr(0, kMaxCompared);
  using Row = std::array<int, kMaxCompared + 1>;
  Row before_last{}, last{}, row{};  // distances of a's first i-2, i-1, i characters to each prefix of b
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last = last;
    last = row;
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      const bool swapped =
          i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string nearest_name(std::string_view wrong, std::span<const std::string> names) {
  const int limit = std::max<int>(1, static_cast<int>(std::min(wrong.size(), kMaxCompared)) / 3);
  int best = limit + 1;
  std::string nearest;
  for (const std::string& name : names) {
    const int distance = edit_distance(wrong, name);
    if (distance >= best) continue;
    best = distance;
    nearest = name;
  }
  return nearest;
}

std::string meant_name(std::string_view wrong, std::span<const std::string> names) {
  if (wrong.size() < kLeastAbbreviation) return nearest_name(wrong, names);
  const auto begins = [&](const std::string& name) {
    return equal_ignoring_case(std::string_view(name).substr(0, wrong.size()), wrong);
  };
  if (std::ranges::count_if(names, begins) == 1) return *std::ranges::find_if(names, begins);
  if (std::string nearest = nearest_name(wrong, names); !nearest.empty()) return nearest;
  const auto has_initials = [&](const std::string& name) {
    return equal_ignoring_case(initials(name), wrong);
  };
  const auto ends = [&](const std::string& name) {
    return name.size() >= wrong.size() &&
           equal_ignoring_case(std::string_view(name).substr(name.size() - wrong.size()), wrong);
  };
  auto meant = std::ranges::find_if(names, has_initials);
  if (meant == names.end() && wrong.size() >= kLeastEnding) meant = std::ranges::find_if(names, ends);
  return meant == names.end() ? "" : *meant;
}

}  // namespace paceline::api

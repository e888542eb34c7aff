#pragma once

// One command of a transcript: words, and key=value pairs; "_" stands for a blank in both.

#include <algorithm>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace paceline {

struct ScriptLine {
  std::vector<std::string> words;
  std::map<std::string, std::string> values;

  explicit ScriptLine(const std::string& text) {
    std::istringstream in(text);
    for (std::string word; in >> word;) {
      std::replace(word.begin(), word.end(), '_', ' ');
      const auto equals = word.find('=');
      if (equals == std::string::npos) {
        words.push_back(word);
      } else {
        std::string key = word.substr(0, equals);
        std::replace(key.begin(), key.end(), ' ', '_');
        values[key] = word.substr(equals + 1);
      }
    }
  }
  std::string text(const std::string& key, const std::string& fallback = "") const {
    const auto it = values.find(key);
    return it == values.end() ? fallback : it->second;
  }
  std::int64_t number(const std::string& key, std::int64_t fallback = 0) const {
    const auto it = values.find(key);
    return it == values.end() ? fallback : std::strtoll(it->second.c_str(), nullptr, 10);
  }
  bool has(const std::string& key) const { return values.contains(key); }
  bool says(const std::string& word) const { return std::ranges::count(words, word) > 0; }
};

}  // namespace paceline

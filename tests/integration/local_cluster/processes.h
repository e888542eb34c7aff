#pragma once

// Finding processes by a mark in their environment, which every descendant of a pod inherits.

#include <time.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace paceline {

inline constexpr char kMarkName[] = "PACELINE_TEST_MARK";
inline constexpr auto kPatience = std::chrono::seconds(20);

// How many running processes carry the mark. Zombies have no environment any more, so they don't count.
inline int count_marked(const std::string& mark) {
  const std::string wanted = std::string(kMarkName) + "=" + mark;
  int count = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "environ", std::ios::binary);
    std::stringstream content;
    content << file.rdbuf();
    const std::string text = content.str();
    for (std::size_t at = 0; at < text.size(); at = text.find('\0', at) + 1) {
      if (text.compare(at, wanted.size() + 1, wanted + '\0') == 0) {
        ++count;
        break;
      }
      if (text.find('\0', at) == std::string::npos) break;
    }
  }
  return count;
}

// Polls until it holds; false after kPatience.
template <typename Condition>
bool eventually(Condition condition) {
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > give_up) return false;
    const timespec moment{0, 2'000'000};
    ::nanosleep(&moment, nullptr);
  }
  return true;
}

}  // namespace paceline

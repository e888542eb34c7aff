#pragma once

// Transcripts: text files of commands ("> ...") that a test gives to what it tests, each followed by what
// that did. With PACELINE_UPDATE_TRANSCRIPTS set they are written anew: read the difference before you commit
// it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace paceline {

// The names of a folder's transcripts, in order, without ".txt".
inline std::vector<std::string> transcripts(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

inline std::string read_transcript(const std::filesystem::path& folder, const std::string& name) {
  std::stringstream text;
  text << std::ifstream(folder / (name + ".txt")).rdbuf();
  return text.str();
}

// The commands of `transcript`, each with play(command)'s output of now after it. Other lines are dropped,
// but for comments (#) and blank lines.
template <typename Play>
std::string replay(const std::string& transcript, Play play) {
  std::istringstream in(transcript);
  std::string result;
  for (std::string line; std::getline(in, line);) {
    const bool command = line.starts_with("> ");
    if (command || line.empty() || line[0] == '#') result += line + "\n";
    if (command) result += play(line.substr(2));
  }
  return result;
}

// Expects that run(transcript) gives it back; returns what it gave.
template <typename Run>
std::string happens_as_written(const std::filesystem::path& folder, const std::string& name, Run run) {
  const std::string expected = read_transcript(folder, name), actual = run(expected);
  EXPECT_FALSE(expected.empty());
  if (std::getenv("PACELINE_UPDATE_TRANSCRIPTS") != nullptr)
    std::ofstream(folder / (name + ".txt")) << actual;
  EXPECT_EQ(actual, expected);
  return actual;
}

}  // namespace paceline

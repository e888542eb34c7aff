// The transcripts in testdata: events and answers of each mode, as text. PACELINE_UPDATE_GOLDEN=1 writes them
// anew.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/unit/runtime/pserver/policy/script.h"

namespace paceline::pserver {
namespace {

const std::string kFolder = PACELINE_SOURCE_DIR "/tests/unit/runtime/pserver/policy/testdata";

std::string read(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::vector<std::string> transcripts() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

class PolicyTranscriptTest : public ::testing::TestWithParam<std::string> {};

TEST_P(PolicyTranscriptTest, HappensAsWritten) {
  const std::string path = kFolder + "/" + GetParam() + ".txt";
  const std::string expected = read(path), actual = run_transcript(expected);
  ASSERT_FALSE(expected.empty());
  if (std::getenv("PACELINE_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << actual;
  EXPECT_EQ(actual, expected);
  EXPECT_EQ(actual.find("has no turn"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Policies, PolicyTranscriptTest, ::testing::ValuesIn(transcripts()),
                         [](const auto& info) { return info.param; });

// Events and answers without the line that names the policy and the comments.
std::string answers(const std::string& policy, const std::string& events) {
  const std::string text = run_transcript("> policy " + policy + "\n" + events);
  return text.substr(text.find('\n'));
}

TEST(PolicyTest, StalenessZeroIsTheSynchronousTranscript) {
  const std::string events = read(kFolder + "/bounded_staleness_zero.txt");
  const std::string after = events.substr(events.find("> join"));
  EXPECT_EQ(answers("bounded workers=3 staleness=0 steps=2", after),
            answers("synchronous workers=3 steps=2", after));
}

}  // namespace
}  // namespace paceline::pserver

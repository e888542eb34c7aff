// The transcripts in testdata: events and answers of each mode, as text.

#include <gtest/gtest.h>

#include <string>

#include "tests/support/paths.h"
#include "tests/support/transcript.h"
#include "tests/unit/runtime/pserver/policy/script.h"

namespace paceline::pserver {
namespace {

const std::string kFolder = source_path("tests/unit/runtime/pserver/policy/testdata");

class PolicyTranscriptTest : public ::testing::TestWithParam<std::string> {};

TEST_P(PolicyTranscriptTest, HappensAsWritten) {
  const std::string actual = happens_as_written(kFolder, GetParam(), run_transcript);
  EXPECT_EQ(actual.find("has no turn"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Policies, PolicyTranscriptTest, ::testing::ValuesIn(transcripts(kFolder)),
                         [](const auto& info) { return info.param; });

// Events and answers without the line that names the policy and the comments.
std::string answers(const std::string& policy, const std::string& events) {
  const std::string text = run_transcript("> policy " + policy + "\n" + events);
  return text.substr(text.find('\n'));
}

TEST(PolicyTest, StalenessZeroIsTheSynchronousTranscript) {
  const std::string events = read_transcript(kFolder, "bounded_staleness_zero");
  const std::string after = events.substr(events.find("> join"));
  EXPECT_EQ(answers("bounded workers=3 staleness=0 steps=2", after),
            answers("synchronous workers=3 steps=2", after));
}

}  // namespace
}  // namespace paceline::pserver

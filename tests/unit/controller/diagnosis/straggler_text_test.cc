#include "controller/diagnosis/straggler_text.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace paceline::diagnosis {
namespace {

using api::StragglerKind;

api::Straggler straggler(StragglerKind kind) {
  return {.kind = kind,
          .index = 3,
          .host = "node-b",
          .part = "compute",
          .factor = 1.9,
          .steps = 52,
          .own_ms = 190,
          .typical_ms = 100,
          .members = 1};
}

TEST(StragglerTextTest, SlowMemberIsNamedWithItsFiguresAndItsCause) {
  api::Straggler slow = straggler(StragglerKind::kSlow);
  slow.evidence = "its CPU quota holds it up 46 % of the time";
  EXPECT_EQ(message_of(slow),
            "worker-3 on node-b: 1.9x the others' median for 52 steps (190 ms, theirs 100 ms), in compute; "
            "its CPU quota "
            "holds it up 46 % of the time");
  EXPECT_EQ(end_of(slow), "worker-3 holds the others back no more");
  slow.host.clear();
  EXPECT_TRUE(message_of(slow).starts_with("worker-3: 1.9x"));
}

TEST(StragglerTextTest, KindsHaveTextsOfTheirOwn) {
  std::set<std::string> messages, ends;
  for (const StragglerKind kind : {StragglerKind::kSlow, StragglerKind::kMoreWork, StragglerKind::kAllSlow}) {
    for (const int members : {0, 2}) {
      api::Straggler each = straggler(kind);
      each.members = members;
      messages.insert(message_of(each));
      ends.insert(end_of(each));
    }
  }
  EXPECT_EQ(messages.size(), 4U);
  EXPECT_EQ(ends.size(), 3U);
}

TEST(StragglerTextTest, SlowLinkIsNamedByItsEnds) {
  api::Straggler slow = straggler(StragglerKind::kSlowLink);
  slow.peer = "worker-0";
  slow.evidence = link_evidence(23.9e6, 0.031);
  EXPECT_EQ(
      message_of(slow),
      "the link from worker-3 to worker-0: 1.9x the others' median time for as many bytes (190 ms of a step, "
      "theirs 100 ms); it moves 23.9 MB/s while it has something to send; 3 % of its segments were sent "
      "again");
  EXPECT_EQ(end_of(slow), "the link from worker-3 to worker-0 holds the others back no more");
  EXPECT_EQ(link_evidence(1.25e9, 0), "it moves 1250 MB/s while it has something to send");
}

TEST(StragglerTextTest, FactorsHaveThreeDigitsAtMost) {
  EXPECT_EQ(factor_text(1.154), "1.15x");
  EXPECT_EQ(factor_text(2.449), "2.4x");
  EXPECT_EQ(factor_text(12.6), "13x");
}

TEST(StragglerTextTest, ReplacementSaysWhatCameOfItOnceThatIsKnown) {
  api::StragglerReplacement replacement{.pod = "job-worker-3-0", .successor = "job-worker-3-1"};
  EXPECT_EQ(text_of(replacement), "pod job-worker-3-1 is to take over from pod job-worker-3-0");
  replacement.message = "pod job-worker-3-0 holds the others back no more";
  EXPECT_EQ(text_of(replacement), replacement.message);
}

}  // namespace
}  // namespace paceline::diagnosis

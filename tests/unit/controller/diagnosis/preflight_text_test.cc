#include "controller/diagnosis/preflight_text.h"

#include <gtest/gtest.h>

namespace paceline::diagnosis {
namespace {

api::UnfitMember slow() {
  return {.role = Role::kWorker,
          .index = 1,
          .pod = "job-worker-1-0",
          .host = "node-b",
          .part = api::PreflightPart::kCompute,
          .ms = 12,
          .typical_ms = 5,
          .factor = 2.4};
}

TEST(PreflightTextTest, FiguresSayHowSlowAMemberIs) {
  EXPECT_EQ(figures_of(slow()), "2.4x the others' median in the compute test (12 ms, theirs 5.0 ms)");
  api::UnfitMember late = slow();
  late.part = api::PreflightPart::kLink;
  late.ms = 0;
  EXPECT_EQ(figures_of(late), "it did not finish the link test in time");
}

TEST(PreflightTextTest, MessageNamesMembersNodesAndWhatBecomesOfThem) {
  api::Preflight result{.outcome = api::PreflightOutcome::kReported, .members = 4, .seconds = 1.5};
  result.unfit.push_back(slow());
  result.unfit[0].why = "spec.preflight.action is Report";
  EXPECT_EQ(
      message_of(result),
      "1 of 4 members fails the check before the first step: worker-1 on node-b: 2.4x the others' median in "
      "the compute test (12 ms, theirs 5.0 ms); it stays: spec.preflight.action is Report");
  result.unfit[0].excluded = true;
  EXPECT_NE(message_of(result).find("it is excluded"), std::string::npos);
}

TEST(PreflightTextTest, MessageSaysOnceWhySeveralMembersStay) {
  api::Preflight result{.outcome = api::PreflightOutcome::kReported, .members = 9};
  for (const char* const why : {"one", "one", "", "one", "two"}) {
    api::UnfitMember& member = result.unfit.emplace_back(slow());
    member.why = why;
    member.excluded = member.why.empty();
  }
  const std::string text = message_of(result);
  const auto times = [&](const std::string& words) {
    int count = 0;
    for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++count;
    return count;
  };
  EXPECT_EQ(times("it stays: one"), 1);
  EXPECT_EQ(times("it stays, too"), 2);
  EXPECT_EQ(times("it stays: two"), 1);
  EXPECT_EQ(times("it is excluded"), 1);
}

TEST(PreflightTextTest, MessageOfAPassTellsFigures) {
  const api::Preflight result{.members = 2, .seconds = 1.5, .compute_ms = 5, .link_ms = 2};
  EXPECT_EQ(
      message_of(result),
      "all 2 members pass the check before the first step, in 1.5 s (medians: compute 5.0 ms, link 2.0 ms)");
}

TEST(PreflightTextTest, MessageCountsMembersThatDoNotKnowTheCheck) {
  api::Preflight result{.members = 2, .left_out = 1, .seconds = 1.5};
  const std::string one = "; 1 member is not tested, of a release that does not know the check";
  EXPECT_NE(message_of(result).find(one), std::string::npos);
  result.outcome = api::PreflightOutcome::kFailed;
  EXPECT_NE(message_of(result, "why").find(one), std::string::npos);
  result.outcome = api::PreflightOutcome::kReported;
  result.unfit.push_back(slow());
  EXPECT_NE(message_of(result).find(one), std::string::npos);
}

TEST(PreflightTextTest, MessageOfAFailureTellsWhyAndThatTrainingBegins) {
  EXPECT_EQ(
      message_of({.outcome = api::PreflightOutcome::kFailed}, "no results"),
      "nothing is known of the members before the first step: no results; training begins all the same");
}

}  // namespace
}  // namespace paceline::diagnosis

#include "controller/dashboard/board.h"

#include <gtest/gtest.h>

#include "tests/support/fake_clock.h"
#include "tests/support/fake_place.h"

namespace paceline::dashboard {
namespace {

using kube::Json;

class BoardTest : public ::testing::Test {
 protected:
  BoardTest() { board_.apply({.objects = {running_job()}}); }
  Json told(const Rights& rights = {}) { return Json::parse(*board_.job_json("default/digits", rights)); }

  FakeClock clock_;
  int hints_ = 0;
  Board board_{clock_, Board::Advice{.hints = [this](const Json&) {
                 ++hints_;
                 (void)board_.series_of("default/digits");  // the board's lock is free
                 return std::vector<std::string>{"look at it"};
               }}};
};

TEST_F(BoardTest, TextOfAJobIsMadeOnceForAllWithTheSameRights) {
  EXPECT_EQ(told()["hints"], Json::array({"look at it"}));
  EXPECT_EQ(board_.job_since("default/digits", 0).json, board_.job_json("default/digits"));
  EXPECT_EQ(hints_, 1);
  EXPECT_EQ(told()["actions"]["suspend"]["allowed"], true);
  EXPECT_EQ(told({.update = false})["actions"]["suspend"]["allowed"], false);
  EXPECT_EQ(hints_, 2);
  Json changed = running_job();
  changed["status"]["phase"] = "Succeeded";
  board_.apply({.objects = {changed}});
  EXPECT_EQ(told()["row"]["phase"], "Succeeded");
  EXPECT_EQ(hints_, 3);
}

TEST_F(BoardTest, PodThatDoesNotStartIsHintedAtWhateverThePlaceKnows) {
  Json object = running_job();
  object["status"]["conditions"] =
      Json::array({{{"type", "Running"}, {"status", "True"}, {"reason", "Unschedulable"}}});
  Board board(clock_);
  board.apply({.objects = {object}});
  EXPECT_EQ(Json::parse(*board.job_json("default/digits"))["hints"], Json(pod_hints(object)));
  EXPECT_FALSE(pod_hints(object).empty());
}

TEST_F(BoardTest, JobThatIsGoneIsToldSo) {
  const std::uint64_t version = board_.job_since("default/digits", 0).version;
  EXPECT_EQ(board_.job_since("default/digits", version).json, nullptr) << "nothing is new";
  board_.apply({.removed = {"default/digits"}});
  EXPECT_EQ(board_.job_json("default/digits"), nullptr);
  EXPECT_TRUE(board_.job_since("default/digits", version).gone);
}

TEST_F(BoardTest, TextsAreBounded) {
  for (std::size_t i = 0; i < 3 * Board::kTexts; ++i) {
    Json other = running_job();
    other["metadata"]["name"] = other["metadata"]["uid"] = str_cat("job-", i);
    board_.apply({.objects = {other}});
    EXPECT_NE(board_.job_json(str_cat("default/job-", i)), nullptr);
  }
}

}  // namespace
}  // namespace paceline::dashboard

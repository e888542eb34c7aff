#include "controller/coordinator/core_save.h"

#include <gtest/gtest.h>

namespace paceline::coordinator {
namespace {

TEST(SaveRequestTest, CheckpointOfNoEarlierStepAnswersIt) {
  SaveRequest request;
  EXPECT_FALSE(request.is_open());
  EXPECT_TRUE(request.ask("first", 10));
  EXPECT_FALSE(request.ask("first", 20)) << "it is the same request";
  EXPECT_FALSE(request.take({.step = 9, .path = "/checkpoints/step-9"})) << "it was begun before";
  EXPECT_TRUE(request.is_open());
  EXPECT_TRUE(request.take({.step = 11, .path = "/checkpoints/step-11"}));
  EXPECT_FALSE(request.is_open());
  EXPECT_EQ(request.answer(), (plan::SaveAnswer{"first", 11, ""}));
  EXPECT_FALSE(request.take({.step = 12})) << "nobody asked for another one";
  EXPECT_EQ(request.answer()->step, 11);
}

TEST(SaveRequestTest, FailedCheckpointIsAnAnswer) {
  SaveRequest request;
  EXPECT_TRUE(request.ask("first", 10));
  EXPECT_TRUE(request.take({.step = 11, .error = "no space"}));
  EXPECT_EQ(request.answer(), (plan::SaveAnswer{"first", 11, "no space"}));
  EXPECT_TRUE(request.ask("second", 12));
  EXPECT_TRUE(request.is_open());
  EXPECT_EQ(request.answer()->request, "first");
}

TEST(SaveRequestTest, ViewThatBeginsBeforeItEndsIt) {
  SaveRequest request;
  EXPECT_FALSE(request.begins_at(1)) << "nobody has asked";
  EXPECT_TRUE(request.ask("first", 10));
  EXPECT_FALSE(request.begins_at(10)) << "its first checkpoint may answer";
  EXPECT_TRUE(request.begins_at(9));
  EXPECT_FALSE(request.is_open());
  EXPECT_EQ(request.answer()->request, "first");
  EXPECT_NE(request.answer()->error, "");
  EXPECT_FALSE(request.begins_at(8)) << "it has its answer";
  EXPECT_FALSE(request.take({.step = 12}));
}

TEST(SaveRequestTest, EmptyTextAsksForNothing) {
  SaveRequest request;
  EXPECT_FALSE(request.ask("", 10));
  EXPECT_TRUE(request.ask("first", 10));
  EXPECT_TRUE(request.ask("", 11));
  EXPECT_FALSE(request.is_open());
  EXPECT_FALSE(request.take({.step = 12}));
}

}  // namespace
}  // namespace paceline::coordinator

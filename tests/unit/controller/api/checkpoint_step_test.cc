#include "controller/api/checkpoint_step.h"

#include <gtest/gtest.h>

namespace paceline::api {
namespace {

TEST(CheckpointStep, StandsInItsPath) {
  EXPECT_EQ(checkpoint_step("/paceline/checkpoints/step-000000123"), 123);
  EXPECT_EQ(checkpoint_step("step-1234567890123"), 1234567890123);
  for (const char* none :
       {"", "/paceline/checkpoints", "/a/step-", "/a/step-x", "/a/step-1x", "/step-1/b", "/a/step--1"})
    EXPECT_EQ(checkpoint_step(none), std::nullopt) << none;
}

}  // namespace
}  // namespace paceline::api

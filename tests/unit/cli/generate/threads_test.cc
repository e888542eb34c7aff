#include "cli/generate/threads.h"

#include <gtest/gtest.h>

namespace paceline::cli {
namespace {

TEST(Threads, OneForASmallModelElseAllProcessors) {
  EXPECT_EQ(threads_for(1, 0, 8), 1);
  EXPECT_EQ(threads_for(kParametersForThreads - 1, 0, 8), 1);
  EXPECT_EQ(threads_for(kParametersForThreads, 0, 8), 8);
}

TEST(Threads, WhatTheUserSaysCounts) {
  EXPECT_EQ(threads_for(1, 3, 8), 3);
  EXPECT_EQ(threads_for(kParametersForThreads, 16, 8), 16);
}

}  // namespace
}  // namespace paceline::cli

#include <gtest/gtest.h>

#include <thread>

namespace {

TEST(OneThread, AThreadEndsTheProgramAndSaysWhy) {
  EXPECT_DEATH(std::thread([] {}).join(), "says ONE_THREAD in its CMakeLists.txt");
}

}  // namespace

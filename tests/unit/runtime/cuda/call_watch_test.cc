#include "runtime/cuda/call_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cuda/context.h"
#include "tests/support/fake_cuda/gpu_test.h"

namespace paceline::cuda {
namespace {

using ::testing::IsNull;
using ::testing::StrEq;

TEST(CallPlaces, ACallOfMoreLooksThanAreAllowedIsTold) {
  CallPlaces places;
  EXPECT_THAT(places.look(0), IsNull());
  const CallPlaces::Call call(places, "long");
  for (int again = 0; again < 2; ++again) {
    for (int i = 0; i < 3; ++i) EXPECT_THAT(places.look(3), IsNull());
    EXPECT_THAT(places.look(3), StrEq("long"));
  }
}

TEST(CallPlaces, ManyShortCallsAreNone) {
  CallPlaces places;
  for (int i = 0; i < 100; ++i) {
    const CallPlaces::Call call(places, "short");
    EXPECT_THAT(places.look(1), IsNull());
  }
}

TEST(CallPlaces, ShortCallsOfOthersHideNoLongOne) {
  CallPlaces places;
  auto first = std::make_unique<CallPlaces::Call>(places, "first");
  const CallPlaces::Call call(places, "long");
  EXPECT_THAT(places.look(1), IsNull());
  first.reset();
  first = std::make_unique<CallPlaces::Call>(places, "first again");
  EXPECT_THAT(places.look(1), StrEq("long"));
}

TEST(CallPlaces, WhereThereIsNoPlaceLeftACallIsNotSeen) {
  CallPlaces places;
  std::vector<std::unique_ptr<CallPlaces::Call>> calls;
  for (std::size_t i = 0; i <= CallPlaces::kPlaces; ++i)
    calls.push_back(
        std::make_unique<CallPlaces::Call>(places, i < CallPlaces::kPlaces ? "seen" : "not seen"));
  const auto late = std::move(calls.back());
  calls.clear();
  EXPECT_THAT(places.look(0), IsNull());
}

// The driver's own, each by its name, and those of its libraries; here each ends when it was told of.
TEST(CallWatch, TheDriversCallsAreWatched) {
  PL_EMULATED_ONLY();
  fake().reset();
  std::atomic<const char*> hangs{""};
  std::atomic<bool> told{true};
  {
    // A call that is only slow may be told of, too.
    const auto driver = must(Driver::open(PACELINE_FAKE_CUDA,
                                          [&](const std::string& call) {
                                            if (call == hangs.load()) {
                                              told = true;
                                              told.notify_all();
                                            }
                                          },
                                          {.every = std::chrono::microseconds(1), .looks = 3}));
    const auto context = must(Context::open(driver, 0));
    fake().control().fail = [&](const std::string& call) {  // by the symbol: cuMemGetInfo_v2
      if (call.starts_with(hangs.load())) told.wait(false);
      return CUDA_SUCCESS;
    };
    const Driver::Calls& call = driver->calls();
    float milliseconds = 0;
    const std::pair<const char*, std::function<void()>> cases[] = {
        {"cuLaunchKernel",
         [&] { call.cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr); }},
        {"cuGraphLaunch", [&] { call.cuGraphLaunch(nullptr, nullptr); }},
        {"cuMemcpyHtoDAsync", [&] { call.cuMemcpyHtoDAsync(0, nullptr, 1, nullptr); }},
        {"cuEventRecord", [&] { call.cuEventRecord(nullptr, nullptr); }},
        {"cuEventQuery", [&] { call.cuEventQuery(nullptr); }},
        {"cuEventElapsedTime", [&] { call.cuEventElapsedTime(&milliseconds, nullptr, nullptr); }},
        {"cuMemGetInfo", [&] { context->memory().IgnoreError(); }},
    };
    for (const auto& [name, makes] : cases) {
      hangs = name;
      told = false;
      makes();
      EXPECT_TRUE(told) << name;
    }
    fake().control().fail = nullptr;
  }
  fake().reset();
}

// Another user's programs may keep it waiting, under MPS. The test looks, and the thread does not.
TEST(CallWatch, TheStartIsNot) {
  PL_EMULATED_ONLY();
  fake().reset();
  const auto driver =
      must(Driver::open(PACELINE_FAKE_CUDA, [](const std::string&) {}, {.every = std::chrono::hours(1)}));
  std::vector<std::pair<std::string, bool>> seen;
  fake().control().fail = [&](const std::string& call) {
    seen.emplace_back(call, driver->places()->look(0) != nullptr);
    return CUDA_SUCCESS;
  };
  driver->calls().cuInit(0);
  must(Context::open(driver, 0))->memory().IgnoreError();
  fake().reset();
  int starts = 0;
  for (const auto& [call, is_seen] : seen) {
    const bool start = call == "cuInit" || call.starts_with("cuDevicePrimaryCtxRetain");
    starts += start ? 1 : 0;
    EXPECT_EQ(is_seen, !start) << call;
  }
  EXPECT_EQ(starts, 2);
}

}  // namespace
}  // namespace paceline::cuda

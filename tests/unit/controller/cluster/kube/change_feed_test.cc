#include "controller/cluster/kube/change_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/guarded.h"

namespace paceline::kube {
namespace {

using ::testing::ElementsAre;

constexpr Duration kPatience = std::chrono::seconds(60);

TEST(ChangeFeedTest, KeepsNothingForNobody) {
  Guarded<std::vector<std::string>> heard;
  ChangeFeed feed;
  const auto hear = [&] { feed.set_receiver([&](const std::string& key) { heard.lock()->push_back(key); }); };
  const auto hears = [&](const std::string& last) {
    bool held = false;
    (void)heard.lock_when([&](const auto& keys) { return !keys.empty() && keys.back() == last; }, kPatience,
                          &held);
    return held;
  };
  feed.publish("n/a");  // a key that was kept would come before the next one, as keys come sorted
  hear();
  feed.publish("n/b");
  ASSERT_TRUE(hears("n/b"));
  feed.set_receiver({});
  feed.publish("n/c");
  hear();
  feed.publish("n/d");
  ASSERT_TRUE(hears("n/d"));
  EXPECT_THAT(*heard.lock(), ElementsAre("n/b", "n/d"));
}

}  // namespace
}  // namespace paceline::kube

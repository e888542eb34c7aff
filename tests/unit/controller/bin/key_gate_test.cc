#include "controller/bin/key_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "base/guarded.h"

namespace paceline::controller {
namespace {

using ::testing::ElementsAre;

TEST(KeyGateTest, KeepsBackWhatComesBeforeItIsOpened) {
  std::vector<std::string> added;
  KeyGate gate([&](const std::string& key) { added.push_back(key); });
  gate.publish("n/deleted");
  EXPECT_THAT(added, ElementsAre());
  gate.open([] { return std::vector<std::string>{"n/there"}; });
  gate.publish("n/new");
  EXPECT_THAT(added, ElementsAre("n/there", "n/new"));
}

TEST(KeyGateTest, AChangeThatComesAsAllAreListedIsAdded) {
  std::vector<std::string> added;
  KeyGate gate([&](const std::string& key) { added.push_back(key); });
  gate.open([&] {
    std::vector<std::string> all = {"n/there"};
    gate.publish("n/later");  // than what was listed
    return all;
  });
  EXPECT_THAT(added, ElementsAre("n/later", "n/there"));
}

TEST(KeyGateTest, NoKeyIsLostAsItIsOpened) {
  constexpr int kRounds = 200, kKeys = 50;
  for (int round = 0; round < kRounds; ++round) {
    Guarded<std::set<std::string>> store, added;
    KeyGate gate([&](const std::string& key) { added.lock()->insert(key); });
    std::atomic<int> told{0};
    std::thread watch([&] {
      for (int i = 0; i < kKeys; ++i) {
        const std::string key = std::to_string(i);
        store.lock()->insert(key);
        gate.publish(key);
        ++told;
      }
    });
    while (told.load() < round % kKeys) std::this_thread::yield();
    gate.open([&] {
      auto all = store.lock();
      return std::vector<std::string>(all->begin(), all->end());
    });
    watch.join();
    EXPECT_EQ(*added.lock(), *store.lock());
  }
}

}  // namespace
}  // namespace paceline::controller

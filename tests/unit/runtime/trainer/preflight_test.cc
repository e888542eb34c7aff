#include "runtime/trainer/preflight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/tensor/compiler.h"
#include "runtime/tensor/cpu/cpu_device.h"

namespace paceline::trainer {
namespace {

using std::chrono::milliseconds;
using ::testing::IsEmpty;

// Members of one process that listen on loopback, each with a small product to compute.
class PreflightTest : public ::testing::Test {
 protected:
  struct Member {
    std::string id;
    std::unique_ptr<collective::Fabric> training;
    std::unique_ptr<Preflight> preflight;
    std::atomic<bool> over{false};
    v1::PreflightResult first;
  };

  PreflightTest() {
    welcome_.set_link_key(std::string(32, 'k'));
    workload_.compile_probe = [this]() -> absl::StatusOr<std::unique_ptr<tensor::Program>> {
      tensor::GraphBuilder graph;
      graph.scores(graph.dense("product", graph.input({16}), 16));
      return tensor::compile(graph, *device_, {.max_rows = 4, .mode = tensor::Mode::kInference});
    };
  }

  void make(int members, PreflightOptions options = {.compute = milliseconds(1)}) {
    for (int i = 0; i < members; ++i) {
      auto member = std::make_unique<Member>();
      member->id = "m" + std::to_string(i);
      auto fabric = collective::Fabric::create({.arena_bytes = 1 << 20}, clock_);
      ASSERT_TRUE(fabric.ok()) << fabric.status();
      member->training = *std::move(fabric);
      member->preflight = std::make_unique<Preflight>(
          member->id, welcome_, *member->training, workload_, clock_,
          [&over = member->over] { return over.load(); }, options);
      members_.push_back(std::move(member));
    }
  }
  void ask_first() {
    v1::Preflight word;
    word.set_number(1);
    for (auto& member : members_) member->first = member->preflight->answer(word);
  }
  v1::Preflight word(std::uint64_t number, bool apart) {
    v1::Preflight word;
    word.set_number(number);
    word.set_apart(apart);
    word.mutable_group()->set_generation(number);
    for (const auto& member : members_) {
      v1::ViewMember& peer = *word.mutable_group()->add_members();
      peer.set_member_id(member->id);
      peer.set_host_id(member->training->address().host_id);
      *peer.mutable_address() = member->first.address();
    }
    return word;
  }
  std::vector<v1::PreflightResult> ask_all(const v1::Preflight& word) {
    std::vector<v1::PreflightResult> results(members_.size());
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < members_.size(); ++i)
      threads.emplace_back([&, i] { results[i] = members_[i]->preflight->answer(word); });
    threads.clear();
    return results;
  }

  const SystemClock clock_;
  v1::Welcome welcome_;
  std::unique_ptr<tensor::Device> device_ = tensor::make_cpu_device({.threads = 1});
  Workload workload_;
  std::vector<std::unique_ptr<Member>> members_;
};

TEST_F(PreflightTest, TheFirstAnswerTellsOfComputingAndAnAddress) {
  make(1);
  ask_first();
  const v1::PreflightResult& first = members_[0]->first;
  EXPECT_EQ(first.number(), 1U);
  EXPECT_GT(first.compute_seconds(), 0);
  EXPECT_EQ(first.link_seconds(), 0);
  EXPECT_THAT(first.error(), IsEmpty());
  ASSERT_EQ(first.address().tcp_size(), 1);
  EXPECT_NE(first.address().tcp(0), members_[0]->training->address().tcp[0]) << "it has links of its own";
}

TEST_F(PreflightTest, PairsAndThreesTestTheirLinksOverTcpAndSharedMemory) {
  for (const int members : {2, 3}) {
    members_.clear();
    make(members);
    ask_first();
    for (const std::uint64_t number : {2, 3}) {
      for (const v1::PreflightResult& result : ask_all(word(number, number == 3))) {
        EXPECT_EQ(result.number(), number);
        EXPECT_GT(result.link_seconds(), 0) << result.error();
        EXPECT_GT(result.compute_seconds(), 0);
        EXPECT_THAT(result.error(), IsEmpty());
      }
    }
  }
}

TEST_F(PreflightTest, APeerThatDoesNotComeIsWaitedForNoLongerThanTheLimit) {
  make(2, {.compute = milliseconds(1), .most_link = milliseconds(50)});
  ask_first();
  const v1::PreflightResult result = members_[1]->preflight->answer(word(2, false));
  EXPECT_EQ(result.link_seconds(), 0);
  EXPECT_FALSE(result.error().empty());
  EXPECT_GT(result.compute_seconds(), 0);
}

TEST_F(PreflightTest, ACancelledTestEndsAtOnceAndForGood) {
  make(2, {.compute = milliseconds(1), .most_link = std::chrono::hours(1)});
  ask_first();
  std::optional<v1::PreflightResult> result;
  {
    const std::jthread waits([&] { result = members_[0]->preflight->answer(word(2, true)); });
    members_[0]->preflight->cancel(absl::AbortedError("a view is there"));
  }
  ASSERT_TRUE(result);
  EXPECT_EQ(result->link_seconds(), 0);
  EXPECT_FALSE(members_[0]->preflight->answer(word(3, true)).error().empty());
}

TEST_F(PreflightTest, TheNextMessageEndsTheTestOfTheOneBefore) {
  make(2, {.compute = milliseconds(1), .most_link = std::chrono::hours(1)});
  ask_first();
  v1::PreflightResult result;
  {
    const std::jthread waits([&] { result = members_[0]->preflight->answer(word(2, true)); });
    members_[0]->preflight->supersede(3);
  }
  EXPECT_EQ(result.number(), 2U);
  EXPECT_EQ(result.link_seconds(), 0);
  for (const v1::PreflightResult& next : ask_all(word(3, true)))
    EXPECT_GT(next.link_seconds(), 0) << next.error();
}

TEST_F(PreflightTest, ComputingEndsWhereTheNextMessageIsThere) {
  make(1, {.compute = std::chrono::hours(1), .most_compute = std::chrono::hours(1)});
  members_[0]->preflight->supersede(2);
  ask_first();
  EXPECT_EQ(members_[0]->first.compute_seconds(), 0);
  EXPECT_EQ(members_[0]->first.address().tcp_size(), 1);
}

TEST_F(PreflightTest, ComputingEndsOnceNobodyWaitsForIt) {
  make(1, {.compute = std::chrono::hours(1), .most_compute = std::chrono::hours(1)});
  members_[0]->over = true;
  ask_first();
  EXPECT_EQ(members_[0]->first.compute_seconds(), 0);
  EXPECT_FALSE(members_[0]->first.error().empty());
}

TEST_F(PreflightTest, AProgramWithoutATestSaysSo) {
  workload_.compile_probe = nullptr;
  make(1);
  ask_first();
  EXPECT_FALSE(members_[0]->first.error().empty());
  EXPECT_EQ(members_[0]->first.address().tcp_size(), 1);
}

TEST_F(PreflightTest, MessagesThatMakeNoSenseAreAnsweredWithAnError) {
  make(2);
  v1::Preflight strange;
  strange.mutable_group()->add_members()->set_member_id("m0");
  EXPECT_FALSE(members_[0]->preflight->answer(strange).error().empty()) << "before the first";
  ask_first();
  EXPECT_FALSE(members_[0]->preflight->answer(strange).error().empty()) << "a group of one";
  v1::Preflight others = word(2, false);
  others.mutable_group()->mutable_members(0)->set_member_id("x");
  EXPECT_FALSE(members_[0]->preflight->answer(others).error().empty()) << "a group of others";
}

TEST_F(PreflightTest, OfThreeTheTwoOthersAreTestedWhereOneDoesNotAnswer) {
  make(3, {.compute = milliseconds(1), .most_link = milliseconds(1500)});
  ask_first();
  const v1::Preflight two = word(2, false);
  std::vector<v1::PreflightResult> results(2);
  {
    std::jthread first([&] { results[0] = members_[1]->preflight->answer(two); });
    std::jthread second([&] { results[1] = members_[2]->preflight->answer(two); });
  }
  for (const v1::PreflightResult& result : results) EXPECT_GT(result.link_seconds(), 0) << result.error();
}

}  // namespace
}  // namespace paceline::trainer

#include "controller/stragglers/links.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>

#include "base/rng.h"

namespace paceline::stragglers {
namespace {

using std::chrono::milliseconds;

// A ring in which each member tells twice a second of the link to the next one: so many bytes, at so many a
// second while there are some.
class LinksTest : public ::testing::Test {
 protected:
  struct Traffic {
    double bytes = 5e6, rate = 1e9;
  };
  void begin(int members) {
    traffic_.assign(static_cast<std::size_t>(members), {});
    counts_.assign(static_cast<std::size_t>(members), {});
    std::vector<int> places(static_cast<std::size_t>(members));
    for (int i = 0; i < members; ++i) places[static_cast<std::size_t>(i)] = 10 + i;
    links_.begin_view(places);
  }
  void pass(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      at_ += milliseconds(500);
      for (std::size_t i = 0; i < traffic_.size(); ++i) {
        LinkCount& count = counts_[i];
        count.to = static_cast<int>((i + 1) % traffic_.size());
        const double noise = 0.8 + 0.4 * rng_.uniform();
        count.bytes += static_cast<std::uint64_t>(traffic_[i].bytes);
        count.rate = traffic_[i].rate * noise;
        count.segments += 1000;
        count.segments_again += traffic_[i].rate < 1e8 ? 30 : 0;
        links_.add(static_cast<int>(i), at_, std::span(&count, 1));
      }
    }
  }
  // A round of four members each of which sends to all others.
  void pass_mesh(const std::function<Traffic(int from, int to)>& traffic) {
    at_ += milliseconds(500);
    for (int from = 0; from < 4; ++from) {
      std::vector<LinkCount> told;
      for (int to = 0; to < 4; ++to) {
        if (to == from) continue;
        const Traffic now = traffic(from, to);
        LinkCount& count = mesh_[{from, to}];
        count.to = to;
        count.bytes += static_cast<std::uint64_t>(now.bytes);
        count.rate = now.rate;
        told.push_back(count);
      }
      links_.add(from, at_, told);
    }
  }
  Links links_;
  std::map<std::pair<int, int>, LinkCount> mesh_;
  std::vector<Traffic> traffic_;
  std::vector<LinkCount> counts_;
  Duration at_{};
  Rng rng_{7, 0};
};

TEST_F(LinksTest, AThrottledLinkIsFoundAndNoOther) {
  begin(4);
  pass(20);
  EXPECT_TRUE(links_.findings().empty());
  traffic_[2].rate = 24e6;
  pass(20);
  const std::vector<LinkFinding> found = links_.findings();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].from, 12);
  EXPECT_EQ(found[0].to, 13);
  EXPECT_GT(found[0].factor, 10);
  EXPECT_NEAR(found[0].bytes_per_second, 24e6, 3e6);
  EXPECT_NEAR(found[0].share, 0.4, 0.1);
  EXPECT_NEAR(found[0].again, 0.03, 1e-9);
  traffic_[2].rate = 1e9;
  pass(40);
  EXPECT_TRUE(links_.findings().empty()) << "it is cleared";
}

TEST_F(LinksTest, OfTwoLinksTheSlowerOneIsFound) {
  begin(2);
  traffic_[1].rate = 20e6;
  pass(40);
  const std::vector<LinkFinding> found = links_.findings();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].from, 11);
}

TEST_F(LinksTest, ALinkThatCarriesMoreIsNotSlower) {
  begin(4);
  traffic_[1].bytes = 50e6;
  pass(60);
  EXPECT_TRUE(links_.findings().empty());
}

TEST_F(LinksTest, ASlowLinkThatCostsLittleIsLetBe) {
  begin(4);
  traffic_[1] = {.bytes = 500e3, .rate = 20e6};  // 5 % of the time
  pass(60);
  EXPECT_TRUE(links_.findings().empty());
}

TEST_F(LinksTest, LinksThatAreSlowTogetherAreNot) {
  begin(4);
  for (Traffic& each : traffic_) each.rate = 20e6;
  pass(60);
  EXPECT_TRUE(links_.findings().empty());
}

TEST_F(LinksTest, AMomentIsNoFinding) {
  begin(4);
  pass(20);
  for (int i = 0; i < 10; ++i) {
    traffic_[0].rate = 20e6;
    pass(1);
    traffic_[0].rate = 1e9;
    pass(9);
  }
  EXPECT_TRUE(links_.findings().empty());
}

// Member 1's packets to member 0 are late. Member 0 waits for them, and acknowledges late what members 2 and
// 3 have sent: in two of three rounds their rates fall, and sooner than the rate of the link that is slow.
TEST_F(LinksTest, OfLinksThatOneMemberReadsTheSlowestAloneIsFound) {
  begin(4);
  std::optional<LinkFinding> found;
  const auto pass_round = [&](int round, double late, double slow) {
    pass_mesh([&](int from, int to) {
      const bool waits = to == 0 && (round + from) % 3 != 0;
      return Traffic{.rate = to == 0 && from == 1 ? slow : waits ? late : 1e9};
    });
    const auto findings = links_.findings();
    EXPECT_LE(findings.size(), 1U);
    if (!findings.empty()) {
      EXPECT_EQ(findings[0].from, 11);
      EXPECT_EQ(findings[0].to, 10);
      found = findings[0];
    }
  };
  for (int round = 0; round < 20; ++round) pass_round(round, 1e9, 1e9);
  for (int round = 0; round < 4; ++round) pass_round(round, 20e6, 12e6);
  for (int round = 0; round < 40; ++round) pass_round(round, 20e6, 15e6);
  EXPECT_TRUE(found);
}

// A link that moves little takes long for each byte, and costs nothing.
TEST_F(LinksTest, ALinkThatCostsLittleHidesNoSlowOneIntoTheSameMember) {
  begin(4);
  for (int round = 0; round < 60; ++round) {
    pass_mesh([&](int from, int to) {
      const bool small = to == 0 && from == 1, slow = to == 0 && from == 2;
      return Traffic{.bytes = small ? 200e3 : 5e6,
                     .rate = round < 20 ? 1e9
                             : small    ? 10e6
                             : slow     ? 20e6
                                        : 1e9};
    });
  }
  const auto found = links_.findings();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].from, 12);
}

TEST_F(LinksTest, CountsThatGoBackOrNameNobodyAreLetBe) {
  begin(3);
  pass(10);
  counts_[0] = {};
  const LinkCount nobody{.to = 7, .bytes = 1 << 30, .rate = 1};
  const LinkCount itself{.to = 1, .bytes = 1 << 30, .rate = 1};
  for (int i = 0; i < 40; ++i) {
    links_.add(1, at_ + milliseconds(i), std::span(&nobody, 1));
    links_.add(1, at_ + milliseconds(i), std::span(&itself, 1));
    links_.add(9, at_, std::span(&itself, 1));
  }
  at_ += std::chrono::seconds(1);
  pass(20);
  EXPECT_TRUE(links_.findings().empty());
}

}  // namespace
}  // namespace paceline::stragglers

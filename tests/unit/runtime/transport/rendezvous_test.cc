// Members that meet, and strangers that must not get in.

#include "runtime/transport/rendezvous.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>

#include "base/hex.h"
#include "base/random.h"
#include "tests/support/counting_clock.h"
#include "tests/support/no_descriptors.h"

namespace paceline::transport {
namespace {

struct End {
  std::string local;
  std::string tcp;
  std::unique_ptr<Rendezvous> point;
};

enum class Way { kLocal, kTcp, kTls };

class RendezvousTest : public ::testing::TestWithParam<Way> {
 protected:
  bool local() const { return GetParam() == Way::kLocal; }

  End make_end() {
    End end;
    end.local = "paceline-test-" + hex(random_bytes(8));
    auto tcp = listen_tcp("127.0.0.1");
    auto unix_listener = listen_local(end.local);
    EXPECT_TRUE(tcp.ok() && unix_listener.ok());
    end.tcp = "127.0.0.1:" + std::to_string(tcp->port);
    auto point = Rendezvous::make(std::move(tcp->fd), *std::move(unix_listener), clock_);
    EXPECT_TRUE(point.ok());
    end.point = *std::move(point);
    return end;
  }

  // Rank `rank` of two, towards the other at `address`.
  RendezvousPlan plan(int rank, const End& other, std::uint64_t generation = 5) const {
    RendezvousPlan plan;
    plan.generation = Generation{generation};
    plan.rank = rank;
    plan.world = 2;
    plan.key.fill(1);
    plan.local = local();
    plan.encrypted = GetParam() == Way::kTls;
    plan.channels = 2;
    plan.peers = {{1 - rank, "worker-" + std::to_string(1 - rank), {local() ? other.local : other.tcp}}};
    return plan;
  }
  Deadline in(int ms) const { return Deadline::after(clock_.now(), std::chrono::milliseconds(ms)); }
  absl::StatusOr<UniqueFd> dial(const End& end) {
    return local() ? connect_local(end.local, clock_, in(5000)) : connect_tcp(end.tcp, clock_, in(5000));
  }

  // The two ends of one connection, with nothing else in it, which is as the meeting was asked for.
  void check_joined(const Wire& one, const Wire& other) {
    EXPECT_EQ(one.is_encrypted(), GetParam() == Way::kTls);
    const std::byte word[] = {std::byte{9}};
    ASSERT_TRUE(one.send_short(word).ok());
    MessageReader reader(1);
    ASSERT_TRUE(wait_for(other.get(), 1, clock_, in(5000)).ok());
    EXPECT_TRUE(*other.read_some(reader));
    EXPECT_EQ(reader.bytes()[0], word[0]);
  }

  // Two ends, and what they have met.
  class Pair {
   public:
    explicit Pair(RendezvousTest& test) : test_(test), ends_{test.make_end(), test.make_end()} {}
    void meet(std::uint64_t generation, std::vector<MetPeer> first = {}, std::vector<MetPeer> second = {}) {
      std::jthread other([&] {
        met_[1] =
            ends_[1].point->meet(test_.plan(1, ends_[0], generation), test_.in(30'000), std::move(second));
      });
      met_[0] = ends_[0].point->meet(test_.plan(0, ends_[1], generation), test_.in(30'000), std::move(first));
    }
    bool met() const { return met_[0].ok() && met_[1].ok(); }
    End& end(int rank) { return ends_[rank]; }
    const MetPeer& link(int rank) const { return met_[rank]->at(0); }
    const Wire& channel(int rank, std::size_t number) const { return link(rank).channels[number]; }
    std::vector<MetPeer> take(int rank) { return *std::exchange(met_[rank], std::vector<MetPeer>()); }
    void check_joined() { test_.check_joined(channel(0, 1), channel(1, 1)); }

   private:
    RendezvousTest& test_;
    End ends_[2];
    absl::StatusOr<std::vector<MetPeer>> met_[2];
  };

  CountingClock clock_;
};

TEST_P(RendezvousTest, TwoMeetInSpiteOfStrangers) {
  End a = make_end(), b = make_end();
  std::vector<UniqueFd> strangers;
  for (int i = 0; i < 20; ++i) {
    auto fd = dial(a);
    ASSERT_TRUE(fd.ok()) << fd.status();
    const std::vector<std::byte> garbage(static_cast<std::size_t>(i * 13), std::byte{0xc3});
    ASSERT_TRUE(garbage.empty() || send_short(fd->get(), garbage).ok());
    if (i % 3 != 0) strangers.push_back(*std::move(fd));  // some hang up, some only stay
  }
  absl::StatusOr<std::vector<MetPeer>> met_a, met_b;
  {
    std::jthread first([&] { met_a = a.point->meet(plan(0, b), in(30'000)); });
    std::jthread second([&] { met_b = b.point->meet(plan(1, a), in(30'000)); });
  }
  ASSERT_TRUE(met_a.ok()) << met_a.status();
  ASSERT_TRUE(met_b.ok()) << met_b.status();
  EXPECT_EQ(met_a->at(0).rank, 1);
  EXPECT_EQ(met_a->at(0).channels.size(), 2u);
  EXPECT_FALSE(a.point->refused().empty());
  check_joined(met_a->at(0).channels[1], met_b->at(0).channels[1]);
}

TEST_P(RendezvousTest, KeptConnectionsCarryTheNextView) {
  Pair pair(*this);
  pair.meet(5);
  ASSERT_TRUE(pair.met());
  const int before[] = {pair.channel(0, 1).get(), pair.channel(1, 1).get()};
  pair.meet(6, pair.take(0), pair.take(1));
  ASSERT_TRUE(pair.met());
  for (const int rank : {0, 1}) {
    EXPECT_TRUE(pair.link(rank).kept);
    EXPECT_EQ(pair.link(rank).channels.size(), 2u);
    EXPECT_EQ(pair.channel(rank, 1).get(), before[rank]);
  }
  pair.check_joined();
}

TEST_P(RendezvousTest, PairOfWhichOneEndHasKeptItsConnectionsMakesNewOnes) {
  for (const int keeps : {0, 1}) {
    Pair pair(*this);
    pair.meet(5);
    ASSERT_TRUE(pair.met());
    std::vector<MetPeer> kept[2];
    kept[keeps] = pair.take(keeps);
    pair.take(1 - keeps).clear();
    pair.meet(6, std::move(kept[0]), std::move(kept[1]));
    ASSERT_TRUE(pair.met());
    EXPECT_FALSE(pair.link(0).kept || pair.link(1).kept);
    pair.check_joined();
  }
}

TEST_P(RendezvousTest, ConnectionsWithBytesOfTheViewBeforeAreMadeAnew) {
  const std::vector<std::byte> old(kMessageBytes, std::byte{0x5a});
  for (const int sender : {0, 1}) {
    for (const std::size_t channel : {0u, 1u}) {
      Pair pair(*this);
      pair.meet(5);
      ASSERT_TRUE(pair.met());
      ASSERT_TRUE(send_short(pair.channel(sender, channel).get(), old).ok());
      pair.meet(6, pair.take(0), pair.take(1));
      ASSERT_TRUE(pair.met()) << "sender " << sender << ", channel " << channel;
      EXPECT_FALSE(pair.link(0).kept || pair.link(1).kept);
      pair.check_joined();
    }
  }
}

TEST_P(RendezvousTest, ConnectionIsNotKeptForTwoViewsAtATime) {
  Pair pair(*this);
  pair.meet(5);
  ASSERT_TRUE(pair.met());
  absl::Status early;
  {
    std::jthread later([&, kept = pair.take(1)]() mutable {
      early = pair.end(1).point->meet(plan(1, pair.end(0), 7), in(30'000), std::move(kept)).status();
    });
    const auto met = pair.end(0).point->meet(plan(0, pair.end(1), 6), in(200), pair.take(0));
    EXPECT_EQ(met.status().code(), absl::StatusCode::kDeadlineExceeded) << met.status();
    pair.end(1).point->cancel(Generation{7});
  }
  EXPECT_EQ(early.code(), absl::StatusCode::kCancelled) << early;
}

TEST_P(RendezvousTest, ConnectionIsNotKeptByAnotherKey) {
  Pair pair(*this);
  pair.meet(5);
  ASSERT_TRUE(pair.met());
  absl::Status second;
  {
    std::jthread other([&, kept = pair.take(1)]() mutable {
      RendezvousPlan wrong = plan(1, pair.end(0), 6);
      wrong.key.fill(2);
      second = pair.end(1).point->meet(wrong, in(30'000), std::move(kept)).status();
    });
    EXPECT_FALSE(pair.end(0).point->meet(plan(0, pair.end(1), 6), in(300), pair.take(0)).ok());
  }
  EXPECT_EQ(second.code(), absl::StatusCode::kPermissionDenied) << second;
}

TEST_P(RendezvousTest, ConnectionsOfAnotherNumberAreMadeAnew) {
  Pair pair(*this);
  pair.meet(5);
  ASSERT_TRUE(pair.met());
  std::vector<MetPeer> first = pair.take(0);
  first[0].channels.resize(1);
  pair.meet(6, std::move(first), pair.take(1));
  ASSERT_TRUE(pair.met());
  EXPECT_FALSE(pair.link(0).kept || pair.link(1).kept);
}

TEST_P(RendezvousTest, AnotherKeyIsRefusedAtBothEnds) {
  End a = make_end(), b = make_end();
  absl::Status status_a, status_b;
  {
    std::jthread first([&] { status_a = a.point->meet(plan(0, b), in(300)).status(); });
    std::jthread second([&] {
      RendezvousPlan wrong = plan(1, a);
      wrong.key.fill(2);
      status_b = b.point->meet(wrong, in(5000)).status();
    });
  }
  EXPECT_EQ(status_b.code(), absl::StatusCode::kPermissionDenied) << status_b;
  EXPECT_FALSE(status_a.ok());
  EXPECT_NE(std::string(status_a.message()).find("worker-1"), std::string::npos) << status_a;
}

TEST_P(RendezvousTest, AnOldGenerationIsRefused) {
  End a = make_end(), b = make_end();
  absl::Status status_a, status_b;
  {
    std::jthread first([&] { status_a = a.point->meet(plan(0, b, 6), in(300)).status(); });
    std::jthread second([&] { status_b = b.point->meet(plan(1, a, 5), in(5000)).status(); });
  }
  EXPECT_EQ(status_b.code(), absl::StatusCode::kUnavailable) << status_b;
  EXPECT_EQ(status_a.code(), absl::StatusCode::kDeadlineExceeded) << status_a;
}

TEST_P(RendezvousTest, AnEarlyPeerIsKeptForItsGeneration) {
  End a = make_end(), b = make_end();
  absl::StatusOr<std::vector<MetPeer>> met_a, met_b;
  {
    std::jthread second([&] { met_b = b.point->meet(plan(1, a, 6), in(30'000)); });
    EXPECT_EQ(a.point->meet(plan(0, b, 5), in(200)).status().code(), absl::StatusCode::kDeadlineExceeded);
    met_a = a.point->meet(plan(0, b, 6), in(30'000));
  }
  EXPECT_TRUE(met_a.ok()) << met_a.status();
  EXPECT_TRUE(met_b.ok()) << met_b.status();
}

// A newcomer's group has the generation of the view that gives it the state.
TEST_P(RendezvousTest, AnEarlyPeerIsNotTurnedAwayByAMeetingThatWaitsForNobody) {
  End a = make_end(), b = make_end(), newcomer = make_end();
  absl::StatusOr<std::vector<MetPeer>> met_a, met_b, met_newcomer;
  const auto of_three = [](RendezvousPlan plan) {
    plan.world = 3;
    return plan;
  };
  {
    std::jthread second([&] { met_b = b.point->meet(plan(1, a, 6), in(30'000)); });
    EXPECT_EQ(a.point->meet(plan(0, b, 5), in(200)).status().code(), absl::StatusCode::kDeadlineExceeded);
    std::jthread third([&] { met_newcomer = newcomer.point->meet(of_three(plan(0, a, 6)), in(30'000)); });
    const auto given = a.point->meet(of_three(plan(1, newcomer, 6)), in(30'000));
    EXPECT_TRUE(given.ok()) << given.status();
    met_a = a.point->meet(plan(0, b, 6), in(30'000));
  }
  EXPECT_TRUE(met_a.ok()) << met_a.status();
  EXPECT_TRUE(met_b.ok()) << met_b.status();
  EXPECT_TRUE(met_newcomer.ok()) << met_newcomer.status();
}

TEST_P(RendezvousTest, AbsentPeerIsUnavailable) {
  End a = make_end(), b = make_end();
  a.point.reset();
  EXPECT_EQ(b.point->meet(plan(1, a), in(5000)).status().code(), absl::StatusCode::kUnavailable);
}

TEST_P(RendezvousTest, CancelEndsBothKindsOfWaitForGood) {
  End a = make_end(), b = make_end();
  absl::Status accepting, connecting;
  {
    // Rank 0 waits for a connection; rank 1 is connected to a listener behind which nobody answers.
    std::jthread first([&] { accepting = a.point->meet(plan(0, b), in(60'000)).status(); });
    End silent = make_end();
    std::jthread second([&] { connecting = b.point->meet(plan(1, silent), in(60'000)).status(); });
    a.point->cancel(kLastGeneration);
    b.point->cancel(kLastGeneration);
    first.join();
    second.join();
  }
  EXPECT_EQ(accepting.code(), absl::StatusCode::kCancelled) << accepting;
  EXPECT_EQ(connecting.code(), absl::StatusCode::kCancelled) << connecting;
  EXPECT_EQ(a.point->meet(plan(0, b), in(60'000)).status().code(), absl::StatusCode::kCancelled);
}

TEST_P(RendezvousTest, MissingDescriptorsEndTheMeeting) {
  End a = make_end(), b = make_end();
  const auto waiting = dial(a);
  ASSERT_TRUE(waiting.ok()) << waiting.status();
  const NoDescriptors none;
  EXPECT_EQ(a.point->meet(plan(0, b), in(60'000)).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_P(RendezvousTest, AHouseFullOfStrangersIsNoReasonToSpin) {
  End a = make_end(), b = make_end();
  std::vector<UniqueFd> strangers;
  for (std::size_t i = 0; i < Rendezvous::kMaxHalfOpen + 6; ++i) {
    auto fd = dial(a);
    ASSERT_TRUE(fd.ok()) << fd.status();
    strangers.push_back(*std::move(fd));
  }
  const int before = clock_.count();
  EXPECT_EQ(a.point->meet(plan(0, b), in(300)).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_LE(clock_.count() - before, 20 * static_cast<int>(Rendezvous::kMaxHalfOpen));
}

std::string name_of_way(const ::testing::TestParamInfo<Way>& info) {
  constexpr const char* kNames[] = {"Local", "Tcp", "Tls"};
  return kNames[static_cast<int>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(Sockets, RendezvousTest, ::testing::Values(Way::kLocal, Way::kTcp, Way::kTls),
                         name_of_way);

}  // namespace
}  // namespace paceline::transport

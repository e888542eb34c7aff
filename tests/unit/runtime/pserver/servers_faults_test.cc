// Members that die, and peers that send what makes no sense.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <set>

#include "base/guarded.h"
#include "base/rng.h"
#include "runtime/collective/fault.h"
#include "runtime/pserver/frame.h"
#include "servers_world.h"
#include "tests/support/tcp_limits.h"

namespace paceline::pserver {
namespace {

class ServersFaults : public ServersTest {
 protected:
  // Of two workers who don't wait for each other the second is the test.
  WorldSpec spec_with_stranger(int servers) const {
    WorldSpec spec = this->spec({.servers = servers, .mode = asynchronous(), .strangers = {1}});
    return spec;
  }
};
INSTANTIATE_TEST_SUITE_P(Media, ServersFaults, media(), medium_name);

TEST_P(ServersFaults, ALostServerIsNamedByAll) {
  WorldSpec spec = this->spec({.servers = 3});
  ServersWorld world(spec, 0);
  for (int w = 0; w < 2; ++w) ASSERT_TRUE(world.client(w).wait_turn(world.deadline()).ok());
  ASSERT_TRUE(world.push_and_commit(0).ok());
  std::jthread waits([&] {
    const auto turn = world.client(0).wait_turn(world.deadline());
    EXPECT_EQ(collective::faulty_rank(turn.status()), 3) << turn.status();
    EXPECT_NE(turn.status().message().find("ps-1"), std::string::npos) << turn.status();
    EXPECT_EQ(world.client(0).closed(), turn.status());
  });
  world.drop_server(1);
  waits.join();
  (void)world.push_and_commit(1);
  const auto turn = world.client(1).wait_turn(world.deadline());
  EXPECT_EQ(collective::faulty_rank(turn.status()), 3) << turn.status();
}

TEST_P(ServersFaults, TheOthersGoOnWithoutALostWorker) {
  for (const auto synchronization :
       {v1::ParameterServerSpec::ASYNCHRONOUS, v1::ParameterServerSpec::BOUNDED_STALENESS,
        v1::ParameterServerSpec::SYNCHRONOUS}) {
    SCOPED_TRACE(static_cast<int>(synchronization));
    WorldSpec spec = this->spec({.workers = 3, .optimizer = sgd(1), .total_steps = 6});
    spec.mode.set_synchronization(synchronization);
    std::int64_t parts = spec.workers;
    if (synchronization == v1::ParameterServerSpec::SYNCHRONOUS) parts = 2;  // one may be spared
    spec.mode.set_units_per_step(parts);
    spec.mode.set_gradients_per_step(parts);
    ServersWorld world(spec, 0);
    std::promise<void> goes;
    const std::shared_future<void> gone = goes.get_future().share();
    // Until worker 1 dies nobody commits a turn before all have it. Else the others could have been through
    // two steps before worker 1 commits its first turn: its second gradient would wait for one of theirs, and
    // they for its death.
    Guarded<std::array<int, 3>> have_turn;
    const auto all_have_turn = [&](std::size_t k) {
      ++(*have_turn.lock())[k];
      bool held = false;
      have_turn.lock_when([&](const auto& n) { return n[k] == 3; }, std::chrono::seconds(30), &held);
      return held;
    };
    world.each_worker([&](int w) {
      for (std::size_t k = 0;; ++k) {
        const TurnResult turn = world.turn(w);
        if (turn.finished) break;
        if (k < 3) {
          ASSERT_TRUE(all_have_turn(k)) << k;
        }
        if (w == 1 && k == 2) {  // without a word, with a gradient that is half pushed
          ASSERT_TRUE(world.client(1).push(0, 500).ok());
          world.drop_client(1);
          goes.set_value();
          return;
        }
        // Else the others may have done everything before it has its third turn.
        if (k == 2) {
          ASSERT_EQ(gone.wait_for(std::chrono::seconds(30)), std::future_status::ready);
        }
        ASSERT_TRUE(world.push_same(w, -1.0f).ok());
      }
      // All units count once, whoever computed them.
      const auto units = static_cast<float>(spec.total_steps * parts);
      EXPECT_EQ(std::count(world.weights(w).begin(), world.weights(w).end(), units),
                static_cast<std::ptrdiff_t>(spec.elements))
          << world.weights(w)[0];
    });
    EXPECT_TRUE(world.wait_for_loss(0, 1));
    EXPECT_TRUE(world.wait_for_loss(1, 1));
    world.end_well();
  }
}

// The last state is that of a whole step: a stopped run goes on to the same bits as one that nobody stopped.
TEST_P(ServersFaults, LostWorkersPartStaysOpenInTheSynchronousMode) {
  WorldSpec spec = this->spec({.workers = 3, .optimizer = sgd(1)});
  ServersWorld world(spec, 0);
  for (int w = 0; w < 3; ++w) ASSERT_TRUE(world.client(w).wait_turn(world.deadline()).ok());
  for (const int w : {0, 2}) ASSERT_TRUE(world.push_and_commit(w).ok());
  world.drop_client(1);
  ASSERT_TRUE(world.wait_for_loss(0, 1));
  world.client(0).interrupt();
  EXPECT_EQ(world.client(0).wait_turn(world.deadline()).status().code(), absl::StatusCode::kCancelled);
  ASSERT_TRUE(world.client(0).begin_snapshot().ok());
  ASSERT_TRUE(world.client(0).flush(world.deadline()).ok());
  Floats weights(spec.elements, 1);
  const auto info = world.client(0).take_snapshot(weights, {}, world.deadline());
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->step, 0);
  EXPECT_EQ(std::count(weights.begin(), weights.end(), 0.0F), static_cast<std::ptrdiff_t>(spec.elements));
}

// In random modes, with random cuts, and with workers that die in the middle of a push: unit u counts u + 1
// in every element, once, on all slices of all servers at the same version.
TEST_P(ServersFaults, EveryUnitCountsOnceOnEverySlice) {
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, 3);
    WorldSpec spec = this->spec();
    const auto random = make_random(spec, seed, rng);
    spec.elements = 1 + rng.below(9000);
    spec.slice_bytes = 64 + rng.below(8000);
    ServersWorld world(spec, 0);
    const std::size_t n = spec.elements;
    world.each_worker([&](int w) {
      Rng mine(seed, 700 + static_cast<std::uint64_t>(w));
      for (int k = 0;; ++k) {
        const TurnResult turn = world.turn(w);
        const float value = world.weights(w)[0];
        ASSERT_EQ(std::count(world.weights(w).begin(), world.weights(w).end(), value),
                  static_cast<std::ptrdiff_t>(n))
            << "version " << turn.version << " is not whole";
        if (turn.finished) {
          const auto units = static_cast<float>(random.units);
          EXPECT_EQ(value, units * (units + 1) / 2);
          return;
        }
        std::fill(world.gradient(w).begin(), world.gradient(w).end(), -static_cast<float>(turn.unit + 1));
        for (std::size_t end = n; end > 0;) {
          const std::size_t begin = end - std::min<std::size_t>(end, 1 + mine.below(n));
          if (w == random.victim && w > 0 && k >= random.turns && mine.below(2) == 0)
            return world.drop_client(w);
          ASSERT_TRUE(world.client(w).push(begin, end).ok());
          end = begin;
        }
        ASSERT_TRUE(world.client(w).commit({.loss_sum = 1, .samples = 1}).ok());
      }
    });
    world.end_well();
  }
}

TEST_P(ServersFaults, GarbageLosesWhoSentItAndNobodyElse) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    const WorldSpec spec = spec_with_stranger(2);
    ServersWorld world(spec, 0);
    Rng rng(seed, 0);
    std::vector<std::byte> garbage(64 + rng.below(500));
    for (std::byte& b : garbage) b = static_cast<std::byte>(rng.below(256));
    for (auto& link : world.stranger(1)) {
      const int fd = link.sockets[seed % 2].get();
      ASSERT_EQ(::send(fd, garbage.data(), garbage.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(garbage.size()));
    }
    absl::Status why;
    ASSERT_TRUE(world.wait_for_loss(0, 1, &why));
    EXPECT_EQ(why.code(), absl::StatusCode::kInvalidArgument) << why;
    EXPECT_NE(why.message().find("worker-1"), std::string::npos) << why;
    ASSERT_TRUE(world.wait_for_loss(1, 1));
    while (true) {
      const TurnResult turn = world.turn(0);
      if (turn.finished) break;
      ASSERT_TRUE(world.push_and_commit(0).ok());
    }
  }
}

// Frames that are well made, from a member that is one, and make no sense.
TEST_P(ServersFaults, FramesThatMakeNoSenseLoseTheirSender) {
  struct Case {
    const char* name;
    FrameHeader header;
    std::size_t message = 0;
  };
  const Case cases[] = {
      {"commit without a turn", {.kind = FrameKind::kCommit, .number = 3}, 17},
      {"gradient outside", {.kind = FrameKind::kGradient, .begin = 1u << 30}, 64},
      {"gradient before it joined", {.kind = FrameKind::kGradient}, 64},
      {"state of another", {.kind = FrameKind::kState}, 64},
      {"what to begin with", {.kind = FrameKind::kBegin}, 0},
      {"a short join", {.kind = FrameKind::kJoin}, 3},
      {"a server's frame", {.kind = FrameKind::kLog}, 0},
      {"a snapshot", {.kind = FrameKind::kSnapshot}, 0},
      {"another generation", {.kind = FrameKind::kLeave, .generation = Generation{4}}, 0},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const WorldSpec spec = spec_with_stranger(1);
    ServersWorld world(spec, 0);
    FrameHeader header = c.header;
    header.rank = 1;
    header.length = c.message;
    if (header.generation.value == 0) header.generation = Generation{3};
    std::vector<std::byte> bytes(kFrameBytes + c.message);
    encode(header, std::span<std::byte, kFrameBytes>(bytes.data(), kFrameBytes));
    ASSERT_EQ(::send(world.stranger(1)[0].sockets[0].get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    absl::Status why;
    ASSERT_TRUE(world.wait_for_loss(0, 1, &why));
    EXPECT_TRUE(absl::IsInvalidArgument(why) || absl::IsFailedPrecondition(why)) << why;
    ASSERT_TRUE(world.client(0).wait_turn(world.deadline()).ok());
  }
}

// A Join as docs/protocol.md has it: elements, slice bytes, shared, gradient, reads, tables.
std::vector<std::byte> join_of(const WorldSpec& spec, std::size_t elements) {
  std::vector<std::byte> message;
  const auto put = [&](std::uint64_t value, int bytes) {
    for (int k = 0; k < bytes; ++k) message.push_back(static_cast<std::byte>(value >> (8 * k)));
  };
  put(elements, 8);
  put(spec.slice_bytes, 8);
  put(spec.medium == Medium::kSharedMemory ? 1 : 0, 1);
  put(0, 8);
  put(0, 8);
  put(0, 4);
  std::vector<std::byte> bytes(kFrameBytes);
  encode({.kind = FrameKind::kJoin, .generation = Generation{3}, .rank = 1, .length = message.size()},
         std::span<std::byte, kFrameBytes>(bytes.data(), kFrameBytes));
  bytes.insert(bytes.end(), message.begin(), message.end());
  return bytes;
}

// The servers hear of a worker in any order: one may give it a turn before it knows it.
TEST_P(ServersFaults, AJoinThatIsLateAtOneServerHoldsNobodyUp) {
  const WorldSpec spec = spec_with_stranger(2);
  ServersWorld world(spec);
  const std::vector<std::byte> join = join_of(spec, spec.elements);
  const int socket = world.stranger(1)[0].sockets[0].get();
  ASSERT_EQ(::send(socket, join.data(), join.size(), MSG_NOSIGNAL), static_cast<ssize_t>(join.size()));
  ASSERT_TRUE(world.begin(Floats(spec.elements, 0)).ok());
  pollfd turn{socket, POLLIN, 0};  // its Turn is there
  ASSERT_EQ(::poll(&turn, 1, 30'000), 1);
  for (int k = 0; k < 3; ++k) {
    const TurnResult given = world.turn(0);
    EXPECT_EQ(given.version, k);
    ASSERT_TRUE(world.push_and_commit(0).ok());
  }
}

TEST_P(ServersFaults, AWorkerWithAnotherModelIsTold) {
  const WorldSpec spec = spec_with_stranger(1);
  ServersWorld world(spec);
  const std::vector<std::byte> bytes = join_of(spec, 999);
  ASSERT_EQ(::send(world.stranger(1)[0].sockets[0].get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
  ASSERT_TRUE(world.begin(Floats(spec.elements, 0)).ok());
  absl::Status why;
  ASSERT_TRUE(world.wait_for_loss(0, 1, &why));
  EXPECT_EQ(why.code(), absl::StatusCode::kFailedPrecondition) << why;
  EXPECT_NE(why.message().find("999"), std::string::npos) << why;
}

// ---- connections of snapshots ----

// As after a timeout, too: an end that the other process did not make.
void cut(transport::Wire& socket) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ASSERT_EQ(::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
  socket.reset();
}

WorldSpec tcp_spec() {
  WorldSpec spec;
  spec.medium = Medium::kTcp;
  spec.optimizer = sgd(0.5);
  spec.mode.set_synchronization(v1::ParameterServerSpec::ASYNCHRONOUS);
  return spec;
}

void say_leave(int socket) {
  std::array<std::byte, kFrameBytes> leave{};
  encode({.kind = FrameKind::kLeave, .generation = Generation{3}, .rank = 1}, leave);
  ASSERT_EQ(::send(socket, leave.data(), leave.size(), MSG_NOSIGNAL), static_cast<ssize_t>(leave.size()));
}

// Its host has vanished: on the connection of requests nothing says so while weights are on their way.
TEST(ServersCutLinks, AWorkerWhoseConnectionOfSnapshotsIsCutIsLost) {
  WorldSpec spec = tcp_spec();
  spec.strangers = {1};
  ServersWorld world(spec);
  for (collective::PeerLink& link : world.stranger(1)) ASSERT_NO_FATAL_FAILURE(cut(link.sockets[1]));
  for (int s = 0; s < 2; ++s) {
    absl::Status why;
    ASSERT_TRUE(world.wait_for_loss(s, 1, &why)) << s;
    EXPECT_EQ(why.code(), absl::StatusCode::kUnavailable) << why;
    EXPECT_NE(why.message().find("worker-1"), std::string::npos) << why;
  }
}

TEST(ServersCutLinks, AWorkerThatHadLeftIsNotLost) {
  for (const bool closes : {false, true}) {
    SCOPED_TRACE(closes);
    std::atomic<int> losses = 0;
    WorldSpec spec = tcp_spec();
    spec.strangers = {1};
    spec.when_lost = [&](int) { ++losses; };
    ServersWorld world(spec);
    for (collective::PeerLink& link : world.stranger(1)) {
      if (closes) link.sockets[1].reset();
      ASSERT_NO_FATAL_FAILURE(say_leave(link.sockets[0].get()));
      if (!closes) {
        ASSERT_NO_FATAL_FAILURE(cut(link.sockets[1]));
      }
    }
    ASSERT_TRUE(world.begin(Floats(spec.elements, 0)).ok());
    world.end_well();
    EXPECT_EQ(losses, 0);
  }
}

// While servers have something to say to each other only what is not answered tells that a host has vanished.
TEST(ServersCutLinks, BetweenServersWhatIsNotAnsweredEndsTheLink) {
  WorldSpec spec = tcp_spec();
  spec.workers = 1;
  const ServersWorld world(spec);
  EXPECT_EQ(unanswered_limits(), (std::multiset<int>{0, 0, 0, 0, 0, 0, 0, 0, 10'000, 10'000}))
      << "requests and snapshots of a worker and two servers, and what those have, of both ends";
}

TEST(ServersCutLinks, AServerWhoseConnectionOfSnapshotsIsCutIsNamed) {
  WorldSpec spec = tcp_spec();
  spec.strangers = {3};
  ServersWorld world(spec, 0);
  collective::PeerLink& of_worker_1 = world.stranger(3)[1];
  ASSERT_EQ(of_worker_1.rank, 1);
  ASSERT_NO_FATAL_FAILURE(cut(of_worker_1.sockets[1]));
  const absl::Status late = world.client(1).wait_turn(world.deadline()).status();
  expect_fault(late, absl::StatusCode::kUnavailable, 3, "ps-1): is gone: its connection for snapshots");
}

}  // namespace
}  // namespace paceline::pserver

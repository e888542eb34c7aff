// Links between hosts, with somebody on the way who hears all.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <list>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/guarded.h"
#include "base/unique_fd.h"
#include "conformance_world.h"
#include "runtime/collective/fabric.h"
#include "runtime/transport/socket.h"

namespace paceline::collective {
namespace {

using namespace std::chrono_literals;

constexpr int kLookMs = 20;  // at the stop

// Takes connections at a port of its own, and carries what comes over them from and to another one.
class Eavesdropper {
 public:
  Eavesdropper(std::string target, const Clock& clock) : target_(std::move(target)), clock_(clock) {
    auto listener = transport::listen_tcp("127.0.0.1");
    EXPECT_TRUE(listener.ok()) << listener.status();
    listener_ = std::move(listener->fd);
    address_ = "127.0.0.1:" + std::to_string(listener->port);
    thread_ = std::jthread([this](const std::stop_token& stop) { carry(stop); });
  }
  const std::string& address() const { return address_; }
  std::string heard() { return *heard_.lock(); }

 private:
  struct Pair {
    UniqueFd ends[2];
  };
  void carry(const std::stop_token& stop) {
    std::list<Pair> pairs;
    while (!stop.stop_requested()) {
      std::vector<pollfd> entries{{listener_.get(), POLLIN, 0}};
      for (const Pair& pair : pairs) {
        for (const UniqueFd& end : pair.ends) entries.push_back({end.get(), POLLIN, 0});
      }
      ::poll(entries.data(), entries.size(), kLookMs);
      for (Pair& pair : pairs) {
        for (const int from : {0, 1}) pass(pair, from);
      }
      if (auto caller = transport::accept_one(listener_.get()); caller.ok() && caller->valid()) {
        auto called = transport::connect_tcp(target_, clock_, Deadline::after(clock_.now(), 30s));
        if (called.ok()) pairs.push_back({{*std::move(caller), *std::move(called)}});
      }
    }
  }
  void pass(Pair& pair, int from) {
    std::array<char, 64 << 10> bytes;
    if (!pair.ends[from].valid()) return;
    const ssize_t got = ::recv(pair.ends[from].get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got == 0) return pair.ends[0].reset(), pair.ends[1].reset();
    if (got < 0) return;
    heard_.lock()->append(bytes.data(), static_cast<std::size_t>(got));
    for (ssize_t sent = 0; sent < got;) {
      const ssize_t more = ::send(pair.ends[1 - from].get(), bytes.data() + sent,
                                  static_cast<std::size_t>(got - sent), MSG_NOSIGNAL);
      if (more > 0) sent += more;
      if (more < 0 && errno != EAGAIN) return;
    }
  }

  const std::string target_;
  const Clock& clock_;
  UniqueFd listener_;
  std::string address_;
  Guarded<std::string> heard_;
  std::jthread thread_;
};

class EncryptedLinksTest : public ::testing::Test {
 protected:
  static constexpr float kWeight = 1234.5678F;  // of each rank

  // The sum of two ranks' vectors; what somebody between them has heard meanwhile.
  std::string sum(bool encrypted) {
    std::unique_ptr<Fabric> fabrics[2];
    Group group;
    group.generation = Generation{1};
    group.transport = TransportKind::kTcp;
    group.encrypted = encrypted;
    group.key.fill(7);
    for (auto& each : fabrics) {
      auto fabric = Fabric::create({.arena_bytes = std::size_t{1} << 20}, clock_);
      EXPECT_TRUE(fabric.ok()) << fabric.status();
      each = *std::move(fabric);
      group.members.push_back({"worker", each->address()});
    }
    Eavesdropper between(group.members[0].address.tcp.at(0), clock_);
    group.members[0].address.tcp = {between.address()};  // rank 1 calls
    run_ranks(2, [&](int rank) {
      Group own = group;
      own.rank = rank;
      own.members[static_cast<std::size_t>(rank)].address = fabrics[rank]->address();
      const Deadline deadline = Deadline::after(clock_.now(), 60s);
      auto links = fabrics[rank]->connect(own, deadline);
      ASSERT_TRUE(links.ok()) << links.status();
      std::vector<float> numbers(300'000, kWeight);
      const absl::Status summed =
          (*links)->all_reduce(numbers.data(), numbers.size(), DType::kF32, ReduceOp::kSum, deadline);
      ASSERT_TRUE(summed.ok()) << summed;
      EXPECT_EQ(numbers, std::vector<float>(numbers.size(), 2 * kWeight));
    });
    return between.heard();
  }
  static bool shows(const std::string& heard, float weight) {
    std::string pattern;
    for (int i = 0; i < 4; ++i) pattern.append(reinterpret_cast<const char*>(&weight), sizeof(weight));
    return heard.find(pattern) != std::string::npos;
  }

  const SystemClock clock_{};
};

TEST_F(EncryptedLinksTest, GradientsAndFramesAreNotOnTheWire) {
  const std::string heard = sum(/*encrypted=*/true);
  EXPECT_GT(heard.size(), 2U * 300'000U * sizeof(float) / 2U) << "all of it went this way";
  EXPECT_FALSE(shows(heard, kWeight) || shows(heard, 2 * kWeight));
  EXPECT_EQ(heard.find("PLFR"), std::string::npos) << "no frame's header";
}

TEST_F(EncryptedLinksTest, EavesdropperHearsAllWithoutEncryption) {
  const std::string heard = sum(/*encrypted=*/false);
  EXPECT_TRUE(shows(heard, kWeight) || shows(heard, 2 * kWeight));
  EXPECT_NE(heard.find("PLFR"), std::string::npos);
}

}  // namespace
}  // namespace paceline::collective

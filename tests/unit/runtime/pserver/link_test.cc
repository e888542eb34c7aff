#include "runtime/pserver/link.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <optional>

namespace paceline::pserver {
namespace {

constexpr std::size_t kMessage = std::size_t{1} << 20;

class LinkTest : public ::testing::Test, public FrameReceiver {
 protected:
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(connect({})); }
  // With a key inside TLS.
  void connect(std::optional<transport::Key> key) {
    using transport::Side, transport::TlsSession;
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    UniqueFd from(ends[0]), to(ends[1]);
    std::unique_ptr<TlsSession> client, server;
    if (key) {
      client = *TlsSession::make(from.get(), Side::kClient, *key);
      server = *TlsSession::make(to.get(), Side::kServer, *key);
      for (bool done = false; !done;) {
        const bool first = *client->shake_hands();
        done = *server->shake_hands() && first;
      }
    }
    from_ = Link({std::move(from), std::move(client)}, 1, "rank 1 (worker-1)", Generation{3});
    to_ = Link({std::move(to), std::move(server)}, 0, "rank 0 (worker-0)", Generation{3});
  }
  // Message k is k in every byte; every third has a payload beside it that is not copied.
  void send(int k) {
    from_.send({.kind = FrameKind::kSavedRows, .rank = 0, .number = k},
               std::vector<std::byte>(kMessage, static_cast<std::byte>(k)));
    if (k % 3 == 0) from_.send_straight({.kind = FrameKind::kGradient, .rank = 0, .number = k}, straight_);
  }
  absl::StatusOr<std::span<std::byte>> place(Link&, const FrameHeader&, std::uint64_t at) override {
    return std::span(placed_).subspan(at);
  }
  absl::Status received(Link&, const FrameHeader& header, std::span<const std::byte> message) override {
    if (header.kind == FrameKind::kGradient) {
      EXPECT_EQ(placed_, straight_);
      std::fill(placed_.begin(), placed_.end(), std::byte{0});
      return absl::OkStatus();
    }
    EXPECT_EQ(header.number, next_);
    EXPECT_EQ(message.size(), kMessage);
    EXPECT_EQ(std::count(message.begin(), message.end(), static_cast<std::byte>(next_)),
              static_cast<std::ptrdiff_t>(kMessage));
    ++next_;
    return absl::OkStatus();
  }

  Link from_, to_;
  std::vector<std::byte> straight_ = std::vector<std::byte>(4096, std::byte{7}),
                         placed_ = std::vector<std::byte>(4096);
  int next_ = 0;
};

TEST_F(LinkTest, AStreamThatIsReadMayBeLongerThanTheQueue) {
  constexpr int kMessages = 120;  // nearly four times kMaxQueued
  int sent = 0;
  while (next_ < kMessages) {
    for (; sent < std::min(next_ + 3, kMessages); ++sent) send(sent);
    ASSERT_TRUE(from_.flush().ok());
    EXPECT_TRUE(sent == kMessages || !from_.drained()) << "else the queue runs empty, and all is forgotten";
    ASSERT_TRUE(to_.receive(*this, 64 << 10).ok());
  }
  EXPECT_TRUE(from_.drained());
}

TEST_F(LinkTest, ReadsEndWithTheBudgetAndInsideTlsWithTheRecord) {
  constexpr std::size_t kBudget = 10'000, kRecord = std::size_t{16} << 10;
  constexpr int kMessages = 4;
  for (const bool encrypted : {false, true}) {
    SCOPED_TRACE(encrypted);
    ASSERT_NO_FATAL_FAILURE(connect(encrypted ? std::optional(transport::Key{7}) : std::nullopt));
    next_ = 0;
    for (int k = 0; k < kMessages; ++k) send(k);
    while (next_ < kMessages) {
      ASSERT_TRUE(from_.flush().ok());
      const std::uint64_t before = to_.bytes_received();
      ASSERT_TRUE(to_.receive(*this, kBudget).ok());
      ASSERT_GT(to_.bytes_received(), before);
      ASSERT_LE(to_.bytes_received() - before, encrypted ? kBudget + kRecord : kBudget);
    }
  }
}

TEST_F(LinkTest, PeerThatDoesNotReadIsNamed) {
  absl::Status status;
  int sent = 0;
  for (; status.ok() && sent < 100; ++sent) {
    send(sent);
    status = from_.flush();
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_NE(status.message().find("rank 1 (worker-1): it does not read"), std::string::npos) << status;
  EXPECT_GT(static_cast<std::size_t>(sent) * (kMessage + kFrameBytes), Link::kMaxQueued);
  EXPECT_LT(sent, 40);
}

}  // namespace
}  // namespace paceline::pserver

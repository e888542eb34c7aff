#include "runtime/transport/peer_watch.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "base/guarded.h"

namespace paceline::transport {
namespace {

class PeerWatchTest : public ::testing::Test {
 protected:
  PeerWatchTest() {
    int pair[2];
    EXPECT_EQ(0, ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair));
    theirs_.reset(pair[1]);
    std::vector<PeerWatch::Peer> peers;
    peers.push_back({3, UniqueFd(pair[0])});
    auto watch = PeerWatch::make(std::move(peers),
                                 [this](const PeerEvent& event) { events_.lock()->push_back(event); });
    EXPECT_TRUE(watch.ok());
    watch_ = *std::move(watch);
    EXPECT_TRUE(watch_->begin().ok());
  }
  PeerEvent event() {
    auto locked =
        events_.lock_when([](const auto& events) { return !events.empty(); }, std::chrono::seconds(30));
    return locked->empty() ? PeerEvent{} : locked->front();
  }

  UniqueFd theirs_;
  Guarded<std::vector<PeerEvent>> events_;
  std::unique_ptr<PeerWatch> watch_;
};

TEST_F(PeerWatchTest, AnEndWithoutGoodbyeIsALoss) {
  theirs_.reset();
  EXPECT_EQ(event().kind, PeerEvent::Kind::kLost);
  EXPECT_EQ(event().rank, 3);
}

TEST_F(PeerWatchTest, AGoodbyeIsNot) {
  ASSERT_TRUE(send_short(theirs_.get(), encode(Notice{Notice::Type::kGoodbye, {}})).ok());
  theirs_.reset();
  EXPECT_EQ(event().kind, PeerEvent::Kind::kLeft);
}

TEST_F(PeerWatchTest, AnAbortBringsItsReason) {
  ASSERT_TRUE(send_short(theirs_.get(), encode(Notice{Notice::Type::kAbort,
                                                      {1, absl::StatusCode::kDeadlineExceeded, "late"}}))
                  .ok());
  EXPECT_EQ(event().kind, PeerEvent::Kind::kAborted);
  EXPECT_EQ(event().fault.blamed_rank, 1);
  EXPECT_EQ(event().fault.text, "late");
}

TEST_F(PeerWatchTest, TakenConnectionStaysOpenAndHearsNothing) {
  std::vector<PeerWatch::Peer> peers = watch_->take_peers();
  ASSERT_EQ(peers.size(), 1u);
  EXPECT_EQ(peers[0].rank, 3);
  const std::byte word[] = {std::byte{9}};
  ASSERT_TRUE(send_short(peers[0].control.get(), word).ok());
  MessageReader reader(1);
  EXPECT_TRUE(*reader.read_some(theirs_.get()));
  theirs_.reset();
  watch_.reset();
  EXPECT_TRUE(events_.lock()->empty());
}

TEST_F(PeerWatchTest, ConnectionOfWhichSomethingWasReadIsNotTaken) {
  ASSERT_TRUE(send_short(theirs_.get(), encode(Notice{Notice::Type::kGoodbye, {}})).ok());
  EXPECT_EQ(event().kind, PeerEvent::Kind::kLeft);
  EXPECT_TRUE(watch_->take_peers().empty());
}

TEST_F(PeerWatchTest, GarbageIsALoss) {
  const std::vector<std::byte> garbage(kNoticeBytes, std::byte{0x5a});
  ASSERT_TRUE(send_short(theirs_.get(), garbage).ok());
  EXPECT_EQ(event().kind, PeerEvent::Kind::kLost);
}

TEST_F(PeerWatchTest, SendsToThePeer) {
  watch_->send({Notice::Type::kAbort, {2, absl::StatusCode::kUnavailable, "x"}});
  std::array<std::byte, kNoticeBytes> bytes;
  ASSERT_EQ(::recv(theirs_.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  EXPECT_EQ(decode_notice(bytes)->fault.blamed_rank, 2);
}

}  // namespace
}  // namespace paceline::transport

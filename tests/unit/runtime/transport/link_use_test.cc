#include "runtime/transport/link_use.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "runtime/transport/socket.h"

namespace paceline::transport {
namespace {

using namespace std::chrono_literals;

// Two ends of a TCP connection.
std::array<Wire, 2> make_link() {
  const SystemClock clock;
  auto listener = listen_tcp("127.0.0.1");
  EXPECT_TRUE(listener.ok());
  auto near =
      connect_tcp("127.0.0.1:" + std::to_string(listener->port), clock, Deadline::after(clock.now(), 60s));
  EXPECT_TRUE(near.ok());
  pollfd entry{listener->fd.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&entry, 1, 60'000), 1);
  auto far = accept_one(listener->fd.get());
  EXPECT_TRUE(far.ok() && far->valid());
  return {*std::move(near), *std::move(far)};
}

TEST(LinkUseTest, BytesThatThePeerHasReadAreCountedWithTheirRate) {
  constexpr std::size_t kBytes = 1 << 20;
  const auto [near, far] = make_link();
  const std::vector<char> sent(kBytes, 'x');
  std::vector<char> got(kBytes);
  std::size_t out = 0, in = 0;
  while (in < kBytes) {
    const ssize_t more = ::send(near.get(), sent.data() + out, kBytes - out, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (more > 0) out += static_cast<std::size_t>(more);
    const ssize_t read = ::recv(far.get(), got.data(), got.size(), MSG_DONTWAIT);
    if (read > 0) in += static_cast<std::size_t>(read);
  }
  // An acknowledgement may be under way.
  std::optional<LinkUse> use;
  do {
    use = link_use(std::span(&near, 1));
    ASSERT_TRUE(use.has_value());
  } while (use->bytes < kBytes);
  EXPECT_GE(use->bytes, kBytes);
  EXPECT_LE(use->bytes, kBytes + 1) << "the connection's first byte may count";
  EXPECT_GT(use->segments, 0U);
  EXPECT_GT(use->rate, 0);
  const auto other = link_use(std::span(&far, 1));
  ASSERT_TRUE(other.has_value());
  EXPECT_LE(other->bytes, 1U);
}

TEST(LinkUseTest, OtherSocketsTellNothing) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const Wire near{UniqueFd(ends[0])}, far{UniqueFd(ends[1])};
  EXPECT_EQ(link_use(std::span(&near, 1)), std::nullopt);
  EXPECT_EQ(link_use({}), std::nullopt);
}

}  // namespace
}  // namespace paceline::transport

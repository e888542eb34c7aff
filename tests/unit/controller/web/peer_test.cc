#include "controller/web/peer.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/un.h>

namespace paceline::web {
namespace {

std::string peer_of_text(const char* text) {
  sockaddr_storage storage{};
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&storage);
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&storage);
  if (::inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
    storage.ss_family = AF_INET;
  } else {
    EXPECT_EQ(::inet_pton(AF_INET6, text, &v6->sin6_addr), 1) << text;
    storage.ss_family = AF_INET6;
  }
  return peer_of(reinterpret_cast<const sockaddr*>(&storage));
}

TEST(PeerTest, Ipv4ClientIsItsAddress) {
  EXPECT_EQ(peer_of_text("10.0.0.7"), "10.0.0.7");
  EXPECT_EQ(peer_of_text("::ffff:10.0.0.7"), "10.0.0.7");
}

TEST(PeerTest, Ipv6ClientIsItsNetwork) {
  EXPECT_EQ(peer_of_text("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
  EXPECT_EQ(peer_of_text("2001:db8:1:2::1"), "2001:db8:1:2::/64");
  EXPECT_EQ(peer_of_text("2001:db8:1:3::1"), "2001:db8:1:3::/64");
  EXPECT_EQ(peer_of_text("::1"), "::/64");
}

TEST(PeerTest, OtherAddressesAreNobodys) {
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  EXPECT_EQ(peer_of(reinterpret_cast<const sockaddr*>(&local)), "");
  EXPECT_EQ(peer_of(nullptr), "");
}

}  // namespace
}  // namespace paceline::web

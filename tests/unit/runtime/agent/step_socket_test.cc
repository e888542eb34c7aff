#include "runtime/agent/step_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/text.h"

namespace paceline::agent {
namespace {

std::string own_name(const char* what) {
  return str_cat("@paceline-step-socket-test-", ::getpid(), "-", what);
}

int send_to(const std::string& name, std::string_view text) {
  const UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data() + 1, name.size() - 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  const auto sent =
      ::sendto(fd.get(), text.data(), text.size(), 0, reinterpret_cast<const sockaddr*>(&address), size);
  return sent < 0 ? errno : 0;
}

TEST(StepSocketTest, ReceivesWhatIsSentInOrder) {
  const std::string name = own_name("order");
  auto socket = StepSocket::bind(name);
  ASSERT_TRUE(socket.ok()) << socket.status();
  EXPECT_EQ(socket->receive(), std::nullopt);
  EXPECT_EQ(send_to(name, "one"), 0);
  EXPECT_EQ(send_to(name, ""), 0);
  EXPECT_EQ(send_to(name, "two\nthree"), 0);
  EXPECT_EQ(socket->receive(), "one");
  EXPECT_EQ(socket->receive(), "");
  EXPECT_EQ(socket->receive(), "two\nthree");
  EXPECT_EQ(socket->receive(), std::nullopt);
}

TEST(StepSocketTest, ASenderIsNeverHeldUp) {
  const std::string name = own_name("full");
  auto socket = StepSocket::bind(name);
  ASSERT_TRUE(socket.ok()) << socket.status();
  int error = 0;
  for (int i = 0; i < 100'000 && error == 0; ++i) error = send_to(name, "step=1 compute_ms=1");
  EXPECT_EQ(error, EAGAIN);
}

TEST(StepSocketTest, NamesThatCanNotBeAreRefused) {
  for (const std::string& name :
       {std::string(), std::string("@"), std::string("/tmp/steps"), "@" + std::string(200, 'x')}) {
    EXPECT_EQ(StepSocket::bind(name).status().code(), absl::StatusCode::kInvalidArgument) << name;
  }
  const auto first = StepSocket::bind(own_name("twice"));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_FALSE(StepSocket::bind(own_name("twice")).ok());
}

}  // namespace
}  // namespace paceline::agent

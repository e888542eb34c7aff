// A member whose stream has ended opens the next one before the last one goes. A process that uses gRPC for
// nothing else would end it in between, and may then wait up to 10 s for what a network that is away has left
// of it: longer than the coordinator waits for the member.

#include <arpa/inet.h>
#include <dlfcn.h>
#include <grpc/grpc.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>

#include "base/check.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "runtime/member/membership.h"

namespace {

// One for each stream.
std::atomic<int> channels_made{0}, channels_gone{0};
std::atomic<int> alone{0};  // those that were made when no other was there

template <typename Function>
Function* library(const char* name) {
  auto* const found = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
  PL_CHECK(found != nullptr, "gRPC's own");
  return found;
}

}  // namespace

// These stand before the library's, which they call.
extern "C" grpc_channel* grpc_channel_create(const char* target, grpc_channel_credentials* credentials,
                                             const grpc_channel_args* arguments) {
  static auto* const real =
      library<grpc_channel*(const char*, grpc_channel_credentials*, const grpc_channel_args*)>(
          "grpc_channel_create");
  if (channels_made++ == channels_gone) ++alone;
  return real(target, credentials, arguments);
}

extern "C" void grpc_channel_destroy(grpc_channel* channel) {
  static auto* const real = library<void(grpc_channel*)>("grpc_channel_destroy");
  ++channels_gone;
  real(channel);
}

namespace paceline {
namespace {

using namespace std::chrono_literals;

// A port of ours where nobody listens: every stream ends at once.
class ClosedPort {
 public:
  ClosedPort() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const where = reinterpret_cast<sockaddr*>(&address);
    PL_CHECK(::bind(socket_.get(), where, size) == 0, "a port on the loopback");
    PL_CHECK(::getsockname(socket_.get(), where, &size) == 0, "its number");
    port_ = ntohs(address.sin_port);
  }
  int port() const { return port_; }

 private:
  const UniqueFd socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  int port_ = 0;
};

TEST(NextStreamTest, ItIsThereBeforeTheLastOneGoes) {
  const ClosedPort port;
  const SystemClock clock;
  member::Environment environment;
  environment.coordinator = str_cat("127.0.0.1:", port.port());
  environment.job = "default/digits";
  environment.pod = environment.pod_uid = "pod";
  environment.token = "a-token-of-some-length";
  int members = 0, streams = 0;
  for (Duration patience = 500ms; streams < 3 && patience < 60s; patience *= 2, ++members) {
    const int before = channels_made;
    const absl::Status status =
        member::Membership::attach(environment, {}, {}, clock, Deadline::after(clock.now(), patience))
            .status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << std::string(status.message());
    streams = channels_made - before;
  }
  EXPECT_GE(streams, 3) << "it hardly ever tried again";
  EXPECT_EQ(channels_gone, channels_made) << "all members have gone";
  EXPECT_EQ(alone, members) << "only a member's first stream comes when there is no other";
}

}  // namespace
}  // namespace paceline

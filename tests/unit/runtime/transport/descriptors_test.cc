// A system that has no descriptor left is an error with its cause, never an abort.

#include <gtest/gtest.h>

#include "runtime/transport/peer_watch.h"
#include "runtime/transport/rendezvous.h"
#include "runtime/transport/streams.h"
#include "tests/support/no_descriptors.h"

namespace paceline::transport {
namespace {

void expect_cause(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_NE(std::string(status.message()).find("Too many open files"), std::string::npos) << status;
}

TEST(Descriptors, NoneForAMeetingPoint) {
  const SystemClock clock;
  const NoDescriptors none;
  expect_cause(Rendezvous::make(UniqueFd(), UniqueFd(), clock).status());
}

TEST(Descriptors, NoneForAPeerWatch) {
  const NoDescriptors none;
  expect_cause(PeerWatch::make({}, [](const PeerEvent&) {}).status());
}

TEST(Descriptors, NoneForSocketStreams) {
  const NoDescriptors none;
  expect_cause(Streams::make({}).status());
}

}  // namespace
}  // namespace paceline::transport

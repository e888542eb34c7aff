#include "controller/dashboard/log_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "base/text.h"
#include "tests/support/fake_clock.h"

namespace paceline::dashboard {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

// All that a stream tells until it ends.
std::string all_of(web::HttpStream& stream, const Clock& clock) {
  std::string text;
  for (;;) {
    const web::HttpStream::Piece piece = stream.next(clock.now());
    if (piece.text != nullptr) text += *piece.text;
    if (piece.last) return text;
    std::this_thread::yield();
  }
}

TEST(LogBufferTest, WholeLinesAreTold) {
  LogBuffer buffer;
  std::stop_source stop;
  EXPECT_TRUE(buffer.put("one\ntw", stop.get_token()));
  EXPECT_EQ(buffer.take().text, "one\n");
  EXPECT_EQ(buffer.take().text, "");
  EXPECT_TRUE(buffer.put("o\n", stop.get_token()));
  EXPECT_EQ(buffer.take().text, "two\n");
  EXPECT_TRUE(buffer.put("end", stop.get_token()));
  buffer.finish(absl::OkStatus());
  const LogBuffer::Taken last = buffer.take();
  EXPECT_EQ(last.text, "end");
  EXPECT_TRUE(last.over);
}

TEST(LogBufferTest, VeryLongLinesAreToldInParts) {
  LogBuffer buffer;
  std::stop_source stop;
  EXPECT_TRUE(buffer.put(std::string(100'000, 'x'), stop.get_token()));
  EXPECT_EQ(buffer.take().text.size(), 100'000U);
}

TEST(LogBufferTest, FullOnesHoldUpWhoReadsTheLog) {
  LogBuffer buffer;
  std::stop_source stop;
  const std::string line = std::string(1023, 'x') + "\n";
  std::atomic<std::size_t> bytes = 0;
  std::jthread reader([&] {
    while (buffer.put(line, stop.get_token())) bytes += line.size();
  });
  while (bytes < LogBuffer::kMostBytes) std::this_thread::yield();
  stop.request_stop();
  reader.join();
  EXPECT_LE(bytes, LogBuffer::kMostBytes + line.size());
  EXPECT_EQ(buffer.take().text.size(), bytes);
}

TEST(LogFollowersTest, StreamsEndWithTheirLog) {
  FakeClock clock;
  LogFollowers followers([] {});
  const auto stream = followers.start("ada", [](const LogFollowers::Sink& sink, const std::stop_token&) {
    for (int i = 0; i < 1000; ++i) {
      if (!sink("line\n")) break;
    }
    return absl::UnavailableError("the node is gone");
  });
  ASSERT_NE(stream, nullptr);
  const std::string text = all_of(*stream, clock);
  EXPECT_THAT(text, HasSubstr("event: lines\ndata: {\"text\":\"line\\n"));
  EXPECT_THAT(text, EndsWith("event: end\ndata: {\"error\":\"the node is gone\"}\n\n"));
}

TEST(LogFollowersTest, GoneReadersEndTheReading) {
  LogFollowers followers([] {});
  std::promise<void> ended;
  auto stream = followers.start("ada", [&](const LogFollowers::Sink& sink, const std::stop_token&) {
    while (sink("line\n")) {
    }
    ended.set_value();
    return absl::OkStatus();
  });
  stream.reset();
  ended.get_future().wait();
}

TEST(LogFollowersTest, TheyAreBounded) {
  std::vector<std::shared_ptr<web::HttpStream>> streams;
  LogFollowers followers([] {});
  const auto waits = [](const LogFollowers::Sink& sink, const std::stop_token&) {
    while (sink("line\n")) {
    }
    return absl::OkStatus();
  };
  for (std::size_t i = 0; i < LogFollowers::kMost; ++i) {
    const std::string viewer = str_cat("viewer-", i / LogFollowers::kMostOfOne);
    streams.push_back(followers.start(viewer, waits));
    ASSERT_NE(streams.back(), nullptr);
    if (i + 1 == LogFollowers::kMostOfOne) {
      EXPECT_EQ(followers.start(viewer, waits), nullptr);
    }
  }
  EXPECT_EQ(followers.start("another", waits), nullptr);
  streams.clear();
  std::shared_ptr<web::HttpStream> next;
  while (next == nullptr) next = followers.start("another", waits);
}

}  // namespace
}  // namespace paceline::dashboard

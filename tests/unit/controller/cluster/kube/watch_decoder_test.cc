#include "controller/cluster/kube/watch_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "base/text.h"

namespace paceline::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kStream = R"({"type":"ADDED","object":{"metadata":{"name":"a"}}})"
                            "\n"
                            R"({"type":"MODIFIED","object":{"metadata":{"name":"b\n"}}})"
                            "\r\n\n"
                            R"({"type":"DELETED","object":{"metadata":{"name":"c"}}})"
                            "\n"
                            R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}})"
                            "\n"
                            R"({"type":"ERROR","object":{"kind":"Status","code":410}})"
                            "\n";

struct Reader {
  WatchDecoder decoder;
  std::vector<std::string> events;
  bool wanted = true;
  absl::Status feed(std::string_view bytes) {
    return decoder.feed(bytes, [this](WatchEvent event) {
      events.push_back(
          str_cat(static_cast<int>(event.type), " ", text_at(event.object, {"metadata", "name"})));
      return wanted;
    });
  }
};

TEST(WatchDecoderTest, AnyPiecesGiveTheSameEvents) {
  for (std::size_t piece = 1; piece <= kStream.size(); ++piece) {
    Reader reader;
    for (std::size_t at = 0; at < kStream.size(); at += piece) {
      ASSERT_TRUE(reader.feed(std::string_view(kStream).substr(at, piece)).ok());
    }
    EXPECT_THAT(reader.events, ElementsAre("0 a", "1 b\n", "2 c", "3 ", "4 ")) << "pieces of " << piece;
    EXPECT_TRUE(reader.decoder.finish().ok());
  }
}

TEST(WatchDecoderTest, AnEndInTheMiddleOfALineIsAnError) {
  Reader reader;
  ASSERT_TRUE(reader.feed(kStream.substr(0, kStream.size() - 1)).ok());
  EXPECT_EQ(reader.events.size(), 4u);
  EXPECT_EQ(reader.decoder.finish().code(), absl::StatusCode::kDataLoss);
}

TEST(WatchDecoderTest, MalformedEventEndsTheStream) {
  for (const char* line :
       {"<html>", "[]", "1", "{}", R"({"type":"ADDED"})", R"({"type":"ADDED","object":1})",
        R"({"type":"added","object":{}})", R"({"type":7,"object":{}})", R"({"object":{}})", "\x01\x02\xff"}) {
    Reader reader;
    const absl::Status status = reader.feed(str_cat(line, "\n", kStream));
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << line;
    EXPECT_TRUE(reader.events.empty());
    EXPECT_FALSE(reader.feed(kStream).ok()) << "it goes on after " << line;
    EXPECT_TRUE(reader.events.empty());
  }
}

TEST(WatchDecoderTest, LinesAreBounded) {
  Reader whole, pieces;
  const std::string long_line(kMaxWatchLineBytes + 1, ' ');
  EXPECT_THAT(std::string(whole.feed(long_line).message()), HasSubstr("longer than"));
  absl::Status status;
  std::size_t fed = 0;
  for (; status.ok() && fed < 2 * kMaxWatchLineBytes; fed += 4096)
    status = pieces.feed(long_line.substr(0, 4096));
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_LE(fed, kMaxWatchLineBytes + 8192);
  Reader fits;
  EXPECT_TRUE(fits.feed(std::string(kMaxWatchLineBytes, ' ') + "\n" + kStream).ok());
  EXPECT_EQ(fits.events.size(), 5u);
}

TEST(WatchDecoderTest, DeepNestingIsRefused) {
  Reader reader;
  const std::string deep(200'000, '[');
  EXPECT_EQ(reader.feed(R"({"type":"ADDED","object":{"a":)" + deep + "\n").code(),
            absl::StatusCode::kDataLoss);
}

TEST(WatchDecoderTest, ItEndsWhenNoMoreIsWanted) {
  Reader reader;
  reader.wanted = false;
  EXPECT_TRUE(reader.feed(kStream).ok());
  EXPECT_EQ(reader.events.size(), 1u);
  EXPECT_TRUE(reader.feed(kStream).ok());
  EXPECT_EQ(reader.events.size(), 1u);
  EXPECT_TRUE(reader.decoder.finish().ok());
}

TEST(WatchDecoderTest, RandomBytesNeverCrash) {
  constexpr std::uint64_t kSeed = 20260131;
  SCOPED_TRACE(str_cat("seed ", kSeed));
  Rng rng(kSeed, 0);
  for (int run = 0; run < 2000; ++run) {
    std::string bytes = kStream;
    for (int change = 0; change < 3; ++change) {
      bytes[rng.below(bytes.size())] = static_cast<char>(rng.below(256));
    }
    Reader reader;
    const bool ok = reader.feed(bytes).ok();
    EXPECT_LE(reader.events.size(), 6u);
    EXPECT_TRUE(ok || !reader.decoder.finish().ok());
  }
}

}  // namespace
}  // namespace paceline::kube

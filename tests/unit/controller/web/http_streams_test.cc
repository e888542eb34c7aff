#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "base/guarded.h"
#include "base/text.h"
#include "controller/web/http_server.h"
#include "tests/support/fake_clock.h"
#include "tests/support/http_reader.h"
#include "tests/support/https_certificate.h"

namespace paceline::web {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// The pieces that all streams of a test tell: numbered pieces, from the first on.
struct Feed {
  std::vector<std::shared_ptr<const std::string>> pieces;
  bool over = false;
};

class FeedStream final : public HttpStream {
 public:
  explicit FeedStream(Guarded<Feed>& feed) : feed_(feed) {}
  Piece next(TimePoint) override {
    auto feed = feed_.lock();
    if (told_ < feed->pieces.size()) return {feed->pieces[told_++]};
    return {nullptr, feed->over};
  }

 private:
  Guarded<Feed>& feed_;
  std::size_t told_ = 0;
};

// With and without TLS.
class HttpStreamsTest : public ::testing::TestWithParam<bool> {
 protected:
  static void mark(HttpAnswer& answer) { answer.headers.emplace_back("X-Of-All", "yes"); }
  static constexpr HttpLimits kLimits{
      .connections = 160, .streams = 128, .body_bytes = 1000, .keep_alive = true, .finish = &mark};
  static constexpr std::size_t kLarge = 32 << 20;  // more than the kernel keeps for a reader

  void SetUp() override {
    auto server = HttpServer::start(
        "127.0.0.1:0",
        [this](HttpRequest request, Reply reply) { handle(std::move(request), std::move(reply)); }, kLimits,
        clock_, GetParam() ? certificate_.files() : TlsFiles());
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  void handle(HttpRequest request, Reply reply) {
    if (request.path == "/stream")
      return reply({.content_type = "text/event-stream", .stream = std::make_shared<FeedStream>(feed_)});
    if (request.path == "/later") return later_.lock()->push_back(std::move(reply));
    if (request.path == "/never") return;
    if (request.path == "/large") return reply({200, std::string(kLarge, 'x') + "the end"});
    reply({200, str_cat(request.method, " ", request.path, " ", request.parameter("a"), " ",
                        request.header("x-one"), " ", request.body)});
  }
  HttpReader reader() const {
    return GetParam() ? HttpReader(server_->port(), certificate_.authority()) : HttpReader(server_->port());
  }
  void tell(std::string text) {
    feed_.lock()->pieces.push_back(std::make_shared<const std::string>(std::move(text)));
    server_->waker()();
  }

  const HttpsCertificate certificate_;
  FakeClock clock_;
  Guarded<Feed> feed_;
  Guarded<std::vector<Reply>> later_;
  std::unique_ptr<HttpServer> server_;
};

TEST_P(HttpStreamsTest, RequestsHaveMethodQueryHeadersAndBody) {
  HttpReader one = reader();
  one.send(
      "POST /a%20b?a=1%2B1&b HTTP/1.1\r\nHost: x\r\nX-One: 1\r\nx-one: 2\r\nContent-Length: 4\r\n\r\nbody");
  EXPECT_THAT(one.until("body"), EndsWith("POST /a b 1+1 1, 2 body"));
}

TEST_P(HttpStreamsTest, NulInAnAddressIsRefused) {
  for (const char* address : {"/%00", "/now%00/x", "/now?a=1%00", "/now?a%00=1", "/now?b&a=%00"}) {
    HttpReader one = reader();
    one.send(str_cat("GET ", address, " HTTP/1.1\r\nHost: x\r\n\r\n"));
    EXPECT_THAT(one.until("\r\n\r\n"), StartsWith("HTTP/1.1 400 ")) << address;
  }
  HttpReader one = reader();
  one.send("GET /%zz%4?a=%0%41%e2%82%AC%2 HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_NE(one.until("%2 ").find("/%zz%4 %0A\xE2\x82\xAC%2"), std::string::npos);
}

TEST_P(HttpStreamsTest, EveryAnswerIsFinished) {
  for (const char* request :
       {"GET /now HTTP/1.1\r\nHost: x\r\n\r\n", "GET /never HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /%00 HTTP/1.1\r\nHost: x\r\n\r\n", "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n",
        "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"}) {
    HttpReader one = reader();
    one.send(request);
    EXPECT_THAT(one.until("\r\n\r\n"), HasSubstr("X-Of-All: yes\r\n")) << request;
  }
}

TEST_P(HttpStreamsTest, LargeBodiesMayTakeLongWhileTheyAreRead) {
  HttpReader one = reader();
  one.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
  for (int part = 1; part <= 4; ++part) {
    one.at_least(part * (kLarge / 5));
    clock_.advance(kLimits.request);
  }
  EXPECT_THAT(one.until("the end"), HasSubstr("Content-Length: 33554439\r\n"));
}

TEST_P(HttpStreamsTest, LargeBodiesThatWaitForTheirReadersAreBounded) {
  const auto ask = [](HttpReader& one) { one.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n"); };
  HttpReader slow = reader(), other = reader();
  ask(slow);
  slow.at_least(1);
  ask(other);
  EXPECT_THAT(other.until("\r\n\r\n"), StartsWith("HTTP/1.1 503 ")) << "both are more than 64 MiB";
  slow.until("the end");
  slow.forget();
  ask(slow);
  EXPECT_THAT(slow.until("the end"), StartsWith("HTTP/1.1 200 "));
}

TEST_P(HttpStreamsTest, SlowReadersOfOneAddressLeaveRoomForOthers) {
  auto server = HttpServer::start(
      "127.0.0.1:0",
      [](const HttpRequest&, const Reply& reply) {
        reply({200, std::string(kLarge, 'x')});
      },
      {.waiting_bytes = 3 * kLarge}, clock_);
  ASSERT_TRUE(server.ok()) << server.status();
  const auto ask = [&](HttpReader& one) { one.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n"); };
  HttpReader slow((*server)->port()), second((*server)->port());
  ask(slow);
  slow.at_least(1);
  ask(second);
  EXPECT_THAT(second.until("\r\n\r\n"), StartsWith("HTTP/1.1 503 ")) << "two of three are more than half";
  HttpReader other((*server)->port(), INADDR_LOOPBACK + 1);
  ask(other);
  EXPECT_THAT(other.until("\r\n\r\n"), StartsWith("HTTP/1.1 200 "));
}

TEST_P(HttpStreamsTest, ConnectionsServeSeveralRequests) {
  HttpReader one = reader();
  for (const char* path : {"/1", "/2", "/3"}) {
    one.send(str_cat("GET ", path, " HTTP/1.1\r\nHost: x\r\n\r\n"));
    EXPECT_THAT(one.until(str_cat("GET ", path)), StartsWith("HTTP/1.1 200 "));
    one.forget();
  }
}

TEST_P(HttpStreamsTest, IdleConnectionsMakeRoomForNewOnes) {
  auto started = HttpServer::start("127.0.0.1:0",
                                   {{"/now",
                                     [] {
                                       return HttpAnswer{200, "the end"};
                                     }}},
                                   clock_, GetParam() ? certificate_.files() : TlsFiles());
  ASSERT_TRUE(started.ok()) << started.status();
  server_ = *std::move(started);
  std::vector<HttpReader> idle;  // that never begin a handshake
  for (unsigned i = 0; i < 5 * kMaxConnections; ++i) idle.emplace_back(server_->port());
  HttpReader one = reader();
  one.send("GET /now HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(one.until("the end"), StartsWith("HTTP/1.1 200 "));
}

TEST_P(HttpStreamsTest, ConnectionsThatWaitForTheirClientMakeRoomBeforeStreams) {
  auto started = HttpServer::start(
      "127.0.0.1:0",
      [this](HttpRequest request, Reply reply) { handle(std::move(request), std::move(reply)); },
      {.connections = 2, .makes_room = true, .streams = 1, .keep_alive = true}, clock_,
      GetParam() ? certificate_.files() : TlsFiles());
  ASSERT_TRUE(started.ok()) << started.status();
  server_ = *std::move(started);
  HttpReader stream = reader();
  stream.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  tell("first");
  stream.until("first");
  std::vector<HttpReader> others;
  for (int i = 0; i < 4; ++i) {
    HttpReader& newest = others.emplace_back(reader());
    newest.send("GET /now HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_THAT(newest.until("GET /now"), StartsWith("HTTP/1.1 200 "));
  }
  tell("second");
  EXPECT_THAT(stream.until("second"), HasSubstr("second"));
}

TEST_P(HttpStreamsTest, HugeBodiesAreRefused) {
  HttpReader told = reader();
  told.send("POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n");
  EXPECT_THAT(told.until("\r\n\r\n"), StartsWith("HTTP/1.1 413 "));
  HttpReader untold = reader();
  untold.send("POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n");
  untold.send(std::string(2000, 'x') + "\r\n0\r\n\r\n");
  EXPECT_THAT(untold.until("\r\n\r\n"), StartsWith("HTTP/1.1 413 "));
}

TEST_P(HttpStreamsTest, AnswersMayComeLater) {
  HttpReader one = reader();
  one.send("GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
  HttpReader other = reader();
  other.send("GET /now HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(other.until("GET /now"), StartsWith("HTTP/1.1 200 "));
  auto replies =
      later_.lock_when([](const auto& waiting) { return !waiting.empty(); }, std::chrono::minutes(1));
  ASSERT_EQ(replies->size(), 1U);
  std::thread answers([reply = replies->front()] { reply({200, "it was worth it"}); });
  answers.join();
  EXPECT_THAT(one.until("worth it"), StartsWith("HTTP/1.1 200 "));
}

TEST_P(HttpStreamsTest, ForgottenRequestsGetAnError) {
  HttpReader one = reader();
  one.send("GET /never HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(one.until("\r\n\r\n"), StartsWith("HTTP/1.1 500 "));
}

TEST_P(HttpStreamsTest, AnswersOutliveTheServer) {
  HttpReader one = reader();
  one.send("GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
  std::optional<Reply> reply =
      later_.lock_when([](const auto& waiting) { return !waiting.empty(); }, std::chrono::minutes(1))
          ->front();
  server_.reset();
  (*reply)({200, "too late"});
  EXPECT_EQ(one.rest(), "");
}

TEST_P(HttpStreamsTest, StreamsTellWhatComes) {
  HttpReader one = reader();
  one.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(one.until("\r\n\r\n"), HasSubstr("Content-Type: text/event-stream\r\n"));
  EXPECT_EQ(server_->streams(), 1U);
  tell("data: 1\n\n");
  one.until("data: 1");
  tell("data: 2\n\n");
  one.until("data: 2");
  feed_.lock()->over = true;
  server_->waker()();
  EXPECT_THAT(one.until("\r\n0\r\n"), HasSubstr("data: 2"));
}

TEST_P(HttpStreamsTest, AHundredStreamsTellAlike) {
  std::vector<HttpReader> readers;
  for (int i = 0; i < 100; ++i) {
    readers.push_back(reader());
    readers.back().send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  }
  for (HttpReader& each : readers) each.until("\r\n\r\n");
  const std::string large(200'000, 'x');
  tell(large);
  tell("the end");
  for (HttpReader& each : readers) {
    EXPECT_GE(std::ranges::count(each.until("the end"), 'x'), 200'000);
  }
}

TEST_P(HttpStreamsTest, MoreStreamsThanAllowedAreRefused) {
  std::vector<HttpReader> readers;
  for (unsigned i = 0; i < kLimits.streams; ++i) {
    readers.push_back(reader());
    readers.back().send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    readers.back().until("\r\n\r\n");
  }
  HttpReader late = reader();
  late.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(late.until("\r\n\r\n"), StartsWith("HTTP/1.1 503 "));
  HttpReader asks = reader();
  asks.send("GET /now HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(asks.until("GET /now"), StartsWith("HTTP/1.1 200 "));
}

TEST_P(HttpStreamsTest, GoneReadersFreeTheirPlaces) {
  for (unsigned i = 0; i < 2 * kLimits.streams; ++i) {
    bool begun = false;
    while (!begun) {
      HttpReader one = reader();
      one.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
      begun = one.until("\r\n\r\n").starts_with("HTTP/1.1 200 ");
    }
  }
}

TEST_P(HttpStreamsTest, ReadersThatDoNotReadAreDropped) {
  HttpReader deaf = reader();
  deaf.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  deaf.until("\r\n\r\n");
  tell(std::string(16 << 20, 'x'));  // more than a kernel keeps
  tell("the end");
  {
    HttpReader good = reader();
    good.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    good.until("the end");
  }
  clock_.advance(kLimits.slow_reader);
  while (server_->streams() > 0) {
    server_->waker()();
    std::this_thread::yield();
  }
  HttpReader next = reader();
  next.send("GET /now HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(next.until("GET /now"), StartsWith("HTTP/1.1 200 "));
  EXPECT_LT(deaf.rest().size(), std::size_t{16} << 20);
}

TEST_P(HttpStreamsTest, TheServerEndsStreams) {
  HttpReader one = reader();
  one.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  one.until("\r\n\r\n");
  server_.reset();
  EXPECT_THAT(one.rest(), StartsWith("HTTP/1.1 200 "));
}

INSTANTIATE_TEST_SUITE_P(, HttpStreamsTest, ::testing::Bool(),
                         [](const auto& with) { return with.param ? "Tls" : "Plain"; });

}  // namespace
}  // namespace paceline::web

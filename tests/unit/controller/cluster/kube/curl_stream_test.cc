#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include "base/text.h"
#include "tests/unit/controller/cluster/kube/transport_fixture.h"

namespace paceline::kube {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

const std::string kHead =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";

void answer_without_end(ScriptedAnswer& answer) {
  answer.send("HTTP/1.1 200 OK\r\n\r\n");
  while (answer.send(std::string(1u << 16, 'x'))) {
  }
  answer.close();
}

TEST(CurlStreamTest, PiecesComeAsTheyAreSent) {
  std::latch first_seen(1);
  ScriptedHttpServer server([&](const ScriptedRequest&, ScriptedAnswer& answer) {
    answer.send(kHead + "3\r\none\r\n");
    first_seen.wait();
    answer.send("3\r\ntwo\r\n0\r\n\r\n");
  });
  std::string all;
  const Response response = answered(stream_from(server, get("/watch"), [&](std::string_view bytes) {
    if (all.empty()) first_seen.count_down();
    all += bytes;
    return true;
  }));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "");
  EXPECT_EQ(response.content_type, "application/json");
  EXPECT_EQ(all, "onetwo");
}

TEST(CurlStreamTest, OtherStatusesComeBackWhole) {
  ScriptedHttpServer server([](const ScriptedRequest&, ScriptedAnswer& answer) {
    answer.reply(410, "too old", "Retry-After: 2\r\n");
  });
  const Response response = answered(stream_from(server, get("/watch"), [](std::string_view) {
    ADD_FAILURE() << "not for the reader";
    return true;
  }));
  EXPECT_EQ(response.status, 410);
  EXPECT_EQ(response.body, "too old");
  EXPECT_EQ(response.retry_after, std::optional<Duration>(2s));
}

TEST(CurlStreamTest, AnErrorsBodyIsBounded) {
  ScriptedHttpServer server(
      [](const ScriptedRequest&, ScriptedAnswer& answer) { answer.reply(500, std::string(5000, 'x')); });
  Request request = get("/watch");
  request.max_response_bytes = 4999;
  EXPECT_EQ(code_of(stream_from(server, request)), absl::StatusCode::kResourceExhausted);
}

TEST(CurlStreamTest, TheReaderEndsAnEndlessOne) {
  ScriptedHttpServer server(
      [](const ScriptedRequest&, ScriptedAnswer& answer) { answer_without_end(answer); });
  std::size_t seen = 0;
  const Response response = answered(stream_from(server, get("/watch"), [&](std::string_view bytes) {
    seen += bytes.size();
    return seen < (100u << 20);
  }));
  EXPECT_EQ(response.status, 200);
  EXPECT_GE(seen, 100u << 20) << "a line of 100 MB passes; its reader decides";
}

TEST(CurlStreamTest, HalfAnAnswerIsUnavailable) {
  ScriptedHttpServer server([](const ScriptedRequest&, ScriptedAnswer& answer) {
    answer.send(kHead + "10\r\nhalf");
    answer.close();
  });
  std::string all;
  const auto response =
      stream_from(server, get("/watch"), [&](std::string_view bytes) { return all += bytes, true; });
  EXPECT_EQ(code_of(response), absl::StatusCode::kUnavailable) << response.status();
  EXPECT_EQ(all, "half");
}

TEST(CurlStreamTest, SilenceEndsItAndATrickleDoesNot) {
  std::atomic<int> sent{0};
  ScriptedHttpServer server([&](const ScriptedRequest&, ScriptedAnswer& answer) {
    answer.send(kHead);
    // Longer than the silence allowed, in pieces that each come in time.
    for (int i = 0; i < 20 && answer.pause(50ms); ++i) {
      answer.send("1\r\nx\r\n");
      ++sent;
    }
    answer.hold();
  });
  int seen = 0;
  const auto response = stream_from(server, get("/watch", 600ms), [&](std::string_view bytes) {
    seen += static_cast<int>(bytes.size());
    return true;
  });
  EXPECT_EQ(code_of(response), absl::StatusCode::kDeadlineExceeded) << response.status();
  EXPECT_THAT(std::string(response.status().message()), HasSubstr("nothing came for 600 ms"));
  EXPECT_EQ(seen, 20);
}

// Sends a byte now and then, for ever.
void trickle(ScriptedAnswer& answer) {
  while (answer.pause(20ms) && answer.send("1\r\nx\r\n")) {
  }
  answer.close();
}

TEST(CurlStreamTest, ATrickleEndsByTheTotal) {
  ScriptedHttpServer server([&](const ScriptedRequest&, ScriptedAnswer& answer) {
    answer.send(kHead);
    trickle(answer);
  });
  Request request = get("/list");
  request.total = 300ms;
  const auto response = stream_from(server, request);
  EXPECT_EQ(code_of(response), absl::StatusCode::kDeadlineExceeded) << response.status();
  EXPECT_THAT(std::string(response.status().message()), HasSubstr("no whole answer within 300 ms"));
}

TEST(CurlStreamTest, ARefusalThatTricklesEndsByTheTimeout) {
  ScriptedHttpServer server([&](const ScriptedRequest&, ScriptedAnswer& answer) {
    answer.send("HTTP/1.1 500 Error\r\nTransfer-Encoding: chunked\r\n\r\n");
    trickle(answer);
  });
  const auto response = stream_from(server, get("/watch", 500ms));
  EXPECT_EQ(code_of(response), absl::StatusCode::kDeadlineExceeded) << response.status();
}

TEST(CurlStreamTest, AStreamThatEndedLeavesItsConnectionToTheNext) {
  std::atomic<int> broken{0};
  ScriptedHttpServer server([&](const ScriptedRequest& request, ScriptedAnswer& answer) {
    if (request.target == "/broken") {
      ++broken;
      answer.send(kHead + "10\r\nhalf");
      return answer.close();
    }
    if (request.target == "/endless") return answer_without_end(answer);
    answer.reply(request.target == "/gone" ? 410 : 200, "page");
  });
  const auto transport = open_transport({.server = server.url()});
  const auto read = [&](const std::string& path) { return transport->stream(get(path), pass_over, {}).ok(); };
  for (int page = 0; page < 5; ++page) EXPECT_TRUE(read("/page"));
  EXPECT_TRUE(read("/gone"));
  EXPECT_TRUE(read("/page"));
  EXPECT_EQ(server.connections(), 1);
  EXPECT_FALSE(read("/broken"));
  EXPECT_TRUE(read("/page"));
  EXPECT_EQ(server.connections(), 2);
  EXPECT_EQ(broken, 1) << "nothing is sent twice";
  EXPECT_TRUE(transport->stream(get("/endless"), [](std::string_view) { return false; }, {}).ok());
  std::string all;
  EXPECT_TRUE(
      transport->stream(get("/page"), [&](std::string_view bytes) { return all += bytes, true; }, {}).ok());
  EXPECT_EQ(all, "page") << "what nobody has read is not the next one's";
  server.stop();
  server.start();
  EXPECT_TRUE(read("/page")) << "a connection that the server has closed is no error";
}

TEST(CurlStreamTest, StopEndsItAtAnyMoment) {
  std::latch holding(2);
  ScriptedHttpServer server([&](const ScriptedRequest& request, ScriptedAnswer& answer) {
    if (request.target == "/body") answer.send(kHead + "1\r\nx\r\n");
    if (request.target != "/body") holding.count_down();
    answer.hold();
  });
  const auto transport = open_transport({.server = server.url()});

  std::stop_source before;
  before.request_stop();
  EXPECT_EQ(code_of(transport->stream(get("/before"), pass_over, before.get_token())),
            absl::StatusCode::kCancelled);

  std::stop_source in_body;
  EXPECT_EQ(code_of(transport->stream(
                get("/body"), [&](std::string_view) { return in_body.request_stop(); }, in_body.get_token())),
            absl::StatusCode::kCancelled);

  // Before the first byte of an answer. How fast it is is measured, not tested: machines stand still at
  // times.
  std::stop_source silent;
  std::jthread stopper([&] {
    holding.arrive_and_wait();
    silent.request_stop();
  });
  EXPECT_EQ(code_of(transport->stream(get("/silent", 10min), pass_over, silent.get_token())),
            absl::StatusCode::kCancelled);
}

TEST(CurlStreamTest, AReaderThatIsSlowHoldsBackNobodyElse) {
  ScriptedHttpServer server([](const ScriptedRequest& request, ScriptedAnswer& answer) {
    if (request.target == "/call") return static_cast<void>(answer.reply(200, "well"));
    answer_without_end(answer);
  });
  const auto transport = open_transport({.server = server.url()});
  int calls = 0;
  const auto response = transport->stream(get("/watch"),
                                          [&](std::string_view) {
                                            // A call and a stream from within a reader.
                                            EXPECT_EQ(transport->call(get("/call"))->body, "well");
                                            EXPECT_TRUE(transport->stream(get("/call"), pass_over, {}).ok());
                                            return ++calls < 50;
                                          },
                                          {});
  EXPECT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(calls, 50);
}

}  // namespace
}  // namespace paceline::kube

#include "controller/traces/exporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/fake_clock.h"

namespace paceline::traces {
namespace {

constexpr Duration kLong = std::chrono::minutes(1);

// A receiver that answers what the test says, and keeps what it is sent.
struct Receiver {
  std::vector<kube::Request> requests;
  int status = 200;
  bool holds = false;  // answers only when this is taken back
};

class ToReceiver final : public kube::Transport {
 public:
  explicit ToReceiver(Guarded<Receiver>& receiver) : receiver_(receiver) {}
  absl::StatusOr<kube::Response> call(const kube::Request& request) override {
    receiver_.lock()->requests.push_back(request);
    auto receiver = receiver_.lock_when([](const Receiver& r) { return !r.holds; }, kLong);
    if (receiver->status == 0) return absl::UnavailableError("nobody there");
    return kube::Response{.status = receiver->status};
  }
  absl::StatusOr<kube::Response> stream(const kube::Request&, const std::function<bool(std::string_view)>&,
                                        std::stop_token) override {
    return absl::UnimplementedError("");
  }

 private:
  Guarded<Receiver>& receiver_;
};

class ExporterTest : public ::testing::Test {
 protected:
  std::unique_ptr<Exporter> exporter(Logger log = Logger::none()) {
    return std::make_unique<Exporter>(Settings{.server = "http://c", .path = "/v1/traces"},
                                      std::make_unique<ToReceiver>(receiver_), clock_, std::move(log));
  }
  kube::Request wait_for_request(std::size_t number) {
    bool came = false;
    auto receiver =
        receiver_.lock_when([&](const Receiver& r) { return r.requests.size() >= number; }, kLong, &came);
    return came ? receiver->requests[number - 1] : kube::Request{};
  }
  static std::size_t spans_in(const kube::Request& request) {
    const auto body = nlohmann::json::parse(request.body, nullptr, false);
    return body.is_discarded() ? 0 : body["resourceSpans"][0]["scopeSpans"][0]["spans"].size();
  }

  FakeClock clock_;
  Guarded<Receiver> receiver_;
};

TEST_F(ExporterTest, ARecoveryIsSentAtOnce) {
  const auto sender = exporter();
  sender->add("", "digits", "", {.left = {"worker-1"}, .noticed_seconds = 0.1});
  const kube::Request request = wait_for_request(1);
  EXPECT_EQ(request.method, kube::Method::kPost);
  EXPECT_EQ(request.path, "/v1/traces");
  EXPECT_EQ(request.content_type, "application/json");
  EXPECT_EQ(spans_in(request), 5U);
}

TEST_F(ExporterTest, OneThatCouldNotBeSentIsSentAgain) {
  for (const int status : {0, 503, 429}) {
    receiver_.lock()->requests.clear();
    receiver_.lock()->status = status;
    auto sender = exporter();
    sender->add("", "digits", "", {});
    const std::string first = wait_for_request(1).body;
    sender.reset();  // the last try
    EXPECT_EQ(wait_for_request(2).body, first) << status;
  }
}

TEST_F(ExporterTest, OneThatIsRefusedIsGivenUp) {
  receiver_.lock()->status = 400;
  auto sender = exporter();
  sender->add("", "digits", "", {});
  wait_for_request(1);
  sender.reset();
  EXPECT_EQ(receiver_.lock()->requests.size(), 1U);
}

TEST_F(ExporterTest, ASlowReceiverHoldsNobodyUpAndCostsMemoryToABound) {
  ::testing::internal::CaptureStderr();
  receiver_.lock()->holds = true;
  auto sender = exporter(Logger::to_stderr("test", LogLevel::kInfo));
  sender->add("", "digits", "", {});
  wait_for_request(1);
  for (std::size_t i = 0; i < kMostWaiting + 3; ++i) sender->add("", "digits", "", {});
  receiver_.lock()->holds = false;
  EXPECT_EQ(spans_in(wait_for_request(2)), 4 * kMostWaiting);
  sender.reset();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), ::testing::HasSubstr("leftOut=\"3\""));
}

TEST(ExporterSettingsTest, NoExporterUnlessOneIsAskedFor) {
  const FakeClock clock;
  const auto none =
      Exporter::from_environment([](const char*) { return std::nullopt; }, clock, Logger::none());
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(*none, nullptr);
  const auto wrong = Exporter::from_environment([](const char*) { return "nowhere"; }, clock, Logger::none());
  EXPECT_TRUE(absl::IsInvalidArgument(wrong.status()));
}

}  // namespace
}  // namespace paceline::traces

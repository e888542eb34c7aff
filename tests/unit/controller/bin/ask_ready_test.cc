#include "controller/bin/ask_ready.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "tests/support/fake_clock.h"

namespace paceline::controller {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Answers by a list; the last one for ever. A pause moves the clock.
class AskReadyTest : public ::testing::Test {
 protected:
  class Answers final : public kube::Transport {
   public:
    absl::StatusOr<kube::Response> call(const kube::Request& request) override {
      asked.push_back(request.path);
      absl::StatusOr<kube::Response> next = answers.front();
      if (answers.size() > 1) answers.pop_front();
      return next;
    }
    absl::StatusOr<kube::Response> stream(const kube::Request&, const std::function<bool(std::string_view)>&,
                                          std::stop_token) override {
      return absl::UnimplementedError("not asked for");
    }
    std::deque<absl::StatusOr<kube::Response>> answers;
    std::vector<std::string> asked;
  };
  absl::Status ask(std::deque<absl::StatusOr<kube::Response>> answers) {
    transport_.answers = std::move(answers);
    return ask_ready(transport_, clock_, [this](Duration time, const std::stop_token&) {
      clock_.advance(time);
      return true;
    });
  }
  FakeClock clock_;
  Answers transport_;
};

TEST_F(AskReadyTest, AsksUntilItIsReady) {
  EXPECT_TRUE(
      ask({absl::UnavailableError("connection refused"), kube::Response{.status = 503, .body = "not yet\n"},
           kube::Response{.status = 200, .body = "ok\n"}})
          .ok());
  EXPECT_EQ(transport_.asked, std::vector<std::string>(3, "/readyz"));
}

TEST_F(AskReadyTest, EndsWithWhatItHeardLast) {
  const absl::Status status = ask({kube::Response{.status = 503, .body = "the caches are not warm\n"}});
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("503"), HasSubstr("the caches are not warm")));
  EXPECT_EQ(transport_.asked.size(), std::size_t{kReadyPatience / kReadyPause} + 1);
  EXPECT_THAT(std::string(ask({absl::UnavailableError("connection refused")}).message()),
              HasSubstr("connection refused"));
}

}  // namespace
}  // namespace paceline::controller

#include "controller/cluster/kube/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include "base/file.h"
#include "tests/support/fake_clock.h"
#include "tests/support/temporary_folder.h"

namespace paceline::kube {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

std::string authorization(const absl::StatusOr<IdentityPtr>& identity) {
  if (!identity.ok()) return identity.status().ToString();
  for (const auto& [name, value] : (*identity)->headers) {
    if (name == "Authorization") return value;
  }
  return "none";
}

class CredentialsTest : public ::testing::Test {
 protected:
  absl::StatusOr<IdentityPtr> get(Credentials& credentials) {
    return credentials.get(Deadline::after(clock_.now(), 1min), {});
  }
  // A plug-in that prints another token each time, good for as long as `lasts` says.
  std::unique_ptr<Credentials> plugin(std::optional<Duration> lasts = std::nullopt) {
    return exec_credentials(
        [this, lasts](std::stop_token) -> absl::StatusOr<ExecCredential> {
          ExecCredential printed{.token = "t" + std::to_string(++runs_)};
          if (lasts) printed.expires = clock_.wall_now() + *lasts;
          return printed;
        },
        {}, clock_);
  }
  FakeClock clock_;
  std::atomic<int> runs_{0};
};

TEST_F(CredentialsTest, FixedOnesStay) {
  const auto credentials = fixed_credentials({.headers = {{"Authorization", "Bearer a"}}});
  const auto first = get(*credentials);
  ASSERT_TRUE(first.ok());
  credentials->refused(**first);
  EXPECT_EQ((*get(*credentials))->number, (*first)->number);
}

TEST_F(CredentialsTest, ATokenFileIsReadAgainAsItRotates) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/token";
  const auto credentials = token_file_credentials(path, {}, clock_, Logger::none());
  EXPECT_EQ(get(*credentials).status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(authorization(get(*credentials)), HasSubstr(path));
  ASSERT_TRUE(write_file_atomically(path, " one\n").ok());
  const auto one = get(*credentials);
  EXPECT_EQ(authorization(one), "Bearer one");
  ASSERT_TRUE(write_file_atomically(path, "two").ok());
  clock_.advance(kTokenFileAge - 1s);
  EXPECT_EQ(authorization(get(*credentials)), "Bearer one") << "at most once a minute";
  clock_.advance(1s);
  const auto two = get(*credentials);
  EXPECT_EQ(authorization(two), "Bearer two");
  EXPECT_NE((*one)->number, (*two)->number);
  clock_.advance(kTokenFileAge);
  EXPECT_EQ((*get(*credentials))->number, (*two)->number) << "the same token is the same identity";

  ASSERT_TRUE(write_file_atomically(path, "three").ok());
  credentials->refused(**one);
  clock_.advance(kLeastTimeBetweenFetches);
  EXPECT_EQ(authorization(get(*credentials)), "Bearer two") << "an old one's refusal says nothing";
  credentials->refused(**two);
  EXPECT_EQ(authorization(get(*credentials)), "Bearer three");

  ASSERT_EQ(::unlink(path.c_str()), 0);
  clock_.advance(kTokenFileAge);
  EXPECT_EQ(authorization(get(*credentials)), "Bearer three") << "it serves on while the file is away";
}

TEST_F(CredentialsTest, ATokenFileThatHoldsNoTokenIsRefused) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/token";
  for (const char* text : {"", " \n", "two words", "a\nb"}) {
    ASSERT_TRUE(write_file_atomically(path, text).ok());
    const auto credentials = token_file_credentials(path, {}, clock_, Logger::none());
    EXPECT_EQ(get(*credentials).status().code(), absl::StatusCode::kUnauthenticated) << text;
  }
}

TEST_F(CredentialsTest, APluginRunsAgainShortlyBeforeItsCredentialExpires) {
  const auto credentials = plugin(10min);
  EXPECT_EQ(authorization(get(*credentials)), "Bearer t1");
  clock_.advance(9min);
  EXPECT_EQ(authorization(get(*credentials)), "Bearer t1");
  clock_.advance(40s);
  EXPECT_EQ(authorization(get(*credentials)), "Bearer t2");
  EXPECT_EQ(runs_, 2);
}

TEST_F(CredentialsTest, APluginThatPrintsExpiredCredentialsIsNotRunAllTheTime) {
  const auto credentials = plugin(-clock_.wall_now().time_since_epoch());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(authorization(get(*credentials)), "Bearer t1");
  EXPECT_EQ(runs_, 1);
}

TEST_F(CredentialsTest, ARefusedCredentialIsFetchedAnewButNotInAStorm) {
  const auto credentials = plugin();
  const auto one = get(*credentials);
  credentials->refused(**one);
  EXPECT_EQ(authorization(get(*credentials)), "Bearer t1") << "it was fetched this very moment";
  clock_.advance(kLeastTimeBetweenFetches);
  EXPECT_EQ(authorization(get(*credentials)), "Bearer t2");
  credentials->refused(**one);
  clock_.advance(1h);
  EXPECT_EQ(authorization(get(*credentials)), "Bearer t2");
}

TEST_F(CredentialsTest, AFailureIsEverybodysAnswerForAMoment) {
  std::atomic<int> runs{0};
  const auto credentials = exec_credentials(
      [&](std::stop_token) -> absl::StatusOr<ExecCredential> {
        if (++runs == 1) return absl::UnauthenticatedError("log in first");
        return ExecCredential{.token = "t"};
      },
      {}, clock_);
  EXPECT_THAT(authorization(get(*credentials)), HasSubstr("log in first"));
  EXPECT_THAT(authorization(get(*credentials)), HasSubstr("log in first"));
  EXPECT_EQ(runs, 1);
  clock_.advance(kLeastTimeBetweenFetches);
  EXPECT_EQ(authorization(get(*credentials)), "Bearer t");
}

TEST_F(CredentialsTest, OneRunServesAllWhoWaitAndWhoGivesUpEndsItForNobody) {
  std::atomic<int> runs{0};
  std::latch started(1), go(1);
  const auto credentials = exec_credentials(
      [&](std::stop_token) -> absl::StatusOr<ExecCredential> {
        ++runs;
        started.count_down();
        go.wait();
        return ExecCredential{.token = "t"};
      },
      {.certificate_pem = "c", .key_pem = "k"}, clock_);
  const auto late = credentials->get(Deadline(clock_.now()), {});
  EXPECT_EQ(late.status().code(), absl::StatusCode::kDeadlineExceeded);
  started.wait();
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(credentials->get(Deadline::after(clock_.now(), 1min), stop.get_token()).status().code(),
            absl::StatusCode::kCancelled);
  std::vector<std::jthread> callers;
  std::atomic<int> good{0};
  for (int i = 0; i < 8; ++i)
    callers.emplace_back([&] { good += authorization(get(*credentials)) == "Bearer t"; });
  go.count_down();
  callers.clear();
  EXPECT_EQ(good, 8);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ((*get(*credentials))->certificate_pem, "c");
}

TEST_F(CredentialsTest, DestructionEndsARunningPlugin) {
  std::latch started(1);
  auto credentials = exec_credentials(
      [&](std::stop_token stop) -> absl::StatusOr<ExecCredential> {
        std::latch stopped(1);
        const std::stop_callback wake(stop, [&] { stopped.count_down(); });
        started.count_down();
        stopped.wait();
        return absl::CancelledError("stopped");
      },
      {}, clock_);
  (void)credentials->get(Deadline(clock_.now()), {});
  started.wait();
  credentials.reset();
}

}  // namespace
}  // namespace paceline::kube

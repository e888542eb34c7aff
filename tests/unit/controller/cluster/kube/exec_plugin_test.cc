#include "controller/cluster/kube/exec_plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <thread>

#include "base/file.h"
#include "base/text.h"
#include "tests/support/temporary_folder.h"

namespace paceline::kube {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kPluginV1 = "client.authentication.k8s.io/v1";
constexpr Duration kLong = std::chrono::minutes(2);

ExecPlugin shell(const std::string& script) {
  return {.api_version = kPluginV1,
          .command = "sh",
          .args = {"-c", script},
          .interactive_mode = InteractiveMode::kNever};
}

std::string print(const std::string& token) {
  return str_cat(R"(printf '{"apiVersion":"%s","kind":"ExecCredential","status":{"token":"%s"}}' )",
                 kPluginV1, " ", token, ";");
}

TEST(ExecPluginTest, ItsTokenComesBackAndItSeesWhatItShall) {
  ::setenv("PACELINE_TEST_OUTER", "outer", 1);
  ExecPlugin plugin =
      shell(str_cat("read -r line; test -z \"$line\" || exit 9; test -n \"$KUBERNETES_EXEC_INFO\" || exit 8;",
                    print("\"$PACELINE_TEST_OUTER-$INNER-$1\"")));
  plugin.args.insert(plugin.args.end(), {"name", "argument"});
  plugin.env = {{"INNER", "inner"}};
  const auto credential = run_exec_plugin(plugin, {.server = "https://k"}, kLong, {});
  ASSERT_TRUE(credential.ok()) << credential.status();
  EXPECT_EQ(credential->token, "outer-inner-argument");
}

TEST(ExecPluginTest, ADescendantThatKeepsThePipesHoldsNobodyBack) {
  TemporaryFolder folder;
  const auto credential = run_exec_plugin(shell(str_cat("sleep 300 & ", print("t"))), {}, kLong, {});
  ASSERT_TRUE(credential.ok()) << credential.status();
  EXPECT_EQ(credential->token, "t");
}

std::string failure(const ExecPlugin& plugin, Duration timeout = kLong) {
  const auto credential = run_exec_plugin(plugin, {}, timeout, {});
  EXPECT_EQ(credential.status().code(), absl::StatusCode::kUnauthenticated) << credential.status();
  return std::string(credential.status().message());
}

TEST(ExecPluginTest, FailuresTellWhatThePluginSaid) {
  EXPECT_THAT(failure(shell("echo log in first >&2; exit 3")),
              AllOf(HasSubstr("\"sh\" exited with code 3"), HasSubstr("it said: log in first")));
  EXPECT_THAT(failure(shell("kill -9 $$")), HasSubstr("killed by signal 9"));
  EXPECT_THAT(failure(shell("echo hello; echo why >&2")),
              AllOf(HasSubstr("no JSON"), HasSubstr("it said: why")));
  EXPECT_THAT(failure(shell("yes >&2 & yes")), HasSubstr("printed more than 1048576 bytes"));
  EXPECT_THAT(failure(shell("sleep 300"), std::chrono::milliseconds(50)),
              HasSubstr("within 50 ms and was killed"));
  ExecPlugin missing{.api_version = kPluginV1,
                     .command = "paceline-no-such-plugin",
                     .install_hint = "install it from example.com"};
  EXPECT_THAT(failure(missing), AllOf(HasSubstr("paceline-no-such-plugin"), HasSubstr("No such file"),
                                      HasSubstr("install it from example.com")));
}

TEST(ExecPluginTest, StopEndsIt) {
  std::stop_source stop;
  TemporaryFolder folder;
  std::jthread stopper;
  // Stopped only when it runs: it says so through a pipe of its own.
  const std::string fifo = folder.path() + "/runs";
  ASSERT_EQ(::system(str_cat("mkfifo ", fifo).c_str()), 0);
  stopper = std::jthread([&] {
    EXPECT_TRUE(read_file(fifo, 10).ok());
    stop.request_stop();
  });
  const auto credential =
      run_exec_plugin(shell(str_cat("echo x > ", fifo, "; sleep 300")), {}, kLong, stop.get_token());
  EXPECT_EQ(credential.status().code(), absl::StatusCode::kCancelled) << credential.status();
}

}  // namespace
}  // namespace paceline::kube

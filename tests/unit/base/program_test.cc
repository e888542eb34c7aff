#include "base/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

namespace paceline {
namespace {

using ::testing::HasSubstr;

TEST(Program, ExceptionsInWords) {
  const auto text = [](auto exception) { return exception_text(std::make_exception_ptr(exception)); };
  EXPECT_THAT(text(std::bad_alloc()), HasSubstr("ulimit -v"));
  EXPECT_THAT(text(std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again))),
              HasSubstr("ulimit -u"));
  EXPECT_THAT(text(std::system_error(std::make_error_code(std::errc::permission_denied))),
              HasSubstr("ermission"));
  EXPECT_THAT(text(std::logic_error("index 7")), HasSubstr("index 7"));
  EXPECT_NE(text(1), "");
  EXPECT_NE(exception_text(nullptr), "");
}

TEST(Program, AnExceptionIsALineAndAnExitCode) {
  EXPECT_EQ(run_main("p", 4, [] { return 3; }), 3);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run_main("p", 4, []() -> int { throw std::bad_alloc(); }), 4);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("p: the system gives no more memory"));
}

TEST(ProgramDeathTest, AnotherThreadsExceptionEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto throws_in_a_thread = [] {
    return run_main("p", 4, [] {
      std::thread([] { throw std::bad_alloc(); }).join();
      return 0;
    });
  };
  EXPECT_EXIT(::_exit(throws_in_a_thread()), ::testing::ExitedWithCode(4),
              "p: the system gives no more memory");
}

TEST(ProgramDeathTest, NoFileOfOursBecomesAStandardOne) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const std::vector<int>& closed : {std::vector{1}, {0, 2}, {0, 1, 2}}) {
    const auto next_file = [&] {
      for (const int fd : closed) ::close(fd);
      return run_main("p", 4, [&] {
        // What was to be printed does not seem to have arrived.
        const bool good = std::ranges::all_of(
            closed, [](int fd) { return ::write(fd, "x", 1) == (fd == STDOUT_FILENO ? -1 : 1); });
        return good ? ::dup(STDIN_FILENO) : 0;
      });
    };
    EXPECT_EXIT(::_exit(next_file() > 2 ? 0 : 1), ::testing::ExitedWithCode(0), "");
  }
}

TEST(Program, ExceptionsAsStatus) {
  EXPECT_TRUE(without_exceptions([] { return absl::OkStatus(); }).ok());
  EXPECT_EQ(without_exceptions([] { return absl::NotFoundError("x"); }).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(without_exceptions([]() -> absl::Status { throw std::bad_alloc(); }).code(),
            absl::StatusCode::kResourceExhausted);
}

// Whatever waits: nothing else than the limit, or the signal, ends it.
TEST(ProgramDeathTest, ALimitOrASignalEndsWhatWaitsForGood) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto wait_for_good = [](std::chrono::seconds limit, std::initializer_list<int> signals, bool raised) {
    return run_main("p", 4, [&] {
      sigset_t blocked;
      sigemptyset(&blocked);
      for (const int signal : {SIGALRM, SIGTERM}) sigaddset(&blocked, signal);
      ::pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
      if (raised) (void)::raise(SIGTERM);
      end_within(limit, 7, signals);
      while (true) ::pause();
      return 0;
    });
  };
  EXPECT_EXIT(wait_for_good(std::chrono::seconds(1), {}, false), ::testing::ExitedWithCode(7),
              "p: a library held it up for 1 s .*ulimit -u");
  EXPECT_EXIT(wait_for_good(std::chrono::hours(1), {SIGTERM}, true), ::testing::ExitedWithCode(7), "^$");
  const auto ready = [] {
    end_within(std::chrono::seconds(1), 7);
    end_when_ready();
    return ::alarm(0) == 0 ? 0 : 1;
  };
  EXPECT_EXIT(::_exit(ready()), ::testing::ExitedWithCode(0), "");
}

TEST(Program, ReservesOrSaysWhatIsMissing) {
  EXPECT_TRUE(reserve_descriptors(16).ok());
  const absl::Status status = reserve_descriptors(std::size_t{1} << 40);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("ulimit -n"));
}

}  // namespace
}  // namespace paceline

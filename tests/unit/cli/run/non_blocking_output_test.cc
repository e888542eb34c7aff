#include "cli/run/non_blocking_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace paceline::cli {
namespace {

class NonBlockingOutputTest : public ::testing::Test {
 protected:
  NonBlockingOutputTest() {
    int ends[2];
    EXPECT_EQ(0, ::pipe2(ends, O_CLOEXEC));
    read_.reset(ends[0]);
    write_.reset(ends[1]);
    EXPECT_GT(::fcntl(write_.get(), F_SETPIPE_SZ, 4096), 0);
  }
  std::string read_some() {
    char bytes[65536];
    const ssize_t n = ::read(read_.get(), bytes, sizeof bytes);
    return {bytes, static_cast<std::size_t>(std::max<ssize_t>(n, 0))};
  }
  UniqueFd read_, write_;
};

TEST_F(NonBlockingOutputTest, WhatTheReaderDoesNotTakeIsKept) {
  NonBlockingOutput output(write_.get());
  const std::string text(10000, 'x');
  output.stream() << text << std::flush;
  EXPECT_TRUE(output.waiting());
  std::string got;
  while (got.size() < text.size()) {
    got += read_some();
    output.write_some();
  }
  EXPECT_EQ(got, text);
  EXPECT_FALSE(output.waiting());
}

TEST_F(NonBlockingOutputTest, AFullDiskIsToldAndAReaderThatWentAwayIsNot) {
  const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  NonBlockingOutput lost(full.get());
  lost.stream() << "a line\n" << std::flush;
  EXPECT_FALSE(lost.waiting());
  EXPECT_TRUE(absl::IsResourceExhausted(lost.status())) << lost.status();

  ::signal(SIGPIPE, SIG_IGN);
  read_.reset();
  NonBlockingOutput unread(write_.get());
  unread.stream() << "a line\n" << std::flush;
  EXPECT_TRUE(unread.status().ok()) << unread.status();
}

TEST_F(NonBlockingOutputTest, WaitingEndsAtItsLimitAndAtAnInterrupt) {
  NonBlockingOutput output(write_.get());
  output.stream() << std::string(10000, 'x') << std::flush;
  output.drain(-1, 1);
  EXPECT_TRUE(output.waiting());
  const UniqueFd interrupt(::eventfd(1, EFD_CLOEXEC));
  output.drain(interrupt.get(), -1);
  EXPECT_TRUE(output.waiting());
}

TEST_F(NonBlockingOutputTest, WholeMessagesAreDroppedBeyondTheBound) {
  NonBlockingOutput output(write_.get());
  const std::string message(NonBlockingOutput::kMaxWaiting / 2 + 4096, 'x');
  output.stream() << message << std::flush << message << std::flush << "last" << std::flush;
  std::string got;
  while (output.waiting() || got.size() < message.size() + 4) {
    got += read_some();
    output.write_some();
  }
  EXPECT_EQ(got.size(), message.size() + 4);
  EXPECT_TRUE(got.ends_with("last"));
}

TEST_F(NonBlockingOutputTest, AReaderThatWentAwayIsNoTrouble) {
  ::signal(SIGPIPE, SIG_IGN);
  NonBlockingOutput output(write_.get());
  read_.reset();
  output.stream() << "x" << std::flush;
  EXPECT_FALSE(output.waiting());
  EXPECT_TRUE(output.stream().good());
}

TEST_F(NonBlockingOutputTest, ATerminalNobodyReadsIsNotWaitedFor) {
  int ours, theirs;
  ASSERT_EQ(0, ::openpty(&ours, &theirs, nullptr, nullptr, nullptr));
  const UniqueFd ours_owned(ours), theirs_owned(theirs);
  NonBlockingOutput output(theirs);
  output.stream() << std::string(1 << 20, 'x') << std::flush;
  EXPECT_TRUE(output.waiting());
}

}  // namespace
}  // namespace paceline::cli

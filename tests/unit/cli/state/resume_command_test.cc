#include "cli/state/resume_command.h"

#include <gtest/gtest.h>

namespace paceline::cli {
namespace {

TEST(ResumeCommand, CanBeCopiedIntoAShell) {
  EXPECT_EQ(resume_command("", "job.yaml", "digits"), "paceline run job.yaml --resume digits");
  EXPECT_EQ(resume_command("/state", "job.yaml", "digits"),
            "paceline run job.yaml --resume digits --state-dir /state");
  EXPECT_EQ(resume_command("", "my job's.yaml", "a;b"), R"(paceline run 'my job'\''s.yaml' --resume 'a;b')");
  EXPECT_EQ(resume_command("", "-", "digits"), "paceline run - --resume digits < JOB");
}

TEST(LetGoOnCommand, CanBeCopiedIntoAShell) {
  EXPECT_EQ(let_go_on_command("", "digits"), "paceline resume digits");
  EXPECT_EQ(let_go_on_command("/my state", "digits"), "paceline resume digits --state-dir '/my state'");
}

TEST(StateDirWords, AreThoseOfAUserWhoGaveOne) {
  EXPECT_EQ(state_dir_words(""), "");
  EXPECT_EQ(state_dir_words("/my state"), " --state-dir '/my state'");
}

TEST(ShellWord, WhatATerminalDoesNotShowIsWrittenOut) {
  EXPECT_EQ(shell_word("a\x1b[31m'\\\n"), R"($'a\x1b[31m\'\\\x0a')");
  EXPECT_EQ(shell_word("a\tb"), R"($'a\x09b')");
  EXPECT_EQ(shell_word("\xff"), R"($'\xff')");
  EXPECT_EQ(shell_word("ä"), "'ä'");
}

}  // namespace
}  // namespace paceline::cli

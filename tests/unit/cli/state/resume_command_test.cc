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

}  // namespace
}  // namespace paceline::cli

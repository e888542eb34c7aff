#include "cli/view/load_text.h"

#include <gtest/gtest.h>

namespace paceline::cli {
namespace {

TEST(LoadText, SaysWhatToDoWhereMoreIsWantedThanThereIs) {
  EXPECT_EQ(load_text(std::nullopt), "");
  EXPECT_EQ(load_text(MachineLoad{2, 2}),
            "over the last minute 2.0 threads wanted this machine's 2 processors");
  EXPECT_EQ(load_text(MachineLoad{0.25, 1}),
            "over the last minute 0.2 threads wanted this machine's 1 processor");
  EXPECT_EQ(load_text(MachineLoad{14.2, 2}),
            "over the last minute 14.2 threads wanted this machine's 2 processors: it may just not have got "
            "to run; "
            "give the machine less to do, or the job fewer members");
}

}  // namespace
}  // namespace paceline::cli

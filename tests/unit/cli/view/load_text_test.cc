#include "cli/view/load_text.h"

#include <gtest/gtest.h>

namespace paceline::cli {
namespace {

TEST(LoadText, SaysWhatToDoWhereMoreIsWantedThanThereIs) {
  EXPECT_EQ(load_text(std::nullopt), "");
  EXPECT_EQ(load_text(MachineLoad{2, 2, 2}),
            "over the last minute 2.0 threads ran or waited for a processor or a disk, and the machine has 2 "
            "processors");
  EXPECT_EQ(load_text(MachineLoad{0.25, 1, 1}),
            "over the last minute 0.2 threads ran or waited for a processor or a disk, and the machine has 1 "
            "processor");
  EXPECT_EQ(
      load_text(MachineLoad{14.2, 2, 2}),
      "over the last minute 14.2 threads ran or waited for a processor or a disk, and the machine has 2 "
      "processors: it may just not have got to run; give the machine less to do, or the job fewer "
      "members");
}

TEST(LoadText, ComparesWithWhatTheRunMayUse) {
  EXPECT_EQ(
      load_text(MachineLoad{3, 64, 2}),
      "over the last minute 3.0 threads ran or waited for a processor or a disk, and this run may use 2 "
      "of the machine's 64 processors: it may just not have got to run; give the machine less to do, or "
      "the job fewer members");
  EXPECT_EQ(
      load_text(MachineLoad{2, 64, 2}),
      "over the last minute 2.0 threads ran or waited for a processor or a disk, and this run may use 2 "
      "of the machine's 64 processors");
}

}  // namespace
}  // namespace paceline::cli

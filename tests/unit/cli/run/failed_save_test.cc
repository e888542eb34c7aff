#include "cli/run/failed_save.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temporary_folder.h"

namespace paceline::cli {
namespace {

TEST(FailedSave, TextNamesTheStepOnce) {
  EXPECT_EQ(failed_save_text({7, "no space"}), "step 7 could not be saved: no space");
  EXPECT_EQ(failed_save_text({7, "checkpoint of step 7: no space"}), "step 7 could not be saved: no space");
}

TEST(FailedSave, LastOneOfALogIsFound) {
  const auto save = failed_save_in(
      "t error worker-0: no checkpoint of step 5: old\n"
      "t error worker-0: no checkpoint of step 70: write x: No space\n"
      "t info worker-0: ends\n");
  ASSERT_TRUE(save);
  EXPECT_EQ(save->step, 70);
  EXPECT_EQ(save->error, "write x: No space");
  for (const char* other :
       {"", "no checkpoint of step", "no checkpoint of step x: y", "no checkpoint of step 7"})
    EXPECT_FALSE(failed_save_in(other)) << other;
}

TEST(FailedSave, ReasonOfACheckpointThatWasPassedOverIsFound) {
  const TemporaryFolder folder;
  EXPECT_EQ(why_passed_over(folder.path(), "/c/step-000000100"), "");
  std::ofstream(folder.path() + "/digits-worker-0-0.log")
      << "t warning chief-0: passed over step-000000100: state.safetensors: another checksum\n"
         "t info chief-0: resumes from step-000000050\n";
  std::ofstream(folder.path() + "/digits-worker-1-0.log") << "begins\n";
  EXPECT_EQ(why_passed_over(folder.path(), "/c/step-000000100"), "state.safetensors: another checksum");
  EXPECT_EQ(why_passed_over(folder.path(), "/c/step-00000010"), "");
}

TEST(FailedSave, LatestStepOfAllLogsCounts) {
  const TemporaryFolder folder;
  EXPECT_FALSE(logged_failed_save(folder.path() + "/logs"));
  std::ofstream(folder.path() + "/digits-worker-0-0.log") << "no checkpoint of step 5: a\n";
  std::ofstream(folder.path() + "/digits-worker-0-1.log") << "no checkpoint of step 70: b\nends\n";
  std::ofstream(folder.path() + "/digits-worker-1-1.log") << "ends\n";
  const auto save = logged_failed_save(folder.path());
  ASSERT_TRUE(save);
  EXPECT_EQ(save->error, "b");
}

}  // namespace
}  // namespace paceline::cli

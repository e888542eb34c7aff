// Checkpoints that are there and can't be used: never taken for none, and nothing of them is removed unsaid.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/text.h"
#include "runtime/checkpoint/layout.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/runtime/checkpoint/saved_state.h"

namespace paceline::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

std::string in(const std::string& name, const std::string& file = "manifest.json") {
  return str_cat(kFolder, "/", name, "/", file);
}

void save_all(CheckpointStore& store, std::initializer_list<std::int64_t> steps) {
  for (const std::int64_t step : steps) ASSERT_TRUE(store.save(State(step).snapshot).ok());
}

// Both ways to look say the same of a folder in which no manifest is whole.
absl::Status verdict(MemoryFileStore& files) {
  const CheckpointStore store(files, kFolder, 3);
  const absl::Status loaded = store.load_latest().status();
  EXPECT_EQ(store.peek_latest().status(), loaded);
  EXPECT_NE(store.newest().value(), "") << "a training that does not resume sees them";
  return loaded;
}

TEST(DamagedCheckpoints, CheckpointsWithoutAnyManifestAreAnError) {
  auto [files, store] = Stored(3, {100, 200});
  files.files().erase(in("step-000000100"));
  EXPECT_TRUE(store.load_latest()->refused.empty()) << "half a removal beside a newer one";
  files.files().erase(in("step-000000200"));
  const absl::Status none = verdict(files);
  EXPECT_EQ(none.code(), absl::StatusCode::kFailedPrecondition) << none;
  EXPECT_THAT(std::string(none.message()),
              AllOf(HasSubstr(str_cat("no checkpoint in ", kFolder, " has its manifest.json")),
                    HasSubstr("; step-000000200: "), HasSubstr("; step-000000100: ")));
}

TEST(DamagedCheckpoints, EachDamagedCheckpointSaysHow) {
  auto [files, store] = Stored(3, {100, 200});
  ASSERT_TRUE(files.remove(checkpoint_path(kFolder, 200)).ok());
  ASSERT_TRUE(files.rename(checkpoint_path(kFolder, 100), checkpoint_path(kFolder, 300)).ok());
  const absl::Status moved = verdict(files);
  EXPECT_EQ(moved.code(), absl::StatusCode::kDataLoss) << moved;
  EXPECT_THAT(
      std::string(moved.message()),
      HasSubstr("; step-000000300: manifest: step 100, the folder's name says another; it was saved as "
                "step-000000100"));
  files.files()[in("step-000000300")] = "{}";
  EXPECT_THAT(std::string(verdict(files).message()), HasSubstr("'format' is missing or wrong"));
}

TEST(DamagedCheckpoints, ALongListOfReasonsIsCutOff) {
  auto [files, store] = Stored(20);
  for (std::int64_t step = 1; step <= 12; ++step) save_all(store, {step});
  for (std::int64_t step = 1; step <= 12; ++step) files.files()[in(checkpoint_name(step))] = "{}";
  EXPECT_THAT(
      std::string(verdict(files).message()),
      AllOf(HasSubstr("; step-000000003: "), Not(HasSubstr("step-000000002")), HasSubstr("; and 2 more")));
}

// What a crash left of a step that was saved again: without its manifest nobody knows which step it is.
class DamagedReplaced : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    save_all(store_, {100, 200});
    ASSERT_TRUE(files_.rename(checkpoint_path(kFolder, 200), str_cat(kFolder, "/.replaced")).ok());
    if (GetParam()) {
      files_.files()[in(".replaced")] = "torn";
    } else {
      files_.files().erase(in(".replaced"));
    }
  }
  bool is_there() { return files_.files().contains(in(".replaced", "state.safetensors")); }

  MemoryFileStore files_;
  CheckpointStore store_{files_, kFolder, 2};
};

TEST_P(DamagedReplaced, IsPassedOverWithItsReasonAndStays) {
  const auto told = ElementsAre(HasSubstr(".replaced (newer or not: its step is not known): "));
  EXPECT_EQ(loaded_step(files_), 100);
  EXPECT_THAT(store_.load_latest()->refused, told);
  EXPECT_THAT(store_.peek_latest()->refused, told);
  EXPECT_EQ(store_.newest().value(), "step-000000100") << "who waits for a newer one sees the next";
  save_all(store_, {200, 300});
  EXPECT_TRUE(is_there());
  EXPECT_THAT(names(files_), ElementsAre(".replaced", "step-000000200", "step-000000300"));
  EXPECT_THAT(store_.load_latest()->refused, told);
  save_all(store_, {300});
  EXPECT_FALSE(is_there()) << "its name was needed";
  EXPECT_THAT(names(files_), ElementsAre("step-000000200", "step-000000300"));
}

TEST_P(DamagedReplaced, AloneIsNotNone) {
  ASSERT_TRUE(files_.remove(checkpoint_path(kFolder, 100)).ok());
  const absl::Status none = verdict(files_);
  EXPECT_EQ(none.code(), GetParam() ? absl::StatusCode::kDataLoss : absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(none.message()), HasSubstr("; .replaced (newer or not: its step is not known): "));
}

INSTANTIATE_TEST_SUITE_P(Manifest, DamagedReplaced, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Torn" : "Missing"; });

TEST(DamagedCheckpoints, ALinkThatLeadsNowhereIsNoFolderThatIsMissing) {
  const TemporaryFolder folder;
  const std::string link = folder.path() + "/link", loop = folder.path() + "/loop";
  fs::create_directory(folder.path() + "/real");
  fs::create_symlink(folder.path() + "/real", link);
  for (const std::string& path : {link, link + "/", link + "/below"})
    EXPECT_EQ(CheckpointStore(path, 1).peek_latest().status().code(), absl::StatusCode::kNotFound) << path;
  fs::remove(folder.path() + "/real");
  for (const std::string& path : {link, link + "/", link + "/below/it"}) {
    const absl::Status nowhere = CheckpointStore(path, 1).peek_latest().status();
    EXPECT_EQ(nowhere.code(), absl::StatusCode::kInvalidArgument) << nowhere;
    EXPECT_THAT(std::string(nowhere.message()), HasSubstr("is a link that leads nowhere"));
  }
  fs::create_symlink(loop, loop);
  const absl::Status round = CheckpointStore(loop, 1).peek_latest().status();
  EXPECT_EQ(round.code(), absl::StatusCode::kUnavailable) << round;
}

}  // namespace
}  // namespace paceline::checkpoint

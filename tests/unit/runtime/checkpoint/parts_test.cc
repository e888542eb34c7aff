#include "runtime/checkpoint/parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "tests/support/assert_ok.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/runtime/checkpoint/saved_state.h"

namespace paceline::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(PartsTest, CrashAnywhereInASave) {
  crash_everywhere(2, {1, 2}, 3, kTwoParts);
}
TEST(PartsTest, CrashAnywhereSavingAStepAgain) {
  crash_everywhere(1, {4}, 4, kTwoParts);
}

TEST(PartsTest, TheyAreReadInPiecesAndAnEmptyOneIsThere) {
  auto [files, store] = Stored(2, {1}, kTwoParts);
  EXPECT_EQ(loaded_step(files, kTwoParts), 1);
  {
    PL_ASSERT_OK(writer, store.begin());
    PL_ASSERT_OK(part, (*writer)->begin_part("nothing"));
    PL_ASSERT_OK(entry, (*part)->finish());
    ASSERT_TRUE((*writer)->finish(State(2).snapshot, std::span(&*entry, 1)).ok());
  }
  PL_ASSERT_OK(loaded, store.load_latest());
  EXPECT_EQ(loaded->name, "step-000000002");
  EXPECT_EQ(read_part(store, *loaded, "nothing").value_or("?"), "");
  const absl::Status missing = store.open_part(*loaded, "table-wide").status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(missing.message(), "step-000000002: there is no part 'table-wide'");
}

TEST(PartsTest, ACheckpointThatIsNeverFinishedLeavesNothing) {
  auto [files, store] = Stored(2, {1});
  {
    PL_ASSERT_OK(writer, store.begin());
    const auto part = (*writer)->begin_part("table-wide");
    ASSERT_TRUE(part.ok() && (*part)->append(bytes("abc")).ok());
    EXPECT_THAT(names(files), ElementsAre(".saving", "step-000000001"));
  }
  EXPECT_THAT(names(files), ElementsAre("step-000000001"));
  EXPECT_EQ(loaded_step(files), 1);
}

TEST(PartsTest, WithADamagedPartTheOneBeforeIsTaken) {
  const std::string part = str_cat(kFolder, "/step-000000002/table-wide");
  const std::pair<std::function<void(std::map<std::string, std::string>&)>, std::string> cases[] = {
      {[&](auto& f) { f.erase(part); }, "table-wide"},
      {[&](auto& f) { f[part].pop_back(); }, "table-wide: "},
      {[&](auto& f) { f[part] += 'x'; }, "table-wide: more than the "},
      {[&](auto& f) { f[part].front() ^= 1; }, "table-wide: its checksum isn't the manifest's"},
      {[&](auto& f) { f[part].back() ^= 1; }, "table-wide: its checksum isn't the manifest's"},
      {[&](auto& f) { f[part].clear(); }, "table-wide: 0 bytes, the manifest says "},
  };
  for (const auto& [alter, reason] : cases) {
    auto [files, store] = Stored(5, {1, 2}, kTwoParts);
    alter(files.files());
    EXPECT_EQ(loaded_step(files, kTwoParts), 1);
    const auto loaded = store.load_latest();
    ASSERT_EQ(loaded->refused.size(), 1u) << reason;
    EXPECT_THAT(loaded->refused[0], HasSubstr("step-000000002: "));
    EXPECT_THAT(loaded->refused[0], HasSubstr(reason));
  }
}

// Damaged after it was looked at: reading tells with the last byte at the latest.
TEST(PartsTest, AnyByteOfAPartThatIsAlteredIsFoundWhileItIsRead) {
  auto [files, store] = Stored(5, {3}, kTwoParts);
  PL_ASSERT_OK(loaded, store.load_latest());
  std::string& content = files.files()[str_cat(kFolder, "/step-000000003/table-deep")];
  for (char& byte : content) {
    byte ^= 0x10;
    EXPECT_EQ(read_part(store, *loaded, "table-deep").status().code(), absl::StatusCode::kDataLoss);
    byte ^= 0x10;
  }
  EXPECT_EQ(read_part(store, *loaded, "table-deep").value_or(""), part_content(3, "table-deep"));
  const auto part = store.open_part(*loaded, "table-deep");
  std::string more(content.size() + 1, '?');
  EXPECT_EQ((*part)->read(std::as_writable_bytes(std::span(more))).code(), absl::StatusCode::kDataLoss);
}

// Refuses when it is asked for the `last` time; `asked`: how often it was.
GoOn until(int last, int& asked) {
  asked = 0;
  return [last, &asked]() -> absl::Status {
    return ++asked < last ? absl::OkStatus() : absl::CancelledError("asked to stop");
  };
}

// However many GiB there are to verify: who loads is asked once per MiB, and an older checkpoint is no way
// out.
TEST(PartsTest, VerifyingEndsWhenItShall) {
  auto [files, store] = Stored(5);
  for (const std::int64_t step : {1, 2}) {
    const auto writer = store.begin();
    const auto part = (*writer)->begin_part("table-deep");
    const std::string content(std::size_t{5} << 20, 'x');
    ASSERT_TRUE((*part)->append(text_bytes(content)).ok());
    const std::vector<FileEntry> entries = {*(*part)->finish()};
    ASSERT_TRUE((*writer)->finish(State(step).snapshot, entries).ok());
  }
  int asked = 0;
  EXPECT_EQ(store.load_latest(until(3, asked)).status(), absl::CancelledError("asked to stop"));
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(store.load_latest(until(100, asked))->progress.step, 2);
  EXPECT_EQ(asked, 1 + 5) << "for the state, and its part";
}

// The state may be as long, and has no parts where the model has no tables.
TEST(PartsTest, ReadingAStateEndsWhenItShall) {
  auto [files, store] = Stored(5);
  const std::vector<float> weights((std::size_t{5} << 20) / sizeof(float) - 100, 0.5F);
  for (const std::int64_t step : {1, 2}) {
    Snapshot snapshot = State(step).snapshot;
    snapshot.tensors = {
        tensor_view<float>("weights", DType::kF32, {static_cast<std::int64_t>(weights.size())}, weights)};
    ASSERT_TRUE(store.save(snapshot).ok());
  }
  int asked = 0;
  for (const int last : {1, 3, 5}) {
    EXPECT_EQ(store.load_latest(until(last, asked)).status(), absl::CancelledError("asked to stop"));
    EXPECT_EQ(asked, last);
  }
  EXPECT_EQ(store.load_latest(until(100, asked))->progress.step, 2);
  EXPECT_EQ(asked, 5);
}

TEST(PartsTest, AFullDiskGetsItsRoomBack) {
  auto [files, store] = Stored(2, {1});
  std::uint64_t used = 0;
  for (const auto& [path, content] : files.files()) used += content.size();
  for (const std::uint64_t room : {0, 30, 100, 200}) {
    files.set_capacity(used + room);
    EXPECT_EQ(save(store, State(2).snapshot, kTwoParts).code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(names(files), ElementsAre("step-000000001"));
  }
  files.set_capacity(UINT64_MAX);
  EXPECT_TRUE(save(store, State(2).snapshot, kTwoParts).ok());
  EXPECT_EQ(loaded_step(files, kTwoParts), 2);
}

TEST(PartsTest, AFileInThePlaceOfAFolderIsNoFolderThatIsMissing) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/a";
  ASSERT_TRUE(make_directory_store()->write_file(file, {}).ok());
  EXPECT_EQ(make_directory_store()->list(folder.path() + "/b").status().code(), absl::StatusCode::kNotFound);
  for (const std::string& path : {file, file + "/b"}) {
    const absl::Status refused = make_directory_store()->list(path).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
    EXPECT_EQ(CheckpointStore(path, 1).newest().status(), refused);
  }
}

TEST(PartsTest, OnThisMachinesFiles) {
  const TemporaryFolder folder;
  CheckpointStore store(folder.path() + "/a", 1);
  for (const std::int64_t step : {1, 2}) ASSERT_TRUE(save(store, State(step).snapshot, kTwoParts).ok());
  PL_ASSERT_OK(loaded, store.load_latest());
  EXPECT_THAT(make_directory_store()->list(folder.path() + "/a/step-000000002").value(),
              ElementsAre("manifest.json", "state.safetensors", "table-deep", "table-wide"));
  PL_ASSERT_OK(part, store.open_part(*loaded, "table-wide"));
  ASSERT_TRUE(save(store, State(3).snapshot, kTwoParts).ok());
  EXPECT_EQ(store.open_part(*loaded, "table-wide").status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(check_part(**part).ok()) << "an open one stays readable when its checkpoint goes";
  std::filesystem::resize_file(folder.path() + "/a/step-000000003/table-wide", 5);
  EXPECT_EQ(store.load_latest().status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace paceline::checkpoint

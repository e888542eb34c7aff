#include "runtime/checkpoint/checkpoint_store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <future>

#include "base/file.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "runtime/checkpoint/safetensors_file.h"
#include "tests/support/assert_ok.h"
#include "tests/unit/runtime/checkpoint/saved_state.h"

namespace paceline::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Training that went on from an older checkpoint, because the newer ones were damaged, must not lose what it
// saves.
TEST(CheckpointStoreTest, ANewOneIsNeverTakenForTheOldest) {
  auto [files, store] = Stored(1, {300});
  ASSERT_TRUE(files.remove(str_cat(kFolder, "/step-000000300/manifest.json")).ok());
  ASSERT_TRUE(store.save(State(100).snapshot).ok());
  ASSERT_TRUE(store.save(State(150).snapshot).ok());
  EXPECT_THAT(names(files), ElementsAre("step-000000150", "step-000000300"));
  EXPECT_EQ(loaded_step(files), 150);
  EXPECT_EQ(store.newest().value(), "step-000000300");
}

TEST(CheckpointStoreTest, PeekingFindsTheNewestWithAWholeManifest) {
  auto [files, store] = Stored(3);
  EXPECT_EQ(store.peek_latest().status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(store.save(State(100).snapshot).ok());
  ASSERT_TRUE(store.save(State(200).snapshot).ok());
  ASSERT_EQ(store.peek_latest()->name, "step-000000200");
  EXPECT_EQ(store.peek_latest()->progress.step, 200);
  EXPECT_EQ(store.peek_latest()->progress.spec_hash, "abc");
  EXPECT_TRUE(store.peek_latest()->refused.empty());
  EXPECT_EQ(store.peek_latest()->bytes,
            files.files()[str_cat(kFolder, "/step-000000200/state.safetensors")].size());
  ASSERT_TRUE(files.remove(str_cat(kFolder, "/step-000000200/manifest.json")).ok());
  EXPECT_EQ(store.peek_latest()->progress.step, 100);
  EXPECT_THAT(store.peek_latest()->refused, ElementsAre(HasSubstr("step-000000200: ")));
}

TEST(CheckpointStoreTest, UnreadableCheckpointIsAnErrorAndNoOlderOneIsTaken) {
  for (const absl::Status& why :
       {absl::PermissionDeniedError("not yours"), absl::ResourceExhaustedError("no memory")}) {
    for (const char* const file : {"manifest.json", "state.safetensors"}) {
      auto [files, store] = Stored(3, {100, 200});
      files.deny(str_cat(kFolder, "/step-000000200/", file), why);
      const absl::Status refused = store.load_latest().status();
      EXPECT_EQ(refused.code(), why.code()) << refused;
      EXPECT_THAT(std::string(refused.message()), HasSubstr("step-000000200 can't be read: "));
      EXPECT_THAT(std::string(refused.message()), HasSubstr(why.message()));
      const auto peeked = store.peek_latest();
      if (file == std::string_view("manifest.json")) {
        EXPECT_EQ(peeked.status(), refused);
      } else {
        EXPECT_EQ(peeked->progress.step, 200);
      }
    }
  }
}

// A crash left the newest without its name: it is not sorted behind older ones, nor does a save remove it.
TEST(CheckpointStoreTest, UnreadableReplacedCheckpointIsAnErrorAndStays) {
  for (const absl::Status& why :
       {absl::PermissionDeniedError("not yours"), absl::ResourceExhaustedError("no memory")}) {
    auto [files, store] = Stored(3, {100, 200});
    const std::string replaced = str_cat(kFolder, "/.replaced");
    ASSERT_TRUE(files.rename(str_cat(kFolder, "/step-000000200"), replaced).ok());
    files.deny(replaced + "/manifest.json", why);
    const absl::Status refused = store.load_latest().status();
    EXPECT_EQ(refused.code(), why.code()) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr(".replaced can't be read: "));
    EXPECT_EQ(store.peek_latest().status(), refused);
    EXPECT_EQ(store.newest().status(), refused);
    EXPECT_EQ(store.save(State(300).snapshot), refused);
    files.deny("");
    EXPECT_EQ(loaded_step(files), 200);
    EXPECT_TRUE(store.save(State(300).snapshot).ok());
    EXPECT_THAT(names(files), ElementsAre("step-000000100", "step-000000200", "step-000000300"));
  }
}

// Whether a checkpoint was ever completed is not known of a folder that can't be looked into: who takes it
// for none begins anew.
TEST(CheckpointStoreTest, AFolderThatCanNotBeLookedIntoIsNotOneWithoutAManifest) {
  for (const absl::Status& why :
       {absl::PermissionDeniedError("not yours"), absl::ResourceExhaustedError("no file descriptor")}) {
    auto [files, store] = Stored(3, {100});
    files.files()[str_cat(kFolder, "/step-000000100/state.safetensors")].back() ^= 1;
    EXPECT_EQ(store.load_latest().status().code(), absl::StatusCode::kDataLoss);
    for (const char* const folder : {"", "/step-000000100"}) {
      files.deny(str_cat(kFolder, folder), why);
      EXPECT_EQ(store.load_latest().status().code(), why.code()) << folder;
    }
  }
}

// A manifest beyond its limit is the checkpoint's own fault, not a lack of memory.
TEST(CheckpointStoreTest, AManifestThatIsTooLongIsPassedOver) {
  auto [files, store] = Stored(3, {100, 200});
  files.files()[str_cat(kFolder, "/step-000000200/manifest.json")].append(kMaxManifestBytes, ' ');
  PL_ASSERT_OK(loaded, store.load_latest());
  EXPECT_EQ(loaded->progress.step, 100);
  EXPECT_THAT(loaded->refused, ElementsAre(HasSubstr("step-000000200: ")));
}

TEST(CheckpointStoreTest, EmptyFolderHasNoCheckpoint) {
  MemoryFileStore files;
  EXPECT_EQ(loaded_step(files), -1);
}

TEST(CheckpointStoreTest, SavesLoadsAndKeepsTheNewest) {
  auto [files, store] = Stored(2);
  for (const std::int64_t step : {0, 5, 10, 15, 1234567890}) {
    ASSERT_TRUE(store.save(State(step).snapshot).ok());
    EXPECT_EQ(loaded_step(files), step);
  }
  EXPECT_THAT(names(files), ElementsAre("step-000000015", "step-1234567890"));
}

TEST(CheckpointStoreTest, SavingAStepAgainReplacesIt) {
  auto [files, store] = Stored(1, {7});
  State changed(7);
  changed.snapshot.progress.spec_hash = "other";
  ASSERT_TRUE(store.save(changed.snapshot).ok());
  EXPECT_EQ(store.load_latest()->progress.spec_hash, "other");
  EXPECT_THAT(names(files), ElementsAre("step-000000007"));
}

TEST(CheckpointStoreTest, CrashAnywhereInTheFirstSave) {
  crash_everywhere(3, {}, 10);
}
TEST(CheckpointStoreTest, CrashAnywhereWhereOldOnesAreRemoved) {
  crash_everywhere(2, {1, 2}, 3);
}
TEST(CheckpointStoreTest, CrashAnywhereKeepingOne) {
  crash_everywhere(1, {1}, 2);
}
TEST(CheckpointStoreTest, CrashAnywhereSavingAStepAgain) {
  crash_everywhere(1, {4}, 4);
}
TEST(CheckpointStoreTest, CrashAnywhereSavingAStepAgainBesideAnOlderOne) {
  crash_everywhere(3, {3, 4}, 4);
}
TEST(CheckpointStoreTest, AFullDiskKeepsThePreviousOneAndGivesBackItsRoom) {
  auto [files, store] = Stored(2, {1});
  std::uint64_t used = 0;
  for (const auto& [path, content] : files.files()) used += content.size();
  for (const std::uint64_t room : {0, 10, 500, 700}) {
    files.set_capacity(used + room);
    const absl::Status status = store.save(State(2).snapshot);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(status.message()), HasSubstr("checkpoint of step 2: the disk is full"));
    EXPECT_EQ(loaded_step(files), 1);
    EXPECT_THAT(names(files), ElementsAre("step-000000001"));
  }
  files.set_capacity(UINT64_MAX);
  EXPECT_TRUE(store.save(State(2).snapshot).ok());
}

TEST(CheckpointStoreTest, AlteredOnesAreRefusedWithTheReason) {
  const std::string state = str_cat(kFolder, "/step-000000002/state.safetensors");
  const std::string manifest = str_cat(kFolder, "/step-000000002/manifest.json");
  const std::pair<std::function<void(std::map<std::string, std::string>&)>, std::string> cases[] = {
      {[&](auto& f) { f.erase(manifest); }, "manifest.json"},
      {[&](auto& f) { f.erase(state); }, "state.safetensors"},
      {[&](auto& f) { f[manifest].resize(f[manifest].size() / 2); }, "not a JSON object (torn?)"},
      {[&](auto& f) { f[manifest] = "{}"; }, "'format' is missing or wrong"},
      {[&](auto& f) { f[manifest].replace(f[manifest].find("\"version\": 1"), 12, "\"version\": 2"); },
       "version 2; this Paceline reads"},
      {[&](auto& f) { f[manifest].replace(f[manifest].find("\"step\": 2"), 9, "\"step\": 3"); },
       "the folder's name says another"},
      {[&](auto& f) { f[manifest].replace(f[manifest].find("\"step\": 2"), 9, "\"step\":-2"); },
       "'step' is missing or wrong"},
      {[&](auto& f) { f[manifest].replace(f[manifest].find("state.safe"), 10, "../../../x"); },
       "a name without '/'"},
      {[&](auto& f) { f[manifest].replace(f[manifest].find("state.safe"), 10, "other.safe"); },
       "'files' must name state.safetensors first"},
      {[&](auto& f) {
         const std::string file = R"({"name": "a", "bytes": 1, "crc32c": "0"}, )";
         f[manifest].insert(f[manifest].find("\"files\": [") + 10, file + file);
       },
       "a name that comes once"},
      {[&](auto& f) { f[manifest].replace(f[manifest].find("\"crc32c\": \""), 12, "\"crc32c\": \"z"); },
       "'crc32c' is missing or wrong"},
      {[&](auto& f) { f[state].back() ^= 1; }, "its checksum isn't the manifest's"},
      {[&](auto& f) { f[state].pop_back(); }, "the manifest says"},
      {[&](auto& f) { f[state] += 'x'; }, "state.safetensors"},
  };
  for (const auto& [alter, reason] : cases) {
    auto [files, store] = Stored(5, {1, 2});
    alter(files.files());
    PL_ASSERT_OK(loaded, store.load_latest());
    EXPECT_EQ(loaded->progress.step, 1);
    ASSERT_EQ(loaded->refused.size(), 1u) << reason;
    EXPECT_THAT(loaded->refused[0], HasSubstr("step-000000002: "));
    EXPECT_THAT(loaded->refused[0], HasSubstr(reason));
  }
}

TEST(CheckpointStoreTest, AnyAlteredByteIsFound) {
  auto [files, store] = Stored(5, {3});
  std::string& state = files.files()[str_cat(kFolder, "/step-000000003/state.safetensors")];
  for (char& byte : state) {
    byte ^= 0x10;
    EXPECT_EQ(store.load_latest().status().code(), absl::StatusCode::kDataLoss);
    byte ^= 0x10;
  }
  EXPECT_EQ(loaded_step(files), 3);
  std::string& manifest = files.files()[str_cat(kFolder, "/step-000000003/manifest.json")];
  for (std::uint64_t seed = 1; seed <= 500;
       ++seed) {  // never crashes; a change may be harmless, in the seed or in spaces
    Rng rng(seed, 1);
    const std::string good = manifest;
    manifest[rng.below(manifest.size())] = static_cast<char>(rng.next_u64());
    (void)store.load_latest();
    manifest = good;
  }
}

TEST(CheckpointStoreTest, ACheckpointOfAnotherModelIsExplained) {
  auto [files, store] = Stored(1, {3});
  const auto loaded = store.load_latest();
  std::vector<float> larger(51);
  const auto bytes = std::as_writable_bytes(std::span(larger));
  const absl::Status status = loaded->copy_to("weights", DType::kF32, bytes);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("'weights' has 200 bytes of F32, this job needs 204 of F32"));
  EXPECT_THAT(std::string(loaded->copy_to("bias", DType::kF32, bytes).message()),
              HasSubstr("no tensor 'bias'"));
}

TEST(ManifestTest, RoundTrip) {
  const Manifest manifest{State(9).snapshot.progress, {{"state.safetensors", 1ull << 40, 0x01ab}}};
  PL_ASSERT_OK(parsed, parse_manifest(encode_manifest(manifest)));
  EXPECT_EQ(encode_manifest(*parsed), encode_manifest(manifest));
  EXPECT_EQ(parsed->files[0].crc32c, 0x01abu);
  EXPECT_EQ(parsed->files[0].bytes, 1ull << 40);
}

class DirectoryTest : public ::testing::Test {
 protected:
  DirectoryTest() {
    std::string name = (std::filesystem::temp_directory_path() / "paceline-checkpoint-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~DirectoryTest() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
};

TEST_F(DirectoryTest, APlaceThatCantBeWrittenIsKnownBeforeTheFirstSave) {
  EXPECT_TRUE(CheckpointStore(folder_ + "/new", 1).check_writable().ok());
  EXPECT_TRUE(make_directory_store()->list(folder_ + "/new").value().empty());
  std::ofstream(folder_ + "/file") << "x";
  EXPECT_FALSE(CheckpointStore(folder_ + "/file", 1).check_writable().ok());
  EXPECT_FALSE(CheckpointStore(folder_ + "/file/below", 1).check_writable().ok());
}

TEST_F(DirectoryTest, OnThisMachinesFiles) {
  CheckpointStore store(folder_ + "/a/b", 2);
  EXPECT_EQ(store.load_latest().status().code(), absl::StatusCode::kNotFound);
  for (const std::int64_t step : {1, 2, 3, 3}) ASSERT_TRUE(store.save(State(step).snapshot).ok());
  PL_ASSERT_OK(loaded, store.load_latest());
  EXPECT_EQ(loaded->name, "step-000000003");
  EXPECT_THAT(make_directory_store()->list(folder_ + "/a/b").value(),
              ElementsAre("step-000000002", "step-000000003"));
  std::ofstream(folder_ + "/a/b/step-000000003/state.safetensors", std::ios::app) << "x";
  EXPECT_EQ(store.load_latest()->name, "step-000000002");

  std::ofstream(folder_ + "/file") << "x";
  const absl::Status status = CheckpointStore(folder_ + "/file", 1).save(State(1).snapshot);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr(folder_ + "/file"));
}

// Opening a pipe waits for somebody who writes into it. One that waits is set free after the limit.
TEST_F(DirectoryTest, APipeInTheFilesPlaceIsPassedOverAndHoldsNobodyUp) {
  for (const char* name : {"manifest.json", "state.safetensors"}) {
    CheckpointStore store(folder_, 2);
    for (const std::int64_t step : {1, 2}) ASSERT_TRUE(store.save(State(step).snapshot).ok());
    const std::string pipe = str_cat(folder_, "/step-000000002/", name);
    ASSERT_TRUE(std::filesystem::remove(pipe));
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    auto loading = std::async(std::launch::async, [&] { return store.load_latest(); });
    const bool came = loading.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
    EXPECT_TRUE(came) << name << ": it waits for a writer";
    if (!came) UniqueFd(::open(pipe.c_str(), O_WRONLY | O_CLOEXEC));
    PL_ASSERT_OK(loaded, loading.get());
    EXPECT_EQ(loaded->name, "step-000000001");
    ASSERT_EQ(loaded->refused.size(), 1u);
    EXPECT_THAT(loaded->refused[0], HasSubstr(str_cat(pipe, " is a pipe, not a regular file")));
    std::filesystem::remove_all(folder_ + "/step-000000002");
  }
}

// Two pieces are under way at most, however large what is appended; the sync has little left to do.
TEST_F(DirectoryTest, ALargeFileGoesToTheDiskWhileItIsWritten) {
  std::vector<std::string> calls;
  absl::Status result;
  const auto store = make_directory_store(100, [&](int, std::uint64_t at, std::uint64_t bytes, bool await) {
    calls.push_back(str_cat(await ? "await " : "begin ", at, " + ", bytes));
    return result;
  });
  std::vector<std::byte> content(370);
  for (std::size_t k = 0; k < content.size(); ++k) content[k] = static_cast<std::byte>(k);
  const std::span<const std::byte> all = content;
  const std::string path = folder_ + "/state";
  PL_ASSERT_OK(file, store->create_file(path));
  ASSERT_TRUE((*file)->append(all.first(99)).ok());
  EXPECT_THAT(calls, ElementsAre()) << "a small one is only synced";
  ASSERT_TRUE((*file)->append(all.subspan(99, 2)).ok());
  EXPECT_THAT(calls, ElementsAre("begin 0 + 100"));
  ASSERT_TRUE((*file)->append(all.subspan(101)).ok());
  EXPECT_THAT(calls, ElementsAre("begin 0 + 100", "begin 100 + 100", "await 0 + 100", "begin 200 + 100",
                                 "await 100 + 100"));
  ASSERT_TRUE((*file)->finish().ok());
  EXPECT_EQ(store->read_file(path, 1000).value(), content);
  result = absl::ResourceExhaustedError("the disk is full");
  const std::vector<std::span<const std::byte>> pieces = {all};
  const absl::Status full = store->write_file(path, pieces);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()), HasSubstr(path));

  const auto real = make_directory_store(100);
  ASSERT_TRUE(real->write_file(path, pieces).ok());
  EXPECT_EQ(real->read_file(path, 1000).value(), content);
}

// To open one fails before it can be asked what it is.
TEST_F(DirectoryTest, ASocketIsNoFile) {
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string path = folder_ + "/state";
  ASSERT_LT(path.size(), sizeof(address.sun_path));
  std::copy(path.begin(), path.end(), address.sun_path);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  const auto store = make_directory_store();
  for (const absl::Status& status : {store->read_file(path, 100).status(), store->open_file(path).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(path + " is a socket, not a regular file"));
  }
}

TEST_F(DirectoryTest, ModelsAreReadByOurselvesAndByPython) {
  const std::string path = folder_ + "/model.safetensors";
  const std::vector<float> weights{1, 2, 3, 4, 5, 6};
  const std::vector<BFloat16> bias{BFloat16(0.5f), BFloat16(-1.0f)};
  const std::vector<TensorView> tensors = {tensor_view<float>("fc.weight", DType::kF32, {2, 3}, weights),
                                           tensor_view<BFloat16>("fc.bias", DType::kBF16, {2}, bias)};
  ASSERT_TRUE(write_model(path, tensors, {{"format", "pt"}}).ok());
  ASSERT_TRUE(write_model(path, tensors, {{"format", "pt"}}).ok()) << "over the old one";
  EXPECT_THAT(make_directory_store()->list(folder_).value(), ElementsAre("model.safetensors"));
  PL_ASSERT_OK(loaded, read_model(path));
  EXPECT_EQ(loaded->metadata.at("format"), "pt");
  ASSERT_EQ(loaded->tensors.size(), 2u);
  EXPECT_EQ(loaded->tensors[0].dims, (std::vector<std::int64_t>{2, 3}));

  if (std::system("python3 -c 'import safetensors' >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "python3 has no module safetensors; the golden file test stands in for it";
  }
  // The names, types, shapes and bytes, without NumPy, which has no bfloat16.
  const std::string script =
      "import safetensors\n"
      "t = dict(safetensors.deserialize(open('" +
      path +
      "', 'rb').read()))\n"
      "import struct\n"
      "assert t['fc.weight']['dtype'] == 'F32' and list(t['fc.weight']['shape']) == [2, 3], t\n"
      "assert struct.unpack('<6f', bytes(t['fc.weight']['data'])) == (1, 2, 3, 4, 5, 6), t\n"
      "assert t['fc.bias']['dtype'] == 'BF16' and bytes(t['fc.bias']['data']) == b'\\x00\\x3f\\x80\\xbf', "
      "t\n";
  ASSERT_TRUE(write_file_atomically(folder_ + "/read.py", script).ok());
  EXPECT_EQ(std::system(("python3 '" + folder_ + "/read.py'").c_str()), 0);
}

}  // namespace
}  // namespace paceline::checkpoint

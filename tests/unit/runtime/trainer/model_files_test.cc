#include "runtime/trainer/model_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "base/rng.h"
#include "base/status.h"
#include "tests/support/assert_ok.h"
#include "tests/unit/runtime/checkpoint/memory_file_store.h"

namespace paceline::trainer {
namespace {

using checkpoint::MemoryFileStore;
using pserver::sparse::SavedRows;
using pserver::sparse::TableSpec;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kFolder = "runs/job/model";

TableSpec table(const std::string& name, std::size_t dim) {
  TableSpec spec;
  spec.name = name;
  spec.dim = dim;
  spec.optimizer.learning_rate = 0.1;
  return spec;
}
const std::vector<TableSpec> kTables = {table("wide", 1), table("deep", 4096), table("none", 2)};

using Table = std::map<std::uint64_t, std::vector<float>>;
using Model = std::vector<Table>;  // of kTables

// The model of one step: dense weights and rows whose every number says which step it is.
struct Given {
  explicit Given(std::int64_t of, std::size_t wide = 20'000, std::size_t deep = 300)
      : stamp{of, static_cast<std::uint64_t>(of) * 0x123456789},
        weights(10, static_cast<float>(of)),
        counts{wide, deep, 0} {}

  absl::Status write(checkpoint::FileStore& files) const {
    const auto dense = checkpoint::tensor_view<float>("w", DType::kF32, {10}, weights);
    return write_model_files(files, kFolder, stamp, std::span(&dense, 1), kTables,
                             [&](pserver::sparse::RowSink& sink) { return give(sink); })
        .status();
  }
  absl::Status give(pserver::sparse::RowSink& sink) const {
    for (int t = 0; t < 3; ++t) PL_RETURN_IF_ERROR(sink.begin(t, 0, counts[static_cast<std::size_t>(t)], 1));
    for (int t = 0; t < 2; ++t) {
      const std::size_t count = counts[static_cast<std::size_t>(t)],
                        dim = kTables[static_cast<std::size_t>(t)].dim;
      SavedRows rows;
      for (std::size_t k = 0; k < count; ++k) rows.ids.push_back(mix64(k + 1000));
      rows.last.resize(count);
      rows.uses.resize(count);
      rows.steps.resize(count);
      rows.floats.assign(count * dim, static_cast<float>(stamp.step));
      PL_RETURN_IF_ERROR(sink.add(t, 0, rows));
    }
    return absl::OkStatus();
  }
  Model model() const {
    Model all(3);
    for (std::size_t t = 0; t < 2; ++t) {
      for (std::size_t k = 0; k < counts[t]; ++k)
        all[t][mix64(k + 1000)] = std::vector<float>(kTables[t].dim, static_cast<float>(stamp.step));
    }
    return all;
  }

  const ModelStamp stamp;
  const std::vector<float> weights;
  const std::vector<std::size_t> counts;
};

absl::StatusOr<Model> rows_of(ModelReader& reader) {
  Model all(3);
  ModelReader::Rows rows;
  while (true) {
    PL_ASSIGN_OR_RETURN(const std::size_t t, reader.next(rows));
    if (rows.ids.empty()) return all;
    const std::size_t dim = rows.weights.size() / rows.ids.size();
    EXPECT_LE(rows.weights.size() * sizeof(float), std::size_t{5} << 20) << "some MiB at a time";
    for (std::size_t k = 0; k < rows.ids.size(); ++k) {
      const auto begin = rows.weights.begin() + static_cast<std::ptrdiff_t>(k * dim);
      all[t][rows.ids[k]] = {begin, begin + static_cast<std::ptrdiff_t>(dim)};
    }
  }
}

std::string refusal(const MemoryFileStore& files) {
  const auto reader = ModelReader::open(files, kFolder);
  EXPECT_EQ(reader.status().code(), absl::StatusCode::kDataLoss) << reader.status();
  return std::string(reader.status().message());
}

TEST(ModelFiles, WrittenModelIsReadBack) {
  MemoryFileStore files;
  const Given given(7, 600'000);  // several chunks of either
  ASSERT_TRUE(Given(5).write(files).ok());
  ASSERT_TRUE(given.write(files).ok()) << "over the old ones";
  EXPECT_THAT(*files.list(kFolder), ElementsAre("model.safetensors", "table-deep.safetensors",
                                                "table-none.safetensors", "table-wide.safetensors"));
  PL_ASSERT_OK(reader, ModelReader::open(files, kFolder));
  EXPECT_EQ((*reader)->stamp(), given.stamp);
  ASSERT_EQ((*reader)->dense().tensors.size(), 1u);
  EXPECT_EQ((*reader)->dense().tensors[0].name, "w");
  ASSERT_EQ((*reader)->tables().size(), 3u);
  EXPECT_EQ((*reader)->tables()[1].name, "deep");
  EXPECT_EQ((*reader)->tables()[1].dim, 4096u);
  EXPECT_EQ((*reader)->tables()[1].rows, 300u);
  PL_ASSERT_OK(rows, rows_of(**reader));
  EXPECT_EQ(*rows, given.model());
}

TEST(ModelFiles, EachFileSaysOfWhichMomentItIs) {
  MemoryFileStore files;
  ASSERT_TRUE(Given(7).write(files).ok());
  for (const char* name : {"model", "table-wide", "table-deep", "table-none"}) {
    PL_ASSERT_OK(file, read_safetensors(files, str_cat(kFolder, "/", name, ".safetensors")));
    EXPECT_EQ(file->metadata.at("step"), "7");
    EXPECT_EQ(file->metadata.at("weightsHash"), "00000007f6e5d4bf");
  }
}

TEST(ModelFiles, AModelWithoutTablesIsOneFile) {
  MemoryFileStore files;
  const std::vector<float> weights(10, 2.5F);
  const auto dense = checkpoint::tensor_view<float>("w", DType::kF32, {10}, weights);
  PL_ASSERT_OK(path, write_model_files(files, kFolder, {3, 4}, std::span(&dense, 1), {}, nullptr));
  EXPECT_EQ(*path, str_cat(kFolder, "/model.safetensors"));
  EXPECT_THAT(*files.list(kFolder), ElementsAre("model.safetensors"));
  PL_ASSERT_OK(reader, ModelReader::open(files, kFolder));
  EXPECT_TRUE((*reader)->tables().empty());
  ModelReader::Rows rows;
  ASSERT_TRUE((*reader)->next(rows).ok());
  EXPECT_TRUE(rows.ids.empty());
}

// Whatever is left, it is the old model or the new one, or it is refused.
TEST(ModelFiles, ACrashAtAnyOperationLeavesNoMixtureThatPassesForAModel) {
  const Given before(5, 500, 4), after(7, 600, 3);
  constexpr std::uint64_t kSeed = 7;
  SCOPED_TRACE(str_cat("seed ", kSeed));
  Rng rng(kSeed, 1);
  int mixtures = 0, whole = 0;
  const auto look = [&](const MemoryFileStore& files) {
    const auto reader = ModelReader::open(files, kFolder);
    if (!reader.ok()) {
      EXPECT_EQ(reader.status().code(), absl::StatusCode::kDataLoss) << reader.status();
      EXPECT_THAT(std::string(reader.status().message()), HasSubstr("files of different models"));
      ++mixtures;
      return;
    }
    const Given& expected = (*reader)->stamp() == before.stamp ? before : after;
    EXPECT_EQ((*reader)->stamp(), expected.stamp);
    PL_ASSERT_OK(rows, rows_of(**reader));
    EXPECT_TRUE(*rows == expected.model());
    ++whole;
  };
  for (std::int64_t at = 0;; ++at) {
    MemoryFileStore files;
    ASSERT_TRUE(before.write(files).ok());
    files.settle();
    files.crash_at(at, 10);
    const bool done = after.write(files).ok();
    look(*files.after_kill());
    for (int i = 0; i < 5; ++i) look(*files.after_power_cut(rng));
    if (done) break;
  }
  EXPECT_GT(mixtures, 0) << "there is something to refuse";
  EXPECT_GT(whole, 0);
}

TEST(ModelFiles, AMixtureIsRefusedWithWhatEachFileIsAndWhatToDo) {
  MemoryFileStore old, files;
  ASSERT_TRUE(Given(5).write(old).ok());
  ASSERT_TRUE(Given(7).write(files).ok());
  const auto whole = files.files();
  const auto path = [](const char* name) { return str_cat(kFolder, "/", name, ".safetensors"); };

  files.files()[path("table-deep")] = old.files()[path("table-deep")];
  std::string message = refusal(files);
  EXPECT_THAT(message, HasSubstr(str_cat(kFolder, " holds files of different models")));
  EXPECT_THAT(message, HasSubstr("model.safetensors of step 7 (weights 00000007f6e5d4bf), "));
  EXPECT_THAT(message, HasSubstr("table-wide.safetensors of step 7 (weights 00000007f6e5d4bf), "));
  EXPECT_THAT(message, HasSubstr("table-deep.safetensors of step 5 (weights 00000005b05b05ad)"));
  EXPECT_THAT(message, HasSubstr("--resume"));

  files.files() = whole;
  files.files().erase(path("table-wide"));
  EXPECT_THAT(refusal(files), HasSubstr("table-wide.safetensors missing"));

  // The same step of another training.
  files.files() = whole;
  std::string& other = files.files()[path("table-none")];
  other.replace(other.find("00000007f6e5d4bf"), 16, "00000007f6e5d4be");
  EXPECT_THAT(refusal(files), HasSubstr("table-none.safetensors of step 7 (weights 00000007f6e5d4be)"));
}

TEST(ModelFiles, MalformedTableIsRefused) {
  MemoryFileStore files;
  ASSERT_TRUE(Given(7).write(files).ok());
  const std::string path = str_cat(kFolder, "/table-deep.safetensors");
  const std::string whole = files.files()[path];
  for (const std::string& content : {std::string(), std::string("abc"), std::string(20, 'x'),
                                     whole.substr(0, 60), whole.substr(0, whole.size() - 1), whole + "x"}) {
    files.files()[path] = content;
    EXPECT_THAT(refusal(files), HasSubstr(path));
  }
  files.files()[path] = whole;
  EXPECT_TRUE(ModelReader::open(files, kFolder).ok());
  EXPECT_EQ(ModelReader::open(files, "elsewhere").status().code(), absl::StatusCode::kNotFound);
}

// The table "wide", whose chunks have that many rows; the header says that there are `rows`.
void replace_wide(MemoryFileStore& files, const std::vector<std::int64_t>& chunks, std::uint64_t rows) {
  const std::string path = str_cat(kFolder, "/table-wide.safetensors");
  checkpoint::Metadata metadata = checkpoint::read_safetensors(files, path)->metadata;
  metadata["rows"] = str_cat(rows);
  std::vector<checkpoint::TensorShape> shapes;
  std::string data;
  std::uint64_t id = 0;
  for (std::size_t k = 0; k < chunks.size(); ++k) {
    shapes.push_back({str_cat("ids/", k), DType::kI64, {chunks[k]}});
    shapes.push_back({str_cat("weights/", k), DType::kF32, {chunks[k], 1}});
    std::vector<std::uint64_t> ids(static_cast<std::size_t>(chunks[k]));
    std::iota(ids.begin(), ids.end(), id);
    id += ids.size();
    const std::vector<float> weights(ids.size(), 0.5F);
    data.append(reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(std::uint64_t));
    data.append(reinterpret_cast<const char*>(weights.data()), weights.size() * sizeof(float));
  }
  files.files()[path] = *checkpoint::encode_header_of(shapes, metadata) + data;
}

TEST(ModelFiles, AnEmptyChunkIsNotTheEnd) {
  for (const std::vector<std::int64_t>& chunks :
       {std::vector<std::int64_t>{0, 2, 4}, {2, 0, 0, 4}, {2, 4, 0}}) {
    MemoryFileStore files;
    ASSERT_TRUE(Given(7, 10, 3).write(files).ok());
    replace_wide(files, chunks, 6);
    PL_ASSERT_OK(reader, ModelReader::open(files, kFolder));
    PL_ASSERT_OK(rows, rows_of(**reader));
    EXPECT_EQ((*rows)[0].size(), 6u);
    EXPECT_EQ((*rows)[1].size(), 3u) << "the table behind it is read as well";
  }
}

TEST(ModelFiles, ATableThatHasNotTheRowsThatItSaysIsRefused) {
  for (const std::uint64_t said : {5u, 7u, 0u}) {
    MemoryFileStore files;
    ASSERT_TRUE(Given(7, 10, 3).write(files).ok());
    replace_wide(files, {2, 4}, said);
    EXPECT_THAT(
        refusal(files),
        HasSubstr(str_cat(kFolder, "/table-wide.safetensors: its chunks have 6 rows, it says ", said)));
  }
}

TEST(ModelFiles, AModelThatCanNotBeWrittenLeavesTheOldOne) {
  MemoryFileStore files;
  ASSERT_TRUE(Given(5, 100, 2).write(files).ok());
  const auto before = files.files();
  files.set_capacity(100'000);
  EXPECT_EQ(Given(7).write(files).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(files.files(), before);
}

}  // namespace
}  // namespace paceline::trainer

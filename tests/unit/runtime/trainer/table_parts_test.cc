#include "runtime/trainer/table_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "base/rng.h"
#include "base/status.h"
#include "tests/support/assert_ok.h"
#include "tests/unit/runtime/checkpoint/memory_file_store.h"

namespace paceline::trainer {
namespace {

using checkpoint::CheckpointStore;
using checkpoint::FileEntry;
using checkpoint::MemoryFileStore;
using pserver::sparse::RowOptimizer;
using pserver::sparse::SavedRows;
using pserver::sparse::TableSpec;
using ::testing::HasSubstr;

constexpr const char* kFolder = "runs/job/checkpoints";

TableSpec table(const std::string& name, std::size_t dim, RowOptimizer::Kind kind) {
  TableSpec spec;
  spec.name = name;
  spec.dim = dim;
  spec.optimizer.kind = kind;
  spec.optimizer.learning_rate = 0.1;
  return spec;
}

const std::vector<TableSpec> kTables = {table("wide", 1, RowOptimizer::Kind::kFtrl),
                                        table("deep", 4096, RowOptimizer::Kind::kAdagrad),
                                        table("none", 2, RowOptimizer::Kind::kSgd)};

// Rows of `server`: ids and all numbers follow from a seed.
SavedRows some_rows(std::size_t count, std::size_t floats, std::uint64_t server) {
  SavedRows rows;
  Rng rng(server, 5);
  for (std::size_t k = 0; k < count; ++k) {
    rows.ids.push_back(rng.next_u64());
    rows.last.push_back(static_cast<std::int64_t>(rng.below(1000)));
    rows.uses.push_back(static_cast<std::uint32_t>(rng.below(50)));
    rows.steps.push_back(static_cast<std::uint32_t>(rng.below(60)));
    for (std::size_t i = 0; i < floats; ++i) rows.floats.push_back(static_cast<float>(rng.below(1000)) - 500);
  }
  return rows;
}

struct Row {
  std::int64_t last;
  std::uint32_t uses, steps;
  std::vector<float> floats;
  bool operator==(const Row&) const = default;
};
using Rows = std::map<std::pair<int, std::uint64_t>, Row>;  // by table and id

void note(int table, const SavedRows& rows, Rows& to) {
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const std::size_t floats = rows.floats.size() / rows.size();
    const auto begin = rows.floats.begin() + static_cast<std::ptrdiff_t>(k * floats);
    const bool added =
        to.try_emplace({table, rows.ids[k]}, Row{rows.last[k],
                                                 rows.uses[k],
                                                 rows.steps[k],
                                                 {begin, begin + static_cast<std::ptrdiff_t>(floats)}})
            .second;
    EXPECT_TRUE(added) << "row " << rows.ids[k] << " twice";
  }
}

// Two servers' rows of kTables: so many that they take several chunks.
struct Given {
  Given() {
    for (int server = 0; server < 2; ++server) {
      wide.push_back(some_rows(90'000, 3, static_cast<std::uint64_t>(server)));
      deep.push_back(some_rows(150, 8192, static_cast<std::uint64_t>(server) + 2));
    }
  }
  absl::Status give(pserver::sparse::RowSink& sink) const {
    for (int server = 0; server < 2; ++server) {
      const auto s = static_cast<std::size_t>(server);
      PL_RETURN_IF_ERROR(sink.begin(0, server, wide[s].size(), 7));
      PL_RETURN_IF_ERROR(sink.begin(1, server, deep[s].size(), 7));
      PL_RETURN_IF_ERROR(sink.begin(2, server, 0, 7));
    }
    for (std::size_t s : {1, 0}) {
      PL_RETURN_IF_ERROR(sink.add(0, static_cast<int>(s), wide[s]));
      PL_RETURN_IF_ERROR(sink.add(1, static_cast<int>(s), deep[s]));
    }
    return absl::OkStatus();
  }
  Rows rows() const {
    Rows all;
    for (const SavedRows& each : wide) note(0, each, all);
    for (const SavedRows& each : deep) note(1, each, all);
    return all;
  }
  std::vector<SavedRows> wide, deep;
};

absl::Status save(CheckpointStore& store, const std::vector<TableSpec>& tables, const Given& given) {
  PL_ASSIGN_OR_RETURN(const auto writer, store.begin());
  TablePartsWriter rows(tables, TableContents::kAll,
                        [&](const std::string& name) { return writer->begin_part(name); });
  PL_RETURN_IF_ERROR(given.give(rows));
  PL_ASSIGN_OR_RETURN(const std::vector<FileEntry> parts, rows.finish());
  return writer->finish({{.step = 3}, {}}, parts);
}

TEST(TableParts, WrittenRowsAreReadInChunks) {
  MemoryFileStore files;
  CheckpointStore store(files, kFolder, 1);
  const Given given;
  ASSERT_TRUE(save(store, kTables, given).ok());
  PL_ASSERT_OK(loaded, store.load_latest());
  ASSERT_EQ(loaded->parts.size(), 3u);
  EXPECT_EQ(loaded->parts[1].name, "table-deep.safetensors");
  PL_ASSERT_OK(reader, TablePartsReader::open(store, *loaded, kTables));
  Rows read;
  SavedRows rows;
  while (true) {
    PL_ASSERT_OK(number, (*reader)->next(rows));
    if (rows.size() == 0) break;
    EXPECT_LE(rows.floats.size(), std::size_t{1} << 18);
    note(*number, rows, read);
  }
  EXPECT_EQ(read, given.rows());
  ASSERT_TRUE((*reader)->next(rows).ok());
  EXPECT_EQ(rows.size(), 0u) << "the end stays the end";
}

TEST(TableParts, TheFilesAreSafetensorsWithAlignedChunks) {
  MemoryFileStore files;
  CheckpointStore store(files, kFolder, 1);
  ASSERT_TRUE(save(store, kTables, Given()).ok());
  for (const char* name : {"wide", "deep", "none"}) {
    PL_ASSERT_OK(file,
                 read_safetensors(files, str_cat(kFolder, "/step-000000003/table-", name, ".safetensors")));
    EXPECT_EQ(file->metadata.at("table"), name);
    for (const auto& tensor : file->tensors) {
      const auto offset = static_cast<std::size_t>(tensor.data.data() - file->bytes.data());
      EXPECT_EQ(offset % 8, 0u) << tensor.name;
    }
  }
  const auto deep = read_safetensors(files, str_cat(kFolder, "/step-000000003/table-deep.safetensors"));
  EXPECT_EQ(deep->metadata.at("dim"), "4096");
  EXPECT_EQ(deep->metadata.at("state"), "sum");
  EXPECT_EQ(deep->metadata.at("rows"), "300");
  ASSERT_GT(deep->tensors.size(), 5u) << "several chunks";
  EXPECT_EQ(deep->tensors[4].name, "rows/0");
  EXPECT_EQ(deep->tensors[5].name, "ids/1");
}

TEST(TableParts, AnnouncedRowsMustCome) {
  MemoryFileStore files;
  CheckpointStore store(files, kFolder, 1);
  PL_ASSERT_OK(writer, store.begin());
  const auto open = [&](const std::string& name) { return (*writer)->begin_part(name); };
  {
    TablePartsWriter rows(kTables, TableContents::kAll, open);
    ASSERT_TRUE(rows.begin(0, 0, 2, 1).ok());
    EXPECT_THAT(std::string(rows.add(0, 1, some_rows(3, 3, 1)).message()), HasSubstr("table wide: server 1"));
  }
  {
    TablePartsWriter rows(kTables, TableContents::kAll, open);
    ASSERT_TRUE(rows.begin(0, 0, 2, 1).ok());
    ASSERT_TRUE(rows.add(0, 0, some_rows(1, 3, 1)).ok());
    EXPECT_EQ(rows.finish().status().message(), "table wide: 1 of 2 rows have come");
  }
  {
    TablePartsWriter rows(kTables, TableContents::kAll, open);
    EXPECT_EQ(rows.begin(0, 0, ~std::uint64_t{0}, 1).code(), absl::StatusCode::kInvalidArgument);
    ASSERT_TRUE(rows.begin(0, 0, 2, 1).ok());
    EXPECT_EQ(rows.add(0, 0, some_rows(2, 2, 1)).code(), absl::StatusCode::kInvalidArgument);
  }
}

// Files whose sizes and checksums are right, but which are another table's, or hold other rows than they say.
TEST(TableParts, AFilesHeaderMustSayWhatItIsTakenFor) {
  MemoryFileStore files;
  CheckpointStore store(files, kFolder, 1);
  const std::vector<TableSpec> tables = {table("left", 3, RowOptimizer::Kind::kSgd),
                                         table("right", 3, RowOptimizer::Kind::kSgd)};
  const auto save_as = [&](const std::function<void(checkpoint::PartWriter&, int)>& write) {
    PL_ASSERT_OK(writer, store.begin());
    std::vector<FileEntry> parts;
    for (int k = 0; k < 2; ++k) {
      PL_ASSERT_OK(part, (*writer)->begin_part(table_file(tables[static_cast<std::size_t>(k)].name)));
      write(**part, k);
      parts.push_back((*part)->finish().value());
    }
    ASSERT_TRUE((*writer)->finish({{.step = 3}, {}}, parts).ok());
  };
  const auto header = [](const std::string& name, const std::string& rows) {
    return checkpoint::encode_header_of({}, {{"table", name}, {"dim", "3"}, {"rows", rows}, {"state", ""}})
        .value();
  };
  const auto refusal = [&]() -> absl::Status {
    PL_ASSIGN_OR_RETURN(const auto loaded, store.load_latest());
    return TablePartsReader::open(store, loaded, tables).status();
  };
  save_as([&](checkpoint::PartWriter& part, int k) {
    ASSERT_TRUE(
        part.append(checkpoint::text_bytes(header(tables[static_cast<std::size_t>(k)].name, "0"))).ok());
  });
  EXPECT_TRUE(refusal().ok()) << refusal();
  save_as([&](checkpoint::PartWriter& part, int k) {
    ASSERT_TRUE(
        part.append(checkpoint::text_bytes(header(tables[static_cast<std::size_t>(1 - k)].name, "0"))).ok());
  });
  EXPECT_EQ(refusal().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(refusal().message()),
              HasSubstr("checkpoint step-000000003: table-left.safetensors is of the table 'right'"));
  save_as([&](checkpoint::PartWriter& part, int k) {
    ASSERT_TRUE(
        part.append(checkpoint::text_bytes(header(tables[static_cast<std::size_t>(k)].name, "7"))).ok());
  });
  EXPECT_EQ(refusal().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(refusal().message()),
              HasSubstr("checkpoint step-000000003: table-left.safetensors says 7 rows, and has 0"));
}

// Each of two tables of other widths and optimizers in the other's file.
TEST(TableParts, AnotherTablesFileIsToldBeforeItsSizesAre) {
  MemoryFileStore files;
  CheckpointStore store(files, kFolder, 1);
  const std::vector<TableSpec> tables = {table("narrow", 1, RowOptimizer::Kind::kSgd),
                                         table("broad", 8, RowOptimizer::Kind::kAdam)};
  for (const bool exchanged : {false, true}) {
    PL_ASSERT_OK(writer, store.begin());
    TablePartsWriter rows(tables, TableContents::kAll, [&](const std::string& name) {
      const std::string other = table_file(name == table_file("narrow") ? "broad" : "narrow");
      return (*writer)->begin_part(exchanged ? other : name);
    });
    PL_ASSERT_OK(parts, rows.finish());
    ASSERT_TRUE((*writer)->finish({{.step = 3}, {}}, *parts).ok());
    PL_ASSERT_OK(loaded, store.load_latest());
    const absl::Status opened = TablePartsReader::open(store, *loaded, tables).status();
    EXPECT_EQ(opened.code(), exchanged ? absl::StatusCode::kDataLoss : absl::StatusCode::kOk) << opened;
    if (!exchanged) continue;
    EXPECT_THAT(std::string(opened.message()),
                HasSubstr("checkpoint step-000000003: table-narrow.safetensors is of the table 'broad', not "
                          "of 'narrow'; it was put together of other files"));
  }
}

TEST(TableParts, RowsOfAnotherTableAreRefused) {
  MemoryFileStore files;
  CheckpointStore store(files, kFolder, 1);
  ASSERT_TRUE(save(store, kTables, Given()).ok());
  const auto loaded = store.load_latest();
  std::vector<TableSpec> other = kTables;
  other[1].optimizer.kind = RowOptimizer::Kind::kAdam;
  const absl::Status optimizer = TablePartsReader::open(store, *loaded, other).status();
  EXPECT_EQ(optimizer.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(optimizer.message()),
              HasSubstr("table deep has rows of 4096 floats with the state sum, this job needs rows of 4096 "
                        "floats with the state exp_avg,exp_avg_sq"));
  other = kTables;
  other[0].dim = 2;
  EXPECT_EQ(TablePartsReader::open(store, *loaded, other).status().code(),
            absl::StatusCode::kInvalidArgument);
  other = kTables;
  other[2].name = "more";
  EXPECT_EQ(TablePartsReader::open(store, *loaded, other).status().code(), absl::StatusCode::kDataLoss);
}

// A part that is not what its name says, and whose checksum is right.
TEST(TableParts, MalformedTableIsRefused) {
  const std::vector<TableSpec> one = {kTables[0]};
  const std::vector<float> floats(3);
  const std::vector<std::int64_t> ids(1);
  const checkpoint::Metadata metadata = {{"table", "wide"}, {"dim", "1"}, {"rows", "1"}, {"state", "z,n"}};
  const auto wrong = checkpoint::encode_header(
      std::vector{checkpoint::tensor_view<std::int64_t>("ids/0", DType::kI64, {1}, ids),
                  checkpoint::tensor_view<float>("rows/0", DType::kF32, {1, 3}, floats)},
      metadata);
  for (const std::string& content :
       {std::string("abc"), std::string(20, 'x'), *wrong + std::string(8 + 12, '\0')}) {
    MemoryFileStore files;
    CheckpointStore store(files, kFolder, 1);
    const auto writer = store.begin();
    const auto part = (*writer)->begin_part("table-wide.safetensors");
    ASSERT_TRUE((*part)->append(checkpoint::text_bytes(content)).ok());
    const std::vector<FileEntry> entries = {*(*part)->finish()};
    ASSERT_TRUE((*writer)->finish({{.step = 3}, {}}, entries).ok());
    const auto loaded = store.load_latest();
    const absl::Status status = TablePartsReader::open(store, *loaded, one).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(status.message()), HasSubstr("table-wide.safetensors"));
  }
}

// Between its verification and its reading a file may still change: no wrong rows pass for the whole table.
TEST(TableParts, DamageIsFoundWhileRowsAreRead) {
  MemoryFileStore files;
  CheckpointStore store(files, kFolder, 1);
  ASSERT_TRUE(save(store, kTables, Given()).ok());
  const auto loaded = store.load_latest();
  files.files()[str_cat(kFolder, "/step-000000003/table-wide.safetensors")].back() ^= 1;
  PL_ASSERT_OK(reader, TablePartsReader::open(store, *loaded, kTables));
  SavedRows rows;
  absl::Status status;
  for (int batch = 0; batch < 1000 && status.ok(); ++batch) status = (*reader)->next(rows).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace paceline::trainer

#include "runtime/pserver/row_messages.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace paceline::pserver {
namespace {

template <typename Message>
Buffer row_bytes(const Message& message) {
  Buffer buffer(13, std::byte{1});
  encode(message, buffer);
  return buffer;
}

TEST(PsRowMessages, ComeBackAsTheyWere) {
  const RowsMessage rows = {{0, 7, 0}, {3, 4096, 1 << 20}};
  RowsMessage rows2 = {{9, 9, 9}};
  ASSERT_TRUE(decode(row_bytes(rows), rows2).ok());
  EXPECT_EQ(rows2, rows);
  const TablesMessage tables = {{7, 12}, {0, 0}};
  TablesMessage tables2;
  ASSERT_TRUE(decode(row_bytes(tables), tables2).ok());
  EXPECT_EQ(tables2, tables);
}

TEST(PsRowMessages, RowsThatCannotBeMeantAreRefused) {
  RowsMessage decoded;
  const RowsMessage bad[] = {
      {},
      {{0, 0, 0}},
      {{0, sparse::kMaxRowsPerCall + 1, 0}},
      {{1, 1, 0}, {1, 1, 0}},
      {{2, 1, 0}, {1, 1, 0}},
      RowsMessage(sparse::kMaxTables + 1, RowsOfTable{1, 1, 0}),
  };
  for (const RowsMessage& message : bad) {
    EXPECT_EQ(decode(row_bytes(message), decoded).code(), absl::StatusCode::kInvalidArgument);
  }
  Buffer cut = row_bytes(RowsMessage{{0, 7, 0}, {3, 4, 0}});
  for (cut.pop_back(); cut.size() > 16; cut.pop_back()) {
    EXPECT_FALSE(decode(cut, decoded).ok()) << cut.size();
  }
  TablesMessage tables;
  EXPECT_FALSE(decode(row_bytes(TablesMessage{}), tables).ok());
  EXPECT_FALSE(decode(row_bytes(TablesMessage{{1, -1}}), tables).ok());
  EXPECT_FALSE(decode(row_bytes(TablesMessage(sparse::kMaxTables + 1)), tables).ok());
}

TEST(PsRowMessages, SavedRowsOfEachLength) {
  Rng rng(1, 0);
  for (const std::size_t floats : {1, 5, 64}) {
    for (const std::size_t count : {0, 1, 33}) {
      sparse::SavedRows rows, decoded;
      for (std::size_t k = 0; k < count; ++k) {
        rows.ids.push_back(rng.next_u64());
        rows.last.push_back(static_cast<std::int64_t>(rng.below(1000)));
        rows.uses.push_back(static_cast<std::uint32_t>(rng.next_u64()));
        rows.steps.push_back(static_cast<std::uint32_t>(rng.next_u64()));
      }
      for (std::size_t k = 0; k < count * floats; ++k) rows.floats.push_back(rng.normal());
      Buffer bytes = row_bytes(rows);
      ASSERT_TRUE(decode(bytes, floats, decoded).ok());
      EXPECT_EQ(decoded.ids, rows.ids);
      EXPECT_EQ(decoded.last, rows.last);
      EXPECT_EQ(decoded.uses, rows.uses);
      EXPECT_EQ(decoded.steps, rows.steps);
      EXPECT_EQ(decoded.floats, rows.floats);
      EXPECT_EQ(decode(bytes, floats + 1, decoded).ok(), count == 0) << "another table's";
      bytes.push_back(std::byte{0});
      EXPECT_FALSE(decode(bytes, floats, decoded).ok());
      bytes.resize(bytes.size() - 2);
      EXPECT_FALSE(decode(bytes, floats, decoded).ok());
    }
  }
  EXPECT_GE(rows_of_batch(std::size_t{1} << 30), 1u);
  EXPECT_LE(rows_of_batch(64) * (24 + 64 * sizeof(float)), kRowsBatchBytes);
}

TEST(PsRowMessages, AFingerprintSeesEverySetting) {
  sparse::TableSpec ads;
  ads.name = "ads";
  ads.dim = 4;
  ads.optimizer.learning_rate = 0.1;
  using Change = void (*)(sparse::TableSpec&);
  const Change changes[] = {
      [](sparse::TableSpec& s) { s.name = "add"; },
      [](sparse::TableSpec& s) { s.dim = 5; },
      [](sparse::TableSpec& s) { s.seed = 1; },
      [](sparse::TableSpec& s) { s.initializer.kind = sparse::Initializer::Kind::kUniform; },
      [](sparse::TableSpec& s) { s.initializer.scale = 1; },
      [](sparse::TableSpec& s) { s.optimizer.kind = sparse::RowOptimizer::Kind::kFtrl; },
      [](sparse::TableSpec& s) { s.optimizer.learning_rate = 0.2; },
      [](sparse::TableSpec& s) { s.optimizer.momentum = 0.5; },
      [](sparse::TableSpec& s) { s.optimizer.beta1 = 0.5; },
      [](sparse::TableSpec& s) { s.optimizer.beta2 = 0.5; },
      [](sparse::TableSpec& s) { s.optimizer.epsilon = 1; },
      [](sparse::TableSpec& s) { s.optimizer.beta = 2; },
      [](sparse::TableSpec& s) { s.optimizer.l1 = 1; },
      [](sparse::TableSpec& s) { s.optimizer.l2 = 1; },
      [](sparse::TableSpec& s) { s.bound.max_rows = 9; },
      [](sparse::TableSpec& s) { s.bound.evict = sparse::RowBound::Evict::kLeastFrequent; },
  };
  const auto of = [](const std::vector<sparse::TableSpec>& tables) { return fingerprint(tables); };
  EXPECT_EQ(of({}), 0u);
  EXPECT_EQ(of({ads}), of({ads}));
  for (const Change change : changes) {
    sparse::TableSpec other = ads;
    change(other);
    EXPECT_NE(of({other}), of({ads})) << (&change - changes);
    EXPECT_NE(of({other, ads}), of({ads, other})) << (&change - changes);
  }
  EXPECT_EQ(names_of({}), "none");
  EXPECT_EQ(names_of(std::vector{ads, ads}), "ads of 4, ads of 4");
}

}  // namespace
}  // namespace paceline::pserver

#include "runtime/pserver/row_cut.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/rng.h"
#include "runtime/pserver/sparse/row_hash.h"

namespace paceline::pserver {
namespace {

using ::testing::HasSubstr;
using Ids = std::vector<sparse::RowId>;

std::vector<sparse::TableSpec> tables_of(std::vector<std::size_t> dims) {
  std::vector<sparse::TableSpec> tables;
  for (const std::size_t dim : dims) {
    tables.emplace_back();
    tables.back().name = "t" + std::to_string(tables.size());
    tables.back().dim = dim;
  }
  return tables;
}

// Every row of every call is with its server, once, in rising order, and known by its place.
TEST(RowCut, GivesEachServerItsRows) {
  const auto tables = tables_of({3, 1, 16});
  for (int servers = 1; servers <= 5; ++servers) {
    RowCut cut(tables, servers);
    Rng rng(static_cast<std::uint64_t>(servers), 0);
    for (int round = 0; round < 50; ++round) {
      std::vector<Ids> ids(3);
      std::vector<RowsCall> calls;
      std::size_t rows = 0, floats = 0;
      for (const int t : {2, 0, 1}) {  // callers name tables in any order
        auto& mine = ids[static_cast<std::size_t>(t)];
        std::set<sparse::RowId> set;
        for (std::uint64_t k = rng.below(200); k > 0; --k) set.insert(rng.next_u64());
        mine.assign(set.begin(), set.end());
        if (rng.below(4) == 0) continue;
        const std::size_t dim = tables[static_cast<std::size_t>(t)].dim;
        calls.push_back({t, mine, mine.size() * dim});
        rows += mine.size();
        floats += mine.size() * dim;
      }
      ASSERT_TRUE(cut.cut(calls).ok());
      EXPECT_EQ(cut.rows(), rows);
      EXPECT_EQ(cut.floats(), floats);
      EXPECT_EQ(cut.placed(), servers > 1);
      std::size_t found = 0;
      for (int s = 0; s < servers; ++s) {
        const RowCut::OfServer& of = cut.of(s);
        ASSERT_EQ(of.ids.all().size(), of.rows);
        std::size_t first = 0, before = 0;
        std::int64_t last_table = -1;
        for (const RowCut::Part& part : of.parts) {
          ASSERT_GT(static_cast<std::int64_t>(part.table), last_table);
          last_table = part.table;
          ASSERT_EQ(static_cast<int>(part.table), calls[part.call].table);
          ASSERT_GT(part.count, 0u);
          ASSERT_EQ(part.first, first);
          ASSERT_EQ(part.floats, before);
          ASSERT_EQ(part.dim, tables[part.table].dim);
          for (std::size_t k = 0; k < part.count; ++k) {
            const sparse::RowId id = of.ids.all()[first + k];
            const std::size_t place = servers > 1 ? of.places.all()[first + k] : k;
            ASSERT_EQ(id, calls[part.call].ids[place]);
            ASSERT_EQ(sparse::server_of(id, servers), s);
            ASSERT_TRUE(k == 0 || id > of.ids.all()[first + k - 1]);
          }
          first += part.count;
          before += part.count * part.dim;
        }
        EXPECT_EQ(first, of.rows);
        EXPECT_EQ(before, of.float_count);
        found += first;
      }
      EXPECT_EQ(found, rows);
    }
  }
}

TEST(RowCut, RefusesWhatDoesNotFit) {
  const auto tables = tables_of({4096, 4096});
  RowCut cut(tables, 2);
  const Ids two = {1, 2}, falling = {2, 1};
  const auto says = [&](std::vector<RowsCall> calls) {
    const absl::Status status = cut.cut(calls);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_EQ(cut.of(0).rows + cut.of(1).rows, 0u);
    return std::string(status.message());
  };
  EXPECT_THAT(says({{0, two, 8192}, {0, two, 8192}}), HasSubstr("table t1 comes twice in one call"));
  EXPECT_THAT(says({{1, falling, 8192}}), HasSubstr("table t2: row ids must rise"));
  EXPECT_THAT(says({{1, two, 8191}}), HasSubstr("8191 floats for 2 rows of 4096"));
  EXPECT_THAT(says({{2, two, 8192}}), HasSubstr("there is no such table"));
  Ids many;
  for (sparse::RowId id = 0; id <= sparse::kMaxFloatsPerCall / 2 / 4096; ++id) many.push_back(id);
  const std::size_t floats = many.size() * 4096;
  EXPECT_TRUE(cut.cut(std::vector<RowsCall>{{0, many, floats}}).ok());
  EXPECT_THAT(says({{0, many, floats}, {1, many, floats}}),
              HasSubstr("floats of rows in one call, at most 67108864"));
}

}  // namespace
}  // namespace paceline::pserver

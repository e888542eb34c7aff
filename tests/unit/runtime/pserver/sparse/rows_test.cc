#include "runtime/pserver/sparse/rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace paceline::pserver::sparse {
namespace {

using ::testing::HasSubstr;

TEST(Rows, MismatchedRowsAreRefusedWithTheTable) {
  TableSpec ads;
  ads.name = "ads";
  ads.dim = 4;
  const TableSpec tables[] = {ads};
  const auto says = [&](int table, std::vector<RowId> ids, std::size_t floats) {
    const absl::Status status = check_rows(tables, table, ids, floats);
    EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status));
    return std::string(status.message());
  };
  EXPECT_EQ(says(0, {1, 2, 0xffffffffffffffff}, 12), "");
  EXPECT_EQ(says(0, {}, 0), "");
  EXPECT_THAT(says(1, {1}, 4), HasSubstr("table 1 of 1: there is no such table"));
  EXPECT_THAT(says(-1, {1}, 4), HasSubstr("table -1 of 1"));
  EXPECT_THAT(says(0, {1, 2}, 9), HasSubstr("table ads: 9 floats for 2 rows of 4"));
  EXPECT_THAT(says(0, {1, 5, 5}, 12),
              HasSubstr("table ads: row ids must rise: number 2 is 5 after 5, the same row twice"));
  EXPECT_THAT(says(0, {7, 5}, 8), HasSubstr("number 1 is 5 after 7"));
  std::vector<RowId> many(kMaxRowsPerCall + 1);
  std::iota(many.begin(), many.end(), RowId{0});
  EXPECT_THAT(says(0, many, 4 * many.size()), HasSubstr("262145 rows in one call, at most 262144"));
}

}  // namespace
}  // namespace paceline::pserver::sparse

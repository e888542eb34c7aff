#include "cli/view/fit_columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Column kColumns[] = {{"NAME"}, {"A", true, 2}, {"LONGER", true, 1}, {"B", true}};

TEST(NarrowTable, ColumnsGoInTheirOrderUntilItFits) {
  const std::vector<Row> rows = {{"x", "1", "2", "3"}, {"yyyy", "10", "20", "30"}};
  EXPECT_THAT(fit_table(kColumns, rows, kAnyWidth),
              ElementsAre("NAME   A  LONGER   B", "x      1       2   3", "yyyy  10      20  30"));
  EXPECT_THAT(fit_table(kColumns, rows, 20).size(), 3u);
  EXPECT_THAT(fit_table(kColumns, rows, 19), ElementsAre("NAME   A   B", "x      1   3", "yyyy  10  30"));
  for (const int width : {11, 8, 1})
    EXPECT_THAT(fit_table(kColumns, rows, width), ElementsAre("NAME   B", "x      3", "yyyy  30")) << width;
  EXPECT_THAT(fit_table(kColumns, {}, 8), ElementsAre("NAME  B"));
}

TEST(NarrowLines, WhatMattersLeastGoesUntilItFits) {
  const std::vector<Piece> pieces = {{"stays"}, {"second", 2}, {"", 0}, {"first", 1}, {"stays too"}};
  EXPECT_THAT(fit_lines(pieces, kAnyWidth, 1), ElementsAre("stays  second  first  stays too"));
  EXPECT_THAT(fit_lines(pieces, 20, 2), ElementsAre("stays  second  first", "stays too"));
  EXPECT_THAT(fit_lines(pieces, 24, 1), ElementsAre("stays  second  stays too"));
  EXPECT_THAT(fit_lines(pieces, 23, 1), ElementsAre("stays  stays too"));
  EXPECT_THAT(fit_lines(pieces, 5, 1), ElementsAre("stays", "stays too")) << "it has nothing else";
  EXPECT_THAT(fit_lines({{"", 1}}, 5, 1), IsEmpty());
}

}  // namespace
}  // namespace paceline::cli

#include "runtime/pserver/row_inbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/rng.h"
#include "runtime/pserver/sparse/row_hash.h"

namespace paceline::pserver {
namespace {

using ::testing::HasSubstr;
using Ids = std::vector<sparse::RowId>;
using Floats = std::vector<float>;
using Places = std::vector<std::uint32_t>;

// One worker's inbox on the only server, with tables of 2 and 3 floats a row, and the worker's arena.
struct InboxTest : ::testing::TestWithParam<bool> {
  InboxTest() : tables(2), memory(64) {
    tables[0].name = "a";
    tables[0].dim = 2;
    tables[1].name = "b";
    tables[1].dim = 3;
    for (std::size_t k = 0; k < memory.size(); ++k) memory[k] = static_cast<float>(k);
    make(1);
  }
  void make(int servers) {
    inbox.emplace(RowInbox::Options{tables, 0, servers, GetParam(), std::as_bytes(std::span(memory))});
  }
  bool shared() const { return GetParam(); }

  absl::Status announce(FrameKind kind, std::int64_t number, const RowsMessage& parts,
                        std::uint64_t begin = 0) {
    Buffer message;
    encode(parts, message);
    return inbox->received({.kind = kind, .number = number, .begin = begin, .length = message.size()},
                           message);
  }
  // As a link does it: bit by bit.
  template <typename Value>
  absl::Status straight(FrameKind kind, std::int64_t number, const std::vector<Value>& values,
                        std::uint64_t begin = 0) {
    const Bytes bytes = std::as_bytes(std::span(values));
    const FrameHeader header{.kind = kind, .number = number, .begin = begin, .length = bytes.size()};
    for (std::size_t at = 0; at < bytes.size();) {
      auto to = inbox->place(header, at);
      if (!to.ok()) return to.status();
      const std::size_t part = std::min<std::size_t>({to->size(), bytes.size() - at, 1 + at});
      std::memcpy(to->data(), bytes.data() + at, part);
      at += part;
    }
    return inbox->received(header, {});
  }
  // A push of rows 5 and 9 of table a, and of row 4 of table b; gradients begin at floats 10 and 30 of the
  // arena.
  void push(std::int64_t unit, float value = 0) {
    ASSERT_TRUE(announce(FrameKind::kPushRows, unit, {{0, 2, 40}, {1, 1, 120}}).ok());
    ASSERT_TRUE(straight(FrameKind::kRowIds, unit, Ids{5, 9, 4}).ok());
    if (shared()) return;
    EXPECT_FALSE(inbox->check_commit(unit).ok());
    ASSERT_TRUE(straight(FrameKind::kRowGradient, unit, Floats{value + 12, value + 13}, 2).ok());
    ASSERT_TRUE(straight(FrameKind::kRowGradient, unit, Floats{value + 10, value + 11}, 0).ok());
    ASSERT_TRUE(straight(FrameKind::kRowGradient, unit, Floats{value + 30, value + 31, value + 32}, 4).ok());
  }
  std::vector<Floats> rows_of(std::uint32_t table, bool aside) {
    std::vector<sparse::GradientRows> parts;
    aside ? inbox->find_aside(table, parts) : inbox->find(table, parts);
    std::vector<Floats> rows;
    for (const auto& part : parts) {
      for (std::size_t k = 0; k < part.ids.size(); ++k) {
        const std::size_t place = part.places != nullptr ? part.places[k] : k;
        const float* const from = part.gradient + place * tables[table].dim;
        rows.emplace_back(from, from + tables[table].dim);
      }
    }
    return rows;
  }

  std::vector<sparse::TableSpec> tables;
  Floats memory;
  std::optional<RowInbox> inbox;
};
INSTANTIATE_TEST_SUITE_P(Media, InboxTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Shared" : "Tcp"; });

TEST_P(InboxTest, APullIsHereWhenItsIdsAre) {
  ASSERT_TRUE(announce(FrameKind::kPullRows, 7, {{0, 2, 0}, {1, 1, 0}}).ok());
  EXPECT_EQ(inbox->pull(), nullptr);
  EXPECT_FALSE(inbox->check_commit(0).ok()) << "in the middle of a pull";
  ASSERT_TRUE(straight(FrameKind::kRowIds, 7, Ids{5, 9, 4}).ok());
  ASSERT_NE(inbox->pull(), nullptr);
  EXPECT_EQ(inbox->pull()->number, 7);
  EXPECT_EQ(inbox->pull()->floats, 7u);
  EXPECT_THAT(inbox->pull()->ids.all(), ::testing::ElementsAre(5, 9, 4));
  EXPECT_FALSE(announce(FrameKind::kPullRows, 8, {{0, 1, 0}}).ok()) << "before it is answered";
  inbox->answered();
  EXPECT_TRUE(announce(FrameKind::kPullRows, 8, {{0, 1, 0}}).ok());
}

TEST_P(InboxTest, APushCountsUntilItIsDropped) {
  push(3);
  ASSERT_TRUE(inbox->check_commit(3).ok());
  EXPECT_THAT(std::string(inbox->check_commit(4).message()), HasSubstr("rows of unit 3"));
  EXPECT_EQ(inbox->pushed_floats(), 7u);
  EXPECT_EQ(rows_of(0, false), (std::vector<Floats>{{10, 11}, {12, 13}}));
  EXPECT_EQ(rows_of(1, false), (std::vector<Floats>{{30, 31, 32}}));
  EXPECT_TRUE(rows_of(0, true).empty());
  EXPECT_FALSE(announce(FrameKind::kPushRows, 3, {{0, 1, 0}}).ok()) << "a second one";
  inbox->drop();
  EXPECT_TRUE(rows_of(0, false).empty());
  EXPECT_TRUE(inbox->check_commit(4).ok());
  EXPECT_EQ(inbox->pushed_floats(), 0u);
  push(4);
}

TEST_P(InboxTest, RowsKeptAsideStayAsTheyWere) {
  inbox->keep_aside();  // of nothing
  EXPECT_TRUE(rows_of(0, true).empty());
  push(3);
  inbox->keep_aside();
  EXPECT_TRUE(rows_of(0, false).empty());
  for (float& value : memory) value += 100;  // the worker goes on
  push(4, 100);
  inbox->keep_aside();
  for (float& value : memory) value += 100;
  push(5, 200);
  EXPECT_EQ(rows_of(0, true), (std::vector<Floats>{{10, 11}, {12, 13}, {110, 111}, {112, 113}}));
  EXPECT_EQ(rows_of(1, true), (std::vector<Floats>{{30, 31, 32}, {130, 131, 132}}));
  EXPECT_EQ(rows_of(1, false), (std::vector<Floats>{{230, 231, 232}}));
  inbox->drop_aside();
  EXPECT_TRUE(rows_of(0, true).empty());
  EXPECT_EQ(rows_of(1, false), (std::vector<Floats>{{230, 231, 232}}));
}

TEST_P(InboxTest, PlacesSayWhereGradientsLie) {
  if (!shared()) {
    EXPECT_FALSE(announce(FrameKind::kPushRows, 3, {{0, 2, 0}}, 1).ok());
    return;
  }
  ASSERT_TRUE(announce(FrameKind::kPushRows, 3, {{0, 2, 40}, {1, 1, 120}}, 1).ok());
  ASSERT_TRUE(straight(FrameKind::kRowIds, 3, Ids{5, 9, 4}).ok());
  EXPECT_FALSE(inbox->check_commit(3).ok());
  ASSERT_TRUE(straight(FrameKind::kRowPlaces, 3, Places{26, 0, 2}).ok());
  ASSERT_TRUE(inbox->check_commit(3).ok());
  EXPECT_EQ(rows_of(0, false), (std::vector<Floats>{{62, 63}, {10, 11}}));
  inbox->keep_aside();
  EXPECT_EQ(rows_of(0, true), (std::vector<Floats>{{62, 63}, {10, 11}}));
  EXPECT_EQ(rows_of(1, true), (std::vector<Floats>{{36, 37, 38}}));

  for (const Places& outside : {Places{27, 0, 2}, Places{0, 0, 11}}) {
    make(1);
    ASSERT_TRUE(announce(FrameKind::kPushRows, 3, {{0, 2, 40}, {1, 1, 120}}, 1).ok());
    ASSERT_TRUE(straight(FrameKind::kRowIds, 3, Ids{5, 9, 4}).ok());
    EXPECT_THAT(std::string(straight(FrameKind::kRowPlaces, 3, outside).message()),
                HasSubstr("does not lie in its arena"));
  }
}

TEST_P(InboxTest, GradientsOutsideTheArenaAreRefused) {
  if (!shared()) return;
  const std::uint64_t end = 64 * sizeof(float);
  for (const std::uint64_t at : {end - 8, end, end + 4, ~std::uint64_t{3}, std::uint64_t{2}}) {
    make(1);
    EXPECT_FALSE(announce(FrameKind::kPushRows, 3, {{0, 2, at}}).ok()) << at;
  }
  make(1);
  EXPECT_TRUE(announce(FrameKind::kPushRows, 3, {{0, 2, end - 16}}).ok());
}

TEST_P(InboxTest, IdsThatDoNotFitAreRefused) {
  for (const FrameKind kind : {FrameKind::kPullRows, FrameKind::kPushRows}) {
    const auto says = [&](const Ids& ids, int servers) {
      make(servers);
      EXPECT_TRUE(announce(kind, 3, {{0, static_cast<std::uint32_t>(ids.size()), 0}}).ok());
      return std::string(straight(FrameKind::kRowIds, 3, ids).message());
    };
    EXPECT_EQ(says({5, 6, 0xffffffffffffffff}, 1), "");
    EXPECT_THAT(says({5, 6, 6}, 1), HasSubstr("table a: row ids must rise: number 2 is 6 after 6"));
    EXPECT_THAT(says({9, 6}, 1), HasSubstr("number 1 is 6 after 9"));
    Ids mine, theirs;
    for (sparse::RowId id = 0; mine.size() < 3 || theirs.size() < 3; ++id) {
      (sparse::server_of(id, 2) == 0 ? mine : theirs).push_back(id);
    }
    EXPECT_EQ(says(mine, 2), "");
    EXPECT_THAT(says(theirs, 2), HasSubstr("another server's"));
    EXPECT_THAT(says({mine[0], theirs.back() + mine.back() + 1}, 2),
                ::testing::AnyOf("", HasSubstr("another")));
  }
}

// Frames in an order that makes sense most of the time, with numbers that do most of the time: an error or
// not, but nothing outside of what was announced (under AddressSanitizer).
TEST_P(InboxTest, GarbageStaysInItsBounds) {
  constexpr FrameKind kKinds[] = {FrameKind::kPullRows, FrameKind::kPushRows, FrameKind::kRowIds,
                                  FrameKind::kRowPlaces, FrameKind::kRowGradient};
  int counted = 0, refused = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    Rng rng(seed, 0);
    const auto odd = [&] { return rng.below(12) == 0; };
    make(1);
    FrameKind next = FrameKind::kPushRows;
    std::size_t rows = 0, floats = 0;
    for (int k = 0; k < 20; ++k) {
      const FrameKind kind = odd() ? kKinds[rng.below(5)] : next;
      const std::int64_t number = odd() ? 1 : 0;
      absl::Status status;
      if (kind == FrameKind::kPullRows || kind == FrameKind::kPushRows) {
        RowsMessage parts;
        rows = floats = 0;
        for (std::uint32_t t = odd() ? 1 : 0; t < (odd() ? 3u : 2u); ++t) {
          parts.push_back({t, static_cast<std::uint32_t>(odd() ? rng.below(40) : 3), 4 * rng.below(66)});
          rows += parts.back().count;
          floats += parts.back().count * (t == 0 ? 2 : 3);
        }
        const bool placed = kind == FrameKind::kPushRows && shared() && rng.below(2) == 0;
        status = announce(kind, number, parts, placed ? 1 : 0);
        next = FrameKind::kRowIds;
      } else if (kind == FrameKind::kRowIds) {
        Ids ids(odd() ? rng.below(9) : rows);
        for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = odd() ? rng.below(12) : 10 * i;
        status = straight(kind, number, ids);
        next = shared() ? FrameKind::kRowPlaces : FrameKind::kRowGradient;
        if (inbox->pull() != nullptr || inbox->check_commit(0).ok()) next = FrameKind::kPushRows;
      } else {
        Places values(odd() ? rng.below(40) : kind == FrameKind::kRowPlaces ? rows : floats);
        for (auto& value : values) value = static_cast<std::uint32_t>(rng.below(odd() ? 200 : 3));
        status = straight(kind, number, values, odd() ? rng.below(4) : 0);
        next = FrameKind::kPushRows;
      }
      if (!status.ok()) {
        EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
        ++refused;
        break;
      }
      if (inbox->pull() != nullptr) inbox->answered();
      if (inbox->check_commit(0).ok() && inbox->pushed_floats() > 0) {
        for (std::uint32_t t = 0; t < 2; ++t) counted += static_cast<int>(rows_of(t, false).size());
        inbox->keep_aside();
        for (std::uint32_t t = 0; t < 2; ++t) counted += static_cast<int>(rows_of(t, true).size());
      }
    }
  }
  EXPECT_GT(counted, 1000);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace paceline::pserver

// Frames about rows that make no sense lose who sent them, and nobody else.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rows_world.h"
#include "stranger.h"

namespace paceline::pserver {
namespace {

using ::testing::HasSubstr;

class ServersRowsFrames : public ServersTest {};
INSTANTIATE_TEST_SUITE_P(Media, ServersRowsFrames, media(), medium_name);

TEST_P(ServersRowsFrames, FramesThatMakeNoSenseLoseTheirSender) {
  using Ids = std::vector<RowId>;
  constexpr auto kPull = FrameKind::kPullRows, kPush = FrameKind::kPushRows, kIds = FrameKind::kRowIds;
  struct Case {
    const char* name;
    const char* says;
    std::function<void(Stranger&)> send;
    bool tcp_only = false;
  };
  const Case cases[] = {
      {"ids that fall", "row ids must rise",
       [](Stranger& s) {
         s.announce(kPull, {{0, 2, 0}}), s.values(kIds, Ids{7, 5});
       }},
      {"pushed ids that are equal", "the same row twice",
       [](Stranger& s) {
         s.announce(kPush, {{0, 2, 0}}), s.values(kIds, Ids{5, 5});
       }},
      {"no such table", "names table 2 of 2",
       [](Stranger& s) {
         s.announce(kPull, {{2, 1, 0}});
       }},
      {"too many rows", "can't be meant",
       [](Stranger& s) {
         s.announce(kPull, {{0, sparse::kMaxRowsPerCall + 1, 0}});
       }},
      {"too many floats", "floats at once",
       [](Stranger& s) {
         s.announce(kPush, {{1, sparse::kMaxRowsPerCall, 0}});
       }},
      {"no rows", "can't be meant",
       [](Stranger& s) {
         s.announce(kPull, {{0, 0, 0}});
       }},
      {"tables that fall", "can't be meant",
       [](Stranger& s) {
         s.announce(kPull, {{1, 1, 0}, {0, 1, 0}});
       }},
      {"half a message", "can't be meant", [](Stranger& s) { s.send({.kind = kPull}, Buffer(24)); }},
      {"ids that nobody announced", "not expected", [](Stranger& s) { s.values(kIds, Ids{5}); }},
      {"more ids than announced", "not expected",
       [](Stranger& s) {
         s.announce(kPull, {{0, 1, 0}}), s.values(kIds, Ids{5, 6});
       }},
      {"a pull in a pull", "not expected",
       [](Stranger& s) {
         s.announce(kPull, {{0, 1, 0}}), s.announce(kPull, {{0, 1, 0}});
       }},
      {"a commit with ids missing", "gradients of rows missing",
       [](Stranger& s) {
         s.wait_for_turn();
         s.announce(kPush, {{0, 1, 0}});
         s.send({.kind = FrameKind::kGradient}, Buffer(4000));
         s.send({.kind = FrameKind::kCommit}, Buffer(17));
       },
       /*tcp_only=*/true},
      {"a commit with floats missing", "gradients of rows missing",
       [](Stranger& s) {
         s.wait_for_turn();
         s.announce(kPush, {{0, 2, 0}});
         s.values(kIds, Ids{5, 7});
         s.values(FrameKind::kRowGradient, Floats(5));
         s.send({.kind = FrameKind::kGradient}, Buffer(4000));
         s.send({.kind = FrameKind::kCommit}, Buffer(17));
       },
       /*tcp_only=*/true},
      {"floats outside", "not expected",
       [](Stranger& s) {
         s.announce(kPush, {{0, 1, 0}});
         s.values(kIds, Ids{5});
         s.values(FrameKind::kRowGradient, Floats(5));
       }},
      {"rows of a checkpoint", "not expected",
       [](Stranger& s) { s.send({.kind = FrameKind::kSavedRows}, {}); }},
      {"the end of a checkpoint", "not expected",
       [](Stranger& s) { s.send({.kind = FrameKind::kRowsRestored}, {}); }},
      {"a server's frame", "not expected", [](Stranger& s) { s.send({.kind = FrameKind::kTables}, {}); }},
  };
  for (const Case& c : cases) {
    if (c.tcp_only && GetParam() != Medium::kTcp) continue;
    SCOPED_TRACE(c.name);
    WorldSpec spec = this->spec({.servers = 1,
                                 .mode = asynchronous(),
                                 .strangers = {1},
                                 .tables = {table_of("a", 4), table_of("b", 1024)},
                                 .row_floats = 100});
    ServersWorld world(spec, 0);
    ASSERT_TRUE(world.client(0).wait_turn(world.deadline()).ok());
    Stranger stranger(world, spec);
    c.send(stranger);
    absl::Status why;
    ASSERT_TRUE(world.wait_for_loss(0, 1, &why));
    EXPECT_EQ(why.code(), absl::StatusCode::kInvalidArgument) << why;
    EXPECT_THAT(std::string(why.message()), HasSubstr("worker-1"));
    EXPECT_THAT(std::string(why.message()), HasSubstr(c.says));
    WorkerRows rows;
    rows.ids = {{1, 2}, {3}};
    ASSERT_TRUE(rows.pull(world, spec.tables, 0).ok()) << "the others go on";
  }
}

TEST_P(ServersRowsFrames, OtherTablesAreRefused) {
  WorldSpec spec =
      this->spec({.servers = 1, .mode = asynchronous(), .strangers = {1}, .tables = {table_of("ads", 4)}});
  ServersWorld world(spec);
  WorldSpec other = spec;
  other.tables[0].optimizer.learning_rate = 2;
  const Stranger stranger(world, other);
  absl::Status why;
  ASSERT_TRUE(world.wait_for_loss(0, 1, &why));
  EXPECT_EQ(why.code(), absl::StatusCode::kFailedPrecondition) << why;
  EXPECT_THAT(std::string(why.message()), HasSubstr("(ads of 4)"));
}

// Rows of a checkpoint that fit no table, or come twice.
TEST_P(ServersRowsFrames, RowsThatFitNoTableAreRefused) {
  struct Bad final : sparse::RowSource {
    int table = 0, batches = 0, most = 1;
    std::size_t floats = 4;
    absl::Status error;
    absl::StatusOr<int> next(SavedRows& rows) override {
      if (!error.ok()) return error;
      if (batches++ == most) return 0;
      rows.ids = {77};
      rows.last = {0};
      rows.uses = rows.steps = {1};
      rows.floats.assign(floats, 1);
      return table;
    }
  };
  const auto begun = [&](Bad source) {
    WorldSpec spec = this->spec({.tables = {table_of("ads", 4)}});
    ServersWorld world(spec);
    const absl::Status status = world.begin(Floats(spec.elements, 0), &source);
    if (!status.ok()) {
      EXPECT_EQ(world.client(0).closed(), status);
      return status;
    }
    return world.client(0).wait_turn(world.deadline()).status();
  };
  EXPECT_TRUE(begun({}).ok());
  Bad bad;
  bad.table = 1;
  EXPECT_THAT(std::string(begun(bad).message()), HasSubstr("table 1 of 1: there is no such table"));
  bad = {};
  bad.floats = 8;
  EXPECT_THAT(std::string(begun(bad).message()), HasSubstr("table ads: 1 rows with 8 floats"));
  bad = {};
  bad.error = absl::DataLossError("part 3 is torn");
  EXPECT_EQ(begun(bad), bad.error);
  bad = {};
  bad.most = 2;
  const absl::Status twice = begun(bad);
  EXPECT_TRUE(absl::IsInvalidArgument(twice)) << twice;
  EXPECT_THAT(std::string(twice.message()), HasSubstr("row 77 comes twice"));
}

// Batches that worker 0 asks for and does not read.
TEST_P(ServersRowsFrames, WorkerThatDoesNotReadItsSnapshotRowsIsLost) {
  constexpr std::size_t kDim = 4096, kRows = 400;
  WorldSpec spec = this->spec();
  spec.workers = spec.servers = 1;
  spec.elements = 4;
  spec.strangers = {0};
  spec.tables = {table_of("deep", kDim)};
  ServersWorld world(spec);
  Stranger zero(world, spec, 0);
  BeginMessage begin{.elements = spec.elements, .decay = {}, .optimizer = {}};
  begin.start.total_steps = spec.total_steps;
  zero.say({.kind = FrameKind::kBegin}, begin);
  zero.send({.kind = FrameKind::kState}, Buffer(spec.elements * sizeof(float)));
  for (RowId batch = 0; batch < 10; ++batch) {
    SavedRows rows;
    for (RowId k = 0; k < kRows; ++k) rows.append(batch * kRows + k, 0, 1, 1, Floats(kDim, 1));
    zero.say({.kind = FrameKind::kSavedRows, .rank = 0}, rows);
  }
  zero.send({.kind = FrameKind::kRowsRestored}, {});
  zero.send({.kind = FrameKind::kSnapshot}, {});
  ASSERT_NO_FATAL_FAILURE(zero.wait_for_copy());
  for (int k = 0; k < 200; ++k) zero.send_beside({.kind = FrameKind::kTakeRows, .rank = 0});
  absl::Status why;
  ASSERT_TRUE(world.wait_for_loss(0, 0, &why));
  EXPECT_THAT(std::string(why.message()), HasSubstr("asks for more rows of a snapshot before it has read"));
  EXPECT_THAT(std::string(why.message()), HasSubstr("worker-0"));
}

}  // namespace
}  // namespace paceline::pserver

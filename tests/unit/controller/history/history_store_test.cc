#include "controller/history/history_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "tests/support/temporary_folder.h"

namespace paceline::history {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

WallTime at(int seconds) {
  return WallTime(std::chrono::seconds(1'700'000'000 + seconds));
}

Record record(const std::string& uid, int created, bool over = false) {
  return {.uid = uid,
          .ns = "team",
          .name = "digits",
          .created = at(created),
          .changed = at(created + 10),
          .over = over,
          .deleted = std::nullopt,
          .row = R"({"name":"digits"})",
          .object = R"({"kind":"TrainingJob"})"};
}

class HistoryStoreTest : public ::testing::Test {
 protected:
  std::unique_ptr<HistoryStore> open(const Limits& limits = {}, std::string* remark = nullptr) {
    auto opened = HistoryStore::open(path_, limits);
    EXPECT_TRUE(opened.ok()) << opened.status();
    if (!opened.ok()) return nullptr;
    if (remark != nullptr) *remark = opened->remark;
    return std::move(opened->store);
  }
  using Which = HistoryStore::Which;
  std::vector<std::string> uids(HistoryStore& store, Which which = Which::kOthers,
                                const std::set<std::string>* namespaces = nullptr) {
    const auto records = store.list(which, namespaces);
    EXPECT_TRUE(records.ok()) << records.status();
    std::vector<std::string> found;
    for (const Record& each : *records) found.push_back(each.uid);
    return found;
  }
  TemporaryFolder folder_;
  std::string path_ = folder_.path() + "/history.db";
};

TEST_F(HistoryStoreTest, RecordsOutliveTheirStore) {
  Record deleted = record("a", 0, true);
  deleted.deleted = at(30);
  ASSERT_TRUE(open()->put(deleted, std::string_view("\0bytes", 6)).ok());
  const auto store = open();
  ASSERT_TRUE(store->put(record("b", 5), std::nullopt).ok());
  EXPECT_THAT(uids(*store), ElementsAre("b"));
  EXPECT_THAT(uids(*store, Which::kDeleted), ElementsAre("a"));
  const std::set<std::string> own{"team"}, others{"other"};
  EXPECT_THAT(uids(*store, Which::kDeleted, &own), ElementsAre("a"));
  EXPECT_THAT(uids(*store, Which::kDeleted, &others), IsEmpty());
  EXPECT_EQ((*store->list(Which::kDeleted, nullptr))[0].row, deleted.row);
  const auto found = store->find_deleted("team", "digits", "a");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->created, at(0));
  EXPECT_EQ(found->deleted, at(30));
  EXPECT_TRUE(found->over);
  EXPECT_EQ(found->object, deleted.object);
  EXPECT_EQ(store->series("a").value_or(""), std::string("\0bytes", 6));
  EXPECT_EQ(store->series("b").value_or("none"), "");
  EXPECT_TRUE(absl::IsNotFound(store->find_deleted("team", "digits", "b").status()));
}

TEST_F(HistoryStoreTest, DeletedJobsOfOneNameAreTold) {
  const auto store = open();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(store->put(record(str_cat("job-", i), i), std::nullopt).ok());
    ASSERT_TRUE(store->mark_deleted(str_cat("job-", i), at(100 - i)).ok());
  }
  EXPECT_THAT(uids(*store), IsEmpty());
  EXPECT_THAT(uids(*store, Which::kDeleted), ElementsAre("job-0", "job-1", "job-2"));
  EXPECT_EQ(store->list(Which::kDeleted, nullptr, 2)->size(), 2);
  EXPECT_THAT(*store->namespaces(), ElementsAre("team"));
  EXPECT_EQ(store->find_deleted("team", "digits", "")->uid, "job-2");
  EXPECT_EQ(store->find_deleted("team", "digits", "job-1")->deleted, at(99));
  EXPECT_TRUE(absl::IsNotFound(store->find_deleted("other", "digits", "job-1").status()));
}

TEST_F(HistoryStoreTest, ARecordTakesThePlaceOfTheOneBefore) {
  const auto store = open();
  ASSERT_TRUE(store->put(record("a", 0), "series").ok());
  Record changed = record("a", 0, true);
  changed.object = "{}";
  changed.deleted = at(9);
  ASSERT_TRUE(store->put(changed, std::nullopt).ok());
  EXPECT_EQ(store->find_deleted("team", "digits", "a")->object, "{}");
  EXPECT_EQ(store->series("a").value_or(""), "series");
}

TEST_F(HistoryStoreTest, TheLongestOverGoWhereTheFileIsFull) {
  const auto store = open({.bytes = 1 << 20});
  const std::string series(100'000, 'x');
  ASSERT_TRUE(store->put(record("live", 0), series).ok());
  for (int i = 1; i <= 40; ++i)
    ASSERT_TRUE(store->put(record(str_cat("job-", i), i, true), series).ok()) << i;
  const std::vector<std::string> left = uids(*store);
  EXPECT_EQ(left.front(), "job-40");
  EXPECT_EQ(left.back(), "live");
  EXPECT_LT(left.size(), 11);
  EXPECT_LE(std::filesystem::file_size(path_), 1 << 20);
  EXPECT_TRUE(absl::IsResourceExhausted(store->put(record("huge", 50), std::string(2 << 20, 'x'))));
  EXPECT_EQ(uids(*store), left);
}

struct Costs {
  int sorts = 0, steps = 0;
};

// Counts what statements cost, of the databases that are opened while it lives.
class StatementCosts {
 public:
  StatementCosts() {
    reset();
    sqlite3_auto_extension(reinterpret_cast<void (*)()>(&trace));
  }
  ~StatementCosts() { sqlite3_cancel_auto_extension(reinterpret_cast<void (*)()>(&trace)); }
  void reset() { costs_ = {}; }
  int sorts() const { return costs_.sorts; }
  int steps() const { return costs_.steps; }

 private:
  static int trace(sqlite3* database, const char** /*error*/, const void* /*api*/) {
    return sqlite3_trace_v2(database, SQLITE_TRACE_PROFILE, &note, nullptr);
  }
  static int note(unsigned /*event*/, void* /*context*/, void* ended, void* /*time*/) {
    auto* const statement = static_cast<sqlite3_stmt*>(ended);
    costs_.sorts += sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_SORT, 0);
    costs_.steps += sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_VM_STEP, 0);
    return 0;
  }
  static inline Costs costs_;
};

TEST_F(HistoryStoreTest, ListsCostNoMoreThanTheyTell) {
  StatementCosts costs;
  const auto store = open();
  for (int i = 0; i < 500; ++i) {
    Record each = record(str_cat("job-", i), i, true);
    if (i >= 10) each.deleted = at(1000 + i);
    ASSERT_TRUE(store->put(each, std::nullopt).ok());
  }
  const std::set<std::string> own{"other", "team"};
  for (const Which which : {Which::kDeleted, Which::kOthers}) {
    for (const auto* namespaces : {static_cast<const std::set<std::string>*>(nullptr), &own}) {
      costs.reset();
      EXPECT_EQ(store->list(which, namespaces, 5)->size(), 5);
      EXPECT_EQ(costs.sorts(), 0);
      EXPECT_LT(costs.steps(), 500);
    }
  }
}

TEST_F(HistoryStoreTest, DroppingTheOldestSortsNothing) {
  StatementCosts costs;
  const auto store = open({.bytes = 1 << 20});
  costs.reset();  // an index is sorted when it is made
  const std::string series(100'000, 'x');
  for (int i = 0; i < 40; ++i)
    ASSERT_TRUE(store->put(record(str_cat("job-", i), i, i % 2 == 0), series).ok());
  EXPECT_LT(uids(*store).size(), 11);
  EXPECT_EQ(costs.sorts(), 0);
}

TEST_F(HistoryStoreTest, AFileThatIsLargerThanItMayBeShrinks) {
  {
    const auto store = open();
    const std::string series(100'000, 'x');
    for (int i = 0; i < 40; ++i) ASSERT_TRUE(store->put(record(str_cat("job-", i), i, i != 0), series).ok());
  }
  EXPECT_GT(std::filesystem::file_size(path_), 3 << 20);
  const auto store = open({.bytes = 1 << 20});
  EXPECT_LE(std::filesystem::file_size(path_), 1 << 20);
  const std::vector<std::string> left = uids(*store);
  EXPECT_GT(left.size(), 5);
  EXPECT_EQ(left.front(), "job-39");
  EXPECT_EQ(left.back(), "job-0");
  EXPECT_TRUE(store->put(record("new", 50), std::string(100'000, 'x')).ok());
}

TEST_F(HistoryStoreTest, AFileOfTheReleaseBeforeIsRead) {
  ASSERT_TRUE(open()->put(record("a", 0), "series").ok());
  {
    auto database = Database::open(path_);
    ASSERT_TRUE(database.ok());
    ASSERT_TRUE(database->run("DROP INDEX by_deletion").ok());
  }
  EXPECT_THAT(uids(*open()), ElementsAre("a"));
}

TEST_F(HistoryStoreTest, RecordsThatAreTooOldAreForgotten) {
  const auto store = open({.age = std::chrono::hours(1)});
  ASSERT_TRUE(store->put(record("old", 0, true), std::nullopt).ok());
  ASSERT_TRUE(store->put(record("live", 0), std::nullopt).ok());
  ASSERT_TRUE(store->put(record("new", 600, true), std::nullopt).ok());
  ASSERT_TRUE(store->forget(at(3700)).ok());
  EXPECT_THAT(uids(*store), ElementsAre("new", "live"));
}

TEST_F(HistoryStoreTest, ADamagedFileIsPutAside) {
  ASSERT_TRUE(open()->put(record("a", 0), std::string(100'000, 'x')).ok());
  {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4096);
    file << std::string(40'000, '\xFF');
  }
  std::string remark;
  const auto store = open({}, &remark);
  ASSERT_NE(store, nullptr);
  EXPECT_THAT(remark, Not(IsEmpty()));
  EXPECT_THAT(uids(*store), IsEmpty());
  EXPECT_TRUE(std::filesystem::exists(path_ + ".damaged"));
  EXPECT_TRUE(store->put(record("b", 0), std::nullopt).ok());
}

TEST_F(HistoryStoreTest, AFileThatIsNoDatabaseIsPutAside) {
  std::ofstream(path_) << std::string(10'000, 'x');
  const auto store = open();
  ASSERT_NE(store, nullptr);
  EXPECT_TRUE(store->put(record("b", 0), std::nullopt).ok());
  EXPECT_TRUE(std::filesystem::exists(path_ + ".damaged"));
}

TEST_F(HistoryStoreTest, AFileWhoseTableOthersChangedIsPutAside) {
  for (const char* change : {"DROP TABLE jobs", "ALTER TABLE jobs DROP COLUMN series"}) {
    ASSERT_TRUE(open()->put(record("a", 0), std::nullopt).ok());
    {
      auto database = Database::open(path_);
      ASSERT_TRUE(database.ok());
      ASSERT_TRUE(database->run(change).ok());
    }
    std::string remark;
    const auto store = open({}, &remark);
    ASSERT_NE(store, nullptr);
    EXPECT_THAT(remark, Not(IsEmpty())) << change;
    EXPECT_TRUE(store->put(record("b", 0), "series").ok()) << change;
    EXPECT_THAT(uids(*store), ElementsAre("b")) << change;
  }
}

TEST_F(HistoryStoreTest, AFileOfALaterReleaseIsLeftAlone) {
  {
    auto database = Database::open(path_);
    ASSERT_TRUE(database.ok());
    ASSERT_TRUE(database->run("PRAGMA user_version = 2").ok());
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(HistoryStore::open(path_, {}).status()));
}

TEST_F(HistoryStoreTest, OneProcessHasTheFile) {
  const auto store = open();
  ASSERT_TRUE(store->put(record("a", 0), std::nullopt).ok());
  EXPECT_TRUE(absl::IsUnavailable(HistoryStore::open(path_, {}).status()));
}

TEST_F(HistoryStoreTest, AFolderThatIsMissingIsAnError) {
  EXPECT_FALSE(HistoryStore::open(folder_.path() + "/none/history.db", {}).ok());
}

}  // namespace
}  // namespace paceline::history

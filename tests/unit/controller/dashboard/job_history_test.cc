#include "controller/dashboard/job_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "controller/dashboard/job_feed.h"
#include "tests/support/fake_clock.h"
#include "tests/support/temporary_folder.h"

namespace paceline::dashboard {
namespace {

using kube::Json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Json job_at(const std::string& name, const std::string& uid, Step step, const std::string& ns = "a") {
  return {{"metadata", {{"namespace", ns}, {"name", name}, {"uid", uid}}},
          {"status", {{"phase", "Running"}, {"progress", {{"step", step}, {"loss", 1.0}}}}}};
}

// A replica of the controller, as far as its history goes.
class Replica {
  const Clock& clock_;
  JobSamples samples_{clock_};

 public:
  Replica(HistoryOptions options, const Clock& clock) : clock_(clock) {
    options.on_error = [this](std::string_view reason) { errors.emplace_back(reason); };
    history = std::make_unique<JobHistory>(std::move(options), samples_, clock, Logger::none());
    feed_ = std::make_unique<JobFeed>(board_, samples_, history.get());
  }
  void put(const Json& object) { feed_->put(object, round_, changed_); }
  void remove(const Json& object) { feed_->remove(object, changed_); }
  void listed() { feed_->sweep(round_++, "", changed_); }
  std::vector<std::string> deleted(const std::set<std::string>* namespaces = nullptr) const {
    const auto records = history->deleted(namespaces, 100);
    EXPECT_TRUE(records.ok()) << records.status();
    std::vector<std::string> uids;
    for (const history::Record& record : records.value_or(std::vector<history::Record>()))
      uids.push_back(record.uid);
    return uids;
  }
  std::vector<Step> steps(const std::string& uid) const { return history->series(uid).points(1000).steps; }

  std::vector<std::string> errors;
  std::unique_ptr<JobHistory> history;

 private:
  Board board_{clock_};
  std::unique_ptr<JobFeed> feed_;
  std::uint64_t round_ = 1;
  kube::ObjectSink::Keys changed_;
};

class JobHistoryTest : public ::testing::Test {
 protected:
  HistoryOptions options() const { return {.path = folder_.path() + "/history.db", .limits = {}, .ns = ""}; }
  FakeClock clock_;
  TemporaryFolder folder_;
};

TEST_F(JobHistoryTest, SeriesGoOnWhereTheReplicaBeforeEnded) {
  {
    Replica first(options(), clock_);
    for (const Step step : {1, 2, 3}) first.put(job_at("x", "1", step));
    EXPECT_TRUE(first.history->pass());
    first.put(job_at("x", "1", 4));
    EXPECT_THAT(first.steps("1"), ElementsAre(1, 2, 3, 4));
    EXPECT_TRUE(first.history->pass());
    EXPECT_THAT(first.steps("1"), ElementsAre(1, 2, 3, 4));
  }
  Replica second(options(), clock_);
  second.put(job_at("x", "1", 4));
  second.put(job_at("x", "1", 6));
  EXPECT_THAT(second.steps("1"), ElementsAre(4, 6));  // it is not open yet
  EXPECT_TRUE(second.history->pass());
  EXPECT_THAT(second.steps("1"), ElementsAre(1, 2, 3, 4, 6));
  second.put(job_at("x", "1", 2));  // it goes on from a checkpoint
  EXPECT_THAT(second.steps("1"), ElementsAre(1, 2));
  EXPECT_TRUE(second.history->pass());
  EXPECT_THAT(second.steps("1"), ElementsAre(1, 2));
}

TEST_F(JobHistoryTest, DeletedJobsKeepTheirSeries) {
  Replica replica(options(), clock_);
  for (const Step step : {1, 2}) replica.put(job_at("x", "1", step));
  replica.put(job_at("y", "2", 5, "b"));
  EXPECT_TRUE(replica.history->pass());
  replica.put(job_at("x", "1", 3));
  replica.remove(job_at("x", "1", 3));
  replica.put(job_at("y", "3", 1, "b"));  // another one of its name
  EXPECT_TRUE(replica.history->pass());
  EXPECT_THAT(replica.deleted(), ::testing::UnorderedElementsAre("1", "2"));
  const std::set<std::string> own{"b"};
  EXPECT_THAT(replica.deleted(&own), ElementsAre("2"));
  EXPECT_THAT(replica.history->namespaces(), ElementsAre("a", "b"));
  EXPECT_THAT(replica.steps("1"), ElementsAre(1, 2, 3));
  EXPECT_EQ(replica.history->find_deleted("a", "x", "")->uid, "1");
  EXPECT_TRUE(absl::IsNotFound(replica.history->find_deleted("b", "y", "3").status()));
}

TEST_F(JobHistoryTest, JobsThatWentWhileNobodyWroteAreDeleted) {
  {
    Replica first(options(), clock_);
    first.put(job_at("x", "1", 1));
    first.put(job_at("y", "2", 1));
    first.put(job_at("z", "3", 1, "b"));
    EXPECT_TRUE(first.history->pass());
  }
  HistoryOptions of_a = options();
  of_a.ns = "a";
  Replica second(of_a, clock_);
  second.put(job_at("x", "1", 1));
  EXPECT_TRUE(second.history->pass());
  EXPECT_THAT(second.deleted(), IsEmpty());  // more may come
  second.listed();
  EXPECT_TRUE(second.history->pass());
  EXPECT_THAT(second.deleted(), ElementsAre("2"));  // and of another namespace it knows nothing
}

TEST_F(JobHistoryTest, OneReplicaHasTheFileUntilItEnds) {
  auto first = std::make_unique<Replica>(options(), clock_);
  first->put(job_at("x", "1", 1));
  EXPECT_TRUE(first->history->pass());
  Replica second(options(), clock_);
  second.put(job_at("x", "1", 2));
  EXPECT_FALSE(second.history->pass());
  EXPECT_THAT(second.errors, ElementsAre("held"));
  EXPECT_EQ(second.history->about()["kept"], false);
  EXPECT_TRUE(absl::IsUnavailable(second.history->deleted(nullptr, 1).status()));
  EXPECT_THAT(second.steps("1"), ElementsAre(2));  // what it saw itself
  first.reset();
  EXPECT_TRUE(second.history->pass());
  EXPECT_EQ(second.history->about(), (Json{{"kept", true}}));
  EXPECT_THAT(second.steps("1"), ElementsAre(1, 2));
}

TEST_F(JobHistoryTest, DeletedJobsAreWrittenByTheReplicaThatHasTheFile) {
  auto first = std::make_unique<Replica>(options(), clock_);
  Replica second(options(), clock_);
  for (Replica* const replica : {first.get(), &second}) {
    for (const auto& [name, uid] : {std::pair{"x", "1"}, std::pair{"y", "2"}})
      replica->put(job_at(name, uid, 1));
    replica->listed();
  }
  EXPECT_TRUE(first->history->pass());
  first->remove(job_at("x", "1", 1));
  EXPECT_TRUE(first->history->pass());
  const auto written = first->history->find_deleted("a", "x", "1");
  clock_.advance(std::chrono::minutes(1));
  for (const auto& [name, uid] : {std::pair{"x", "1"}, std::pair{"y", "2"}})
    second.remove(job_at(name, uid, 1));
  EXPECT_FALSE(second.history->pass());
  first.reset();  // it had not heard of the second one
  EXPECT_TRUE(second.history->pass());
  EXPECT_THAT(second.deleted(), ElementsAre("2", "1"));
  EXPECT_EQ(second.history->find_deleted("a", "x", "1")->deleted, written->deleted);
}

TEST_F(JobHistoryTest, ClockThatIsAheadForAMomentForgetsNothing) {
  struct AheadClock final : Clock {
    FakeClock right;
    Duration ahead{};
    TimePoint now() const override { return right.now(); }
    WallTime wall_now() const override { return right.wall_now() + ahead; }
  } clock;
  const Duration long_after = options().limits.age + std::chrono::hours(1);
  Replica replica(options(), clock);
  replica.put(job_at("x", "1", 1));
  replica.remove(job_at("x", "1", 1));
  EXPECT_TRUE(replica.history->pass());
  clock.right.advance(2 * JobHistory::kSettles);
  EXPECT_TRUE(replica.history->pass());
  clock.ahead = long_after;
  EXPECT_TRUE(replica.history->pass());
  clock.ahead = {};
  EXPECT_TRUE(replica.history->pass());
  EXPECT_THAT(replica.deleted(), ElementsAre("1"));
  clock.right.advance(long_after);
  EXPECT_TRUE(replica.history->pass());
  EXPECT_THAT(replica.deleted(), IsEmpty());
}

TEST_F(JobHistoryTest, ADamagedFileIsPutAsideAndBegunAnew) {
  {
    Replica first(options(), clock_);
    first.put(job_at("x", "1", 1));
    EXPECT_TRUE(first.history->pass());
  }
  std::ofstream(options().path, std::ios::trunc) << std::string(20'000, 'x');
  Replica second(options(), clock_);
  second.put(job_at("x", "1", 2));
  EXPECT_TRUE(second.history->pass());
  EXPECT_THAT(second.errors, ElementsAre("damaged"));
  EXPECT_THAT(second.steps("1"), ElementsAre(2));
  EXPECT_TRUE(std::filesystem::exists(options().path + ".damaged"));
}

TEST_F(JobHistoryTest, AFileThatWasRemovedIsBegunAnew) {
  Replica replica(options(), clock_);
  replica.put(job_at("x", "1", 1));
  replica.put(job_at("y", "2", 1));
  EXPECT_TRUE(replica.history->pass());
  std::filesystem::remove(options().path);
  replica.put(job_at("x", "1", 2));
  EXPECT_TRUE(replica.history->pass());
  EXPECT_THAT(replica.errors, ElementsAre("failed"));
  EXPECT_THAT(replica.steps("1"), ElementsAre(1, 2));
  replica.remove(job_at("x", "1", 2));
  replica.remove(job_at("y", "2", 1));
  EXPECT_TRUE(replica.history->pass());
  replica.history.reset();
  Replica next(options(), clock_);
  EXPECT_TRUE(next.history->pass());
  EXPECT_THAT(next.deleted(), ::testing::UnorderedElementsAre("1", "2"));
}

TEST_F(JobHistoryTest, AFileThatIsAnotherOneIsOpenedAnew) {
  HistoryOptions copy = options();
  copy.path += ".copy";
  {
    Replica earlier(copy, clock_);
    earlier.put(job_at("y", "2", 1));
    earlier.remove(job_at("y", "2", 1));
    EXPECT_TRUE(earlier.history->pass());
  }
  Replica replica(options(), clock_);
  EXPECT_TRUE(replica.history->pass());
  EXPECT_THAT(replica.deleted(), IsEmpty());
  std::filesystem::rename(copy.path, options().path);
  EXPECT_TRUE(replica.history->pass());
  EXPECT_THAT(replica.deleted(), ElementsAre("2"));
}

TEST_F(JobHistoryTest, AJobThatIsTooLargeCostsTheOthersNothing) {
  HistoryOptions small = options();
  small.limits.bytes = 1 << 20;
  Replica replica(small, clock_);
  Json large = job_at("large", "1", 1);
  large["spec"]["note"] = std::string(1 << 20, 'x');
  replica.put(large);
  replica.put(job_at("x", "2", 1));
  EXPECT_FALSE(replica.history->pass());
  EXPECT_THAT(replica.errors, ElementsAre("full"));
  EXPECT_THAT(replica.steps("2"), ElementsAre(1));
  replica.remove(job_at("x", "2", 1));
  EXPECT_FALSE(replica.history->pass());
  EXPECT_THAT(replica.deleted(), ElementsAre("2"));
}

TEST_F(JobHistoryTest, AFolderThatIsMissingCostsTheHistoryAlone) {
  HistoryOptions missing = options();
  missing.path = folder_.path() + "/none/history.db";
  Replica replica(missing, clock_);
  replica.put(job_at("x", "1", 1));
  EXPECT_FALSE(replica.history->pass());
  EXPECT_THAT(replica.errors, ElementsAre("failed"));
  EXPECT_THAT(replica.steps("1"), ElementsAre(1));
}

TEST_F(JobHistoryTest, TheEndWritesWhatHasChanged) {
  {
    Replica first(options(), clock_);
    first.history->start();
    first.put(job_at("x", "1", 1));
    first.remove(job_at("x", "1", 1));
  }
  Replica second(options(), clock_);
  EXPECT_TRUE(second.history->pass());
  EXPECT_THAT(second.deleted(), ElementsAre("1"));
}

}  // namespace
}  // namespace paceline::dashboard

// A trainer's workers with sparse tables, on parameter servers that are the test's.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "runtime/checkpoint/checkpoint_store.h"
#include "runtime/pserver/sparse/initializer.h"
#include "runtime/trainer/evaluator_member.h"
#include "runtime/trainer/table_specs.h"
#include "runtime/trainer/trainer.h"
#include "tests/support/click_model.h"
#include "tests/support/fake_clock.h"
#include "tests/support/server_job.h"
#include "tests/support/temporary_folder.h"

namespace paceline::trainer {
namespace {

using ::testing::HasSubstr;

using TableRows = std::map<pserver::sparse::RowId, std::vector<float>>;

class TableJob : public ServerJob {
 public:
  explicit TableJob(const v1::TrainingSpec& spec, std::int64_t test_samples = kClickTest,
                    ClickLabels labels = ClickLabels::kRandom, const Clock* clock = nullptr)
      : ServerJob(spec, click_workload(kClickTrain, test_samples, labels), clock) {}
};

struct Result {
  Hashes hashes;  // of the last worker
  TableRows wide, deep;
  bool operator==(const Result&) const = default;
};

Result train(const v1::TrainingSpec& spec) {
  TableJob job(spec);
  job.run_to_the_end();
  return {job.job.member(job.job.size() - 1).hashes, job.servers.rows(0), job.servers.rows(1)};
}

// Of a table of the final model that has one chunk.
TableRows rows_of_model(const std::string& folder, const std::string& table, std::size_t dim) {
  TableRows rows;
  const auto file = checkpoint::read_model(folder + "/table-" + table + ".safetensors");
  EXPECT_TRUE(file.ok()) << file.status();
  if (!file.ok() || file->tensors.size() != 2) return rows;
  EXPECT_EQ(file->tensors[0].name, "ids/0");
  EXPECT_EQ(file->tensors[1].name, "weights/0");
  const std::span<const std::byte> ids = file->tensors[0].data, weights = file->tensors[1].data;
  EXPECT_EQ(weights.size() / (dim * sizeof(float)), ids.size() / sizeof(std::uint64_t));
  for (std::size_t k = 0; k < ids.size() / sizeof(std::uint64_t); ++k) {
    std::uint64_t id = 0;
    std::vector<float> row(dim);
    std::memcpy(&id, ids.data() + k * sizeof(id), sizeof(id));
    std::memcpy(row.data(), weights.data() + k * dim * sizeof(float), dim * sizeof(float));
    rows[id] = row;
  }
  return rows;
}

TEST(TableTraining, ManyWorkersAndServersTrainTheRowsOfOne) {
  const Result one = train(click_spec(25, 32, 1, 1));
  EXPECT_EQ(one.hashes.size(), 26u);
  EXPECT_EQ(one.deep.size(), 15u) << "five values of three fields";
  EXPECT_EQ(one.wide.size(), 39u) << "and the combinations of two that 96 samples have";
  for (const int workers : {2, 3}) {
    for (const int servers : {1, 3}) {
      EXPECT_EQ(train(click_spec(25, 32, workers, servers)), one)
          << workers << " workers, " << servers << " servers";
    }
  }
}

TEST(TableTraining, WithoutOverlapAndInMicroBatchesTheRowsAreTheSame) {
  v1::TrainingSpec spec = click_spec(12, 32, 2, 2);
  const Result expected = train(spec);
  spec.mutable_parameter_server()->set_overlap(false);
  spec.set_micro_batch_size(5);
  EXPECT_EQ(train(spec), expected);
}

// Of each gradient the rows count where the dense part does: every sample adds its sign once to w[0], and to
// the two numbers of three embeddings the opposite.
TEST(TableTraining, RowsCountWithTheirUnitOrAreDroppedWithIt) {
  for (const auto mode : {v1::ParameterServerSpec::SYNCHRONOUS, v1::ParameterServerSpec::ASYNCHRONOUS,
                          v1::ParameterServerSpec::BOUNDED_STALENESS}) {
    const TemporaryFolder folder;
    v1::TrainingSpec spec = click_spec(15, 32, 3, 2);
    v1::ParameterServerSpec& group = *spec.mutable_parameter_server();
    group.set_synchronization(mode);
    if (mode == v1::ParameterServerSpec::SYNCHRONOUS) {  // with a backup worker
      group.set_gradients_per_step(2);
      group.set_units_per_step(2);
    }
    group.set_staleness(mode == v1::ParameterServerSpec::BOUNDED_STALENESS ? 2 : 0);
    group.mutable_tables(1)->mutable_optimizer()->Clear();
    group.mutable_tables(1)->mutable_optimizer()->set_learning_rate(spec.optimizer().learning_rate());
    spec.mutable_checkpoint()->set_model_directory(folder.path());
    TableJob(spec).run_to_the_end();

    const auto model = checkpoint::read_model(folder.path() + "/model.safetensors");
    ASSERT_TRUE(model.ok()) << model.status();
    std::vector<float> before(8), after(6);
    ClickProgram(1).initialize(spec.seed(), before);
    std::memcpy(after.data(), model->tensors[0].data.data(), 6 * sizeof(float));
    const pserver::sparse::TableSpec deep = table_specs(spec)[1];
    double moved = 0;
    for (const auto& [id, row] : rows_of_model(folder.path(), "deep", 2)) {
      std::vector<float> initial(2);
      pserver::sparse::initialize_row(deep.initializer, deep.seed, id, initial);
      for (std::size_t i = 0; i < 2; ++i) moved += row[i] - initial[i];
    }
    EXPECT_NE(after[0], before[0]);
    EXPECT_NEAR(moved, -6 * (after[0] - before[0]), 1e-4) << "mode " << mode;
  }
}

TEST(TableTraining, ACheckpointContinuesOnOtherServersToTheBit) {
  const Result unbroken = train(click_spec(24, 32, 2, 1));
  for (const int servers : {1, 2, 3}) {
    const TemporaryFolder folder;
    v1::TrainingSpec spec = click_spec(10, 32, 2, 2);
    save_in(spec, folder.path(), 5);
    train(spec);
    spec = click_spec(24, 32, 2, servers);
    spec.mutable_checkpoint()->set_directory(folder.path());
    spec.mutable_checkpoint()->set_resume(true);
    const Result rest = train(spec);
    EXPECT_EQ(rest.wide, unbroken.wide) << servers << " servers";
    EXPECT_EQ(rest.deep, unbroken.deep) << servers << " servers";
    ASSERT_EQ(rest.hashes.begin()->first, 10);
    EXPECT_EQ(rest.hashes.rbegin()->second, unbroken.hashes.at(24));
  }
}

TEST(TableTraining, AStopWhileACheckpointIsVerifiedIsHeardAtOnce) {
  const TemporaryFolder folder;
  v1::TrainingSpec spec = click_spec(10, 32, 1, 1);
  save_in(spec, folder.path(), 5);
  train(spec);
  spec.set_steps(20);
  spec.mutable_checkpoint()->set_resume(true);
  TableJob job(spec);
  auto& only = job.job.member(0);
  only.connect_servers = [&, connect = only.connect_servers](auto&&... with) {
    only.stop.request();  // then the checkpoint is loaded
    return connect(with...);
  };
  job.job.run();
  EXPECT_EQ(only.outcome.ending, Ending::kStopped) << only.outcome.error;
  EXPECT_FALSE(only.outcome.configuration);
  EXPECT_TRUE(only.hashes.empty()) << "nothing was trained on";
}

// The rows are those of the weights' step, although training goes on while they are taken.
TEST(TableTraining, ACheckpointBesideTheTrainingIsOfOneStep) {
  const TemporaryFolder folder;
  v1::TrainingSpec spec = click_spec(12, 32, 2, 2);
  save_in(spec, folder.path(), 4);
  spec.mutable_checkpoint()->set_keep(5);
  {
    TableJob job(spec, 0);
    job.servers.hold_snapshots(true);
    auto& first = job.job.member(0);
    first.at_step(8, [&] { job.servers.hold_snapshots(false); });
    job.run_to_the_end();
    const auto told = first.membership->checkpoints();
    ASSERT_GE(told.size(), 2u);
    EXPECT_EQ(told[0].step(), 4);
    EXPECT_EQ(told[0].error(), "");
    EXPECT_GT(told[0].bytes(), 15u * 6 * 4) << "rows and their state count";
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    if (entry.path().filename() != "step-000000004") std::filesystem::remove_all(entry.path());
  }
  // Nothing is left to train: the rows that the servers get are the checkpoint's.
  spec.set_steps(4);
  spec.mutable_checkpoint()->set_every_steps(0);
  spec.mutable_checkpoint()->set_resume(true);
  const Result resumed = train(spec), expected = train(click_spec(4, 32, 2, 1));
  EXPECT_EQ(resumed.wide, expected.wide);
  EXPECT_EQ(resumed.deep, expected.deep);
}

TEST(TableTraining, ACheckpointThatCanNotBeWrittenEndsNothing) {
  const TemporaryFolder folder;
  v1::TrainingSpec spec = click_spec(20, 32, 2, 2);
  const std::string place = folder.path() + "/checkpoints";
  save_in(spec, place, 6);
  TableJob job(spec, 0);
  job.servers.before_commit = [&](int rank, pserver::Unit unit) {
    if (rank != 0 || unit != 4) return;
    std::filesystem::remove_all(place);
    std::ofstream(place) << "no folder";
  };
  job.run_to_the_end();
  const auto told = job.job.member(0).membership->checkpoints();
  ASSERT_GE(told.size(), 2u) << "the next one is tried, too";
  for (const auto& each : told) EXPECT_THAT(each.error(), HasSubstr(place));
}

TEST(TableTraining, TheModelHasTheTablesThatTheServersHold) {
  const TemporaryFolder folder;
  v1::TrainingSpec spec = click_spec(10, 32, 2, 3);
  spec.mutable_checkpoint()->set_model_directory(folder.path());
  TableJob job(spec);
  job.run_to_the_end();
  EXPECT_EQ(job.job.member(0).membership->leaving()->model_path(), folder.path() + "/model.safetensors");
  EXPECT_EQ(rows_of_model(folder.path(), "wide", 1), job.servers.rows(0));
  EXPECT_EQ(rows_of_model(folder.path(), "deep", 2), job.servers.rows(1));
}

// Batches of five rows, which come from one server, into files of one chunk each.
std::size_t batches(TableJob& job) {
  return (job.servers.rows(0).size() + 4) / 5 + (job.servers.rows(1).size() + 4) / 5;
}

// Who waits for the end of it sees that it goes on, whatever it is that takes its time.
TEST(TableTraining, AllThatIsSavedAndWrittenIsMovement) {
  for (const bool model : {false, true}) {
    const TemporaryFolder folder;
    v1::TrainingSpec spec = click_spec(10, 32, 1, 1);
    if (model) {
      spec.mutable_checkpoint()->set_model_directory(folder.path());
    } else {
      save_in(spec, folder.path(), 10);
    }
    TableJob job(spec, 0);
    job.run_to_the_end();
    const auto dense = model ? checkpoint::read_model(folder.path() + "/model.safetensors")
                             : checkpoint::read_model(folder.path() + "/step-000000010/state.safetensors");
    ASSERT_TRUE(dense.ok()) << dense.status();
    ASSERT_GT(batches(job), 10u);
    const std::size_t columns = model ? 2 : 5;  // ids and weights; ids, last, uses, steps and rows
    const std::size_t from_servers = 1 + batches(job), tables = 2 * (1 + columns + 1),
                      of_dense = 1 + dense->tensors.size() + 1, manifest = model ? 0 : 1 + 1;
    EXPECT_EQ(job.job.member(0).stop.moves(), from_servers + tables + of_dense + manifest)
        << (model ? "the model" : "a checkpoint");
  }
}

// The chief asks the servers, the evaluator reads the checkpoint: of one state they say the same.
TEST(TableTraining, ChiefAndEvaluatorFindTheSameAuc) {
  const TemporaryFolder folder;
  v1::TrainingSpec spec = click_spec(10, 32, 2, 2);
  save_in(spec, folder.path(), 10);
  spec.mutable_evaluation()->set_batch_size(7);
  TableJob job(spec);
  job.run_to_the_end();
  v1::Heartbeat beat;
  job.job.member(0).membership->progress().collect(&beat);
  ASSERT_EQ(beat.evaluations_size(), 1);
  const v1::EvaluationRecord& by_chief = beat.evaluations(0);
  ASSERT_TRUE(by_chief.has_auc());
  EXPECT_GT(by_chief.auc(), 0);
  EXPECT_LT(by_chief.auc(), 1);

  const SystemClock clock;
  const Logger logger = Logger::none();
  ScriptedMembership membership("e0", spec);
  StopRequest stop;
  std::jthread thread([&] {
    EvaluatorMember({membership, clock, logger, stop, click_workload(kClickTrain, kClickTest)}).run();
  });
  const Deadline limit = Deadline::after(clock.now(), std::chrono::seconds(30));
  v1::Heartbeat other;
  while (other.evaluations_size() == 0 && !limit.expired(clock.now())) {
    membership.progress().collect(&other);
    std::this_thread::yield();
  }
  membership.end(absl::CancelledError("the job is finished"));
  ASSERT_EQ(other.evaluations_size(), 1);
  const v1::EvaluationRecord& by_evaluator = other.evaluations(0);
  EXPECT_EQ(by_evaluator.step(), 10);
  EXPECT_EQ(by_evaluator.samples(), kClickTest);
  EXPECT_EQ(by_evaluator.loss(), by_chief.loss());
  EXPECT_EQ(by_evaluator.accuracy(), by_chief.accuracy());
  EXPECT_EQ(by_evaluator.auc(), by_chief.auc());
}

// An evaluation pulls rows through the same client, for as long as it likes: none of that is the next step's.
TEST(TableTraining, AStepsTimesAreItsOwnCallsAlsoAfterAnEvaluation) {
  using std::chrono::milliseconds;
  const FakeServers::Takes takes{.cut = milliseconds(3),
                                 .pull = milliseconds(5),
                                 .push = milliseconds(11),
                                 .push_rows = milliseconds(17),
                                 .commit = milliseconds(23),
                                 .turn = milliseconds(100),
                                 .weights = milliseconds(31)};
  v1::TrainingSpec spec = click_spec(6, 32, 1, 1);
  spec.mutable_parameter_server()->set_overlap(false);
  spec.mutable_evaluation()->set_every_steps(2);
  spec.mutable_evaluation()->set_batch_size(7);  // six pulls
  FakeClock clock;
  TableJob job(spec, kClickTest, ClickLabels::kRandom, &clock);
  job.servers.take_time(clock, takes);
  job.run_to_the_end();
  v1::Heartbeat beat;
  job.job.member(0).membership->progress().collect(&beat);
  EXPECT_EQ(beat.evaluations_size(), 3);
  ASSERT_EQ(beat.step_times_size(), 6);
  const Duration transfer = takes.pull + takes.push + takes.push_rows + takes.commit + takes.weights;
  for (int i = 0; i < beat.step_times_size(); ++i) {
    const v1::StepTimes& times = beat.step_times(i);
    EXPECT_EQ(Duration(times.transfer_ns()), transfer) << "step " << i + 1;
    EXPECT_EQ(Duration(times.compute_ns()), takes.cut) << "step " << i + 1;
    EXPECT_EQ(Duration(times.wait_ns()), takes.turn) << "step " << i + 1;
    EXPECT_EQ(Duration(times.step_ns()), transfer + takes.cut + takes.turn) << "step " << i + 1;
  }
}

// Nothing is known before training, and nearly everything soon after: the target is what training made of it.
TEST(TableTraining, ReachingTheAucEndsTheJob) {
  v1::TrainingSpec spec = click_spec(300, 32, 2, 1);
  spec.mutable_evaluation()->set_every_steps(3);
  spec.mutable_target()->set_metric("auc");
  spec.mutable_target()->set_value(0.95);
  for (v1::TableSpec& table : *spec.mutable_parameter_server()->mutable_tables())
    table.mutable_optimizer()->set_learning_rate(0.002);
  TableJob job(spec, kClickTest, ClickLabels::kOfTheFirstValue);
  job.run_to_the_end();
  v1::Heartbeat beat;
  job.job.member(0).membership->progress().collect(&beat);
  ASSERT_GE(beat.evaluations_size(), 2) << "the first one is too early";
  EXPECT_LT(beat.evaluations(0).auc(), 0.8);
  for (int i = 0; i < beat.evaluations_size(); ++i) {
    const v1::EvaluationRecord& each = beat.evaluations(i);
    const bool last = i + 1 == beat.evaluations_size();
    EXPECT_EQ(each.auc() >= 0.95, last) << "step " << each.step();
    EXPECT_EQ(each.target_reached(), last) << "step " << each.step();
  }
  EXPECT_LT(job.job.member(0).outcome.step, 300);
}

TEST(TableTraining, AnAucThatCanNotBeReachedIsToldBeforeTheTraining) {
  v1::TrainingSpec spec = click_spec(300, 32, 1, 1);
  spec.mutable_target()->set_metric("auc");
  spec.mutable_target()->set_value(0.95);
  TableJob job(spec, kClickTest, ClickLabels::kAllOnes);
  job.job.run();
  EXPECT_EQ(job.job.member(0).outcome.ending, Ending::kFailed);
  EXPECT_TRUE(job.job.member(0).outcome.configuration);
  EXPECT_THAT(std::string(job.job.member(0).outcome.error.message()), HasSubstr("one label only"));
  EXPECT_TRUE(job.job.member(0).hashes.empty());
}

// The view is drained: the rows wait in a checkpoint for the next view's servers.
TEST(TableTraining, TheNextViewsServersGetTheRowsOfTheLast) {
  const TemporaryFolder folder;
  v1::TrainingSpec spec = click_spec(30, 32, 2, 1);
  const Result unbroken = train(spec);
  spec.mutable_checkpoint()->set_directory(folder.path());
  TableJob first(spec);
  FakeServers second(spec);
  first.continue_on(second);
  first.job.drain_at(1, 10, first.view(2, 2));
  first.run_to_the_end();
  const auto saved = first.job.member(0).membership->checkpoints();
  ASSERT_EQ(saved.size(), 1u) << "what the last view leaves is written once";
  EXPECT_EQ(saved[0].error(), "");
  EXPECT_GE(saved[0].step(), 10);
  EXPECT_EQ(first.job.member(1).hashes, unbroken.hashes);
  EXPECT_EQ(second.rows(0), unbroken.wide);
  EXPECT_EQ(second.rows(1), unbroken.deep);
}

// The second view's servers are lost when they have some of the rows: the third's must not begin with the
// rest.
TEST(TableTraining, RowsThatWereReadInPartAreNotGivenToAnotherView) {
  const TemporaryFolder folder;
  v1::TrainingSpec spec = click_spec(30, 32, 1, 1);
  spec.mutable_checkpoint()->set_directory(folder.path());
  TableJob job(spec);
  FakeServers second(spec), third(spec);
  auto& chief = job.job.member(0);
  job.job.drain_at(0, 10, job.view(2, 1));
  std::size_t read = 0;
  second.before_initialize = [&](const pserver::InitialState& state) -> absl::Status {
    pserver::sparse::SavedRows rows;
    EXPECT_TRUE(state.rows->next(rows).ok());
    read = rows.size();
    return absl::UnavailableError("ps-0 is gone");
  };
  chief.membership->on_fault = [&](const v1::PeerFault&) { job.job.send_view(job.view(3, 1)); };
  chief.connect_servers = [&, first = chief.connect_servers, then = second.connector(),
                           last = third.connector()](collective::Fabric& fabric,
                                                     const collective::Group& group, auto&&... rest) {
    if (group.generation == Generation{1}) return first(fabric, group, rest...);
    return group.generation == Generation{2} ? then(fabric, group, rest...) : last(fabric, group, rest...);
  };
  job.job.run();
  EXPECT_GT(read, 0u);
  EXPECT_EQ(chief.outcome.ending, Ending::kFailed);
  EXPECT_THAT(std::string(chief.outcome.error.message()), HasSubstr("begins without the servers' state"));
  EXPECT_TRUE(third.initialized().empty());
}

TEST(TableTraining, TablesNeedServers) {
  v1::TrainingSpec spec = click_spec(10, 32, 1, 1);
  spec.clear_parameter_server();
  ThreadJob job(1, spec, click_workload(kClickTrain, 0));
  job.run_view({0});
  EXPECT_EQ(job.member(0).outcome.ending, Ending::kFailed);
  EXPECT_TRUE(job.member(0).outcome.configuration);
  EXPECT_THAT(std::string(job.member(0).outcome.error.message()), HasSubstr("ParameterServer"));
}

}  // namespace
}  // namespace paceline::trainer

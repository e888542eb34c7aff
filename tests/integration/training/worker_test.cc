// paceline-worker as processes: exit codes, a killed member, signals.

#include <gmock/gmock.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cstdlib>

#include "controller/diagnosis/fault_text.h"
#include "tests/integration/training/job.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

Variables variables_of(const std::string& coordinator, int index) {
  return {{"PACELINE_COORDINATOR", coordinator},
          {"PACELINE_JOB", kJobName},
          {"PACELINE_ROLE", "worker"},
          {"PACELINE_INDEX", str_cat(index)},
          {"PACELINE_POD", str_cat("digits-worker-", index)},
          {"PACELINE_POD_UID", str_cat("uid-", index)},
          {"PACELINE_TOKEN", kJobToken},
          {"PACELINE_THREADS", "1"}};
}

// A paceline-worker; killed at the end if it still runs.
class Worker {
 public:
  explicit Worker(const Variables& variables) {
    std::vector<std::string> texts = {"PATH=/usr/bin:/bin"};
    for (const auto& [name, value] : variables) texts.push_back(str_cat(name, "=", value));
    // A sanitizer's suppressions hold in the workers too.
    for (const char* name : {"ASAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"}) {
      if (const char* value = std::getenv(name)) texts.push_back(str_cat(name, "=", value));
    }
    std::vector<char*> environment;
    for (std::string& text : texts) environment.push_back(text.data());
    environment.push_back(nullptr);
    std::string program = binary_path("bin/paceline-worker");
    char* arguments[] = {program.data(), nullptr};
    const int refused =
        ::posix_spawn(&pid_, program.c_str(), nullptr, nullptr, arguments, environment.data());
    PL_CHECK(refused == 0, "paceline-worker starts");
  }
  ~Worker() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void signal(int number) const { ::kill(pid_, number); }
  // The exit code, or 128 + the signal.
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
};

std::vector<std::unique_ptr<Worker>> start_workers(const Coordinator& coordinator, int count) {
  std::vector<std::unique_ptr<Worker>> workers;
  for (int index = 0; index < count; ++index) {
    workers.push_back(std::make_unique<Worker>(variables_of(coordinator.address(), index)));
  }
  return workers;
}

// Until the job has applied some steps.
void wait_until_it_trains(Coordinator& coordinator) {
  const Deadline deadline = Deadline::after(coordinator.clock().now(), std::chrono::seconds(30));
  while (coordinator.job().report().step < 20 && !deadline.expired(coordinator.clock().now())) {
    std::this_thread::yield();
  }
}

TEST(WorkerProgram, FourProcessesTrainToTheEnd) {
  Coordinator coordinator(4, digits_spec(200));
  auto workers = start_workers(coordinator, 4);
  for (auto& worker : workers) EXPECT_EQ(worker->wait(), 0);
  const auto report = coordinator.wait_for_end();
  EXPECT_EQ(report.state, coordinator::JobState::kFinished) << report.reason;
  EXPECT_EQ(report.step, 200);
}

TEST(WorkerProgram, AKilledMemberIsNamedAndTheOthersLeave) {
  Coordinator coordinator(3, digits_spec(50'000'000));
  auto workers = start_workers(coordinator, 3);
  wait_until_it_trains(coordinator);
  workers[1]->signal(SIGKILL);
  const auto report = coordinator.wait_for_end();
  EXPECT_EQ(report.state, coordinator::JobState::kFailed);
  ASSERT_TRUE(report.verdict.has_value());
  EXPECT_EQ(report.verdict->index, 1) << diagnosis::message_of(*report.verdict);
  EXPECT_EQ(workers[0]->wait(), 3);
  EXPECT_EQ(workers[1]->wait(), 128 + SIGKILL);
  EXPECT_EQ(workers[2]->wait(), 3);
}

TEST(WorkerProgram, SigtermStopsAllAfterTheSameStepAndTheJobCanGoOn) {
  const TemporaryFolder folder;
  v1::TrainingSpec spec = digits_spec(50'000'000);
  spec.mutable_checkpoint()->set_directory(folder.path());
  Coordinator coordinator(2, spec);
  auto workers = start_workers(coordinator, 2);
  wait_until_it_trains(coordinator);
  workers[1]->signal(SIGTERM);
  for (auto& worker : workers) EXPECT_EQ(worker->wait(), 3);
  const checkpoint::CheckpointStore store(folder.path(), 1);
  const auto saved = store.load_latest();
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_GE(saved->progress.step, 20);
}

TEST(WorkerProgram, AJobThatCannotBeTrainedIsAnErrorOfConfiguration) {
  v1::TrainingSpec spec = digits_spec(10);
  spec.mutable_data()->mutable_train()->set_inputs(0, "/nowhere/digits.csv");
  Coordinator coordinator(1, spec);
  auto workers = start_workers(coordinator, 1);
  EXPECT_EQ(workers[0]->wait(), 2);
  const auto report = coordinator.wait_for_end();
  EXPECT_EQ(report.state, coordinator::JobState::kFailed);
  EXPECT_THAT(report.reason, HasSubstr("/nowhere/digits.csv"));
}

TEST(WorkerProgram, AWrongEnvironmentIsAnErrorOfConfiguration) {
  EXPECT_EQ(Worker({}).wait(), 2);
}

}  // namespace
}  // namespace paceline

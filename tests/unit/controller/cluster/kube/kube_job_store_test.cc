#include "controller/cluster/kube/kube_job_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "controller/cluster/kube/status_json.h"
#include "tests/support/fake_api_server.h"
#include "tests/support/fake_clock.h"

namespace paceline::kube {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr char kKey[] = "team/digits";

Json good_job(const std::string& name = "digits") {
  Json job = Json::parse(R"({
    "apiVersion": "paceline.dev/v1alpha1", "kind": "TrainingJob",
    "metadata": {"labels": {"team": "a"},
      "annotations": {"note": "n", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
      "managedFields": [{"manager": "kubectl"}]},
    "spec": {
      "replicaSpecs": {"chief": {"replicas": 1},
                       "worker": {"replicas": 3, "template": {"spec": {"containers": [{"image": "mine:1"}]}}}},
      "training": {"model": {"type": "mlp", "hidden": [128], "classes": 10},
        "data": {"format": "csv", "train": {"inputs": "digits.csv"}, "testFraction": 0.2},
        "optimizer": {"type": "SGD", "learningRate": 0.1}, "globalBatchSize": 64, "steps": 100}}})");
  job["metadata"]["name"] = name;
  return job;
}

class KubeJobStoreTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  FakeApiServer server_;
  ApiClient api_{server_, clock_, 1};
  Guarded<int> told_{0};
  std::unique_ptr<KubeJobStore> store_;

  void start() {
    store_ = std::make_unique<KubeJobStore>(api_, clock_, Logger::none(),
                                            [this](const std::string&) { ++*told_.lock(); });
    ASSERT_TRUE(store_->wait_synced(20s).ok());
  }
  void start_with(const Json& job) {
    server_.create("trainingjobs", "team", job);
    start();
  }
  reconcile::StoredJob get() {
    auto job = store_->get(kKey);
    EXPECT_TRUE(job.ok()) << job.status();
    return job.ok() ? *std::move(job) : reconcile::StoredJob();
  }
  void set_steps(int steps, int generation) {
    server_.change("trainingjobs", "team", "digits", [&](Json& changed) {
      changed["spec"]["training"]["steps"] = steps;
      changed["metadata"]["generation"] = generation;
    });
  }
  // As one who has read the job just now.
  absl::Status write(const api::Status& status) {
    const auto job = store_->get(kKey);
    return store_->write_status(kKey, status, job.ok() ? job->version : "");
  }
  Json status() { return at(*server_.find("trainingjobs", "team", "digits"), {"status"}); }
  template <typename Condition>
  bool comes(Condition condition) {
    for (;;) {
      const int seen = *told_.lock();
      if (condition()) return true;
      bool woken = false;
      told_.lock_when([&](int told) { return told > seen; }, 20s, &woken);
      if (!woken) return false;
    }
  }
};

TEST_F(KubeJobStoreTest, AJobIsReadAsFromAFile) {
  start_with(good_job());
  const reconcile::StoredJob stored = get();
  EXPECT_EQ(stored.uid, "uid-1");
  EXPECT_EQ(stored.generation.value, 1);
  EXPECT_FALSE(stored.deleted);
  EXPECT_EQ(stored.job.metadata.name, "digits");
  EXPECT_EQ(stored.job.metadata.ns, "team");
  EXPECT_EQ(stored.job.metadata.labels.at("team"), "a");
  EXPECT_EQ(stored.job.metadata.annotations, (std::map<std::string, std::string>{{"note", "n"}}));
  EXPECT_EQ(stored.job.spec.replica_specs.worker->replicas, 3);
  EXPECT_EQ(stored.job.spec.training->global_batch_size, 64);
  ASSERT_EQ(stored.pod_templates.size(), 1u);
  EXPECT_EQ(Json::parse(stored.pod_templates.at(Role::kWorker)),
            Json::parse(R"({"spec": {"containers": [{"image": "mine:1"}]}})"));
  EXPECT_EQ(store_->get("team/other").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(store_->keys(), ::testing::ElementsAre(kKey));
}

TEST_F(KubeJobStoreTest, WhetherCheckpointsOutliveTheirPodIsRead) {
  start_with(good_job());
  EXPECT_FALSE(get().keeps_checkpoints);
  server_.change("trainingjobs", "team", "digits", [](Json& job) {
    job["spec"]["replicaSpecs"]["chief"]["template"] = Json::parse(R"({"spec": {
      "volumes": [{"name": "paceline", "nfs": {"server": "s"}}], "containers": [{"image": "mine:1"}]}})");
    job["metadata"]["generation"] = 2;
  });
  EXPECT_TRUE(comes([&] { return get().keeps_checkpoints; }));
}

TEST_F(KubeJobStoreTest, ChangesAndTheEndAreSeen) {
  start_with(good_job());
  server_.change("trainingjobs", "team", "digits", [](Json& job) {
    job["spec"]["replicaSpecs"]["worker"]["replicas"] = 5;
    job["metadata"]["generation"] = 2;
    job["metadata"]["labels"]["team"] = "b";
  });
  EXPECT_TRUE(comes([&] { return get().job.spec.replica_specs.worker->replicas == 5; }));
  EXPECT_EQ(get().job.metadata.labels.at("team"), "b");
  EXPECT_EQ(get().generation.value, 2);
  server_.change("trainingjobs", "team", "digits",
                 [](Json& job) { job["metadata"]["deletionTimestamp"] = "2026-01-31T12:00:00Z"; });
  EXPECT_TRUE(comes([&] { return get().deleted; }));
  server_.erase("trainingjobs", "team", "digits");
  EXPECT_TRUE(comes([&] { return absl::IsNotFound(store_->get(kKey).status()); }));
}

TEST_F(KubeJobStoreTest, AStatusIsWrittenOnlyWhenItChanged) {
  start_with(good_job());
  api::Status status = get().job.status;
  ASSERT_TRUE(write(status).ok());
  EXPECT_EQ(server_.requests("PATCH"), 0);
  status.phase = api::Phase::kRunning;
  status.reason = "MembersTrain";
  status.start_time = clock_.wall_now();
  ASSERT_TRUE(write(status).ok());
  EXPECT_EQ(get().job.status, status) << "read back at once";
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(write(status).ok());
  EXPECT_EQ(server_.requests("PATCH"), 1);
  EXPECT_EQ(server_.requests("/status?fieldManager=paceline-controller&force=true"), 1);
  EXPECT_EQ(status_from_json(this->status()), status);
  EXPECT_EQ(this->status()["ready"], "0/4");
  status.replica_statuses = {{Role::kWorker, 3, 2, 0, 0}};
  ASSERT_TRUE(write(status).ok());
  EXPECT_EQ(this->status()["ready"], "2/4");
  EXPECT_EQ(this->status()["replicas"], 3);
  EXPECT_FALSE(this->status().contains("lastCheckpointStep"));
  status.last_checkpoint = "/paceline/checkpoints/step-000000123";
  ASSERT_TRUE(write(status).ok());
  EXPECT_EQ(this->status()["lastCheckpointStep"], 123);
}

TEST_F(KubeJobStoreTest, ConditionsOfOthersStayAsTheyAre) {
  start_with(good_job());
  const Json theirs = {{"type", "QuotaReserved"},
                       {"status", "Unknown"},
                       {"reason", "Waiting"},
                       {"lastTransitionTime", "2026-01-31T12:00:00Z"},
                       {"weight", 3}};
  server_.change("trainingjobs", "team", "digits",
                 [&](Json& job) { job["status"]["conditions"].push_back(theirs); });
  EXPECT_TRUE(comes([&] { return get().version == "1002"; }));
  api::Status status = get().job.status;
  EXPECT_EQ(status, api::Status()) << "nobody goes by them";
  status.phase = api::Phase::kRunning;
  status.conditions = {{"Created", true, "Accepted", "", WallTime(1000s), {1}}};
  ASSERT_TRUE(write(status).ok());
  EXPECT_EQ(this->status()["conditions"].size(), 2u);
  EXPECT_EQ(this->status()["conditions"][0], theirs);
  EXPECT_EQ(get().job.status, status);
  set_steps(0, 2);
  EXPECT_TRUE(comes([&] { return absl::IsFailedPrecondition(store_->get(kKey).status()); }));
  EXPECT_EQ(this->status()["conditions"].size(), 3u);
  EXPECT_EQ(this->status()["conditions"][0], theirs) << "nor when a job is left alone";
  server_.change("trainingjobs", "team", "digits", [](Json& job) {
    job["status"]["phase"] = "Pending";
    job["metadata"]["generation"] = 3;
  });
  EXPECT_TRUE(comes([&] { return absl::IsNotFound(store_->get(kKey).status()); }));
  EXPECT_EQ(this->status()["phase"], "Failed");
  EXPECT_EQ(this->status()["conditions"][0], theirs) << "nor when it is refused";
}

TEST_F(KubeJobStoreTest, AnotherControllersStatusIsTheBeginning) {
  Json job = good_job();
  api::Status before;
  before.phase = api::Phase::kRunning;
  before.progress.step = 17;
  job["status"] = status_to_json(before);
  start_with(job);
  EXPECT_EQ(get().job.status, before);
  ASSERT_TRUE(write(before).ok());
  EXPECT_EQ(server_.requests("PATCH"), 0);
}

TEST_F(KubeJobStoreTest, FieldThatTheServerDropsIsWrittenOnce) {
  start_with(good_job());
  api::Status status;
  status.message = "a server with another schema has no place for it";
  server_.set_faults([&](const Request& request) {
    FakeApiServer::Fault fault;
    if (request.method != Method::kPatch) return fault;
    Json object = *server_.find("trainingjobs", "team", "digits");
    object["status"] = {{"phase", "Pending"}};
    fault.answer = Response{200, object.dump(), {}, ""};
    return fault;
  });
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(write(status).ok());
  EXPECT_EQ(server_.requests("PATCH"), 1);
}

TEST_F(KubeJobStoreTest, OnlyTheJobThatWasReadIsWrittenTo) {
  start_with(good_job());
  api::Status status;
  status.message = "new";
  server_.set_faults([](const Request& request) {  // neither a watch nor a list brings what happens now
    FakeApiServer::Fault fault;
    if (request.method == Method::kGet) fault.broken = absl::UnavailableError("down");
    return fault;
  });
  server_.end_watches(false);
  server_.erase("trainingjobs", "team", "digits");
  server_.create("trainingjobs", "team", good_job());
  EXPECT_EQ(write(status).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(store_->write_status(kKey, status, "").code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(this->status().is_null());
  EXPECT_EQ(store_->remove(kKey, "uid-1").code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(server_.find("trainingjobs", "team", "digits"));
  EXPECT_TRUE(store_->remove(kKey, "uid-2").ok());
  EXPECT_FALSE(server_.find("trainingjobs", "team", "digits"));
}

TEST_F(KubeJobStoreTest, AStatusOfAnEarlierVersionIsNotWritten) {
  start_with(good_job());
  const reconcile::StoredJob read = get();
  api::Status late;
  late.restarts.attempt = 1;
  late.message = "of a controller that led before";
  api::Status now;
  now.restarts.attempt = 2;
  ASSERT_TRUE(write(now).ok());
  EXPECT_EQ(store_->write_status(kKey, late, read.version).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(status_from_json(this->status()).restarts.attempt, 2) << "a counter that goes back";
  EXPECT_TRUE(write(late).ok());
}

TEST_F(KubeJobStoreTest, RefusedSpecFailsTheJobWithItsErrors) {
  Json job = good_job();
  job["spec"]["training"]["optimizer"]["learningRat"] = 0.1;
  job["spec"]["training"]["globalBatchSize"] = -1;
  start_with(job);
  const absl::Status refused = store_->get(kKey).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("learningRat"));
  const api::Status status = status_from_json(this->status());
  EXPECT_EQ(status.phase, api::Phase::kFailed);
  EXPECT_EQ(status.reason, "InvalidSpec");
  EXPECT_THAT(status.message, HasSubstr("spec.training.optimizer.learningRat: unknown field"));
  EXPECT_THAT(status.message, HasSubstr("globalBatchSize"));
  EXPECT_EQ(status.observed_generation.value, 1);
  ASSERT_EQ(status.conditions.size(), 1u);
  EXPECT_EQ(status.conditions[0].type, "Failed");
  EXPECT_TRUE(status.conditions[0].status);
  EXPECT_TRUE(absl::IsNotFound(store_->get(kKey).status()));
  EXPECT_EQ(server_.requests("PATCH"), 1);
}

TEST_F(KubeJobStoreTest, ARefusedJobThatIsMendedIsThereAgain) {
  Json job = good_job();
  job["spec"]["training"]["steps"] = 0;
  start_with(job);
  EXPECT_TRUE(absl::IsNotFound(store_->get(kKey).status()));
  set_steps(5, 2);
  EXPECT_TRUE(comes([&] { return store_->get(kKey).ok(); }));
  EXPECT_EQ(get().job.spec.training->steps, 5);
  EXPECT_EQ(get().job.status, api::Status{.observed_generation = {1}}) << "it begins after all";
  ASSERT_TRUE(write(get().job.status).ok());
  EXPECT_EQ(this->status()["phase"], "Pending");
  EXPECT_FALSE(this->status().contains("conditions"));
}

// An upgrade may have made validation stricter.
TEST_F(KubeJobStoreTest, AJobThatHasBegunGoesOnWhenItsSpecIsMended) {
  using enum api::Phase;
  start_with(good_job());
  int generation = 1;
  for (const api::Phase phase : {kStarting, kRunning, kRestarting, kSuspended}) {
    api::Status status;
    status.phase = phase;
    status.reason = "MembersTrain";
    status.restarts.size = 4;
    status.start_time = WallTime(1000s);
    status.conditions = {{"Created", true, "Accepted", "", WallTime(1000s), {1}},
                         {"Running", true, "MembersTrain", "all train", WallTime(1000s), {1}}};
    status.members = {{.role = Role::kWorker, .index = 1, .pod = "digits-worker-1-0", .phase = "Finished"}};
    ASSERT_TRUE(write(status).ok());
    set_steps(0, ++generation);
    EXPECT_TRUE(comes([&] { return absl::IsFailedPrecondition(store_->get(kKey).status()); }));
    const api::Status refused = status_from_json(this->status());
    ASSERT_EQ(refused.conditions.size(), 3u);
    EXPECT_EQ(refused.conditions[2].type, "InvalidSpec");
    EXPECT_TRUE(refused.conditions[2].status);
    EXPECT_THAT(refused.conditions[2].message, HasSubstr("steps"));
    EXPECT_EQ(refused.conditions[2].observed_generation.value, generation);
    api::Status rest = refused;
    rest.conditions.pop_back();
    EXPECT_EQ(rest, status) << "everything else is as it was";
    const int writes = server_.requests("PATCH");
    EXPECT_TRUE(absl::IsFailedPrecondition(store_->get(kKey).status()));
    EXPECT_EQ(server_.requests("PATCH"), writes) << "said once";
    set_steps(5, ++generation);
    EXPECT_TRUE(comes([&] { return store_->get(kKey).ok(); }));
    EXPECT_EQ(get().job.status, refused) << "the planner says that it is mended";
    EXPECT_EQ(server_.requests("PATCH"), writes);
  }
}

TEST_F(KubeJobStoreTest, ShownColumnsStayWhileAJobIsLeftAlone) {
  start_with(good_job());
  api::Status status;
  status.phase = api::Phase::kRunning;
  status.last_checkpoint = "/data/digits/step-00000040";
  status.replica_statuses = {{.role = Role::kWorker, .active = 2, .ready = 1}};
  ASSERT_TRUE(write(status).ok());
  const Json before = this->status();
  ASSERT_EQ(before["lastCheckpointStep"], 40);
  set_steps(0, 2);
  EXPECT_TRUE(comes([&] { return absl::IsFailedPrecondition(store_->get(kKey).status()); }));
  const Json after = this->status();
  ASSERT_TRUE(after.contains("conditions"));
  for (const char* shown : {"ready", "replicas", "lastCheckpointStep"})
    EXPECT_EQ(after.value(shown, Json()), before[shown]) << shown;
}

TEST_F(KubeJobStoreTest, ASecondRefusalIsOneAgain) {
  start_with(good_job());
  api::Status status;
  status.phase = api::Phase::kRunning;
  status.conditions = {{"InvalidSpec", false, "Mended", "the spec is valid again", WallTime(1000s), {1}}};
  ASSERT_TRUE(write(status).ok());
  clock_.advance(50s);
  set_steps(0, 2);
  EXPECT_TRUE(comes([&] { return absl::IsFailedPrecondition(store_->get(kKey).status()); }));
  const api::Status refused = status_from_json(this->status());
  ASSERT_EQ(refused.conditions.size(), 1u);
  const api::Condition& said = refused.conditions[0];
  EXPECT_TRUE(said.status);
  EXPECT_EQ(said.reason, "Refused");
  EXPECT_THAT(said.message, HasSubstr("steps"));
  EXPECT_EQ(said.observed_generation.value, 2);
  EXPECT_EQ(format_wall_time(said.last_transition), format_wall_time(clock_.wall_now()));
}

TEST_F(KubeJobStoreTest, AnEndIsForGoodWhateverBecomesOfTheSpec) {
  start_with(good_job());
  api::Status status;
  status.phase = api::Phase::kFailed;
  status.reason = "BackoffLimitExceeded";
  status.observed_generation = {1};
  ASSERT_TRUE(write(status).ok());
  set_steps(0, 2);
  EXPECT_TRUE(comes([&] { return absl::IsNotFound(store_->get(kKey).status()); }));
  EXPECT_EQ(this->status()["reason"], "BackoffLimitExceeded");
  set_steps(5, 3);
  EXPECT_TRUE(comes([&] { return store_->get(kKey).ok(); }));
  EXPECT_EQ(get().job.status.phase, api::Phase::kFailed) << "it does not begin again";
}

// It may read specs otherwise, or be of a later version: neither refused, nor told that it is left alone.
TEST_F(KubeJobStoreTest, SomebodyElsesJobIsNotWrittenToWhateverItsSpecSays) {
  for (const api::Phase phase : {api::Phase::kPending, api::Phase::kRunning, api::Phase::kFailed}) {
    Json job = good_job(api::name(phase));
    job["spec"]["runPolicy"] = {{"suspend", true}, {"managedBy", "kueue.x-k8s.io/multikueue"}};
    job["spec"]["training"]["steps"] = 0;
    if (phase != api::Phase::kPending)
      job["status"] = {{"phase", api::name(phase)}, {"reason", "InvalidSpec"}};
    server_.create("trainingjobs", "team", job);
  }
  Json ours = good_job();
  ours["spec"]["runPolicy"] = {{"managedBy", "paceline.dev/controller"}};
  ours["spec"]["training"]["steps"] = 0;
  server_.create("trainingjobs", "team", ours);
  start();
  for (const std::string& key : store_->keys()) {
    EXPECT_TRUE(absl::IsNotFound(store_->get(key).status())) << key;
  }
  EXPECT_EQ(server_.requests("PATCH"), 1);
  EXPECT_EQ(status()["reason"], "InvalidSpec") << "this one is ours";
}

TEST_F(KubeJobStoreTest, ObjectsOfAnyShapeAreSurvived) {
  const Json kSpecs[] = {nullptr,
                         7,
                         "text",
                         Json::array(),
                         Json::object(),
                         {{"replicaSpecs", 7}},
                         {{"replicaSpecs", {{"worker", 7}}}},
                         {{"replicaSpecs", {{"worker", {{"template", 1}}}}}}};
  int number = 0;
  for (const Json& spec : kSpecs) {
    Json job = good_job(str_cat("j", number++));
    job["spec"] = spec;
    server_.create("trainingjobs", "team", job);
  }
  start();
  for (const std::string& key : store_->keys())
    EXPECT_TRUE(absl::IsNotFound(store_->get(key).status())) << key;
  EXPECT_EQ(store_->keys().size(), std::size(kSpecs));
  EXPECT_EQ(server_.requests("PATCH"), static_cast<int>(std::size(kSpecs)));
}

TEST_F(KubeJobStoreTest, BeforeTheListHasComeNothingIsKnown) {
  server_.set_faults(
      [](const Request&) { return FakeApiServer::Fault{.broken = absl::UnavailableError("down")}; });
  KubeJobStore late(api_, clock_, Logger::none(), [](const std::string&) {});
  EXPECT_EQ(late.get(kKey).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace paceline::kube

// What of a job's spec and of the controller's configuration its coordinator goes by.

#include <gtest/gtest.h>

#include "base/text.h"
#include "controller/reconcile/coordinators.h"
#include "tests/support/small_job.h"

namespace paceline::reconcile {
namespace {

using namespace std::chrono_literals;

StoredJob stored() {
  return {.job = small_job("fashion"), .uid = "u1"};
}

TEST(CoreConfigTest, RankZeroSavesAsLongAsItsPodMayLive) {
  const CoordinatorsOptions options;
  const auto save_timeout = [&options](std::optional<std::int64_t> chief,
                                       std::optional<std::int64_t> worker) {
    StoredJob job = stored();
    if (chief) job.job.spec.replica_specs.chief = api::ReplicaSpec{1, {}, {}};
    if (chief) job.job.spec.replica_specs.chief->termination_grace_seconds = chief;
    job.job.spec.replica_specs.worker->termination_grace_seconds = worker;
    return core_config("default/fashion", job, "token", options).value().save_timeout;
  };
  const Duration usual = coordinator::CoreConfig().save_timeout;
  EXPECT_EQ(save_timeout({}, {}), usual);
  EXPECT_EQ(save_timeout({}, 60), usual) << "its pod goes before";
  EXPECT_EQ(save_timeout({}, 3600), std::chrono::hours(1));
  EXPECT_EQ(save_timeout(3600, 7200), std::chrono::hours(1)) << "the chief is rank 0";
}

// The ring replaces nobody, and one stands by: all that make a view must be left.
TEST(CoreConfigTest, HowManyMustBeLeftFollowsTheSize) {
  api::TrainingJob job = stored().job;
  api::ReplicaSpec& worker = *job.spec.replica_specs.worker;
  worker.standby = 1;
  for (const int workers : {4, 2, 5}) {
    worker.replicas = workers;
    const coordinator::Resize resize = resize_of(job);
    EXPECT_EQ(resize.roles, expected_roles(job));
    using enum coordinator::LossAction;
    EXPECT_EQ(resize.on_member_lost({}, workers).action, kFormNextView) << workers;
    EXPECT_EQ(resize.on_member_lost({}, workers - 1).action, kFailJob) << workers;
  }
}

TEST(CoreConfigTest, StepsThatWereReachedCountForAnAttemptThatBegins) {
  StoredJob job = stored();
  const auto config = [&job] { return core_config("default/fashion", job, "token", {}).value(); };
  EXPECT_EQ(config().restarts_from, std::nullopt) << "there is none yet";
  job.job.status.progress = {.step = 812, .goodput = 0.5, .goodput_seconds = 20};
  job.job.status.phase = api::Phase::kRestarting;
  EXPECT_EQ(config().restarts_from, 812);
  job.job.status.members = {{.role = Role::kWorker, .step = 815}, {.role = Role::kEvaluator, .step = 900}};
  EXPECT_EQ(config().restarts_from, 815);
  EXPECT_EQ(config().goodput_before.step, 812);
  EXPECT_EQ(config().goodput_before.share, 0.5);
  EXPECT_EQ(config().goodput_before.seconds, 20);
  job.job.status.progress.step = 0;
  EXPECT_EQ(config().restarts_from, 815) << "no checkpoint is kept";
  job.job.status.phase = api::Phase::kRunning;
  EXPECT_EQ(config().restarts_from, std::nullopt) << "its members train, and another coordinator begins";
}

// The key of the links is told where members attach.
TEST(CoreConfigTest, LinksAreEncryptedOnlyWhereMembersAttachByTls) {
  StoredJob job = stored();
  job.job.spec.strategy.encryption = api::Encryption::kTls;
  CoordinatorsOptions options;
  EXPECT_EQ(core_config("default/fashion", job, "token", options).status().code(),
            absl::StatusCode::kFailedPrecondition);
  options.same_machine = true;
  EXPECT_TRUE(core_config("default/fashion", job, "token", options).ok()) << "nobody listens to loopback";
  options.same_machine = false;
  options.authority = [] { return "pem"; };
  const auto core = core_config("default/fashion", job, "token", options);
  ASSERT_TRUE(core.ok()) << core.status();
  EXPECT_TRUE(core->training.encrypts_links());
}

TEST(CoreConfigTest, AttemptsResumeFromTheFirstThatMay) {
  StoredJob job = stored();
  for (const std::int64_t attempt : {0, 1, 2}) {
    job.job.status.restarts.attempt = attempt;
    for (const std::int64_t first : {0, 1, 3}) {
      CoordinatorsOptions options;
      options.resumes_from = first;
      const auto core = core_config("default/fashion", job, "token", options);
      EXPECT_EQ(core->training.checkpoint().resume(), attempt >= first) << attempt << " " << first;
    }
  }
}

// Both members of the job train, watched by a core that is made with these options.
class WatchedMembers {
 public:
  explicit WatchedMembers(const CoordinatorsOptions& options)
      : core_(core_config("default/fashion", stored(), "a token", options).value(), now_) {
    for (const int index : {0, 1}) {
      v1::Hello hello;
      hello.set_protocol_version(coordinator::kProtocolVersion);
      hello.set_member_id(str_cat("m", index));
      hello.set_job("default/fashion");
      hello.set_role(v1::ROLE_WORKER);
      hello.set_index(static_cast<std::uint32_t>(index));
      hello.set_pod(str_cat("fashion-worker-", index, "-0"));
      core_.step(coordinator::Attached{stream_of(index), hello}, now_);
    }
    pass(2s, {0, 1});
    EXPECT_FALSE(have_failed());
  }
  // Only these are heard.
  void pass(Duration time, const std::vector<int>& heard) {
    for (const TimePoint until = now_ + time; now_ < until;) {
      now_ += 100ms;
      core_.step(coordinator::Tick{}, now_);
      for (const int index : heard) {
        v1::MemberMessage message;
        message.mutable_heartbeat()->set_generation(core_.report(now_).generation.value);
        message.mutable_heartbeat()->set_phase(v1::TRAINING);
        core_.step(coordinator::Received{stream_of(index), message}, now_);
      }
    }
  }
  void end_stream(int index) {
    core_.step(coordinator::StreamEnded{stream_of(index), "the connection broke"}, now_);
  }
  bool have_failed() const { return core_.state() != coordinator::JobState::kRunning; }

 private:
  static coordinator::StreamId stream_of(int index) { return {static_cast<std::uint64_t>(index) + 1}; }
  TimePoint now_{100s};
  coordinator::CoordinatorCore core_;
};

// The defaults are what docs/protocol.md says of Kubernetes.
TEST(CoreConfigTest, WhatANetworkDoesWithinSecondsIsNoLoss) {
  EXPECT_EQ(CoordinatorsOptions().heartbeat_timeout, 5s);
  EXPECT_EQ(CoordinatorsOptions().rejoin_grace, 5s);
  EXPECT_EQ(CoordinatorsOptions().most_silence, 30s);
  for (const Duration more : {0s, 4s}) {
    CoordinatorsOptions options;
    options.heartbeat_timeout += more;
    options.rejoin_grace += 2 * more;
    options.most_silence += 3 * more;

    WatchedMembers silent(options);
    silent.pass(options.heartbeat_timeout, {0});
    EXPECT_FALSE(silent.have_failed());
    silent.pass(200ms, {0});
    EXPECT_TRUE(silent.have_failed());

    WatchedMembers broken(options);
    broken.end_stream(1);
    broken.pass(options.rejoin_grace - 100ms, {0});
    EXPECT_FALSE(broken.have_failed());
    broken.pass(200ms, {0});
    EXPECT_TRUE(broken.have_failed());

    WatchedMembers all_late(options);
    all_late.pass(options.most_silence, {});
    EXPECT_FALSE(all_late.have_failed());
    all_late.pass(200ms, {});
    EXPECT_TRUE(all_late.have_failed());
  }
}

}  // namespace
}  // namespace paceline::reconcile

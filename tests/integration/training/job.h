#pragma once

// A job over a real coordinator: its members are threads of the test with the trainer of the product, over
// real gRPC and shared memory.

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "controller/api/parse.h"
#include "controller/api/training_spec.h"
#include "controller/coordinator/server.h"
#include "runtime/collective/fabric.h"
#include "runtime/member/membership.h"
#include "runtime/tensor/cpu/cpu_device.h"
#include "runtime/trainer/open_workload.h"
#include "runtime/trainer/trainer.h"
#include "tests/support/paths.h"

namespace paceline {

inline constexpr char kJobName[] = "default/digits";
inline constexpr char kJobToken[] = "0123456789abcdef0123456789abcdef";

// The spec of examples/digits-allreduce.yaml, without a target, for `steps` steps.
inline v1::TrainingSpec digits_spec(std::int64_t steps) {
  const std::string folder = source_path("examples");
  const auto text = read_file(folder + "/digits-allreduce.yaml", 1 << 20);
  PL_CHECK(text.ok(), "the example is there");
  const auto parsed = api::parse_training_job(*text, "digits-allreduce.yaml");
  PL_CHECK(parsed.job.has_value(), "the example is right");
  auto spec = api::make_training_spec(*parsed.job, {folder, "", "", false});
  PL_CHECK(spec.ok(), "the example is right");
  spec->clear_target();
  spec->set_epochs(0);
  spec->set_steps(steps);
  spec->mutable_checkpoint()->Clear();
  spec->mutable_checkpoint()->set_keep(2);
  return *std::move(spec);
}

// The coordinator of one job with `members` workers.
class Coordinator {
 public:
  Coordinator(int members, const v1::TrainingSpec& spec) {
    auto server = coordinator::Server::start({}, clock_);
    PL_CHECK(server.ok(), "a coordinator");
    server_ = *std::move(server);
    coordinator::JobConfig config;
    config.core.job = kJobName;
    config.core.training = spec;
    config.core.link_key = std::string(32, 'k');
    config.core.roles = {{Role::kWorker, members}};
    config.token = kJobToken;
    auto job = server_->add_job(std::move(config));
    PL_CHECK(job.ok(), "a job");
    job_ = *std::move(job);
  }
  ~Coordinator() {
    job_.reset();
    server_->shutdown();
  }

  const Clock& clock() const { return clock_; }
  const std::string& address() const { return server_->address(); }
  coordinator::Job& job() { return *job_; }

  // Until the job has ended; the state that it has then.
  coordinator::Report wait_for_end(Duration limit = std::chrono::seconds(30)) {
    const Deadline deadline = Deadline::after(clock_.now(), limit);
    coordinator::Report report = job_->report();
    while (!plan::is_final(report.state) && !deadline.expired(clock_.now())) {
      std::this_thread::yield();
      report = job_->report();
    }
    return report;
  }

 private:
  SystemClock clock_;
  std::unique_ptr<coordinator::Server> server_;
  std::shared_ptr<coordinator::Job> job_;
};

struct MemberResult {
  trainer::Outcome outcome;
  std::map<Step, std::uint64_t> hashes;  // of every step
};

inline member::Environment worker_environment(const std::string& address, int index) {
  member::Environment environment;
  environment.coordinator = address;
  environment.job = kJobName;
  environment.role = Role::kWorker;
  environment.index = index;
  environment.pod = str_cat("digits-worker-", index);
  environment.pod_uid = str_cat("uid-", index);
  environment.token = kJobToken;
  return environment;
}

inline void run_worker(const Coordinator& coordinator, int index, MemberResult& result) {
  const Clock& clock = coordinator.clock();
  auto fabric = collective::Fabric::create({.arena_bytes = std::size_t{1} << 28}, clock);
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  const auto& address = (*fabric)->address();
  member::Presence presence{
      .host_id = address.host_id, .local_socket = address.local_socket, .tcp = address.tcp};
  auto membership = member::Membership::attach(worker_environment(coordinator.address(), index), presence, {},
                                               clock, Deadline::after(clock.now(), std::chrono::seconds(20)));
  ASSERT_TRUE(membership.ok()) << membership.status();
  trainer::StopRequest stop;
  trainer::TrainerOptions options;
  options.hash_every = 1;
  options.on_hash = [&](Step step, std::uint64_t hash) { result.hashes[step] = hash; };
  const Logger logger = Logger::none();
  trainer::Trainer trainer({**membership, **fabric, clock, logger, stop,
                            trainer::make_open_workload({}, {tensor::make_cpu_device({1})}, {})},
                           options);
  result.outcome = trainer.run();
}

struct JobResult {
  coordinator::Report report;
  std::vector<MemberResult> members;
};

// Trains `spec` with `members` workers to the end.
inline JobResult run_job(int members, const v1::TrainingSpec& spec) {
  JobResult result;
  result.members.resize(static_cast<std::size_t>(members));
  Coordinator coordinator(members, spec);
  {
    std::vector<std::jthread> threads;
    for (int index = 0; index < members; ++index) {
      threads.emplace_back(
          [&, index] { run_worker(coordinator, index, result.members[static_cast<std::size_t>(index)]); });
    }
  }
  result.report = coordinator.wait_for_end();
  for (const MemberResult& member : result.members) {
    EXPECT_EQ(member.outcome.ending, trainer::Ending::kFinished) << member.outcome.error;
    EXPECT_EQ(member.hashes, result.members[0].hashes) << "replicas must stay equal at every step";
  }
  return result;
}

}  // namespace paceline

#include "controller/coordinator/job.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "base/text.h"
#include "tests/support/fake_clock.h"

namespace paceline::coordinator {
namespace {

class CountingOutlet final : public Outlet {
 public:
  void send(v1::CoordinatorMessage) override { ++sent; }
  void finish(absl::Status) override { ++finished; }
  std::atomic<int> sent = 0, finished = 0;
};

// Stays in its first view until it is let go.
class StuckObserver final : public RunObserver {
 public:
  void on_view(const ViewRecord&) override {
    entered.set_value();
    release.get_future().wait();
  }
  void on_steps(std::span<const StepRecord> records) override { heard += records.size(); }
  void on_member_steps(const MemberSteps& steps) override { heard += steps.steps.size(); }
  void on_report_changed() override { ++changes; }
  std::promise<void> entered, release;
  std::size_t heard = 0, changes = 0;
};

v1::Hello hello_of(const std::string& member) {
  v1::Hello hello;
  hello.set_protocol_version(kProtocolVersion);
  hello.set_job("default/digits");
  hello.set_role(v1::ROLE_WORKER);
  hello.set_member_id(member);
  return hello;
}

JobConfig one_worker(RunObserver& observer) {
  JobConfig config;
  config.core.job = "default/digits";
  config.core.link_key = std::string(32, 'k');
  config.core.roles = {{Role::kWorker, 1}};
  config.observer = &observer;
  return config;
}

TEST(JobTest, NobodyIsSentLessOrLaterBecauseAnObserverIsStuck) {
  FakeClock clock;
  StuckObserver observer;
  Job job(one_worker(observer), clock);
  const auto member = std::make_shared<CountingOutlet>(), stranger = std::make_shared<CountingOutlet>();
  std::jthread first([&] { job.attach(StreamId{1}, member, hello_of("member")); });
  observer.entered.get_future().wait();
  EXPECT_EQ(member->sent, 2) << "Welcome, View";
  v1::Hello hello = hello_of("stranger");
  hello.set_index(7);
  job.attach(StreamId{2}, stranger, hello);
  EXPECT_EQ(stranger->sent, 1) << "Evict";
  EXPECT_EQ(stranger->finished, 1);
  std::jthread closing([&] { job.close(); });
  while (member->finished == 0) std::this_thread::yield();
  EXPECT_EQ(member->sent, 3) << "Evict";
  observer.release.set_value();
}

TEST(JobTest, WhatAStuckObserverMissesIsCounted) {
  FakeClock clock;
  StuckObserver observer;
  Job job(one_worker(observer), clock);
  const auto member = std::make_shared<CountingOutlet>();
  std::jthread first([&] { job.attach(StreamId{1}, member, hello_of("member")); });
  observer.entered.get_future().wait();
  constexpr int kBeats = 3 * static_cast<int>(kMaxOutbox);
  for (int step = 1; step <= kBeats; ++step) {
    v1::MemberMessage message;
    v1::Heartbeat& beat = *message.mutable_heartbeat();
    beat.set_generation(job.report().generation.value);
    beat.set_step(step);
    beat.add_records()->set_step(step);
    job.feed(Received{StreamId{1}, message});
  }
  observer.release.set_value();
  first.join();
  EXPECT_LE(observer.changes, kMaxOutbox + 2);
  EXPECT_EQ(observer.heard + job.report().dropped_records, static_cast<std::size_t>(kBeats));
}

// Calls must come one at a time: the counters are plain on purpose, for ThreadSanitizer to watch.
class PlainObserver final : public RunObserver {
 public:
  void on_view(const ViewRecord&) override { ++views; }
  void on_steps(std::span<const StepRecord> records) override {
    for (const StepRecord& record : records) {
      EXPECT_GT(record.step, last);
      last = record.step;
    }
  }
  void on_report_changed() override {
    ++changes;
    if (job != nullptr) (void)job->report();  // allowed: no lock is held
  }
  int views = 0, changes = 0;
  Step last = 0;
  Job* job = nullptr;
};

TEST(JobTest, ManyThreadsFeedItAndObserversHearInOrder) {
  FakeClock clock;
  PlainObserver observer;
  JobConfig config;
  config.core.job = "default/digits";
  config.core.link_key = std::string(32, 'k');
  config.core.roles = {{Role::kWorker, 4}};
  config.token = "a-token-of-some-length";
  config.observer = &observer;
  Job job(std::move(config), clock);
  observer.job = &job;
  std::vector<std::shared_ptr<CountingOutlet>> outlets;
  for (int i = 0; i < 4; ++i) outlets.push_back(std::make_shared<CountingOutlet>());
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        const StreamId stream{static_cast<std::uint64_t>(i) + 1};
        v1::Hello hello;
        hello.set_protocol_version(kProtocolVersion);
        hello.set_job("default/digits");
        hello.set_role(v1::ROLE_WORKER);
        hello.set_index(static_cast<std::uint32_t>(i));
        hello.set_member_id(str_cat("member-", i));
        job.attach(stream, outlets[static_cast<std::size_t>(i)], hello);
        for (int step = 1; step <= 200; ++step) {
          v1::MemberMessage message;
          message.mutable_heartbeat()->set_generation(job.report().generation.value);
          message.mutable_heartbeat()->set_step(step);
          if (i == 0) message.mutable_heartbeat()->add_records()->set_step(step);
          job.feed(Received{stream, message});
          job.feed(Tick{});
        }
      });
    }
  }
  EXPECT_EQ(job.report().state, JobState::kRunning);
  job.close();
  job.close();
  EXPECT_EQ(observer.views, 1);
  EXPECT_GT(observer.changes, 0);
  for (const auto& outlet : outlets) {
    EXPECT_EQ(outlet->sent, 3);  // Welcome, View, Evict
    EXPECT_EQ(outlet->finished, 1);
  }
}

// Writes down what it hears.
class WritingObserver final : public RunObserver {
 public:
  void on_steps(std::span<const StepRecord> records) override { note(str_cat("steps ", records.size())); }
  void on_evaluation(const EvaluationRecord& evaluation) override {
    note(str_cat("evaluation ", evaluation.step));
  }
  void on_report_changed() override { note("report"); }
  void on_batch_end() override { note("end"); }
  void note(const std::string& what) { heard += str_cat(heard.empty() ? "" : ", ", what); }
  std::string heard;
};

// Whoever shows it can do so at once, with nothing of it missing.
TEST(JobTest, AnObserverHearsWhereWhatOneHeartbeatBringsEnds) {
  FakeClock clock;
  WritingObserver observer;
  Job job(one_worker(observer), clock);
  const StreamId stream{1};
  job.attach(stream, std::make_shared<CountingOutlet>(), hello_of("a"));
  observer.heard.clear();
  v1::MemberMessage message;
  v1::Heartbeat& beat = *message.mutable_heartbeat();
  beat.set_generation(job.report().generation.value);
  for (int step = 1; step <= 2; ++step) {
    beat.set_step(step);
    beat.add_records()->set_step(step);
  }
  beat.add_evaluations()->set_step(2);
  job.feed(Received{stream, message});
  EXPECT_EQ(observer.heard, "steps 2, evaluation 2, report, end");
  job.close();
}

TEST(JobTest, AfterCloseNobodyAttaches) {
  FakeClock clock;
  JobConfig config;
  config.core.job = "default/digits";
  config.core.link_key = std::string(32, 'k');
  config.core.roles = {{Role::kWorker, 1}};
  Job job(std::move(config), clock);
  job.close();
  const auto outlet = std::make_shared<CountingOutlet>();
  job.attach(StreamId{1}, outlet, {});
  EXPECT_EQ(outlet->finished, 1);
  EXPECT_EQ(outlet->sent, 0);
}

}  // namespace
}  // namespace paceline::coordinator

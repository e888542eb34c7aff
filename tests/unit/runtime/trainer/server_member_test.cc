#include "runtime/trainer/server_member.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "runtime/collective/fault.h"
#include "runtime/trainer/limits.h"
#include "tests/support/early_clock.h"
#include "tests/support/step_model.h"
#include "tests/support/thread_job.h"

namespace paceline::trainer {
namespace {

using ::testing::HasSubstr;

// A server that serves until the test or its close() ends that.
class ScriptedServer final : public pserver::Server {
 public:
  struct Script {
    bool done = false;
    absl::Status result;
    int running = 0, closed = 0;
    int alive = 0;
    std::size_t takes = 0;    // bytes of the arena, each
    std::uint64_t saved = 0;  // of snapshots
    int looks = 0;            // at that
    std::vector<pserver::ServerOptions> options;
  };
  explicit ScriptedServer(Guarded<Script>& script) : script_(script) { ++script_.lock()->alive; }
  ~ScriptedServer() override { --script_.lock()->alive; }
  absl::Status run(Deadline) override {
    bool held = false;
    ++script_.lock()->running;
    auto script = script_.lock_when([](const Script& s) { return s.done; }, std::chrono::seconds(20), &held);
    script->done = false;
    --script->running;
    return held ? script->result : absl::DeadlineExceededError("the test forgot its server");
  }
  v1::ServerStats stats() const override {
    v1::ServerStats stats;
    stats.set_updates(7);
    return stats;
  }
  std::uint64_t snapshot_bytes() const override {
    auto script = script_.lock();
    ++script->looks;
    return script->saved;
  }
  void close(absl::Status reason) override {
    auto script = script_.lock();
    ++script->closed;
    script->done = true;
    script->result = std::move(reason);
  }
  absl::Status closed() const override { return absl::OkStatus(); }

 private:
  Guarded<Script>& script_;
};

class ServerProcess {
 public:
  ServerProcess()
      : meeting_(clock_), fabric_(meeting_), membership_("ps", spec()), thread_([this] {
          ServerMember member({membership_, fabric_, clock_, logger_, stop_,
                               [this](collective::Fabric& fabric, const collective::Group&,
                                      const pserver::ServerOptions& options, const Clock&,
                                      Deadline) -> absl::StatusOr<std::unique_ptr<pserver::Server>> {
                                 PL_RETURN_IF_ERROR(fabric.arena().allocate(script_.lock()->takes).status());
                                 script_.lock()->options.push_back(options);
                                 return std::make_unique<ScriptedServer>(script_);
                               }});
          outcome_ = member.run();
        }) {}

  static v1::TrainingSpec spec() {
    v1::TrainingSpec spec = step_spec(10, 32);
    spec.mutable_parameter_server()->set_workers(2);
    spec.mutable_parameter_server()->set_servers(1);
    spec.mutable_parameter_server()->set_units_per_step(2);
    spec.mutable_parameter_server()->set_slice_bytes(4096);
    return spec;
  }
  void send_view(std::uint64_t generation) {
    v1::View view;
    view.set_generation(generation);
    for (const char* id : {"w0", "w1", "ps"}) {
      v1::ViewMember* member = view.add_members();
      member->set_member_id(id);
      member->set_role(std::string(id) == "ps" ? v1::ROLE_PS : v1::ROLE_WORKER);
    }
    membership_.send_view(view);
  }
  bool wait_until_it_serves(std::size_t views) {
    bool held = false;
    script_.lock_when(
        [&](const ScriptedServer::Script& s) { return s.options.size() >= views && s.running > 0; },
        std::chrono::seconds(20), &held);
    return held;
  }
  void workers_leave(const absl::Status& result = absl::OkStatus()) {
    auto script = script_.lock();
    script->done = true;
    script->result = result;
  }
  Outcome wait() {
    thread_.join();
    return outcome_;
  }
  // Worker 0 has taken so much of what it holds when that time has passed, and the member knows.
  void has_saved(std::uint64_t bytes, Duration time) {
    script_.lock()->saved = bytes;
    clock_.go_on_by(time);
    wait_until_it_looked();
  }
  void wait_until_closed() {
    clock_.go_on_by(std::chrono::hours(1));
    script_.lock_when([](const ScriptedServer::Script& s) { return s.closed > 0; }, std::chrono::seconds(20));
  }
  void time_passes(Duration time) { clock_.go_on_by(time); }
  int closed() { return script_.lock()->closed; }
  // Its servers are gone.
  bool wait_until_nothing_is_held() {
    bool held = false;
    script_.lock_when([](const ScriptedServer::Script& s) { return s.alive == 0; }, std::chrono::seconds(20),
                      &held);
    return held;
  }
  void takes(std::size_t bytes) { script_.lock()->takes = bytes; }
  pserver::ServerOptions options() { return script_.lock()->options.front(); }
  ScriptedMembership& membership() { return membership_; }
  StopRequest& stop() { return stop_; }

 private:
  // Twice: the first look may have begun before.
  void wait_until_it_looked() {
    bool held = false;
    const int before = script_.lock()->looks;
    script_.lock_when([before](const ScriptedServer::Script& s) { return s.looks >= before + 2; },
                      std::chrono::seconds(20), &held);
    EXPECT_TRUE(held);
  }

  EarlyClock clock_;
  const Logger logger_ = Logger::none();
  Rendezvous meeting_;
  ThreadFabric fabric_;
  ScriptedMembership membership_;
  StopRequest stop_;
  Guarded<ScriptedServer::Script> script_;
  Outcome outcome_;
  std::jthread thread_;
};

// One that serves view 1.
class ServingProcess : public ServerProcess {
 public:
  ServingProcess() {
    send_view(1);
    wait_until_it_serves(1);
  }
};

TEST(ServerMember, ItServesUntilTheWorkersLeaveAndTheJobIsFinished) {
  ServingProcess server;
  EXPECT_EQ(server.options().shape.workers, 2);
  EXPECT_EQ(server.options().shape.servers, 1);
  EXPECT_EQ(server.options().shape.slice_bytes, 4096u);
  EXPECT_EQ(server.options().units_per_step, 2);
  v1::Heartbeat beat;
  server.membership().progress().collect(&beat);
  EXPECT_EQ(beat.server().updates(), 7);
  EXPECT_EQ(beat.phase(), v1::TRAINING);
  EXPECT_EQ(server.membership().beats(), 0);
  server.membership().on_beat = [&] { server.membership().progress().collect(&beat); };
  server.workers_leave();
  server.membership().end(absl::CancelledError("the job is finished"));
  EXPECT_EQ(server.wait().ending, Ending::kFinished);
  EXPECT_EQ(server.membership().beats(), 1) << "its last numbers, at once";
  EXPECT_EQ(beat.phase(), v1::WAITING) << "which the coordinator knows them by";
}

TEST(ServerMember, AViewMayTakeAnyTimeToForm) {
  ServerProcess server;
  EXPECT_TRUE(server.membership().waits_again(1));
  server.time_passes(std::chrono::hours(24));
  EXPECT_TRUE(server.membership().waits_again(2));
  server.send_view(1);
  server.wait_until_it_serves(1);
  server.workers_leave();
  server.membership().end(absl::CancelledError("the job is finished"));
  EXPECT_EQ(server.wait().ending, Ending::kFinished);
}

// The controller may be away.
TEST(ServerMember, ItWaitsForTheCoordinatorsWordOnceAllWorkersHaveLeft) {
  ServingProcess server;
  server.workers_leave();
  ASSERT_TRUE(server.wait_until_nothing_is_held());
  EXPECT_TRUE(server.membership().waits_again(1));
  server.time_passes(std::chrono::hours(1));
  EXPECT_TRUE(server.membership().waits_again(2));
  server.membership().end(absl::CancelledError("the job is finished"));
  EXPECT_EQ(server.wait().ending, Ending::kFinished);
}

TEST(ServerMember, AFinishedJobsServerDoesNotWaitForItsWorkers) {
  ServingProcess server;
  server.membership().end(absl::CancelledError("the job is finished"));
  EXPECT_EQ(server.wait().ending, Ending::kFinished);
  EXPECT_EQ(server.closed(), 1);
}

// Worker 0 may be saving what it holds.
TEST(ServerMember, AnEvictedServerServesOnUntilTheWorkersHaveGone) {
  ServingProcess server;
  server.membership().end(absl::AbortedError("worker-1 died"));
  EXPECT_TRUE(server.stop().saving());
  EXPECT_EQ(server.closed(), 0);
  server.workers_leave();
  const Outcome outcome = server.wait();
  EXPECT_EQ(outcome.ending, Ending::kEnded);
  EXPECT_THAT(std::string(outcome.error.message()), HasSubstr("worker-1"));
  EXPECT_EQ(server.closed(), 0);
  EXPECT_FALSE(server.stop().saving());
}

TEST(ServerMember, AnEvictedServerServesOnAsLongAsItIsSaved) {
  ServingProcess server;
  server.membership().end(absl::AbortedError("worker-1 died"));
  for (std::uint64_t bytes = 1; bytes <= 5; ++bytes) {
    server.has_saved(bytes, kLastServiceLimit / 3);
    EXPECT_EQ(server.closed(), 0);
  }
  server.wait_until_closed();
  EXPECT_EQ(server.closed(), 1);
  EXPECT_EQ(server.wait().ending, Ending::kEnded);
}

TEST(ServerMember, AskedToStopItLeavesWhenTheWorkersHave) {
  ServingProcess server;
  server.stop().request();
  server.workers_leave();
  EXPECT_EQ(server.wait().ending, Ending::kStopped);
  EXPECT_EQ(server.membership().leaving()->outcome(), v1::Leaving::STOPPED);
}

// Nobody else was asked: its goodbye tells the coordinator, and worker 0 saves what it holds.
TEST(ServerMember, AskedToStopAloneItSaysSoAndServesOn) {
  ServingProcess server;
  server.stop().expire();
  ASSERT_TRUE(server.membership().wait_until_left());
  EXPECT_EQ(server.membership().leaving()->outcome(), v1::Leaving::STOPPED);
  EXPECT_TRUE(server.stop().saving());
  EXPECT_EQ(server.closed(), 0);
  server.workers_leave();
  EXPECT_EQ(server.wait().ending, Ending::kStopped);
  EXPECT_EQ(server.closed(), 0);
}

TEST(ServerMember, ANewViewIsServedAnew) {
  ServingProcess server;
  server.membership().drain(Generation{1});
  server.workers_leave();
  server.send_view(2);
  server.wait_until_it_serves(2);
  server.membership().end(absl::CancelledError("the job is finished"));
  EXPECT_EQ(server.wait().ending, Ending::kFinished);
}

// A controller that comes anew may form another view of the same processes, any number of times.
TEST(ServerMember, MemoryOfAViewIsGivenBackBeforeTheNext) {
  ServerProcess server;
  server.takes(std::size_t{10} << 20);  // of the 16 MiB that there are
  for (std::uint64_t view = 1; view <= 4; ++view) {
    server.send_view(view);
    ASSERT_TRUE(server.wait_until_it_serves(view)) << "view " << view;
    server.membership().drain(Generation{view});
    server.workers_leave();
    EXPECT_TRUE(server.wait_until_nothing_is_held()) << "view " << view;
    v1::Heartbeat beat;
    server.membership().progress().collect(&beat);
    EXPECT_EQ(beat.server().updates(), 7) << "its numbers are told on";
  }
  server.membership().end(absl::CancelledError("the job is finished"));
  EXPECT_EQ(server.wait().ending, Ending::kFinished);
}

TEST(ServerMember, ALostPeerIsReportedWithItsName) {
  ServerProcess server;
  server.membership().on_fault = [&](const v1::PeerFault&) {
    server.membership().end(absl::AbortedError("worker-1 died"));
  };
  server.send_view(1);
  server.wait_until_it_serves(1);
  server.workers_leave(collective::with_faulty_rank(absl::UnavailableError("rank 1 is gone"), 1));
  EXPECT_EQ(server.wait().ending, Ending::kEnded);
  ASSERT_EQ(server.membership().faults().size(), 1u);
  EXPECT_EQ(server.membership().faults()[0].peer_member_id(), "w1");
}

// It serves on: whoever lost whom, the coordinator finds out by all words.
TEST(ServerMember, AWorkerThatIsLostIsReportedWhileTheOthersAreServed) {
  ServerProcess server;
  server.send_view(3);
  server.wait_until_it_serves(1);
  server.options().on_lost(1, absl::UnavailableError("is gone: Connection timed out"));
  ASSERT_EQ(server.membership().faults().size(), 1u);
  const v1::PeerFault fault = server.membership().faults()[0];
  EXPECT_EQ(fault.generation(), 3u);
  EXPECT_EQ(fault.peer_member_id(), "w1");
  EXPECT_THAT(fault.reason(), HasSubstr("timed out"));
  server.workers_leave();
  server.membership().end(absl::CancelledError("the job is finished"));
  EXPECT_EQ(server.wait().ending, Ending::kFinished);
  EXPECT_EQ(server.membership().faults().size(), 1u);
}

TEST(ServerMember, OwnShortageIsItsOwnFailure) {
  ServingProcess server;
  server.workers_leave(absl::ResourceExhaustedError("no memory for rows of table wide"));
  const Outcome outcome = server.wait();
  EXPECT_EQ(outcome.ending, Ending::kFailed);
  EXPECT_TRUE(server.membership().faults().empty());
  ASSERT_TRUE(server.membership().leaving().has_value());
  EXPECT_EQ(server.membership().leaving()->outcome(), v1::Leaving::FAILED);
  EXPECT_THAT(server.membership().leaving()->reason(), HasSubstr("table wide"));
}

}  // namespace
}  // namespace paceline::trainer

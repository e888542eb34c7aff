// Members and a coordinator in one process, over real gRPC.

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <thread>

#include "base/guarded.h"
#include "base/text.h"
#include "controller/coordinator/server.h"
#include "controller/diagnosis/fault_text.h"
#include "proto/paceline/v1/coordinator.grpc.pb.h"
#include "runtime/member/membership.h"
#include "runtime/member/stream.h"
#include "tests/support/fake_clock.h"

namespace paceline {
namespace {

using namespace std::chrono_literals;
using api::FaultKind;
using coordinator::JobState;

constexpr Duration kLong = 20s;  // only a broken test waits so long

struct Seen {
  std::size_t steps = 0, member_steps = 0;
  int evaluations = 0;
  std::vector<coordinator::ViewRecord> views;
  std::optional<api::Fault> verdict;
};

class Watcher final : public coordinator::RunObserver {
 public:
  void on_verdict(const api::Fault& verdict) override { seen_.lock()->verdict = verdict; }
  void on_view(const coordinator::ViewRecord& view) override { seen_.lock()->views.push_back(view); }
  void on_steps(std::span<const coordinator::StepRecord> steps) override {
    seen_.lock()->steps += steps.size();
  }
  void on_member_steps(const coordinator::MemberSteps& steps) override {
    seen_.lock()->member_steps += steps.steps.size();
  }
  void on_evaluation(const coordinator::EvaluationRecord&) override { ++seen_.lock()->evaluations; }
  void on_report_changed() override { (void)seen_.lock(); }

  bool wait(const std::function<bool(const Seen&)>& condition) {
    bool held = false;
    seen_.lock_when(condition, kLong, &held);
    return held;
  }
  std::optional<api::Fault> verdict() {
    return seen_.lock_when([](const Seen& seen) { return seen.verdict.has_value(); }, kLong)->verdict;
  }

 private:
  Guarded<Seen> seen_;
};

class AttachTest : public ::testing::Test {
 protected:
  void start(int chiefs, int workers, Duration heartbeat_timeout = 10s, Duration hello_timeout = kLong) {
    coordinator::ServerOptions options;
    options.tick = 5ms;
    options.hello_timeout = hello_timeout;
    auto server = coordinator::Server::start(options, clock_);
    ASSERT_TRUE(server.ok()) << std::string(server.status().message());
    server_ = std::move(*server);
    auto handle = server_->add_job(config(chiefs, workers, heartbeat_timeout));
    ASSERT_TRUE(handle.ok()) << std::string(handle.status().message());
    handle_ = std::move(*handle);
  }

  coordinator::JobConfig config(int chiefs, int workers, Duration heartbeat_timeout) {
    coordinator::JobConfig config;
    config.core.job = "default/digits";
    config.core.training.set_seed(42);
    config.core.link_key = std::string(32, 'k');
    config.core.roles = {{Role::kChief, chiefs}, {Role::kWorker, workers}};
    config.core.heartbeat_interval = 20ms;
    config.core.heartbeat_timeout = heartbeat_timeout;
    config.core.most_silence = 4 * heartbeat_timeout;
    config.core.grace = grace_;
    config.core.preflight = preflight_;
    if (preflight_) {
      config.core.on_member_lost = [](const api::Fault&, int) {
        return coordinator::LossDecision{coordinator::LossAction::kFormNextView, "the others go on"};
      };
    }
    config.token = kToken;
    config.observer = &watcher_;
    return config;
  }

  member::Environment environment(Role role, int index) const {
    member::Environment environment;
    environment.coordinator = server_->address();
    environment.job = "default/digits";
    environment.role = role;
    environment.index = index;
    environment.pod = str_cat(role_name(role), "-", index);
    environment.pod_uid = str_cat("uid-", role_name(role), index);
    environment.token = kToken;
    return environment;
  }

  absl::StatusOr<std::unique_ptr<member::Membership>> attach(const member::Environment& environment,
                                                             const Clock& clock, Duration limit = kLong) {
    member::Presence presence;
    presence.host_id = "host";
    presence.tcp = {"127.0.0.1:1"};
    return member::Membership::attach(environment, presence, {}, clock, Deadline::after(clock.now(), limit));
  }

  std::vector<std::unique_ptr<member::Membership>> attach_all(int chiefs, int workers) {
    std::vector<std::unique_ptr<member::Membership>> members;
    for (int i = 0; i < chiefs + workers; ++i) {
      auto member =
          attach(i < chiefs ? environment(Role::kChief, i) : environment(Role::kWorker, i - chiefs), clock_);
      EXPECT_TRUE(member.ok()) << std::string(member.status().message());
      if (member.ok()) members.push_back(std::move(*member));
    }
    return members;
  }

  Deadline soon() const { return Deadline::after(clock_.now(), kLong); }
  bool becomes(JobState state) {
    return watcher_.wait([&](const Seen&) { return handle_->report().state == state; });
  }

  static constexpr const char* kToken = "a-token-of-some-length";
  SystemClock clock_;
  Duration grace_ = coordinator::CoreConfig{}.grace;
  std::optional<coordinator::PreflightRules> preflight_;
  Watcher watcher_;
  std::unique_ptr<coordinator::Server> server_;
  std::shared_ptr<coordinator::Job> handle_;
};

TEST_F(AttachTest, FourMembersFormAViewTrainAndLeave) {
  start(1, 3);
  auto members = attach_all(1, 3);
  ASSERT_EQ(members.size(), 4u);
  for (auto& member : members) {
    EXPECT_EQ(member->welcome().training().seed(), 42u);
    const auto view = member->wait_view(Generation{0}, soon());
    ASSERT_TRUE(view.ok()) << std::string(view.status().message());
    EXPECT_EQ(view->generation(), 1u);
    ASSERT_EQ(view->members_size(), 4);
    EXPECT_EQ(view->members(0).role(), v1::ROLE_CHIEF);
    EXPECT_EQ(view->members(3).index(), 2u);
    EXPECT_EQ(view->members(2).address().tcp(0), "127.0.0.1:1");
    member->progress().set_generation(Generation{1});
    member->progress().set_phase(v1::TRAINING);
  }
  for (int step = 1; step <= 50; ++step) {
    for (std::size_t rank = 0; rank < members.size(); ++rank) {
      member::AppliedStep applied;
      applied.step = step;
      applied.samples = step * 64;
      applied.times = {1, 2, 3, 4, 5, 6, 21};
      applied.has_loss = rank == 0;
      applied.loss = 1.0 / step;
      members[rank]->progress().step_applied(applied);
      members[rank]->progress().set_weights_hash(step, 1000u + static_cast<std::uint64_t>(step));
    }
  }
  members[0]->progress().evaluated({50, 0.1, 0.97, 100, 0, true});
  EXPECT_TRUE(watcher_.wait([](const Seen& seen) {
    return seen.steps == 50 && seen.member_steps == 200 && seen.evaluations == 1;
  }));
  EXPECT_TRUE(watcher_.wait([&](const Seen&) { return handle_->report().weights_checked_step == 50; }));
  for (auto& member : members) {
    v1::Leaving leaving;
    leaving.set_outcome(v1::Leaving::FINISHED);
    leaving.set_model_path("/model");
    const absl::Status left = member->leave(leaving, soon());
    EXPECT_TRUE(left.ok()) << std::string(left.message());
  }
  EXPECT_TRUE(becomes(JobState::kFinished));
  EXPECT_EQ(handle_->report().model_path, "/model");
  EXPECT_EQ(handle_->report().step, 50);
}

// One that waits for another member in a test must not wait for it when that has died.
TEST_F(AttachTest, AMemberThatIsCheckedHearsAtOnceThatTheCheckBeginsAnew) {
  preflight_.emplace();
  start(0, 3);
  auto members = attach_all(0, 3);
  for (auto& member : members) {
    member->progress().set_phase(v1::WAITING);
    member->beat_now();
  }
  EXPECT_TRUE(absl::IsDeadlineExceeded(members[0]->wait_view(Generation{0}, soon()).status()));
  const auto first = members[0]->take_preflight();
  ASSERT_TRUE(first);
  Guarded<std::uint64_t> told{0};
  members[0]->on_preflight([&](std::uint64_t number) { *told.lock() = number; });
  members[2].reset();
  bool held = false;
  told.lock_when([&](std::uint64_t number) { return number > first->number(); }, kLong, &held);
  EXPECT_TRUE(held);
  members[0]->on_preflight(nullptr);
  EXPECT_TRUE(members[0]->take_preflight());
}

// Who has sent it waits for it to be taken, also by a coordinator that stands still for longer than anybody
// waits for one to come.
TEST_F(AttachTest, AGoodbyeThatWasSentIsNotCutOff) {
  start(0, 1);
  auto members = attach_all(0, 1);
  ASSERT_TRUE(members[0]->wait_view(Generation{0}, soon()).ok());
  members[0]->progress().set_generation(Generation{1});
  EXPECT_TRUE(members[0]->leave({}, Deadline::after(clock_.now(), Duration::zero())).ok());
  EXPECT_TRUE(becomes(JobState::kFinished));
}

TEST_F(AttachTest, RecordsOnTheBoardAtTheEndAreNotLost) {
  start(0, 1);
  auto members = attach_all(0, 1);
  ASSERT_TRUE(members[0]->wait_view(Generation{0}, soon()).ok());
  members[0]->progress().set_generation(Generation{1});
  for (int step = 1; step <= 200; ++step)
    members[0]->progress().step_applied({step, step, {}, 0, true, 0.5, 0.1, step});
  EXPECT_TRUE(members[0]->leave({}, soon()).ok());
  EXPECT_TRUE(becomes(JobState::kFinished));
  EXPECT_EQ(handle_->report().step, 200);
  EXPECT_TRUE(watcher_.wait([](const Seen& seen) { return seen.steps == 200; }));
}

TEST_F(AttachTest, AHeartbeatThatIsAskedForGoesBeforeItsTime) {
  start(0, 1);
  const FakeClock still;
  const auto member = attach(environment(Role::kWorker, 0), still);
  ASSERT_TRUE(member.ok()) << std::string(member.status().message());
  ASSERT_TRUE((*member)->wait_view(Generation{0}, Deadline::after(still.now(), kLong)).ok());
  (*member)->progress().set_generation(Generation{1});
  // Each comes while the one before it may still be on its way out.
  for (std::int64_t step = 1; step <= 100; ++step) {
    (*member)->progress().step_applied({step, step, {}, 0, true, 0.5, 0.1, step});
    (*member)->beat_now();
    const Deadline limit = soon();
    while (handle_->report().step < step && !limit.expired(clock_.now())) std::this_thread::yield();
    ASSERT_EQ(handle_->report().step, step);
  }
}

TEST_F(AttachTest, AWrongTokenIsRefused) {
  start(0, 1);
  const Deadline limit = soon();
  std::vector<std::string> refused;
  for (const std::string& token :
       {std::string("another-token-of-it"), std::string(), std::string(kToken) + "x"}) {
    member::Environment wrong = environment(Role::kWorker, 0);
    wrong.token = token;
    wrong.pod_uid = refused.emplace_back(str_cat("uid-with-", token));
    do {
      EXPECT_EQ(attach(wrong, clock_, 200ms).status().code(), absl::StatusCode::kDeadlineExceeded) << token;
    } while (handle_->report().refused != refused && !limit.expired(clock_.now()));
  }
  EXPECT_FALSE(handle_->report().members[0].attached);
  EXPECT_EQ(handle_->report().refused, refused);
}

TEST_F(AttachTest, AnUnknownMemberIsEvictedWithAReason) {
  start(0, 1);
  const auto stranger = attach(environment(Role::kWorker, 5), clock_);
  EXPECT_EQ(stranger.status().code(), absl::StatusCode::kAborted);
  EXPECT_NE(std::string(stranger.status().message()).find("no worker 5"), std::string::npos);
}

TEST_F(AttachTest, AKilledMemberIsNamedWithinTheGrace) {
  start(1, 3);
  auto members = attach_all(1, 3);
  std::atomic<int> cancelled = 0;
  for (auto& member : members) {
    ASSERT_TRUE(member->wait_view(Generation{0}, soon()).ok());
    member->on_cancel([&](const absl::Status& status) {
      cancelled += status.code() == absl::StatusCode::kAborted ? 1 : 100;
      cancelled.notify_all();
    });
  }
  members[2].reset();  // its stream ends without a goodbye
  for (const std::size_t victim : {0u, 1u, 3u})
    members[victim]->report_peer_fault(Generation{1}, 7, "uid-worker1-1", "connection reset");
  const auto verdict = watcher_.verdict();
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->kind, FaultKind::kDead);
  EXPECT_EQ(verdict->role, Role::kWorker);
  EXPECT_EQ(verdict->index, 1);
  for (int seen = cancelled; seen < 3; seen = cancelled) cancelled.wait(seen);
  for (const std::size_t survivor : {0u, 1u, 3u}) {
    const absl::Status evicted = members[survivor]->wait_view(Generation{1}, soon()).status();
    EXPECT_EQ(evicted.code(), absl::StatusCode::kAborted);
    EXPECT_NE(std::string(evicted.message()).find("worker-1"), std::string::npos);
    EXPECT_EQ(members[survivor]->leave({}, soon()).code(), absl::StatusCode::kAborted);
  }
  members.clear();
  EXPECT_EQ(cancelled, 3) << "each survivor's hook runs once; not that of the one that went by itself";
}

TEST_F(AttachTest, AMemberWithoutHeartbeatsIsFrozen) {
  start(0, 2, 500ms);
  FakeClock stopped;  // the heartbeat thread of worker-1 never sees time pass
  auto healthy = attach(environment(Role::kWorker, 0), clock_);
  auto frozen = attach(environment(Role::kWorker, 1), stopped);
  ASSERT_TRUE(healthy.ok() && frozen.ok());
  const auto verdict = watcher_.verdict();
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->kind, FaultKind::kFrozen) << diagnosis::message_of(*verdict);
  EXPECT_EQ(verdict->index, 1);
}

TEST_F(AttachTest, GarbageIsAnsweredAndHarmsNobody) {
  start(0, 2, 10s, 100ms);
  auto healthy = attach(environment(Role::kWorker, 0), clock_);
  ASSERT_TRUE(healthy.ok());
  const auto talk = [&](const std::vector<v1::MemberMessage>& messages) {
    Guarded<std::optional<absl::Status>> ended;
    const auto stream = member::Stream::open(
        server_->address(), {kToken},
        {[](const v1::CoordinatorMessage&) {}, [&](const absl::Status& status) { *ended.lock() = status; }});
    for (const v1::MemberMessage& message : messages) stream->send(message);
    return ended.lock_when([](const auto& status) { return status.has_value(); }, kLong)
        ->value_or(absl::InternalError("it did not end"));
  };
  v1::MemberMessage heartbeat, hello, unknown;
  heartbeat.mutable_heartbeat()->set_generation(99);
  hello.mutable_hello()->set_member_id(std::string(100000, 'x'));
  ASSERT_TRUE(
      unknown.ParseFromString("\xfa\x3f\x03"
                              "abc"));  // a field that nobody knows
  EXPECT_EQ(talk({heartbeat}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(talk({unknown}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(talk({hello}).code(), absl::StatusCode::kOk);  // evicted with a reason
  EXPECT_EQ(talk({}).code(), absl::StatusCode::kDeadlineExceeded);
  v1::MemberMessage huge;
  huge.mutable_leaving()->set_reason(std::string(5 << 20, 'x'));
  EXPECT_FALSE(talk({huge}).ok());
  EXPECT_TRUE((*healthy)->status().ok());
  EXPECT_EQ(handle_->report().state, JobState::kForming);
}

TEST_F(AttachTest, SixtyFourMembersAtOnce) {
  start(0, 64);
  std::vector<absl::StatusOr<std::unique_ptr<member::Membership>>> members(64);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 64; ++i)
      threads.emplace_back(
          [&, i] { members[static_cast<std::size_t>(i)] = attach(environment(Role::kWorker, i), clock_); });
  }
  for (auto& member : members) {
    ASSERT_TRUE(member.ok()) << std::string(member.status().message());
    const auto view = (*member)->wait_view(Generation{0}, soon());
    ASSERT_TRUE(view.ok()) << std::string(view.status().message());
    EXPECT_EQ(view->members_size(), 64);
  }
  EXPECT_TRUE(watcher_.wait([](const Seen& seen) { return seen.views.size() == 1; }));
}

// Nearly every stream is ended while its Hello is on the way. Such a Hello makes nobody a member: a member
// whose stream ends at once would be named dead, and end the job.
TEST_F(AttachTest, AHelloAtTheMomentOfItsTimeoutMakesNoMember) {
  constexpr int kStreams = 64;
  start(0, kStreams, 10s, 1ns);
  Guarded<std::set<int>> answered;
  const auto answer = [&](int i) { answered.lock()->insert(i); };
  std::vector<std::unique_ptr<member::Stream>> streams;
  for (int i = 0; i < kStreams; ++i) {
    v1::MemberMessage message;
    v1::Hello& hello = *message.mutable_hello();
    hello.set_protocol_version(1);
    hello.set_member_id(str_cat("uid-", i));
    hello.set_job("default/digits");
    hello.set_role(v1::ROLE_WORKER);
    hello.set_index(static_cast<std::uint32_t>(i));
    streams.push_back(member::Stream::open(
        server_->address(), {kToken},
        {[&, i](const v1::CoordinatorMessage&) { answer(i); }, [&, i](const absl::Status&) { answer(i); }}));
    streams.back()->send(message);
  }
  bool all = false;
  answered.lock_when([](const auto& some) { return some.size() == kStreams; }, kLong, &all);
  ASSERT_TRUE(all);
  for (const auto& member : handle_->report().members)
    EXPECT_TRUE(member.member_id.empty() || member.attached) << member.member_id;
  streams.clear();
}

// A replica that does not lead.
TEST_F(AttachTest, MembersFollowTheLeader) {
  start(0, 1);
  coordinator::ServerOptions options;
  options.serves = false;
  auto waits = coordinator::Server::start(options, clock_);
  ASSERT_TRUE(waits.ok()) << std::string(waits.status().message());
  member::Environment environment = this->environment(Role::kWorker, 0);
  environment.coordinator = (*waits)->address();
  const auto lost =
      member::Membership::attach(environment, {}, {}, clock_, Deadline::after(clock_.now(), 200ms));
  EXPECT_EQ(lost.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_NE(std::string(lost.status().message()).find("does not lead"), std::string::npos) << lost.status();
  (*waits)->redirect(server_->address());
  const auto member = attach(environment, clock_);
  ASSERT_TRUE(member.ok()) << std::string(member.status().message());
  EXPECT_TRUE((*member)->wait_view(Generation{0}, soon()).ok());
}

// Two that send members to each other, until one of them leads.
TEST_F(AttachTest, AReplicaThatBeginsToLeadTakesThoseThatItSentAway) {
  start(0, 1);
  server_->redirect(server_->address());
  std::optional<absl::StatusOr<std::unique_ptr<member::Membership>>> member;
  {
    const std::jthread attaching([&] { member = attach(environment(Role::kWorker, 0), clock_); });
    server_->serve();
  }
  ASSERT_TRUE(member->ok()) << std::string(member->status().message());
  EXPECT_TRUE((**member)->wait_view(Generation{0}, soon()).ok());
}

TEST_F(AttachTest, StopAsksEverybodyToLeave) {
  start(0, 2);
  auto members = attach_all(0, 2);
  for (auto& member : members) ASSERT_TRUE(member->wait_view(Generation{0}, soon()).ok());
  handle_->feed(coordinator::Stop{"interrupted"});
  for (auto& member : members) {
    const absl::Status told = member->wait_view(Generation{1}, soon()).status();
    EXPECT_EQ(told.code(), absl::StatusCode::kAborted);
    EXPECT_EQ(told.message(), "interrupted");
    v1::Leaving leaving;
    leaving.set_outcome(v1::Leaving::STOPPED);
    EXPECT_EQ(member->leave(leaving, soon()).code(), absl::StatusCode::kAborted);
  }
  EXPECT_TRUE(becomes(JobState::kStopped));
}

TEST_F(AttachTest, WithoutACoordinatorTheMembershipEnds) {
  start(0, 1);
  member::MembershipOptions options;
  options.reattach_limit = 100ms;
  auto member = member::Membership::attach(environment(Role::kWorker, 0), {}, options, clock_, soon());
  ASSERT_TRUE(member.ok());
  ASSERT_TRUE((*member)->wait_view(Generation{0}, soon()).ok());
  server_->shutdown();
  const absl::Status gone = (*member)->wait_view(Generation{1}, soon()).status();
  EXPECT_EQ(gone.code(), absl::StatusCode::kUnavailable) << std::string(gone.message());
  EXPECT_EQ((*member)->status(), gone);
}

// A coordinator that ends its first two streams instead of taking records.
class Forgetful final : public v1::Coordinator::Service {
 public:
  grpc::Status Attach(grpc::ServerContext*,
                      grpc::ServerReaderWriter<v1::CoordinatorMessage, v1::MemberMessage>* stream) override {
    v1::MemberMessage message;
    if (!stream->Read(&message) || !message.has_hello()) return grpc::Status::CANCELLED;
    const int number = ++streams_;
    v1::CoordinatorMessage welcome, taken;
    welcome.mutable_welcome()->set_heartbeat_interval_ms(10);
    welcome.mutable_welcome()->set_reattach_limit_ms(20'000);
    stream->Write(welcome);
    while (stream->Read(&message)) {
      if (message.has_checkpoint() && number == 3) checkpoints_.insert(message.checkpoint().step());
      if (!message.has_heartbeat()) continue;
      if (number < 3 && message.heartbeat().records_size() > 0) return grpc::Status::CANCELLED;
      for (const v1::StepRecord& record : message.heartbeat().records()) {
        if (message.heartbeat().number() > taken_) steps_.push_back(record.step());
      }
      taken_ = std::max(taken_, message.heartbeat().number());
      taken.mutable_taken()->set_heartbeat(taken_);
      stream->Write(taken);
    }
    return grpc::Status::OK;
  }
  // Once the server has shut down.
  std::vector<Step> steps_;
  std::set<Step> checkpoints_;
  std::uint64_t taken_ = 0;
  std::atomic<int> streams_{0};
};

TEST_F(AttachTest, RecordsOfABrokenStreamAreSentAgainOnTheNext) {
  Forgetful forgetful;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&forgetful);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  member::Environment environment;
  environment.coordinator = str_cat("127.0.0.1:", port);
  environment.job = "default/digits";
  environment.pod = environment.pod_uid = "pod";
  environment.token = kToken;
  auto member = attach(environment, clock_);
  ASSERT_TRUE(member.ok()) << std::string(member.status().message());
  std::vector<Step> applied;
  v1::CheckpointResult checkpoint;
  checkpoint.set_step(3);
  (*member)->report_checkpoint(checkpoint);
  // At most 100 steps in the time of a stream, so that none are thinned out.
  const Deadline limit = soon();
  for (Step step = 1; forgetful.streams_ < 3 && !limit.expired(clock_.now()); ++step) {
    applied.push_back(step);
    (*member)->progress().step_applied({step, step, {}, 0, true, 0.5, 0.1, step});
    const int seen = forgetful.streams_;
    while (step % 100 == 0 && seen < 3 && seen == forgetful.streams_ && !limit.expired(clock_.now()))
      std::this_thread::yield();
  }
  EXPECT_TRUE((*member)->leave({}, soon()).ok());
  member->reset();
  server->Shutdown();
  EXPECT_EQ(forgetful.streams_, 3);
  EXPECT_EQ(forgetful.steps_, applied) << "each once, in order";
  EXPECT_EQ(forgetful.checkpoints_, std::set<Step>{3});
}

// A network may keep a stream open that is long dead: the member's next one counts, and what becomes of the
// last one then is nobody's loss.
TEST_F(AttachTest, TheNextStreamOfAMemberWinsOverTheLateEndOfTheLast) {
  grace_ = Duration::zero();
  start(0, 1);
  struct Heard {
    int messages[v1::CoordinatorMessage::kTaken + 1] = {};  // by kind
    bool ended = false;
  };
  using End = Guarded<Heard>;
  const auto open = [&](End& end) {
    return member::Stream::open(
        server_->address(), {kToken},
        {[&end](const v1::CoordinatorMessage& m) { ++end.lock()->messages[m.kind_case()]; },
         [&end](const absl::Status&) { end.lock()->ended = true; }});
  };
  const auto hears = [](End& end, v1::CoordinatorMessage::KindCase kind, int count) {
    bool held = false;
    end.lock_when([&](const Heard& heard) { return heard.messages[kind] >= count; }, kLong, &held);
    return held;
  };
  const auto hello = [](std::uint64_t held) {
    v1::MemberMessage message;
    message.mutable_hello()->set_protocol_version(1);
    message.mutable_hello()->set_member_id("uid-worker0-1");
    message.mutable_hello()->set_job("default/digits");
    message.mutable_hello()->set_role(v1::ROLE_WORKER);
    message.mutable_hello()->set_held_generation(held);
    return message;
  };
  const auto beat = [](std::uint64_t number) {
    v1::MemberMessage message;
    message.mutable_heartbeat()->set_generation(1);
    message.mutable_heartbeat()->set_number(number);
    return message;
  };
  End last_end, next_end;
  auto last = open(last_end);
  last->send(hello(0));
  ASSERT_TRUE(hears(last_end, v1::CoordinatorMessage::kView, 1));
  const auto next = open(next_end);
  next->send(hello(1));
  ASSERT_TRUE(hears(next_end, v1::CoordinatorMessage::kWelcome, 1))
      << "it does not wait for the last one's end";
  const Heard heard = *last_end.lock_when([](const Heard& some) { return some.ended; }, kLong);
  ASSERT_TRUE(heard.ended);
  EXPECT_EQ(heard.messages[v1::CoordinatorMessage::kEvict], 0) << "it would end the member, which goes on";
  last.reset();
  for (std::uint64_t number = 1; number <= 50; ++number) {
    next->send(beat(number));
    ASSERT_TRUE(hears(next_end, v1::CoordinatorMessage::kTaken, static_cast<int>(number))) << number;
  }
  const coordinator::Report report = handle_->report();
  EXPECT_EQ(report.state, JobState::kRunning) << report.reason;
  EXPECT_TRUE(report.members[0].attached);
  EXPECT_FALSE(report.verdict.has_value());
}

TEST_F(AttachTest, AbsentCoordinatorIsTriedUntilTheDeadline) {
  start(0, 1);
  member::Environment nowhere = environment(Role::kWorker, 0);
  nowhere.coordinator = "unix-abstract:paceline-test-nobody-listens-here";
  ::testing::internal::CaptureStderr();
  const auto member =
      member::Membership::attach(nowhere, {}, {.logger = Logger::to_stderr("worker-0", LogLevel::kWarning)},
                                 clock_, Deadline::after(clock_.now(), 500ms));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(member.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(std::ranges::count(log, '\n'), 1) << "it is told at once, and not at every try: " << log;
  EXPECT_NE(log.find(nowhere.coordinator), std::string::npos) << log;
}

TEST_F(AttachTest, TwoJobsShareAServerAndNoTokens) {
  start(0, 1);
  auto other = config(0, 1, 10s);
  EXPECT_EQ(server_->add_job(other).status().code(), absl::StatusCode::kAlreadyExists);
  other.core.job = "default/other";
  EXPECT_EQ(server_->add_job(other).status().code(), absl::StatusCode::kAlreadyExists);  // the same token
  other.token = "short";
  EXPECT_EQ(server_->add_job(other).status().code(), absl::StatusCode::kInvalidArgument);
  other.token = "the-other-jobs-own-token";
  other.observer = nullptr;
  auto handle = server_->add_job(other);
  ASSERT_TRUE(handle.ok());
  member::Environment crossed = environment(Role::kWorker, 0);
  crossed.token = other.token;  // this job's name with the other's token
  EXPECT_EQ(attach(crossed, clock_).status().code(), absl::StatusCode::kAborted);
  crossed.job = "default/other";
  EXPECT_TRUE(attach(crossed, clock_).ok());
  EXPECT_FALSE(handle_->report().members[0].attached);
}

TEST_F(AttachTest, ClosingAJobEvictsItsMembers) {
  start(0, 1);
  auto members = attach_all(0, 1);
  handle_->close();
  handle_->close();
  EXPECT_EQ(members[0]->wait_view(Generation{9}, soon()).status().code(), absl::StatusCode::kAborted);
}

TEST(ServerTest, AnAddressInUseIsAnError) {
  SystemClock clock;
  const auto first = coordinator::Server::start({}, clock);
  ASSERT_TRUE(first.ok());
  coordinator::ServerOptions same;
  same.listen = (*first)->address();
  EXPECT_EQ(coordinator::Server::start(same, clock).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace paceline

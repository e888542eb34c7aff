#pragma once

// A job whose members are threads of the test: scripted memberships, a fabric that connects in-process
// communicators. No coordinator, no sockets.

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/status.h"
#include "runtime/collective/fabric.h"
#include "runtime/member/membership.h"
#include "runtime/trainer/trainer.h"

namespace paceline {

// Where the ranks of one generation find their communicators: those that each takes first belong together,
// those that it takes next, and so on.
class Rendezvous {
 public:
  explicit Rendezvous(const Clock& clock) : clock_(clock) {}
  std::unique_ptr<collective::Communicator> take(Generation generation, int world, int rank) {
    const std::lock_guard lock(mutex_);
    const int turn = taken_[{generation.value, rank}]++;
    auto& group = groups_[{generation.value, turn}];
    if (group.empty()) group = collective::make_in_process_group(world, generation, clock_);
    return std::move(group[static_cast<std::size_t>(rank)]);
  }

 private:
  const Clock& clock_;
  std::mutex mutex_;
  std::map<std::pair<std::uint64_t, int>, int> taken_;
  std::map<std::pair<std::uint64_t, int>, std::vector<std::unique_ptr<collective::Communicator>>> groups_;
};

class ThreadFabric final : public collective::Fabric {
 public:
  explicit ThreadFabric(Rendezvous& meeting) : meeting_(meeting) {
    auto arena = transport::Arena::create(std::size_t{1} << 24);
    PL_CHECK(arena.ok(), "an arena");
    arena_ = *std::move(arena);
  }
  const collective::Address& address() const override { return address_; }
  transport::Arena& arena() override { return *arena_; }
  absl::Status renew_arena() override {
    PL_ASSIGN_OR_RETURN(arena_, transport::Arena::create(arena_->capacity()));
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<collective::Communicator>> connect(const collective::Group& group,
                                                                    Deadline) override {
    connected_ = true;
    if (refuses != nullptr) PL_RETURN_IF_ERROR(refuses(group));
    auto links = meeting_.take(group.generation, static_cast<int>(group.members.size()), group.rank);
    return wrap == nullptr ? std::move(links) : wrap(std::move(links));
  }
  absl::StatusOr<bool> shares_memory(const collective::Group&) const override { return true; }
  absl::StatusOr<std::vector<collective::PeerLink>> meet(const collective::Group&, std::span<const int>, int,
                                                         Deadline, NextView) override {
    return absl::UnimplementedError("threads of one process have no links");
  }
  void cancel_connects(Generation) override {}  // nobody ever waits
  bool connected() const { return connected_; }
  // What the member gets in place of its communicator; may be null.
  std::function<std::unique_ptr<collective::Communicator>(std::unique_ptr<collective::Communicator>)> wrap;
  // What connect() gives where it is an error; may be null.
  std::function<absl::Status(const collective::Group&)> refuses;

 private:
  Rendezvous& meeting_;
  std::atomic<bool> connected_{false};
  collective::Address address_;
  std::unique_ptr<transport::Arena> arena_;
};

// The same error, in memory of its own: ThreadSanitizer does not see abseil count who shares a status.
inline absl::Status unshared(const absl::Status& status) {
  return absl::Status(status.code(), status.message());
}

class ScriptedMembership final : public member::Membership {
 public:
  ScriptedMembership(std::string id, const v1::TrainingSpec& spec) : id_(std::move(id)) {
    *welcome_.mutable_training() = spec;
    welcome_.set_link_key(std::string(32, 'k'));
  }

  // ---- what the test does ----
  void send_view(const v1::View& view) {
    ViewHook hook;
    {
      const std::lock_guard lock(mutex_);
      view_ = view;
      hook = view_hook_;
      ++hooks_running_;
      changed_.notify_all();
    }
    if (hook != nullptr) hook(Generation{view.generation()});
    const std::lock_guard lock(mutex_);
    --hooks_running_;
    changed_.notify_all();
  }
  // The next view once the member waits for it.
  void offer_view(const v1::View& view) {
    const std::lock_guard lock(mutex_);
    offered_ = view;
    changed_.notify_all();
  }
  void end(const absl::Status& why) {
    CancelHook hook;
    {
      const std::lock_guard lock(mutex_);
      status_ = unshared(why);
      hook = std::exchange(hook_, nullptr);
      ++hooks_running_;
      changed_.notify_all();
    }
    if (hook != nullptr) hook(unshared(why));
    const std::lock_guard lock(mutex_);
    --hooks_running_;
    changed_.notify_all();
  }
  // The answer; nothing: it has left instead.
  std::optional<v1::PreflightResult> ask(const v1::Preflight& word) {
    std::unique_lock lock(mutex_);
    const std::size_t before = preflight_results_.size();
    preflight_ = word;
    if (preflight_hook_ != nullptr) preflight_hook_(word.number());
    changed_.notify_all();
    const bool done = changed_.wait_for(lock, std::chrono::seconds(60), [&] {
      return leaving_.has_value() || preflight_results_.size() > before;
    });
    if (!done || preflight_results_.size() == before) return std::nullopt;
    return preflight_results_.back();
  }
  void set_elastic() { welcome_.set_elastic(true); }
  void drain(Generation generation) { draining_.store(generation.value); }
  void ask_to_save() { saves_asked_.fetch_add(1); }
  // Runs in the training thread when it reports a fault; without locks.
  std::function<void(const v1::PeerFault&)> on_fault;

  // Runs in the thread that asks for a heartbeat.
  std::function<void()> on_beat;

  std::vector<v1::PeerFault> faults() const { return copy(faults_); }
  std::vector<v1::CheckpointResult> checkpoints() const { return copy(checkpoints_); }
  std::optional<v1::Leaving> leaving() const { return copy(leaving_); }
  int beats() const { return beats_.load(); }  // that were asked for
  // Until the member has waited so many more times for a view; false: it has left instead.
  bool waits_again(int times) {
    std::unique_lock lock(mutex_);
    const bool done = changed_.wait_for(lock, std::chrono::seconds(20), [&, at = waits_ + times] {
      return leaving_.has_value() || waits_ >= at;
    });
    return done && !leaving_.has_value();
  }
  bool wait_until_left() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return leaving_.has_value(); });
  }

  // ---- member::Membership ----
  const v1::Welcome& welcome() const override { return welcome_; }
  const std::string& member_id() const override { return id_; }
  absl::StatusOr<v1::View> wait_view(Generation after, Deadline) override {
    std::unique_lock lock(mutex_);
    ++waits_;
    changed_.notify_all();
    const bool there = changed_.wait_for(lock, std::chrono::milliseconds(100), [&] {
      if (offered_.generation() > view_.generation()) view_ = offered_;
      return !status_.ok() || view_.generation() > after.value || preflight_.has_value();
    });
    if (!status_.ok()) return unshared(status_);
    if (!there || view_.generation() <= after.value) return absl::DeadlineExceededError("no view");
    return view_;
  }
  Generation newest_view() const override {
    const std::lock_guard lock(mutex_);
    return {view_.generation()};
  }
  Generation draining() const override { return {draining_.load()}; }
  std::uint64_t saves_asked() const override { return saves_asked_.load(); }
  member::Progress& progress() override { return progress_; }
  void beat_now() override {
    ++beats_;
    if (on_beat != nullptr) on_beat();
  }
  void report_peer_fault(Generation generation, Step step, std::string_view peer,
                         std::string_view reason) override {
    v1::PeerFault fault;
    fault.set_generation(generation.value);
    fault.set_step(step);
    fault.set_peer_member_id(std::string(peer));
    fault.set_reason(std::string(reason));
    {
      const std::lock_guard lock(mutex_);
      faults_.push_back(fault);
    }
    if (on_fault != nullptr) on_fault(fault);
  }
  std::optional<v1::Preflight> take_preflight() override {
    const std::lock_guard lock(mutex_);
    return std::exchange(preflight_, std::nullopt);
  }
  void report_preflight(v1::PreflightResult result) override {
    const std::lock_guard lock(mutex_);
    preflight_results_.push_back(std::move(result));
    changed_.notify_all();
  }
  void report_caught_up(Generation, std::string_view) override {}
  void on_catch_up(CatchUpHook) override {}
  void on_preflight(PreflightHook hook) override {
    const std::lock_guard lock(mutex_);
    preflight_hook_ = std::move(hook);
    if (preflight_hook_ != nullptr && preflight_.has_value()) preflight_hook_(preflight_->number());
  }
  void report_checkpoint(v1::CheckpointResult result) override {
    const std::lock_guard lock(mutex_);
    checkpoints_.push_back(std::move(result));
  }
  absl::Status status() const override {
    const std::lock_guard lock(mutex_);
    return unshared(status_);
  }
  // Not from a hook: it waits until none runs.
  void on_cancel(CancelHook hook) override {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return hooks_running_ == 0; });
      if (status_.ok()) {
        hook_ = std::move(hook);
        return;
      }
    }
    if (hook != nullptr) hook(status());
  }
  bool is_to_save() const override { return to_save; }
  std::atomic<bool> to_save{false};
  void on_view(ViewHook hook) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return hooks_running_ == 0; });
    view_hook_ = std::move(hook);
  }
  absl::Status leave(const v1::Leaving& leaving, Deadline) override {
    const std::lock_guard lock(mutex_);
    leaving_ = leaving;
    changed_.notify_all();
    return absl::OkStatus();
  }

 private:
  template <typename T>
  T copy(const T& value) const {
    const std::lock_guard lock(mutex_);
    return value;
  }

  const std::string id_;
  v1::Welcome welcome_;
  std::atomic<int> beats_{0};
  member::Progress progress_;
  std::atomic<std::uint64_t> draining_{0}, saves_asked_{0};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  v1::View view_, offered_;
  int waits_ = 0;
  absl::Status status_;
  CancelHook hook_;
  ViewHook view_hook_;
  int hooks_running_ = 0;
  std::vector<v1::PeerFault> faults_;
  std::vector<v1::CheckpointResult> checkpoints_;
  std::optional<v1::Preflight> preflight_;
  PreflightHook preflight_hook_;
  std::vector<v1::PreflightResult> preflight_results_;
  std::optional<v1::Leaving> leaving_;
};

// Members "m0", "m1", ... with one trainer each.
class ThreadJob {
 public:
  struct Member {
    std::unique_ptr<ScriptedMembership> membership;
    std::unique_ptr<ThreadFabric> fabric;
    trainer::StopRequest stop;
    trainer::TrainerOptions options;
    trainer::OpenWorkload workload;
    trainer::ConnectServers connect_servers;
    checkpoint::FileStore* files = nullptr;  // null: this machine's
    const Clock* clock = nullptr;            // null: the job's
    trainer::Outcome outcome;
    std::map<Step, std::uint64_t> hashes;

    // Besides what it does anyway: `then`, in its own thread, once it has hashed the weights after `step`.
    void at_step(Step step, std::function<void()> then) {
      options.on_hash = [heard = options.on_hash, step, then = std::move(then)](Step at, std::uint64_t hash) {
        heard(at, hash);
        if (at == step) then();
      };
    }
  };

  // `clock`, unless null, is the members', and outlives the job.
  ThreadJob(int world, const v1::TrainingSpec& spec, const trainer::OpenWorkload& workload,
            const Clock* clock = nullptr)
      : clock_(clock == nullptr ? machine_clock_ : *clock), meeting_(clock_) {
    for (int rank = 0; rank < world; ++rank) {
      auto member = std::make_unique<Member>();
      member->membership = std::make_unique<ScriptedMembership>(str_cat("m", rank), spec);
      member->fabric = std::make_unique<ThreadFabric>(meeting_);
      member->workload = workload;
      member->options.hash_every = 1;
      auto* hashes = &member->hashes;
      member->options.on_hash = [hashes](Step step, std::uint64_t hash) { (*hashes)[step] = hash; };
      members_.push_back(std::move(member));
    }
  }

  // All members in the order of their ranks; without shares: equal ones.
  v1::View view(std::uint64_t generation, const std::vector<int>& ranks,
                std::vector<double> shares = {}) const {
    if (shares.empty()) shares.assign(ranks.size(), 1.0 / static_cast<double>(ranks.size()));
    v1::View view;
    view.set_generation(generation);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      v1::ViewMember* member = view.add_members();
      member->set_member_id(str_cat("m", ranks[i]));
      member->set_role(v1::ROLE_WORKER);
      member->set_index(static_cast<std::uint32_t>(ranks[i]));
      member->set_share(shares[i]);
    }
    return view;
  }

  void send_view(const v1::View& view) {
    for (auto& member : members_) member->membership->send_view(view);
  }

  // View 1 is of these members, and all run to their ends.
  void run_view(const std::vector<int>& ranks, std::vector<double> shares = {}) {
    send_view(view(1, ranks, std::move(shares)));
    run();
  }

  // Each of these members, once it has reported a fault, is in `next`.
  void go_on_in(const v1::View& next, const std::vector<int>& ranks) {
    for (const int rank : ranks) {
      auto* membership = member(rank).membership.get();
      membership->on_fault = [membership, next](const v1::PeerFault&) { membership->send_view(next); };
    }
  }

  // After `step` member `rank` hears that view 1 is drained, and all of the view that follows.
  void drain_at(int rank, Step step, const v1::View& next) {
    member(rank).at_step(step, [this, rank, next] {
      member(rank).membership->drain(Generation{1});
      for (auto& each : members_) each->membership->offer_view(next);
    });
  }

  // Runs the first `count` members, or all, to their ends.
  void run(int count = -1) {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < (count < 0 ? size() : count); ++rank) {
      threads.emplace_back([this, m = &member(rank)] {
        trainer::Trainer trainer({*m->membership, *m->fabric, m->clock == nullptr ? clock_ : *m->clock,
                                  logger_, m->stop, m->workload, m->connect_servers, m->files},
                                 m->options);
        m->outcome = trainer.run();
      });
    }
  }

  Member& member(int rank) { return *members_[static_cast<std::size_t>(rank)]; }
  int size() const { return static_cast<int>(members_.size()); }

 private:
  const SystemClock machine_clock_;
  const Clock& clock_;
  const Logger logger_ = Logger::none();
  Rendezvous meeting_;
  std::vector<std::unique_ptr<Member>> members_;
};

using Hashes = std::map<Step, std::uint64_t>;

// Trains to the end in one view of members with these workloads; all agree on every hash, which are returned.
inline Hashes train(const std::vector<trainer::OpenWorkload>& members, const v1::TrainingSpec& spec,
                    std::vector<double> shares = {}) {
  const int world = static_cast<int>(members.size());
  ThreadJob job(world, spec, members[0]);
  std::vector<int> ranks;
  for (int rank = 0; rank < world; ++rank) {
    ranks.push_back(rank);
    job.member(rank).workload = members[static_cast<std::size_t>(rank)];
  }
  job.run_view(ranks, std::move(shares));
  for (int rank = 0; rank < world; ++rank) {
    EXPECT_EQ(job.member(rank).outcome.ending, trainer::Ending::kFinished) << job.member(rank).outcome.error;
    EXPECT_EQ(job.member(rank).hashes, job.member(0).hashes) << "rank " << rank;
  }
  return job.member(0).hashes;
}

}  // namespace paceline

#pragma once

// Parameter servers in the memory of the test: one state, a policy of the product, no links. Its clients are
// what the trainer's workers get in place of real ones; arithmetic is the product's optimizer's.

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/optimizer/optimizer.h"
#include "runtime/pserver/client.h"
#include "runtime/trainer/trainer.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_tables.h"

namespace paceline {

class FakeServers {
 public:
  explicit FakeServers(v1::TrainingSpec spec) : spec_(std::move(spec)) {}

  trainer::ConnectServers connector();

  // What the test sees and does.
  std::vector<pserver::Update> updates() const { return copy(updates_); }
  std::vector<pserver::Gradient> drops() const { return copy(drops_); }
  std::vector<int> left() const { return copy(left_); }
  std::vector<pserver::InitialState> initialized() const { return copy(initial_); }
  std::map<pserver::sparse::RowId, std::vector<float>> rows(std::size_t table) {
    const std::lock_guard lock(mutex_);
    return tables_.rows(table);
  }
  // The servers are gone: every worker's call fails, and blames `rank`.
  void fail(int rank);
  // They have ended with this.
  void fail(absl::Status why);
  // So long a call takes, by a clock that it moves on: of one worker alone, or they move each other's.
  struct Takes {
    Duration cut{};  // a pull, before anything moves
    Duration pull{}, push{}, push_rows{}, commit{}, turn{}, weights{};
  };
  void take_time(FakeClock& clock, const Takes& takes) {
    clock_ = &clock;
    takes_ = takes;
  }
  // Called in the worker's thread before it commits; without locks.
  std::function<void(int rank, pserver::Unit unit)> before_commit;
  // Called with what worker 0 gives; its error is what initialize() returns. Without locks.
  std::function<absl::Status(const pserver::InitialState& state)> before_initialize;
  // Called in the thread that collects a snapshot, with its deadline, before it waits; without locks.
  std::function<void(Deadline deadline)> before_take;
  // Collecting a snapshot waits until this is released.
  void hold_snapshots(bool hold) {
    const std::lock_guard lock(mutex_);
    snapshots_held_ = hold;
    changed_.notify_all();
  }
  // How often worker 0 said that it still reads what they begin with.
  int told_loading() const { return copy(told_loading_); }
  // Workers that were made to take no more turns.
  int interrupted() const { return copy(interrupted_); }
  // Snapshots that were waited for until the fake gave up.
  int overdue() const { return copy(overdue_); }

 private:
  struct Worker {
    std::optional<pserver::Turn> turn;
    pserver::Wishes agreed;
    bool out = false;  // a commit or the first turn is waited for
    bool gone = false;
    bool dropped = false;
    pserver::Version staleness = 0;
    double loss_sum = 0;
    std::int64_t samples = 0, gradients = 0, updates = 0;
    std::vector<float> gradient;
    v1::StalenessStats stats;
  };

  class FakeClient;

  absl::Status report_loading(const FakeClient& client);
  absl::Status state(const FakeClient& client) const;
  absl::Status state_locked(const FakeClient& client) const;
  absl::Status initialize(const pserver::InitialState& state);
  absl::StatusOr<pserver::TurnResult> wait_turn(FakeClient& client);
  absl::Status pull_rows(const FakeClient& client, std::span<const pserver::sparse::RowsPull> pulls);
  absl::Status commit(FakeClient& client, const pserver::Commit& commit);
  absl::Status wish(const pserver::Wishes& wishes);
  void add_wishes(const pserver::Wishes& wishes);
  void carry_out(const pserver::Effects& effects);
  void apply(const pserver::Update& update);
  Step policy_step() const;
  absl::Status begin_snapshot(const FakeClient& client);
  absl::StatusOr<pserver::SnapshotInfo> take_snapshot(const FakeClient& client, std::span<float> weights,
                                                      std::span<const std::span<float>> optimizer);
  absl::Status take_rows(const FakeClient& client, pserver::sparse::RowSink& sink);
  void leave(int rank);
  v1::StalenessStats staleness(int rank) const;

  template <typename T>
  T copy(const T& value) const {
    const std::lock_guard lock(mutex_);
    return value;
  }

  struct Committed {
    double loss_sum = 0;
    std::int64_t samples = 0;
    std::vector<float> gradient;
    FakeTables::Push rows;
  };
  struct Snapshot {
    pserver::SnapshotInfo info;
    std::vector<float> weights;
    std::vector<std::vector<float>> optimizer;
  };

  const v1::TrainingSpec spec_;
  FakeClock* clock_ = nullptr;
  Takes takes_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, Worker> workers_;
  std::map<std::pair<int, pserver::Unit>, Committed> committed_;  // by worker and unit
  std::unique_ptr<pserver::Policy> policy_;
  std::optional<optimizer::Optimizer> optimizer_;
  std::vector<float> weights_;
  FakeTables tables_;
  std::optional<Snapshot> snapshot_;
  bool snapshots_held_ = false;
  int told_loading_ = 0;
  int overdue_ = 0;
  int interrupted_ = 0;
  std::vector<pserver::InitialState> initial_;  // spans of workers' memory
  std::vector<pserver::Update> updates_;
  std::vector<pserver::Gradient> drops_;
  std::vector<int> left_;
  pserver::Version version_ = 0;
  Step total_steps_ = 0;
  double rate_ = 0;
  pserver::Wishes wishes_;
  bool finished_ = false;
  absl::Status failed_;
};

}  // namespace paceline

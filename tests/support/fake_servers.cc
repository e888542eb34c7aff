#include "tests/support/fake_servers.h"

#include <algorithm>

#include "base/check.h"
#include "base/status.h"
#include "runtime/collective/fault.h"
#include "runtime/optimizer/schedule.h"

namespace paceline {

class FakeServers::FakeClient final : public pserver::Client {
 public:
  FakeClient(FakeServers& servers, const transport::Arena& arena, int rank, std::span<float> weights,
             std::span<float> gradient)
      : servers_(servers), arena_(arena), rank_(rank), weights_(weights), gradient_(gradient) {}
  ~FakeClient() override { close(absl::OkStatus()); }

  absl::Status report_loading() override { return servers_.report_loading(*this); }
  absl::Status initialize(const pserver::InitialState& state, Deadline) override {
    return servers_.initialize(state);
  }
  absl::StatusOr<pserver::TurnResult> wait_turn(Deadline) override {
    take(servers_.takes_.turn, times_.wait);
    take(servers_.takes_.weights, times_.transfer);
    return servers_.wait_turn(*this);
  }
  absl::Status push(std::size_t begin, std::size_t end) override {
    pushed_ += end - begin;
    take(servers_.takes_.push, times_.transfer);
    return servers_.state(*this);
  }
  absl::Status pull_rows(std::span<const pserver::sparse::RowsPull> pulls, Deadline) override {
    Duration uncounted{};
    take(servers_.takes_.cut, uncounted);
    take(servers_.takes_.pull, times_.transfer);
    return servers_.pull_rows(*this, pulls);
  }
  absl::Status push_rows(std::span<const pserver::sparse::RowsPush> pushes) override {
    for (const auto& push : pushes) {
      PL_CHECK(arena_.contains(push.gradient.data(), push.gradient.size_bytes()), "servers can read it");
    }
    pushes_.assign(pushes.begin(), pushes.end());
    take(servers_.takes_.push_rows, times_.transfer);
    return servers_.state(*this);
  }
  absl::Status commit(const pserver::Commit& commit) override {
    PL_CHECK(pushed_ == gradient_.size(), "every element is pushed once");
    pushed_ = 0;
    take(servers_.takes_.commit, times_.transfer);
    return servers_.commit(*this, commit);
  }
  absl::Status wish(const pserver::Wishes& wishes) override { return servers_.wish(wishes); }
  absl::Status begin_snapshot() override { return servers_.begin_snapshot(*this); }
  absl::Status flush(Deadline) override { return absl::OkStatus(); }
  absl::StatusOr<pserver::SnapshotInfo> take_snapshot(std::span<float> weights,
                                                      std::span<const std::span<float>> optimizer,
                                                      Deadline deadline,
                                                      const std::function<void()>& moved) override {
    if (servers_.before_take != nullptr) servers_.before_take(deadline);
    auto taken = servers_.take_snapshot(*this, weights, optimizer);
    if (taken.ok() && moved != nullptr) moved();
    return taken;
  }
  absl::Status take_rows(pserver::sparse::RowSink& sink, Deadline) override {
    return servers_.take_rows(*this, sink);
  }
  absl::Status leave() override {
    servers_.leave(rank_);
    return absl::OkStatus();
  }
  pserver::ClientTimes times() const override { return times_; }
  pserver::ClientCounters counters() const override {
    return {.bytes_sent = units_ * 100, .bytes_received = units_ * 100};
  }
  v1::StalenessStats staleness() const override { return servers_.staleness(rank_); }
  void interrupt() override {
    const std::lock_guard lock(servers_.mutex_);
    servers_.interrupted_ += interrupted_ ? 0 : 1;
    interrupted_ = true;
    servers_.changed_.notify_all();
  }
  bool interrupted() const override {
    const std::lock_guard lock(servers_.mutex_);
    return interrupted_;
  }
  void close(absl::Status reason) override {
    const std::lock_guard lock(servers_.mutex_);
    if (!closed_.ok()) return;
    closed_ = reason.ok() ? absl::AbortedError("closed") : std::move(reason);
    servers_.changed_.notify_all();
  }
  absl::Status closed() const override {
    const std::lock_guard lock(servers_.mutex_);
    return closed_;
  }

  void take(Duration time, Duration& counted) {
    if (servers_.clock_ != nullptr) servers_.clock_->advance(time);
    counted += time;
  }

  FakeServers& servers_;
  const transport::Arena& arena_;
  const int rank_;
  const std::span<float> weights_, gradient_;
  std::size_t pushed_ = 0;
  std::vector<pserver::sparse::RowsPush> pushes_;  // of the unit
  std::uint64_t units_ = 0;
  pserver::ClientTimes times_;
  absl::Status closed_;       // guarded by the servers' mutex
  bool interrupted_ = false;  // likewise
};

trainer::ConnectServers FakeServers::connector() {
  return [this](collective::Fabric& fabric, const collective::Group& group,
                const pserver::ClientOptions& options, const tensor::ParameterLayout& layout,
                std::span<float> weights, std::span<float> gradient, const Clock&,
                Deadline) -> absl::StatusOr<std::unique_ptr<pserver::Client>> {
    const std::lock_guard lock(mutex_);
    if (optimizer_ == std::nullopt) {
      auto made = optimizer::Optimizer::create(spec_.optimizer(), layout);
      PL_RETURN_IF_ERROR(made.status());
      optimizer_ = *std::move(made);
      weights_.resize(layout.elements);
      tables_ = FakeTables(options.tables, options.servers);
    }
    return std::make_unique<FakeClient>(*this, fabric.arena(), group.rank, weights, gradient);
  };
}

void FakeServers::fail(int rank) {
  fail(collective::with_faulty_rank(absl::UnavailableError(str_cat("rank ", rank, " (ps-0) is gone")), rank));
}

void FakeServers::fail(absl::Status why) {
  const std::lock_guard lock(mutex_);
  failed_ = std::move(why);
  changed_.notify_all();
}

absl::Status FakeServers::report_loading(const FakeClient& client) {
  const std::lock_guard lock(mutex_);
  ++told_loading_;
  return state_locked(client);
}

absl::Status FakeServers::state(const FakeClient& client) const {
  const std::lock_guard lock(mutex_);
  return state_locked(client);
}

absl::Status FakeServers::state_locked(const FakeClient& client) const {
  return client.closed_.ok() ? failed_ : client.closed_;
}

absl::Status FakeServers::initialize(const pserver::InitialState& state) {
  if (before_initialize != nullptr) PL_RETURN_IF_ERROR(before_initialize(state));
  const std::lock_guard lock(mutex_);
  std::ranges::copy(state.weights, weights_.begin());
  for (const auto& given : state.optimizer) {
    for (const auto& own : optimizer_->state()) {
      if (own.name == given.name) std::ranges::copy(given.values, own.values.begin());
    }
  }
  optimizer_->set_steps(state.optimizer_steps);
  if (state.rows != nullptr) PL_RETURN_IF_ERROR(tables_.restore(*state.rows));
  auto made = pserver::make_policy(spec_.parameter_server(), state.start);
  PL_RETURN_IF_ERROR(made.status());
  policy_ = *std::move(made);
  total_steps_ = state.start.total_steps;
  initial_.push_back(state);
  for (const auto& [rank, worker] : workers_) {
    if (worker.out && !worker.gone) carry_out(policy_->joined(rank));
  }
  changed_.notify_all();
  return absl::OkStatus();
}

absl::StatusOr<pserver::TurnResult> FakeServers::wait_turn(FakeClient& client) {
  std::unique_lock lock(mutex_);
  Worker& worker = workers_[client.rank_];
  if (!worker.out && client.units_ == 0) {  // its first
    worker = {};
    worker.out = true;
    if (policy_ != nullptr) carry_out(policy_->joined(client.rank_));
  }
  ++client.units_;
  const bool there = changed_.wait_for(lock, std::chrono::seconds(20), [&] {
    return !state_locked(client).ok() || client.interrupted_ || finished_ || worker.turn.has_value();
  });
  if (client.interrupted_) return absl::CancelledError("no more turns are taken");
  if (!there) return absl::DeadlineExceededError("no turn");
  PL_RETURN_IF_ERROR(state_locked(client));
  worker.out = false;
  std::ranges::copy(weights_, client.weights_.begin());
  pserver::TurnResult result;
  result.finished = finished_;
  if (worker.turn.has_value() && !finished_) {
    result.unit = worker.turn->unit;
    result.next = worker.turn->next;
    worker.turn->read = version_;
  }
  result.version = version_;
  result.step = policy_->step();
  result.agreed = finished_ ? wishes_ : worker.agreed;
  result.updates = std::exchange(worker.updates, 0);
  result.gradients = std::exchange(worker.gradients, 0);
  result.samples = std::exchange(worker.samples, 0);
  result.loss_sum = std::exchange(worker.loss_sum, 0);
  result.learning_rate = rate_;
  result.dropped = std::exchange(worker.dropped, false);
  result.staleness = worker.staleness;
  return result;
}

absl::Status FakeServers::pull_rows(const FakeClient& client,
                                    std::span<const pserver::sparse::RowsPull> pulls) {
  const std::lock_guard lock(mutex_);
  if (client.interrupted_) return absl::CancelledError("no more rows are pulled");
  PL_RETURN_IF_ERROR(state_locked(client));
  return tables_.pull(pulls);
}

absl::Status FakeServers::commit(FakeClient& client, const pserver::Commit& commit) {
  pserver::Unit unit = 0;
  {
    const std::lock_guard lock(mutex_);
    PL_RETURN_IF_ERROR(state_locked(client));
    unit = workers_[client.rank_].turn->unit;
  }
  if (before_commit != nullptr) before_commit(client.rank_, unit);
  const std::lock_guard lock(mutex_);
  PL_RETURN_IF_ERROR(state_locked(client));
  add_wishes(commit.wishes);
  Worker& worker = workers_[client.rank_];
  worker.gradient.assign(client.gradient_.begin(), client.gradient_.end());
  worker.out = true;
  PL_ASSIGN_OR_RETURN(FakeTables::Push rows, tables_.copy(client.pushes_));
  client.pushes_.clear();
  committed_[{client.rank_, unit}] = {commit.loss_sum, commit.samples, worker.gradient, std::move(rows)};
  worker.turn.reset();
  if (!finished_) carry_out(policy_->committed(client.rank_, unit));
  changed_.notify_all();
  return absl::OkStatus();
}

absl::Status FakeServers::wish(const pserver::Wishes& wishes) {
  const std::lock_guard lock(mutex_);
  add_wishes(wishes);
  changed_.notify_all();
  return absl::OkStatus();
}

void FakeServers::add_wishes(const pserver::Wishes& wishes) {
  wishes_.stop |= wishes.stop;
  wishes_.drain |= wishes.drain;
  wishes_.target_reached |= wishes.target_reached;
  finished_ |= wishes.target_reached;
}

void FakeServers::carry_out(const pserver::Effects& effects) {
  for (const pserver::Update& update : effects.updates) apply(update);
  for (const pserver::Gradient& drop : effects.drops) {
    drops_.push_back(drop);
    workers_[drop.worker].dropped = true;
    workers_[drop.worker].stats.set_dropped(workers_[drop.worker].stats.dropped() + 1);
    committed_.erase({drop.worker, drop.unit});
  }
  for (const pserver::Turn& turn : effects.turns) {
    workers_[turn.worker].turn = turn;
    workers_[turn.worker].agreed = wishes_;  // as of now: whose turns come together agree
  }
  finished_ |= effects.finished;
}

void FakeServers::apply(const pserver::Update& update) {
  std::vector<float> sum(weights_.size(), 0.0F);
  double loss_sum = 0;
  std::int64_t samples = 0;
  std::vector<const FakeTables::Push*> rows;
  for (const pserver::Gradient& gradient : update.gradients) {
    const Committed& committed = committed_.at({gradient.worker, gradient.unit});
    rows.push_back(&committed.rows);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += committed.gradient[i];
    loss_sum += committed.loss_sum;
    samples += committed.samples;
    workers_[gradient.worker].staleness = version_ - gradient.read;
    workers_[gradient.worker].stats.set_applied(workers_[gradient.worker].stats.applied() + 1);
  }
  if (update.scale != 1) {
    for (float& value : sum) value *= static_cast<float>(update.scale);
  }
  rate_ = optimizer::learning_rate(spec_.optimizer(), policy_step(), total_steps_,
                                   static_cast<int>(spec_.parameter_server().workers()));
  PL_CHECK(optimizer_->step(weights_, sum, rate_).ok(), "an update");
  tables_.update(rows, update.scale, rate_ / spec_.optimizer().learning_rate());
  for (const pserver::Gradient& gradient : update.gradients)
    committed_.erase({gradient.worker, gradient.unit});
  version_ = update.version;
  updates_.push_back(update);
  for (auto& [rank, worker] : workers_) {
    worker.loss_sum += loss_sum;
    worker.samples += samples;
    worker.gradients += static_cast<std::int64_t>(update.gradients.size());
    ++worker.updates;
  }
}

Step FakeServers::policy_step() const {
  return std::min(policy_->step(), total_steps_ - 1);
}

absl::Status FakeServers::begin_snapshot(const FakeClient& client) {
  const std::lock_guard lock(mutex_);
  PL_RETURN_IF_ERROR(state_locked(client));
  if (snapshot_.has_value()) return absl::FailedPreconditionError("the snapshot before was not taken yet");
  snapshot_.emplace();
  snapshot_->info = {version_, policy_->step(), policy_->units(), optimizer_->steps()};
  snapshot_->weights = weights_;
  for (const auto& state : optimizer_->state()) {
    snapshot_->optimizer.emplace_back(state.values.begin(), state.values.end());
  }
  tables_.begin_snapshot();
  return absl::OkStatus();
}

absl::StatusOr<pserver::SnapshotInfo> FakeServers::take_snapshot(
    const FakeClient& client, std::span<float> weights, std::span<const std::span<float>> optimizer) {
  std::unique_lock lock(mutex_);
  const bool free = changed_.wait_for(lock, std::chrono::seconds(20),
                                      [&] { return !snapshots_held_ || !state_locked(client).ok(); });
  if (!free) {
    ++overdue_;
    return absl::DeadlineExceededError("snapshots are held");
  }
  PL_RETURN_IF_ERROR(state_locked(client));
  const Snapshot snapshot = *snapshot_;
  if (tables_.empty()) snapshot_.reset();
  std::ranges::copy(snapshot.weights, weights.begin());
  for (std::size_t i = 0; i < optimizer.size(); ++i) {
    std::ranges::copy(snapshot.optimizer[i], optimizer[i].begin());
  }
  return snapshot.info;
}

absl::Status FakeServers::take_rows(const FakeClient& client, pserver::sparse::RowSink& sink) {
  PL_RETURN_IF_ERROR(state(client));
  const absl::Status given = tables_.take(sink, mutex_);
  const std::lock_guard lock(mutex_);
  snapshot_.reset();
  return given;
}

void FakeServers::leave(int rank) {
  const std::lock_guard lock(mutex_);
  Worker& worker = workers_[rank];
  if (std::exchange(worker.gone, true)) return;
  left_.push_back(rank);
  if (policy_ != nullptr && !finished_) carry_out(policy_->left(rank));
  changed_.notify_all();
}

v1::StalenessStats FakeServers::staleness(int rank) const {
  const std::lock_guard lock(mutex_);
  const auto it = workers_.find(rank);
  return it == workers_.end() ? v1::StalenessStats() : it->second.stats;
}

}  // namespace paceline

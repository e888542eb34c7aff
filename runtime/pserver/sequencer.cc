#include "runtime/pserver/sequencer.h"

#include <algorithm>

#include "base/check.h"
#include "base/status.h"
#include "runtime/optimizer/schedule.h"

namespace paceline::pserver {

Sequencer::Sequencer(const SequencerOptions& options)
    : options_(options),
      ready_(static_cast<std::size_t>(options.servers)),
      workers_(static_cast<std::size_t>(options.workers)) {
  for (Worker& worker : workers_) worker.held.resize(static_cast<std::size_t>(options.servers));
}

LogStep& Sequencer::add(LogEntry::Kind kind) {
  if (taken_) used_ = 0;
  taken_ = false;
  if (used_ == steps_.size()) steps_.emplace_back();
  LogStep& step = steps_[used_++];
  step.entry.kind = kind;
  step.entry.version = version_;
  step.entry.contributors.clear();
  return step;
}

std::span<const LogStep> Sequencer::take() {
  if (taken_) used_ = 0;
  taken_ = true;
  return std::span<const LogStep>(steps_).first(used_);
}

// ---- the beginning ----

void Sequencer::ready(int server) {
  ready_[static_cast<std::size_t>(server)] = true;
  start_when_ready();
}

void Sequencer::begin(std::unique_ptr<Policy> policy, const PolicyStart& start) {
  PL_CHECK(policy_ == nullptr, "a view begins once");
  policy_ = std::move(policy);
  start_ = start;
  step_ = policy_->step();
  start_when_ready();
}

void Sequencer::start_when_ready() {
  if (started_ || policy_ == nullptr || std::find(ready_.begin(), ready_.end(), false) != ready_.end())
    return;
  started_ = true;
  for (int w = 0; w < options_.workers; ++w) {
    if (at(w).is_gone) carry_out(policy_->left(w));
  }
  for (const int worker : waiting_) {
    if (!at(worker).is_gone) carry_out(policy_->joined(worker));
  }
  finish();
}

void Sequencer::joined(int worker) {
  at(worker).is_there = true;
  if (!started_) {
    waiting_.push_back(worker);
    return;
  }
  if (!finished_) carry_out(policy_->joined(worker));
  finish();
}

// ---- a gradient ----

absl::Status Sequencer::held(int worker, Unit unit, int server) {
  Worker& from = at(worker);
  if (from.is_gone) return absl::OkStatus();  // another server's word that crossed the news
  const auto s = static_cast<std::size_t>(server);
  if (from.turn < 0 || from.turn != unit || from.held[s]) {
    return absl::InvalidArgumentError(str_cat("committed unit ", unit, ", which is not its turn"));
  }
  from.held[s] = true;
  commit_when_whole(worker);
  return absl::OkStatus();
}

absl::Status Sequencer::committed(int worker, Unit unit, const CommitMessage& commit) {
  Worker& from = at(worker);
  if (from.turn < 0 || from.turn != unit || from.commit.has_value()) {
    return absl::InvalidArgumentError(str_cat("committed unit ", unit, ", which is not its turn"));
  }
  from.commit = commit;
  commit_when_whole(worker);
  return absl::OkStatus();
}

void Sequencer::commit_when_whole(int worker) {
  Worker& from = at(worker);
  if (!from.commit.has_value() || std::find(from.held.begin(), from.held.end(), false) != from.held.end()) {
    return;
  }
  const Unit unit = from.turn;
  from.turn = -1;
  from.held.assign(from.held.size(), false);
  const CommitMessage commit = *from.commit;
  from.commit.reset();
  on_wishes(worker, commit.wishes);
  if (finished_) {  // its gradient comes too late for the training
    from.next.dropped = true;
  } else {
    from.kept.push_back({unit, from.read, commit.loss_sum, commit.samples, false});
    carry_out(policy_->committed(worker, unit));
  }
  finish();
}

// ---- what the policy says ----

void Sequencer::carry_out(const Effects& effects) {
  for (const Update& each : effects.updates) update(each);
  for (const Gradient& drop : effects.drops) {
    Worker& from = at(drop.worker);
    std::erase_if(from.kept, [&](const Kept& kept) { return kept.unit == drop.unit; });
    from.next.dropped = true;
    from.next.staleness = -1;
  }
  finished_ = finished_ || effects.finished;
  for (const Turn& turn : effects.turns) {
    if (!finished_) give_turn(turn.worker, turn.unit, turn.next);
  }
  step_ = policy_->step();
}

void Sequencer::update(const Update& update) {
  ++version_;
  PL_CHECK(update.version == version_ && !update.gradients.empty(), "updates are numbered 1, 2, ...");
  learning_rate_ = optimizer::learning_rate(options_.optimizer, step_, start_.total_steps, options_.workers);
  LogEntry& entry = add(LogEntry::Kind::kUpdate).entry;
  entry.clips = options_.optimizer.clip_norm() > 0;
  entry.scale = static_cast<float>(update.scale);
  entry.learning_rate = learning_rate_;
  double loss_sum = 0;
  std::int64_t samples = 0;
  for (const Gradient& gradient : update.gradients) {
    Worker& from = at(gradient.worker);
    const auto kept = std::find_if(from.kept.begin(), from.kept.end(),
                                   [&](const Kept& each) { return each.unit == gradient.unit; });
    PL_CHECK(kept != from.kept.end(), "an update is of gradients that were committed");
    loss_sum += kept->loss_sum;
    samples += kept->samples;
    from.next.dropped = false;
    from.next.staleness = version_ - 1 - kept->read;
    if (entry.contributors.empty() || entry.contributors.back().worker != gradient.worker) {
      entry.contributors.push_back({gradient.worker, false, false});
    }
    (kept->aside ? entry.contributors.back().aside : entry.contributors.back().last) = true;
    from.kept.erase(kept);
  }
  // What the servers have put aside of a worker is one sum: it counts whole or not at all.
  for (const Contributor& each : entry.contributors) {
    const std::vector<Kept>& rest = at(each.worker).kept;
    PL_CHECK(!each.aside || std::none_of(rest.begin(), rest.end(), [](const Kept& k) { return k.aside; }),
             "an update takes all that was put aside of a worker");
  }
  for (Worker& worker : workers_) {
    worker.next.updates += 1;
    worker.next.gradients += static_cast<std::int64_t>(update.gradients.size());
    worker.next.samples += samples;
    worker.next.loss_sum += loss_sum;
  }
}

void Sequencer::give_turn(int worker, Unit unit, Unit next) {
  Worker& to = at(worker);
  PL_CHECK(to.turn < 0, "a worker has one turn");
  LogStep& step = add(LogEntry::Kind::kTurn);
  step.entry.worker = worker;
  step.entry.keeps = !to.kept.empty() && !finished_;
  step.turn = to.next;
  step.turn.finished = finished_ && unit < 0;
  step.turn.unit = unit;
  step.turn.next = next;
  step.turn.version = version_;
  step.turn.step = policy_->step();
  step.turn.agreed = agreed_;
  step.turn.learning_rate = learning_rate_;
  to.next = TurnResult();
  for (Kept& kept : to.kept) kept.aside = true;
  to.turn = unit;
  to.read = version_;
  to.turn_number = ++turns_;
}

// Once the training is finished, every worker that computes nothing is told so.
void Sequencer::finish() {
  if (!started_ || !finished_) return;
  for (int w = 0; w < options_.workers; ++w) {
    Worker& worker = at(w);
    if (!worker.is_there || worker.is_gone || worker.turn >= 0 || worker.told_finish) continue;
    worker.told_finish = true;
    give_turn(w, -1, -1);
  }
}

// ---- the rest ----

void Sequencer::on_wishes(int worker, const Wishes& wishes) {
  agreed_.stop = agreed_.stop || wishes.stop;
  agreed_.drain = agreed_.drain || wishes.drain;
  agreed_.target_reached = agreed_.target_reached || wishes.target_reached;
  if (worker == 0) agreed_.save = wishes.save;
  finished_ = finished_ || wishes.target_reached;
}

absl::Status Sequencer::wished(int worker, const Wishes& wishes) {
  const bool save = agreed_.save || (worker == 0 && wishes.save);
  on_wishes(worker, wishes);
  agreed_.save = save;
  finish();
  return absl::OkStatus();
}

absl::Status Sequencer::snapshot() {
  if (!started_) return absl::FailedPreconditionError("a snapshot of servers that have not begun");
  LogStep& step = add(LogEntry::Kind::kSnapshot);
  step.snapshot = {version_, policy_->step(), policy_->units(), 0};
  return absl::OkStatus();
}

void Sequencer::left(int worker) {
  Worker& gone = at(worker);
  if (gone.is_gone) return;
  gone.is_gone = true;
  gone.turn = -1;
  gone.held.assign(gone.held.size(), false);
  gone.commit.reset();
  if (!started_ || finished_) return;
  carry_out(policy_->left(worker));
  finish();
}

int Sequencer::waits_for(int worker) const {
  if (policy_ == nullptr && worker != 0) return 0;
  for (std::size_t s = 0; s < ready_.size(); ++s) {
    if (!ready_[s]) return options_.workers + static_cast<int>(s);
  }
  int oldest = -1;
  for (int w = 0; w < options_.workers; ++w) {
    const Worker& other = at(w);
    if (other.turn < 0) continue;
    if (other.commit.has_value()) {  // said here, and not by everybody who should have it
      const auto missing = std::find(other.held.begin(), other.held.end(), false);
      return options_.workers + static_cast<int>(missing - other.held.begin());
    }
    if (w == worker) continue;
    if (oldest < 0 || other.turn_number < at(oldest).turn_number) oldest = w;
  }
  if (oldest >= 0) return oldest;
  for (int w = 0; w < options_.workers; ++w) {
    if (!at(w).is_there && !at(w).is_gone) return w;
  }
  return -1;
}

std::int64_t Sequencer::queue() const {
  std::int64_t total = 0;
  for (const Worker& worker : workers_) total += static_cast<std::int64_t>(worker.kept.size());
  return total;
}

}  // namespace paceline::pserver

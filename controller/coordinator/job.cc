#include "controller/coordinator/job.h"

#include <algorithm>
#include <iterator>

namespace paceline::coordinator {

namespace {

// Nothing for the observer.
bool is_empty(const Effects& effects) {
  return effects.reasons.empty() && effects.steps.empty() && effects.member_steps.empty() &&
         effects.evaluations.empty() && effects.checkpoints.empty() && !effects.view &&
         !effects.view_change && !effects.verdict && effects.lost.empty() && effects.stragglers.empty() &&
         !effects.report_changed;
}

// Moves what fits into a batch; the number of those that don't.
template <typename T>
std::size_t join(std::vector<T>& batch, std::vector<T>& more) {
  const std::size_t fitting = std::min(more.size(), kMaxOutbox - std::min(kMaxOutbox, batch.size()));
  std::move(more.begin(), more.begin() + static_cast<std::ptrdiff_t>(fitting), std::back_inserter(batch));
  return more.size() - fitting;
}

}  // namespace

Job::Job(JobConfig config, const Clock& clock, std::function<void(const Job&)> leave)
    : name_(config.core.job),
      token_(std::move(config.token)),
      observer_(config.observer),
      clock_(clock),
      leave_(std::move(leave)),
      due_(clock.now().time_since_epoch().count()),
      core_(std::move(config.core), clock.now()) {}

Effects Job::step(const Input& input) {
  Effects effects = core_.step(input, clock_.now());
  due_.store(core_.due().time_since_epoch().count(), std::memory_order_relaxed);
  return effects;
}

void Job::attach(StreamId stream, std::shared_ptr<Outlet> outlet, const v1::Hello& hello) {
  {
    std::lock_guard lock(mutex_);
    if (closed_) {
      outlet->finish(absl::UnavailableError("the job is closed"));
      return;
    }
    outlets_[stream] = std::move(outlet);
    take(step(Attached{stream, hello}));
  }
  deliver();
}

void Job::feed(const Input& input) {
  {
    std::lock_guard lock(mutex_);
    if (closed_) return;
    take(step(input));
    if (const auto* ended = std::get_if<StreamEnded>(&input)) outlets_.erase(ended->stream);
  }
  deliver();
}

void Job::take(Effects effects) {
  for (Send& send : effects.send) {
    const auto it = outlets_.find(send.stream);
    if (it != outlets_.end()) outgoing_.push_back({it->second, std::move(send.message), {}});
  }
  for (const StreamId& stream : effects.close) {
    const auto it = outlets_.find(stream);
    if (it == outlets_.end()) continue;
    outgoing_.push_back({it->second, std::nullopt, absl::OkStatus()});
    outlets_.erase(it);
  }
  if (observer_ != nullptr && !is_empty(effects)) keep(std::move(effects));
}

void Job::keep(Effects effects) {
  if (unpublished_.size() >= kMaxOutbox) {
    dropped_ += effects.steps.size();
    for (const MemberSteps& steps : effects.member_steps) dropped_ += steps.steps.size();
    effects.steps.clear();
    effects.member_steps.clear();
    Effects& last = unpublished_.back();
    // Views, verdicts and losses are few, and keep their place among the rest.
    const auto is_rare = [](const Effects& e) {
      return e.view || e.view_change || e.verdict || !e.lost.empty() || !e.stragglers.empty();
    };
    if (!is_rare(effects) && !is_rare(last)) {
      dropped_ += join(last.reasons, effects.reasons) + join(last.evaluations, effects.evaluations) +
                  join(last.checkpoints, effects.checkpoints);
      last.report_changed |= effects.report_changed;
      return;
    }
  }
  effects.send.clear();
  effects.close.clear();
  unpublished_.push_back(std::move(effects));
}

void Job::send_waiting() {
  std::unique_lock lock(mutex_);
  while (!sending_ && !outgoing_.empty()) {
    sending_ = true;
    Outgoing next = std::move(outgoing_.front());
    outgoing_.pop_front();
    lock.unlock();
    if (next.message) {
      next.outlet->send(*std::move(next.message));
    } else {
      next.outlet->finish(next.end);
    }
    next.outlet.reset();
    lock.lock();
    sending_ = false;
    quiet_.notify_all();
  }
}

void Job::publish_waiting() {
  std::unique_lock lock(mutex_);
  while (!publishing_ && !unpublished_.empty()) {
    publishing_ = true;
    const Effects next = std::move(unpublished_.front());
    unpublished_.pop_front();
    lock.unlock();
    publish(next);
    lock.lock();
    publishing_ = false;
    quiet_.notify_all();
  }
}

void Job::publish(const Effects& effects) {
  for (const std::string& reason : effects.reasons) observer_->on_reason(reason);
  if (effects.preflight) observer_->on_preflight(*effects.preflight);
  for (const api::Fault& lost : effects.lost) observer_->on_lost(lost);
  if (effects.view) observer_->on_view(*effects.view);
  if (effects.view_change) observer_->on_view_change(*effects.view_change);
  if (effects.rebalance) observer_->on_rebalance(*effects.rebalance);
  for (const StragglerChange& change : effects.stragglers) observer_->on_straggler(change);
  if (!effects.steps.empty()) observer_->on_steps(effects.steps);
  for (const MemberSteps& steps : effects.member_steps) observer_->on_member_steps(steps);
  for (const EvaluationRecord& evaluation : effects.evaluations) observer_->on_evaluation(evaluation);
  for (const CheckpointRecord& checkpoint : effects.checkpoints) observer_->on_checkpoint(checkpoint);
  if (effects.verdict) observer_->on_verdict(*effects.verdict);
  if (effects.report_changed) observer_->on_report_changed();
  observer_->on_batch_end();
}

Report Job::report() const {
  std::lock_guard lock(mutex_);
  Report report = core_.report(clock_.now());
  report.dropped_records = dropped_;
  return report;
}

void Job::close() {
  if (leave_) leave_(*this);
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    unpublished_.clear();
    for (const auto& [stream, outlet] : outlets_) {
      if (core_.is_observer(stream)) {  // it outlives attempts: its next try finds the next one's coordinator
        outgoing_.push_back({outlet, std::nullopt, absl::UnavailableError("this attempt is over")});
        continue;
      }
      v1::CoordinatorMessage message;
      message.mutable_evict()->set_reason("the coordinator closes the job");
      outgoing_.push_back({outlet, std::move(message), {}});
      outgoing_.push_back({outlet, std::nullopt, absl::OkStatus()});
    }
    outlets_.clear();
  }
  send_waiting();
  std::unique_lock lock(mutex_);
  quiet_.wait(lock, [this] { return !sending_ && !publishing_ && outgoing_.empty(); });
}

}  // namespace paceline::coordinator

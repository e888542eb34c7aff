#include "tests/simulation/checks.h"

#include <algorithm>
#include <set>

#include "base/rng.h"
#include "controller/plan/plan.h"
#include "controller/plan/restart_budget.h"
#include "tests/simulation/member_process.h"

namespace paceline::simulation {

std::uint64_t Checks::sum_of(std::span<const std::int64_t> samples) {
  std::uint64_t sum = 0;
  for (const std::int64_t each : samples) sum += mix64(static_cast<std::uint64_t>(each) + 1);
  return sum;
}

std::uint64_t Checks::fold(std::uint64_t weights, Step step, std::uint64_t sum) {
  return mix64(weights ^ mix64(sum + static_cast<std::uint64_t>(step)));
}

std::uint64_t Checks::weights_after(Step steps) {
  const data::Ledger ledger(training_.ledger);
  if (undisturbed_.empty()) undisturbed_.push_back(mix64(training_.ledger.seed));
  while (undisturbed_.size() <= static_cast<std::size_t>(steps)) {
    const auto step = static_cast<Step>(undisturbed_.size()) - 1;
    std::vector<std::int64_t> samples;
    ledger.samples_of(step, 0, {1.0}, samples);
    undisturbed_.push_back(fold(undisturbed_.back(), step, sum_of(samples)));
  }
  return undisturbed_[static_cast<std::size_t>(steps)];
}

void Checks::check_weights(const MemberProcess& member, const char* when) {
  if (member.weights() == weights_after(member.step())) return;
  trace_.fail("weights are the undisturbed ones", member.name(), " at step ", member.step(), " ", when);
}

void Checks::on_view_seen(const MemberProcess& member, const v1::View& view) {
  if (view.generation() == 0) return;
  std::uint64_t& last = generations_[member.member_id()];
  if (view.generation() == last) return;
  if (view.generation() < last)
    trace_.fail("generations rise", member.name(), " has ", last, ", and then ", view.generation());
  last = view.generation();
  std::string members;
  std::set<std::string> places;
  int trainers = 0;
  double shares = 0;
  for (const v1::ViewMember& each : view.members()) {
    members += str_cat(members.empty() ? "" : " ", each.member_id());
    ++trainers;
    shares += each.share();
    if (!places.insert(str_cat(each.role(), "-", each.index())).second)
      trace_.fail("ranks are a permutation", "view ", view.generation(), " has a place twice: ", members);
  }
  const auto [seen, is_new] = views_.try_emplace(str_cat("view ", view.generation(), " of ", member.job_uid(),
                                                         "/", member.attempt(), " by ", member.coordinator()),
                                                 members);
  if (is_new) trace_.add(seen->first, ": ", members);
  if (is_new) last_view_ = trace_.now();
  if (is_new)
    shares_.on_view(str_cat(member.job_uid(), "/", member.attempt(), " by ", member.coordinator()), view,
                    members, training_.ledger.global_batch_size, job_.get());
  if (seen->second != members) {
    trace_.fail("one view for each generation", seen->first, " is {", members, "} for ", member.name(),
                ", and {", seen->second, "} for another");
  }
  if (shares < 0.999 || shares > 1.001)
    trace_.fail("shares add up to 1", "view ", view.generation(), ": ", shares);
  // Members that have finished are not there for the rest.
  const auto done = std::ranges::count_if(*members_, [&](const auto& each) {
    return each->job_uid() == member.job_uid() && each->has_finished();
  });
  if (trainers + done < least_ || trainers > most_)
    trace_.fail("replicas within bounds", "view ", view.generation(), " has ", trainers, ", of ", least_,
                " to ", most_);
  const auto kept = std::ranges::count_if(*members_, [](const auto& each) { return each->was_kept(); });
  std::int64_t& size = sizes_[member.job_uid()];
  if (harmless_ && is_new && trainers + done + kept < size)
    trace_.fail("no view is smaller for a handover", "view ", view.generation(), " has ", trainers,
                ", and the one before had ", size);
  if (is_new) size = trainers;
}

void Checks::on_source(const MemberProcess& member, const v1::View& view,
                       const std::optional<trainer::Source>& source) {
  for (const auto& each : *members_) {
    if (!each->alive() || !each->trains() || each->job_uid() != member.job_uid()) continue;
    const bool in_view = std::ranges::any_of(
        view.members(), [&](const v1::ViewMember& other) { return other.member_id() == each->member_id(); });
    if (in_view && (!source || source->step < each->step()) && each->generation() <= view.generation()) {
      trace_.fail("applied steps are never lost", "view ", view.generation(), " begins at step ",
                  source ? source->step : -1, ", and ", each->name(), " has applied ", each->step());
    }
  }
}

void Checks::on_aligned(const MemberProcess& member, const v1::View&) {
  for (const auto& each : *members_) {
    // But who was slow holds no more than its successor began with, whatever became of it.
    const bool is_next =
        each->generation() + 1 == member.generation() && each->coordinator() == member.coordinator();
    const bool handed_over =
        is_next && each->evicted() && handovers_.is_replaced(each->job_uid(), each->name());
    const bool gone =
        !handed_over && (each->evicted() || (each->has_left() && (each->has_finished() || !keeps_)));
    const bool holds = (each->alive() || handed_over) && each->trains() &&
                       each->job_uid() == member.job_uid() && each->attempt() == member.attempt() && !gone &&
                       is_reached_(each->node());
    // Some may have the last step of a view that ends, and others not.
    const cluster::Pod* const pod = api_.pod(each->pod_key());
    const Step taken_along = handed_over || pod == nullptr || pod->deleting ? 1 : 0;
    if (holds && each->step() > member.step() + taken_along && !each->is_stuck() &&
        each->generation() < member.generation())
      trace_.fail("nobody trains again what a member holds", member.name(), " begins at step ", member.step(),
                  ", and ", each->name(), " holds ", each->step());
  }
  check_weights(member, "as a view begins");
}

void Checks::on_applied(const MemberProcess& member, const v1::View&) {
  check_weights(member, "after a step");
}

void Checks::on_saved(const MemberProcess& member) {
  check_weights(member, "in a checkpoint");
}

void Checks::on_change(const ApiServer::Change& change) {
  if (change.kind == ApiServer::Kind::kPod) {
    if (!change.removed) on_pod(*change.pod);
    return;
  }
  if (!change.removed && job_ != nullptr && job_->uid == change.job->uid) on_status(*job_, *change.job);
  job_ = change.job;
}

void Checks::on_pod(const cluster::Pod& pod) {
  if (!pods_.insert(pod.uid).second) return;
  for (const cluster::Pod* const other : api_.pods()) {
    const bool before = other->spec.job_uid == pod.spec.job_uid && other->spec.role == pod.spec.role &&
                        other->spec.index == pod.spec.index && other->uid != pod.uid;
    // A controller that stood still in its call makes one of an earlier attempt.
    const bool refused = pod.spec.attempt < other->spec.attempt;
    if (before && !refused && !other->ended() && !other->deleting && !other->node_not_ready &&
        !handovers_.is_successor(pod))
      trace_.fail("one pod for each place", pod.spec.name, " is made beside ", other->spec.name);
  }
}

void Checks::on_status(const reconcile::StoredJob& before, const reconcile::StoredJob& after) {
  const api::Status &was = before.job.status, &is = after.job.status;
  if (was == is) return;
  handovers_.on_status(before, after);
  if (was.phase != is.phase || was.reason != is.reason)
    trace_.add("status: ", api::name(is.phase), " (", is.reason, "): ", is.message);
  if (plan::is_terminal(was.phase) && was.phase != is.phase)
    trace_.fail("an end is for good", api::name(was.phase), " becomes ", api::name(is.phase));
  if (is.restarts.attempt < was.restarts.attempt)
    trace_.fail("attempts rise", was.restarts.attempt, " becomes ", is.restarts.attempt);
  if (is.restarts.total < was.restarts.total)
    trace_.fail("restarts are counted", was.restarts.total, " becomes ", is.restarts.total);
  if (is.view.generation < was.view.generation)
    trace_.fail("generations rise", "the status has ", was.view.generation.value, ", and then ",
                is.view.generation.value);
  // Members that find no coordinator for a minute as they begin end, and come again.
  std::int64_t for_nothing = 0;
  for (const api::RestartCount& each : is.restarts.by_cause) {
    if (harmless_ && each.cause != api::RestartCause::kControllerLost) for_nothing += each.count;
  }
  if (for_nothing > std::ranges::count_if(*members_, [](const auto& each) { return each->was_kept(); }))
    trace_.fail("nobody starts again for nothing", for_nothing, " restarts: ", is.message);
  const bool succeeds = is.phase == api::Phase::kSucceeded && was.phase != api::Phase::kSucceeded;
  if (succeeds && std::ranges::none_of(*members_, [&](const auto& each) {
        return each->job_uid() == after.uid && each->wrote_model() &&
               each->step() == training_.plan.total_steps;
      }))
    trace_.fail("success is training that is done", is.message);
  const std::int64_t charged = plan::restarts_of_ring(after.job, is.restarts, true);
  const std::int64_t limit = after.job.spec.run_policy.backoff_limit;
  // One more that is charged for now may turn out to be its node's.
  if (charged > limit + 1) trace_.fail("budgets are kept", charged, " restarts, of ", limit);
}

void Checks::at_calm(TimePoint now, TimePoint calm) {
  constexpr Duration kTakenIn = std::chrono::seconds(75), kTrains = std::chrono::seconds(10);
  handovers_.at_calm(now, calm, job_.get());
  for (const auto& waiting : *members_) {
    const auto since = waiting->waits_since();
    if (!waiting->alive() || waiting->process().paused() || waiting->evicted() || !since ||
        now - std::max({*since, calm, last_view_}) < kTakenIn)
      continue;
    const auto is_beside = [&](const auto& other) {
      return other->job_uid() == waiting->job_uid() && other->attempt() == waiting->attempt();
    };
    const auto beside = std::ranges::count_if(*members_, [&](const auto& other) {
      const bool trains = other->alive() && other->stepped_at() && now - *other->stepped_at() < kTrains;
      return trains && is_beside(other);
    });
    const bool ends = std::ranges::any_of(
        *members_, [&](const auto& other) { return other->has_finished() && is_beside(other); });
    if (beside > 0 && beside < wanted_ && !ends)
      trace_.fail("members that wait are taken in", waiting->name(), " waits, and ", beside,
                  " train without it");
  }
}

void Checks::at_end(const std::vector<const MemberProcess*>& alive) {
  for (const MemberProcess* each : alive)
    trace_.fail("nothing is left", each->name(), " runs although the job has ended");
  if (is_something_left())
    trace_.fail("nothing is left", "a pod is to start, or a handover under way, although the job has ended");
}

bool Checks::is_something_left() const {
  const auto is_to_start = [](const cluster::Pod* pod) {
    return pod->phase == cluster::PodPhase::kPending && !pod->deleting;
  };
  return std::ranges::any_of(api_.pods(), is_to_start) ||
         (job_ != nullptr && HandoverChecks::is_under_way(*job_));
}

}  // namespace paceline::simulation

#include <algorithm>
#include <utility>

#include "controller/coordinator/core_impl.h"

namespace paceline::coordinator {

Phase CoordinatorCore::Impl::phase_of(const Slot& slot) const {
  if (slot.catch_up == Slot::CatchUp::kUnderWay) return Phase::kCatchingUp;
  const bool stands_by = places_.standby() > 0 && state_ == JobState::kRunning && slot.waits_to_join();
  return stands_by && slot.catch_up == Slot::CatchUp::kNone ? Phase::kStandby : slot.phase;
}

Report CoordinatorCore::Impl::report(TimePoint now) const {
  Report report;
  report.job = config_.job;
  report.state = state_;
  report.reason = reason_;
  report.in_state = std::max(now - state_since_, Duration::zero());
  report.generation = generation_;
  for (const Slot& slot : slots()) {
    MemberReport member = slot.report(now);
    member.phase = phase_of(slot);
    member.telemetry.server = slot.load.telemetry();
    if (ring_ && slot.trains() && slot.rank >= 0 &&
        static_cast<std::size_t>(slot.rank) < shares_.samples().size())
      member.telemetry.samples = shares_.samples()[static_cast<std::size_t>(slot.rank)];
    report.bytes_sent += slot.telemetry.bytes_sent;
    if (slot.successor) {
      report.successor = std::move(member);
    } else {
      report.members.push_back(std::move(member));
    }
  }
  progress_.fill(report, now);
  report.model_path = model_path_;
  report.checkpoint_path = checkpoint_path_;
  report.verdict = verdict_;
  for (const Lost& each : lost_)
    report.lost.push_back({each.fault, std::max(now - each.at, Duration::zero())});
  if (state_ == JobState::kForming) report.shortage = shortage_;
  report.refused = refused_;
  report.handed_over = handed_over_;
  report.view_change = view_change_;
  report.rebalance = rebalance_;
  report.save_answer = save_request_.answer();
  report.preflight = preflight_result_;
  report.stragglers = stragglers_.now(slots());
  if (report.stragglers && ring_ && shares_.has_rules()) {
    for (api::Straggler& each : *report.stragglers) {
      auto [action, why] = stragglers_.settles() && !shares_.even()
                               ? BatchShares::Answer{api::StragglerAction::kRebalance, shares_.text()}
                               : shares_.answer(each);
      each.action = action;
      each.why = std::move(why);
    }
  }
  report.cleared = stragglers_.cleared();
  if (verdict_) report.verdict_age = std::max(now - verdict_at_, Duration::zero());
  return report;
}

}  // namespace paceline::coordinator

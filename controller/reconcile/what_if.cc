#include "controller/reconcile/what_if.h"

#include <algorithm>

#include "base/pluralize.h"
#include "base/text.h"
#include "controller/api/training_spec.h"
#include "controller/coordinator/core.h"
#include "controller/plan/elastic.h"
#include "controller/plan/plan.h"
#include "controller/plan/pods.h"
#include "controller/plan/restart.h"
#include "controller/plan/rules.h"
#include "controller/plan/simulate.h"

namespace paceline::reconcile {

namespace {

using coordinator::LossAction;

using Then = WhatIf::Then;
using From = WhatIf::From;

constexpr int kSigkill = 9;
constexpr Duration kLongAgo = std::chrono::hours(1);  // nothing waits for another word

// All members train. Back-offs of earlier losses are over.
plan::Observed model_of(const api::TrainingJob& job, const plan::Limits& limits, WallTime now) {
  plan::Observed world;
  world.job = job;
  world.job.status = {};
  world.job.status.restarts = job.status.restarts;
  world.job.status.restarts.not_before.reset();
  for (api::Replacement& each : world.job.status.restarts.replacements) each.not_before.reset();
  world.job_uid = job.metadata.name;
  world.now = now;
  world.limits = limits;
  if (job.spec.training) {
    world.report = plan::JobReport{};
    world.report->attempt = job.status.restarts.attempt;
  }
  plan::run(world);
  apply(plan::plan(world), world);
  return world;
}

Duration wait_for_place(const api::Restarts& restarts, Role role, int index, WallTime now) {
  for (const api::Replacement& each : restarts.replacements) {
    if (each.role == role && each.index == index) return each.not_before.value_or(now) - now;
  }
  return Duration::zero();
}

std::int64_t number_of(const api::Restarts& restarts, Role role, int index) {
  for (const api::Replacement& each : restarts.replacements) {
    if (each.role == role && each.index == index) return each.count;
  }
  return 0;
}

// One that trains, if any does: others of the role may stand by. A member that is lost for good dies no more;
// nothing: all of the role are.
std::optional<int> first_place(const api::TrainingJob& job, Role role) {
  for (const api::MemberStatus& member : job.status.members) {
    if (member.role == role && member.rank >= 0 && member.phase != plan::kLostPhase)
      return static_cast<int>(member.index);
  }
  int index = 0;
  for (const api::MemberStatus& member : job.status.members) {
    if (member.role == role && member.index == index && member.phase == plan::kLostPhase) ++index;
  }
  const auto& replica = api::replica_spec(job, role);
  return index < replica->places() ? std::optional(index) : std::nullopt;
}

// Members that trained, or stood by. One that is replaced is not among them.
int lost_for_good(const api::TrainingJob& job) {
  return static_cast<int>(std::ranges::count_if(job.status.members, [](const api::MemberStatus& member) {
    return api::trains(member.role) && member.phase == plan::kLostPhase;
  }));
}

class Question {
 public:
  // `trainers`: who train now; `lost`: who did, or stood by, and are lost for good.
  Question(const plan::Observed& model, int trainers, int lost, Role role, int index)
      : world_(model), trainers_(trainers), lost_(lost), role_(role), index_(index) {}

  WhatIf answer(bool has_checkpoint) {
    has_checkpoint_ = has_checkpoint;
    kill();
    const plan::Plan next = plan::plan(world_);
    const api::Restarts& before = world_.job.status.restarts;
    const api::Restarts& after = next.status.restarts;
    WhatIf answer{.role = role_, .index = index_, .left = left_};
    if (plan::is_terminal(next.status.phase)) {
      answer.reason = next.status.reason;
      advise(answer);
    } else if (after.attempt != before.attempt) {
      answer.then = Then::kAllBeginAgain;
      answer.from = from_where();
      answer.again = after.not_before.value_or(world_.now) - world_.now;
    } else {
      tell_of_the_others(answer);
      if (number_of(after, role_, index_) != number_of(before, role_, index_))
        answer.again = wait_for_place(after, role_, index_, world_.now);
    }
    if (answer.again) answer.again = std::max(*answer.again, Duration::zero());
    return answer;
  }

 private:
  // The cluster has seen its end, and the coordinator has drawn its conclusion.
  void kill() {
    for (cluster::Pod& pod : world_.pods) {
      if (pod.spec.role != role_ || pod.spec.index != index_) continue;
      pod.phase = cluster::PodPhase::kFailed;
      pod.signal = kSigkill;
      pod.finished = world_.now;
      world_.seen[pod.uid] = {pod.phase, world_.now - kLongAgo};
    }
    left_ = trainers_ - (api::trains(role_) ? 1 : 0);
    if (!world_.report || role_ == Role::kEvaluator) return;
    api::Fault fault{.kind = api::FaultKind::kDead, .role = role_, .index = index_, .signal = kSigkill};
    for (plan::ReportedMember& member : world_.report->members) {
      if (member.role != role_ || member.index != index_) continue;
      fault.rank = static_cast<int>(member.rank);
      fault.pod = member.pod;
    }
    const auto spec = api::make_training_spec(world_.job, {});
    if (!spec.ok()) return;
    const auto policy = coordinator::loss_policy(*spec, coordinator::ring_rules(world_.job));
    if (policy(fault, left_ + standing_by()).action == LossAction::kFailJob) {
      world_.report->state = plan::JobState::kFailed;
      world_.report->fault = fault;
      world_.report->fault_age = kLongAgo;
    } else {
      world_.report->lost.push_back({fault, kLongAgo});
    }
  }

  bool in_ring() const { return plan::is_elastic(world_.job, role_); }

  int standing_by() const { return std::max(static_cast<int>(api::standby_count(world_.job)) - lost_, 0); }

  From from_where() const {
    const api::Checkpoint& checkpoint = world_.job.spec.checkpoint;
    const bool saves = checkpoint.every_steps > 0 || checkpoint.every_seconds > 0;
    return saves || has_checkpoint_ ? From::kCheckpoint : From::kStepZero;
  }

  void advise(WhatIf& answer) const {
    if (api::replica_spec(world_.job, role_)->restart_policy != api::RestartPolicy::kNever) return;
    answer.may_be_replaced = api::trains(role_) && world_.report && !world_.job.spec.replica_specs.ps;
    answer.may_begin_again = !answer.may_be_replaced;
  }

  void tell_of_the_others(WhatIf& answer) const {
    const bool stands_by = in_ring() && standing_by() > 0;
    if (!world_.report) {
      answer.then = Then::kOthersStay;
    } else if (role_ == Role::kEvaluator) {
      answer.then = Then::kTrainingGoesOn;
    } else if (stands_by || left_ == 0) {
      answer.then = stands_by ? Then::kStandbyTakesPlace : Then::kTrainingGoesOn;
      answer.from = left_ == 0 ? from_where() : From::kHere;
    } else if (in_ring() && left_ < plan::min_trainers(world_.job)) {
      answer.then = Then::kOthersWait;
    } else {
      answer.then = Then::kOthersGoOn;
      if (in_ring()) answer.from = From::kHere;
    }
  }

  plan::Observed world_;
  const int trainers_, lost_;
  const Role role_;
  const int index_;
  int left_ = 0;  // who train
  bool has_checkpoint_ = false;
};

std::string at_what_time(Duration wait) {
  return wait > Duration::zero() ? str_cat(" in ", format_duration(wait)) : " at once";
}

const char* text_of(std::optional<From> from) {
  if (!from) return "";
  switch (*from) {
    case From::kHere:
      return ", and no step is lost";
    case From::kCheckpoint:
      return ", from the newest checkpoint";
    case From::kStepZero:
      return ", from step 0: it makes no checkpoints";
  }
  return "";
}

const char* advice_of(const WhatIf& answer) {
  if (answer.may_be_replaced)
    return answer.left == 0 ? "; with restartPolicy OnFailure another one would take its place"
           : answer.left == 1
               ? "; with restartPolicy OnFailure the other one would go on, and another would take its place"
               : "; with restartPolicy OnFailure the others would go on, and another one would take its "
                 "place";
  return answer.may_begin_again ? "; with restartPolicy OnFailure it would begin again" : "";
}

std::string text_of_others(const WhatIf& answer) {
  switch (answer.then) {
    case Then::kOthersStay:
      return "the others stay";
    case Then::kTrainingGoesOn:
      return "training goes on";
    case Then::kStandbyTakesPlace:
      return "one that stands by takes its place";
    case Then::kOthersWait:
      return str_cat("the ", pluralize(answer.left, "other waits", "others wait"),
                     " with what they have trained");
    case Then::kOthersGoOn:
      return answer.left == 1 ? "the other one goes on" : str_cat("the ", answer.left, " others go on");
    case Then::kJobFails:
    case Then::kAllBeginAgain:
      break;
  }
  return "";
}

}  // namespace

std::string text_of(const WhatIf& answer) {
  if (answer.then == Then::kJobFails)
    return str_cat("the job fails (", answer.reason, ")", advice_of(answer));
  const std::string when = answer.again ? at_what_time(*answer.again) : "";
  if (answer.then == Then::kAllBeginAgain)
    return str_cat("all members begin again", when, text_of(answer.from));
  const std::string others = str_cat(text_of_others(answer), text_of(answer.from));
  if (!answer.again)
    return str_cat(others, answer.then == Then::kStandbyTakesPlace ? "; no other member is started"
                                                                   : "; nobody takes its place");
  return str_cat(others, "; another ", member_name(answer.role, answer.index), " comes", when);
}

std::vector<WhatIf> if_a_member_dies(const api::TrainingJob& job, const plan::Limits& limits, WallTime now) {
  if (plan::is_terminal(job.status.phase) || job.spec.run_policy.suspend) return {};
  const plan::Observed model = model_of(job, limits, now);
  const bool runs = job.status.phase == api::Phase::kRunning && job.status.view.size > 0;
  const std::int64_t servers = job.spec.replica_specs.ps ? job.spec.replica_specs.ps->replicas : 0;
  const auto trainers = static_cast<int>(runs ? job.status.view.size - (job.spec.training ? servers : 0)
                                              : api::trainer_count(job));
  std::vector<WhatIf> all;
  for (const Role role : {Role::kChief, Role::kWorker, Role::kServer, Role::kEvaluator}) {
    const auto& replica = api::replica_spec(job, role);
    if (!replica || replica->places() == 0) continue;
    const std::optional<int> index = first_place(job, role);
    if (!index) continue;
    all.push_back(Question(model, trainers, lost_for_good(job), role, *index)
                      .answer(!job.status.last_checkpoint.empty()));
  }
  return all;
}

std::vector<std::string> what_if_lines(const std::vector<WhatIf>& all) {
  if (all.empty()) return {};
  std::size_t width = 0;
  for (const WhatIf& each : all) width = std::max(width, member_name(each.role, each.index).size());
  std::vector<std::string> lines = {"If a member died now:"};
  for (const WhatIf& each : all) {
    const std::string name = member_name(each.role, each.index);
    lines.push_back(str_cat("  ", name, std::string(width - name.size(), ' '), "  ", text_of(each)));
  }
  return lines;
}

}  // namespace paceline::reconcile

#include "controller/plan/simulate.h"

#include <algorithm>
#include <tuple>

#include "base/text.h"
#include "controller/plan/attempts.h"
#include "controller/plan/pod_observations.h"
#include "controller/plan/pods.h"

namespace paceline::plan {

namespace {

void create(const CreatePod& action, Observed& world) {
  const bool exists = std::ranges::any_of(
      world.pods, [&](const cluster::Pod& pod) { return pod.spec.name == action.spec.name; });
  if (exists) return;
  cluster::Pod pod;
  pod.spec = action.spec;
  pod.uid = str_cat("uid-of-", action.spec.name);
  pod.host = "this host";
  world.pods.push_back(std::move(pod));
}

void remove(const DeletePod& action, Observed& world) {
  std::erase_if(world.pods, [&](cluster::Pod& pod) {
    if (pod.spec.name != action.name || pod.uid != action.uid) return false;
    pod.deleting = true;
    return pod.ended();
  });
}

void join(const cluster::Pod& pod, JobReport& report) {
  const bool joined = std::ranges::any_of(report.members, [&](const ReportedMember& member) {
    return member.role == pod.spec.role && member.index == pod.spec.index;
  });
  if (joined) return;
  ReportedMember member;
  member.role = pod.spec.role;
  member.index = pod.spec.index;
  member.pod = pod.spec.name;
  member.phase = "Waiting";
  report.members.push_back(std::move(member));
}

void form_view(const Observed& world, JobReport& report) {
  if (report.state != JobState::kForming) return;
  if (static_cast<std::int64_t>(report.members.size()) < api::member_count(world.job)) return;
  std::ranges::sort(report.members, {}, [](const ReportedMember& m) { return std::tuple(m.role, m.index); });
  for (std::size_t i = 0; i < report.members.size(); ++i) {
    const bool trains = static_cast<std::int64_t>(i) < api::member_count(world.job);
    report.members[i].rank = trains ? static_cast<std::int64_t>(i) : -1;
    report.members[i].phase = trains ? "Training" : "Standby";
  }
  report.generation.value = 1;
  report.state = JobState::kRunning;
}

}  // namespace

void apply(const Plan& plan, Observed& world) {
  for (const Action& action : plan.actions) {
    if (const auto* creation = std::get_if<CreatePod>(&action)) create(*creation, world);
    if (const auto* deletion = std::get_if<DeletePod>(&action)) remove(*deletion, world);
    if (std::holds_alternative<DeleteJob>(action)) world.deleted = true;
  }
  const std::int64_t attempt = plan.status.restarts.attempt;
  if (world.report && attempt != world.job.status.restarts.attempt) {
    world.report = JobReport{};
    world.report->attempt = attempt;
  }
  world.job.status = plan.status;
  note_pod_observations(world);
}

void advance(Observed& world) {
  std::erase_if(world.pods, [](const cluster::Pod& pod) { return pod.deleting; });
  for (cluster::Pod& pod : world.pods) {
    if (pod.phase == cluster::PodPhase::kPending) {
      pod.phase = cluster::PodPhase::kRunning;
      pod.started = world.now;
    } else if (pod.phase == cluster::PodPhase::kRunning && world.report &&
               pod.spec.attempt == wanted_attempt(world.job, pod.spec.role, pod.spec.index) &&
               api::is_member(world.job, pod.spec.role)) {
      join(pod, *world.report);
    }
  }
  if (world.report) form_view(world, *world.report);
  note_pod_observations(world);
}

void run(Observed& world) {
  constexpr int kMostRounds = 64;
  const auto trains = [&] { return world.report && world.report->state == JobState::kRunning; };
  for (int i = 0; i < kMostRounds && !trains(); ++i) {
    apply(plan(world), world);
    advance(world);
  }
}

}  // namespace paceline::plan

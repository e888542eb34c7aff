// explain: how a job is and why, and the planner's answer for it as the API server shows it. What only the
// controller knows (its coordinator's heartbeats) is taken from the status that it wrote. The owner of a run
// of this machine plans it, from pods that only the owner sees: of a run the status alone is told.

#include "controller/plan/explain.h"
#include "base/pluralize.h"
#include "base/sanitize.h"
#include "base/status.h"
#include "cli/cluster/call.h"
#include "cli/cluster/describe_text.h"
#include "cli/cluster/job_view.h"
#include "controller/cluster/kube/job_object.h"
#include "controller/cluster/kube/times.h"
#include "controller/plan/elastic.h"
#include "controller/plan/kubernetes_limits.h"
#include "controller/plan/pods.h"
#include "controller/plan/restart_budget.h"
#include "controller/plan/rules.h"
#include "controller/reconcile/what_if.h"

namespace paceline::cli {

namespace {

using kube::Json;

// What a coordinator would have to say for the status to be as it is.
plan::JobReport report_from(const api::Status& status, WallTime now) {
  plan::JobReport report;
  report.attempt = status.restarts.attempt;
  const bool trains = status.phase == api::Phase::kRunning && status.reason != plan::kTooFewMembers;
  report.state = trains ? plan::JobState::kRunning : plan::JobState::kForming;
  report.generation = status.view.generation;
  report.progress = status.progress;
  report.model_path = status.model;
  report.checkpoint_path = status.last_checkpoint;
  for (const api::Condition& condition : status.conditions) {
    if (condition.status && condition.type == api::name(status.phase))
      report.in_state = now - condition.last_transition;
  }
  for (const api::MemberStatus& each : status.members) {
    if (each.phase == plan::kLostPhase)
      report.lost.push_back(
          {.fault = {.role = each.role, .index = static_cast<int>(each.index), .pod = each.pod}});
    report.members.push_back({each, false});
  }
  return report;
}

plan::Observed observed(const Json& object, api::TrainingJob job, const std::vector<kube::SlimPod>& pods,
                        WallTime now) {
  plan::Observed observed;
  const JobView view = read_job(object);
  observed.job = std::move(job);
  observed.job.status = view.status;
  api::keep_our_conditions(observed.job.status);
  observed.job_uid = view.uid;
  observed.generation = {view.generation};
  observed.deleted = view.deleting;
  for (const kube::SlimPod& pod : pods) {
    if (pod.job_uid.empty() || pod.job_uid == view.uid) observed.pods.push_back(kube::to_cluster_pod(pod));
  }
  for (const cluster::Pod& pod : observed.pods) {  // one look has only the nodes' clocks to go by
    if (const auto since = pod.ended() ? pod.finished : pod.started)
      observed.seen[pod.uid] = {pod.phase, *since};
  }
  if (view.seen) observed.report = report_from(view.status, now);
  observed.now = now;
  observed.limits = plan::kubernetes_limits();
  return observed;
}

void print_what_if(Call& call, const api::TrainingJob& job, const api::Status& status, WallTime now) {
  api::TrainingJob asked = job;
  asked.status = status;
  const auto answers = reconcile::if_a_member_dies(asked, plan::kubernetes_limits(), now);
  for (const std::string& line : reconcile::what_if_lines(answers)) call.out << line << "\n";
}

// Another failure ends the job where nothing of it is left.
void print_budget(Call& call, const api::TrainingJob& job, const Described& described) {
  const api::Restarts& restarts = described.job.status.restarts;
  const auto restarts_members = [&](Role role) {
    const auto& replica = api::replica_spec(job, role);
    return api::is_member(job, role) && replica && replica->restart_policy != api::RestartPolicy::kNever;
  };
  const bool any =
      restarts_members(Role::kChief) || restarts_members(Role::kWorker) || restarts_members(Role::kServer);
  call.out << "Restarts: " << restarts.total << " ("
           << (any ? plan::text_of(plan::restart_budget(job, restarts, described.now))
                   : "restartPolicy Never: a member that fails is not started again")
           << ")\n";
}

void print_plan(Call& call, const Json& object, Described& described) {
  api::Parsed parsed = kube::parse_job(object, kube::job_metadata(object));
  if (!parsed.job) {
    call.out << "Nothing would be done: its spec can't be run: " << kube::errors_of(parsed.diagnostics)
             << "\n";
    return;
  }
  described.spec = parsed.job;
  print_budget(call, *parsed.job, described);
  const plan::Observed world = observed(object, *std::move(parsed.job), described.pods, described.now);
  call.out << "What the controller would do now, as far as the API server shows it:\n"
           << plan::explain(plan::plan(world));
  print_what_if(call, world.job, described.job.status, described.now);
}

}  // namespace

absl::Status explain_job(Call& call, const std::string& name) {
  PL_ASSIGN_OR_RETURN(const Json object, call.jobs.choose(call.ns, name));
  Described described;
  described.job = read_job(object);
  described.now = call.clock.wall_now();
  described.program = call.program;
  described.where = call.jobs.where(described.job.ns);
  PL_ASSIGN_OR_RETURN(described.pods, call.jobs.pods(call.ns, described.job.name));
  const JobView& job = described.job;
  call.out << (job.run ? "Run " : "TrainingJob ") << (job.run ? job.name : job_text(job.ns, job.name)) << ": "
           << (job.run    ? job.run->phase
               : job.seen ? api::name(job.status.phase)
                          : "not seen by a controller yet");
  if (!job.status.reason.empty()) call.out << " (" << job.status.reason << ")";
  if (!job.run) call.out << ", " << pluralize(described.pods.size(), "pod", "pods");
  call.out << "\n";
  if (!job.status.message.empty()) call.out << "  why: " << sanitize(job.status.message) << "\n";
  for (const std::string& line : fault_lines(job)) call.out << line << "\n";
  for (const std::string& line : straggler_lines(job, described.now)) call.out << line << "\n";
  if (!job.run) {
    print_plan(call, object, described);
  } else if (const api::Parsed parsed = kube::parse_job(object, kube::job_metadata(object)); parsed.job) {
    described.spec = parsed.job;
    print_budget(call, *parsed.job, described);
    if (!has_ended(job)) print_what_if(call, *parsed.job, job.status, described.now);
  }
  const std::vector<std::string> hints = hints_for(described);
  if (!hints.empty()) call.out << "What to do:\n";
  for (const std::string& hint : hints) call.out << "  " << hint << "\n";
  return absl::OkStatus();
}

}  // namespace paceline::cli

#include "cli/cluster/job_view.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "cli/cluster/names.h"
#include "cli/view/age.h"
#include "cli/view/gradients_text.h"
#include "cli/view/run_cells.h"
#include "cli/view/terminal.h"
#include "controller/api/checkpoint_step.h"
#include "controller/cluster/kube/resources.h"
#include "controller/cluster/kube/status_json.h"
#include "controller/cluster/kube/times.h"
#include "controller/plan/elastic.h"
#include "controller/plan/pods.h"
#include "controller/plan/rules.h"

namespace paceline::cli {

namespace {

using kube::Json;
using kube::SlimPod;

double seconds(Duration d) {
  return std::chrono::duration<double>(d).count();
}

// As the parser fills it in: a role without `replicas` has one, and without `standby` none.
std::int64_t wanted_pods(const Json& object) {
  std::int64_t count = 0;
  const Json& replicas = kube::at(object, {"spec", "replicaSpecs"});
  if (!replicas.is_object()) return 0;
  for (const auto& [role, spec] : replicas.items()) {
    count += kube::at(spec, {"replicas"}).is_number_integer() ? kube::integer_at(spec, {"replicas"}) : 1;
    if (kube::at(spec, {"standby"}).is_number_integer()) count += kube::integer_at(spec, {"standby"});
  }
  return count;
}

std::string pod_phase(const SlimPod& pod) {
  if (pod.deletion) return "Deleting";
  if (!pod.reason.empty() && pod.phase == cluster::PodPhase::kPending) return pod.reason;
  return cluster::pod_phase_name(pod.phase);
}

bool is_reached(const api::Target& target, const api::Progress& progress) {
  if (target.accuracy) return progress.test_accuracy && *progress.test_accuracy >= *target.accuracy;
  if (target.auc) return progress.test_auc && *progress.test_auc >= *target.auc;
  return target.loss && progress.test_loss && *progress.test_loss <= *target.loss;
}

api::MemberStatus member_of(const JobView& job, const SlimPod& pod) {
  api::MemberStatus member;
  member.pod = pod.name();
  member.role = pod.role;
  member.index = pod.index;
  member.host = pod.node.empty() ? "-" : pod.node;
  member.phase = pod_phase(pod);
  const auto known = std::ranges::find_if(
      job.status.members, [&](const api::MemberStatus& each) { return each.pod == member.pod; });
  if (known == job.status.members.end()) return member;
  const bool trains = pod.phase == cluster::PodPhase::kRunning && !pod.deletion;
  if (trains && !known->phase.empty()) member.phase = known->phase;
  if (trains) member.rank = known->rank;
  member.step = known->step;
  member.telemetry = trains ? known->telemetry : counts_of(known->telemetry);
  return member;
}

// One whose pod is gone is known from the status alone; its last word holds only if that was its end.
api::MemberStatus gone_member(const api::MemberStatus& known) {
  api::MemberStatus member = known;
  if (member.host.empty()) member.host = "-";
  const bool ended = plan::says_finished(known) || known.phase == plan::kLostPhase ||
                     known.phase == cluster::pod_phase_name(cluster::PodPhase::kFailed);
  member.phase = str_cat(ended ? str_cat(known.phase, ", ") : "", "pod gone");
  member.telemetry = counts_of(known.telemetry);
  return member;
}

// Whether the status tells of a later pod than `pod` in the same place.
bool is_later(const api::MemberStatus& known, const SlimPod& pod) {
  const auto attempt = plan::attempt_in(known.pod);
  return attempt && *attempt > pod.attempt;
}

// Its member is none of the job's (yet): a slow one has the place.
bool was_to_take_over(const SlimPod& pod, const api::Status& status) {
  return std::ranges::any_of(status.straggler_replacements, [&](const api::StragglerReplacement& each) {
    return !has_passed_on(each.outcome) && each.successor == pod.name();
  });
}

// By role and index: those that have a pod, and those of which only the status still tells.
std::vector<api::MemberStatus> members_of(const JobView& job, const std::vector<SlimPod>& pods) {
  std::map<std::pair<Role, int>, api::MemberStatus> places;
  std::map<std::pair<Role, int>, SlimPod> present;
  for (SlimPod& pod : present_pods(pods, job.status)) {
    places[{pod.role, pod.index}] = member_of(job, pod);
    present[{pod.role, pod.index}] = std::move(pod);
  }
  for (const api::MemberStatus& known : job.status.members) {
    const std::pair place(known.role, static_cast<int>(known.index));
    const auto pod = present.find(place);
    if (pod == present.end() || is_later(known, pod->second)) places[place] = gone_member(known);
  }
  std::vector<api::MemberStatus> members;
  for (auto& [place, member] : places) members.push_back(std::move(member));
  return members;
}

}  // namespace

JobView read_job(const Json& object) {
  JobView job;
  job.name = kube::text_at(object, {"metadata", "name"});
  job.ns = kube::text_at(object, {"metadata", "namespace"});
  job.uid = kube::text_at(object, {"metadata", "uid"});
  job.resource_version = kube::text_at(object, {"metadata", "resourceVersion"});
  job.generation = kube::integer_at(object, {"metadata", "generation"});
  job.deleting = !kube::text_at(object, {"metadata", "deletionTimestamp"}).empty();
  job.deleted = !kube::text_at(object, {"metadata", "annotations", kube::kDeletedAnnotation}).empty();
  job.created = kube::parse_time(kube::text_at(object, {"metadata", "creationTimestamp"}));
  job.seen = !kube::text_at(object, {"status", "phase"}).empty();
  job.suspended = kube::flag_at(object, {"spec", "runPolicy", "suspend"});
  job.managed_by = kube::text_at(object, {"spec", "runPolicy", "managedBy"});
  job.queue = kube::text_at(object, {"spec", "runPolicy", "schedulingPolicy", "queue"});
  job.wanted = wanted_pods(object);
  job.status = kube::status_from_json(kube::at(object, {"status"}));
  for (const api::ReplicaStatus& each : job.status.replica_statuses) job.ready += each.ready;
  if (const Json& run = kube::at(object, {"status", "run"}); run.is_object()) {
    if (auto state = parse_run_state(kube::dump(run)); state.ok()) job.run = *std::move(state);
  }
  return job;
}

const api::Condition* failing_saves(const JobView& job) {
  const auto& all = job.status.conditions;
  const auto failed = std::ranges::find(all, api::kCheckpointFailed, &api::Condition::type);
  const bool fails = failed != all.end() && failed->status && !has_ended(job) && !job.suspended;
  return fails ? &*failed : nullptr;
}

std::vector<SlimPod> present_pods(const std::vector<SlimPod>& pods, const api::Status& status) {
  std::map<std::pair<Role, int>, SlimPod> newest;
  for (const SlimPod& pod : pods) {
    if (was_to_take_over(pod, status)) continue;
    SlimPod& place = newest[{pod.role, pod.index}];
    if (place.key.empty() || place.attempt < pod.attempt) place = pod;
  }
  std::vector<SlimPod> result;
  for (auto& [place, pod] : newest) result.push_back(std::move(pod));
  return result;
}

RunState run_state_of(const JobView& job, const api::TrainingJob* spec, const std::vector<SlimPod>& pods,
                      WallTime now) {
  RunState state = job.run ? *job.run : RunState{};
  const api::Status& status = job.status;
  state.status.stragglers = status.stragglers;
  state.status.view.rebalance = status.view.rebalance;
  if (job.run) return state;
  state.name = state.job = job.name;
  state.ns = job.ns;
  state.phase = job.deleting ? "Deleting" : api::name(status.phase);
  state.reason = status.reason;
  state.message = status.message;
  state.generation = status.view.generation.value;
  state.progress = status.progress;
  state.checkpoint = status.last_checkpoint;
  state.model = status.model;
  if (job.created) state.created = kube::format_seconds(*job.created);
  if (status.completion_time) state.finished = kube::format_seconds(*status.completion_time);
  if (status.start_time)
    state.elapsed_seconds = std::max(0.0, seconds(status.completion_time.value_or(now) - *status.start_time));
  if (spec != nullptr && spec->spec.training) {
    const api::Training& training = *spec->spec.training;
    state.target = target_text(training);
    state.gradients = step_gradients(*spec);
    state.samples = std::llround(static_cast<double>(status.progress.step) * samples_per_step(*spec));
    state.target_reached = training.target && is_reached(*training.target, status.progress);
  }
  state.members = members_of(job, pods);
  return state;
}

std::vector<Column> job_columns(bool all_namespaces, bool wide) {
  std::vector<Column> columns = {{"NAME"},
                                 {"PHASE"},
                                 {"READY", true, 3},
                                 {"STEP", true, 7},
                                 {"LOSS", true, 5},
                                 {"ACCURACY", true, 6},
                                 {"SAMPLES/S", true, 4},
                                 {"RESTARTS", true, 1},
                                 {"AGE", true, 2}};
  if (all_namespaces) columns.insert(columns.begin(), {"NAMESPACE"});
  if (wide) columns.insert(columns.end(), {{"REASON"}, {"QUEUE"}, {"CHECKPOINT"}});
  return columns;
}

std::vector<Row> job_rows(const std::vector<JobView>& jobs, bool wide, bool all_namespaces, WallTime now) {
  std::vector<Row> rows;
  for (const JobView& job : jobs) {
    const RunState state = run_state_of(job, nullptr, {}, now);
    Row row;
    if (all_namespaces) row.push_back(job.ns);
    const char* const beside = job.deleted                            ? ", deleted"
                               : is_stale(state)                      ? ", stale"
                               : state.reason == plan::kTooFewMembers ? ", waits"
                               : failing_saves(job) != nullptr        ? ", saves fail"
                                                                      : "";
    row.insert(row.end(), {job.name, str_cat(state.phase, beside), str_cat(job.ready, "/", job.wanted)});
    for (std::string& cell : progress_cells(state)) row.push_back(std::move(cell));
    row.insert(row.end(), {str_cat(job.status.restarts.total), age_text(job.created, now)});
    if (wide) {
      const auto or_dash = [](const std::string& text) { return text.empty() ? std::string("-") : text; };
      const auto saved = api::checkpoint_step(state.checkpoint);
      row.insert(row.end(), {or_dash(state.reason), or_dash(job.queue),
                             saved ? with_commas(*saved) : or_dash(state.checkpoint)});
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Json list_of(std::vector<Json> objects) {
  Json items = Json::array();
  for (Json& object : objects) items.push_back(printable(std::move(object)));
  return {{"apiVersion", "v1"},
          {"kind", "List"},
          {"metadata", {{"resourceVersion", ""}}},
          {"items", std::move(items)}};
}

}  // namespace paceline::cli

// Tables list the families that have one number for each job, or for each member; those with further labels
// follow them by hand.

#include "controller/bin/job_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "controller/api/checkpoint_step.h"
#include "controller/plan/plan.h"
#include "controller/plan/restart_budget.h"
#include "controller/web/metrics.h"

namespace paceline::controller {

namespace {

using api::MemberStatus;
using reconcile::JobSnapshot;
using web::Metrics;
using Number = std::optional<double>;

constexpr Duration kFailedShown = std::chrono::hours(1);  // since it failed
constexpr double kMillisecond = 1e-3, kMegahertz = 1e6, kMebibyte = 1024 * 1024;

constexpr const char* kJobs = "paceline_jobs";
constexpr const char* kStragglers = "paceline_stragglers";
constexpr const char* kDroppedSamples = "paceline_dropped_samples";
constexpr const char* kJobsLeftOut = "paceline_jobs_left_out";
constexpr const char* kMembersLeftOut = "paceline_members_left_out";
constexpr const char* kInfo = "paceline_job_info";
constexpr const char* kPhase = "paceline_job_phase";
constexpr const char* kFailed = "paceline_job_failed_timestamp_seconds";
constexpr const char* kCondition = "paceline_job_condition";
constexpr const char* kJobStragglers = "paceline_job_stragglers";
constexpr const char* kMemberInfo = "paceline_member_info";
constexpr const char* kParts = "paceline_member_step_part_seconds";
constexpr const char* kGradients = "paceline_member_gradients_total";
constexpr const char* kEccErrors = "paceline_member_gpu_ecc_errors_total";
constexpr const char* kPressure = "paceline_member_pressure_ratio";

// 0 to its last value.
template <typename Enum, typename Visit>
void for_each(Enum last, Visit visit) {
  for (int i = 0; i <= static_cast<int>(last); ++i) visit(static_cast<Enum>(i));
}

Number positive(double value) {
  return value > 0 ? Number(value) : std::nullopt;
}
template <typename T>
Number scaled(const std::optional<T>& value, double unit = 1) {
  return value ? Number(static_cast<double>(*value) * unit) : std::nullopt;
}
template <typename T>
Number whole(T value) {
  return static_cast<double>(value);
}

double unix_seconds(WallTime time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

std::int64_t ready_members(const api::Status& status) {
  std::int64_t count = 0;
  for (const api::ReplicaStatus& role : status.replica_statuses) count += role.ready;
  return count;
}

std::int64_t wanted_members(const api::ReplicaSpecs& specs) {
  std::int64_t count = 0;
  for (const auto* spec : {&specs.chief, &specs.worker, &specs.ps, &specs.evaluator}) {
    if (*spec) count += (*spec)->replicas + (*spec)->standby.value_or(0);
  }
  return count;
}

Number checkpoint_step(const JobSnapshot& s) {
  const api::Checkpoint& wanted = s.job.spec.checkpoint;
  const std::string& path = s.job.status.last_checkpoint;
  if (path.empty() && (wanted.every_steps > 0 || wanted.every_seconds > 0)) return 0;
  return scaled(api::checkpoint_step(path));
}

// Programs that tell of no step have no progress to wait for.
Number progressed(const JobSnapshot& s) {
  const bool tells = s.job.spec.training || s.job.status.progress.step > 0;
  return tells ? Number(unix_seconds(s.progressed)) : std::nullopt;
}

Number lost_seconds(const JobSnapshot& s) {
  double most = 0;
  for (const api::Straggler& each : s.job.status.stragglers) most = std::max(most, each.lost_ms);
  return most * kMillisecond;
}

struct JobFamily {
  const char *name, *help;
  Number (*value)(const JobSnapshot&, WallTime now);
  bool counter = false;
};

const JobFamily kJobFamilies[] = {
    {"paceline_job_step", "Steps applied so far.",
     [](const JobSnapshot& s, WallTime) { return whole(s.job.status.progress.step); }},
    {"paceline_job_target_steps", "Steps in all.",
     [](const JobSnapshot& s, WallTime) {
       return positive(whole(s.job.status.progress.total_steps).value());
     }},
    {"paceline_job_epoch", "Passes over the training set so far.",
     [](const JobSnapshot& s, WallTime) { return positive(s.job.status.progress.epoch); }},
    {"paceline_job_loss", "Of the last step.",
     [](const JobSnapshot& s, WallTime) { return s.job.status.progress.loss; }},
    {"paceline_job_learning_rate", "Of the last step.",
     [](const JobSnapshot& s, WallTime) { return s.learning_rate; }},
    {"paceline_job_test_loss", "Of the last evaluation.",
     [](const JobSnapshot& s, WallTime) { return s.job.status.progress.test_loss; }},
    {"paceline_job_test_accuracy_ratio", "Of the last evaluation.",
     [](const JobSnapshot& s, WallTime) { return s.job.status.progress.test_accuracy; }},
    {"paceline_job_test_auc_ratio", "Of the last evaluation, of models that give one score.",
     [](const JobSnapshot& s, WallTime) { return s.job.status.progress.test_auc; }},
    {"paceline_job_samples_per_second", "Of the last steps.",
     [](const JobSnapshot& s, WallTime) { return whole(s.job.status.progress.samples_per_second); }},
    {"paceline_job_goodput_ratio", "The share of the time that went into steps that count.",
     [](const JobSnapshot& s, WallTime) { return whole(s.job.status.progress.goodput); }},
    {"paceline_job_remaining_seconds", "Until the end, if nothing changes.",
     [](const JobSnapshot& s, WallTime) { return s.job.status.progress.eta_seconds; }},
    {"paceline_job_dropped_samples", "Left out of partial steps so far.",
     [](const JobSnapshot& s, WallTime) { return whole(s.job.status.progress.dropped_samples); }},
    {"paceline_job_start_timestamp_seconds", "When its first pods were made.",
     [](const JobSnapshot& s, WallTime) {
       const auto& start = s.job.status.start_time;
       return start ? Number(unix_seconds(*start)) : std::nullopt;
     }},
    {"paceline_job_last_progress_timestamp_seconds", "When this leader last saw its step change.",
     [](const JobSnapshot& s, WallTime) { return progressed(s); }},
    {"paceline_job_last_checkpoint_timestamp_seconds",
     "When this leader heard of its last checkpoint, or saw it go on from there.",
     [](const JobSnapshot& s, WallTime) {
       return s.checkpoint ? Number(unix_seconds(*s.checkpoint)) : std::nullopt;
     }},
    {"paceline_job_checkpoint_step", "The step of its last checkpoint; 0: it has none yet.",
     [](const JobSnapshot& s, WallTime) { return checkpoint_step(s); }},
    {"paceline_job_checkpoint_interval_steps", "spec.checkpoint.everySteps.",
     [](const JobSnapshot& s, WallTime) {
       return positive(whole(s.job.spec.checkpoint.every_steps).value());
     }},
    {"paceline_job_checkpoint_interval_seconds", "spec.checkpoint.everySeconds.",
     [](const JobSnapshot& s, WallTime) { return positive(s.job.spec.checkpoint.every_seconds); }},
    {"paceline_job_wanted_members", "Pods that it is to have.",
     [](const JobSnapshot& s, WallTime) { return whole(wanted_members(s.job.spec.replica_specs)); }},
    {"paceline_job_ready_members", "Pods that run.",
     [](const JobSnapshot& s, WallTime) { return whole(ready_members(s.job.status)); }},
    {"paceline_job_view_members", "Members that train together now.",
     [](const JobSnapshot& s, WallTime) { return whole(s.job.status.view.size); }},
    {"paceline_job_view_generation", "The number of their view.",
     [](const JobSnapshot& s, WallTime) { return whole(s.job.status.view.generation.value); }},
    {"paceline_job_restarts_total", "Restarts, without changes of size.",
     [](const JobSnapshot& s, WallTime) { return whole(s.job.status.restarts.total); }, true},
    {"paceline_job_restarts_used", "Restarts that count against the budget now.",
     [](const JobSnapshot& s, WallTime now) {
       return whole(plan::restart_budget(s.job, s.job.status.restarts, now).used);
     }},
    {"paceline_job_restarts_allowed", "The budget: spec.runPolicy.backoffLimit.",
     [](const JobSnapshot& s, WallTime) { return whole(s.job.spec.run_policy.backoff_limit); }},
    {"paceline_job_straggler_lost_seconds", "A step would be so much shorter without its worst straggler.",
     [](const JobSnapshot& s, WallTime) { return lost_seconds(s); }},
};

struct MemberFamily {
  const char *name, *help;
  Number (*value)(const MemberStatus&);
  bool counter = false;
};

template <auto ServerField>
Number of_server(const MemberStatus& m) {
  return m.telemetry.server ? whole((*m.telemetry.server).*ServerField) : std::nullopt;
}
template <auto GpuField>
Number of_gpu(const MemberStatus& m) {
  return m.telemetry.gpu ? scaled((*m.telemetry.gpu).*GpuField) : std::nullopt;
}
template <auto KernelField>
Number of_kernel(const MemberStatus& m) {
  return m.telemetry.kernel ? (*m.telemetry.kernel).*KernelField : std::nullopt;
}

const MemberFamily kMemberFamilies[] = {
    {"paceline_member_rank", "In the view; -1: not in it.",
     [](const MemberStatus& m) { return whole(m.rank); }},
    {"paceline_member_step", "Steps that it has applied.",
     [](const MemberStatus& m) { return whole(m.step); }},
    {"paceline_member_step_seconds", "The whole step, a mean over the last heartbeat's.",
     [](const MemberStatus& m) { return positive(m.telemetry.step_ms * kMillisecond); }},
    {"paceline_member_sent_bytes_total", "By its exchange.",
     [](const MemberStatus& m) { return whole(m.telemetry.bytes_sent); }, true},
    {"paceline_member_samples", "Of a step: its share of the global batch.",
     [](const MemberStatus& m) { return positive(whole(m.telemetry.samples).value()); }},
    {"paceline_member_dropped_samples_total", "Left out of partial steps.",
     [](const MemberStatus& m) { return whole(m.telemetry.dropped_samples); }, true},
    {"paceline_member_server_load_ratio",
     "The share of the time in which a server sums, updates or moves bytes.",
     &of_server<&ServerTelemetry::load>},
    {"paceline_member_server_bytes_per_second", "Received and sent by a server.",
     &of_server<&ServerTelemetry::bytes_per_second>},
    {"paceline_member_server_queue", "Gradients that wait for their update.",
     &of_server<&ServerTelemetry::queue>},
    {"paceline_member_server_updates_total", "Updates of a server.", &of_server<&ServerTelemetry::updates>,
     true},
    {"paceline_member_server_rows", "Of sparse tables.", &of_server<&ServerTelemetry::rows>},
    {"paceline_member_server_row_bytes", "The memory of sparse tables.",
     &of_server<&ServerTelemetry::row_bytes>},
    {"paceline_member_server_evicted_rows_total", "Of sparse tables with a bound.",
     &of_server<&ServerTelemetry::rows_evicted>, true},
    {"paceline_member_staleness_mean", "Updates between a worker's read and its gradient's update.",
     [](const MemberStatus& m) {
       return m.telemetry.staleness ? Number(m.telemetry.staleness->mean) : std::nullopt;
     }},
    {"paceline_member_staleness_max", "The same: the most so far.",
     [](const MemberStatus& m) {
       return m.telemetry.staleness ? whole(m.telemetry.staleness->max) : std::nullopt;
     }},
    {"paceline_member_turn_wait_seconds_total", "A worker waited for its turns.",
     [](const MemberStatus& m) {
       return m.telemetry.staleness ? Number(m.telemetry.staleness->wait_seconds) : std::nullopt;
     },
     true},
    {"paceline_member_gpu_utilization_ratio", "As NVML says.", &of_gpu<&GpuTelemetry::utilization>},
    {"paceline_member_gpu_memory_used_bytes", "By all processes of the GPU.",
     [](const MemberStatus& m) {
       return m.telemetry.gpu ? scaled(m.telemetry.gpu->memory_used_mib, kMebibyte) : std::nullopt;
     }},
    {"paceline_member_gpu_memory_total_bytes", "Of the GPU.",
     [](const MemberStatus& m) {
       return m.telemetry.gpu ? scaled(m.telemetry.gpu->memory_total_mib, kMebibyte) : std::nullopt;
     }},
    {"paceline_member_gpu_sm_clock_hertz", "Of its multiprocessors.",
     [](const MemberStatus& m) {
       return m.telemetry.gpu ? scaled(m.telemetry.gpu->sm_clock_mhz, kMegahertz) : std::nullopt;
     }},
    {"paceline_member_gpu_temperature_celsius", "Of the GPU.", &of_gpu<&GpuTelemetry::temperature_celsius>},
    {"paceline_member_gpu_power_watts", "That the GPU takes.", &of_gpu<&GpuTelemetry::power_watts>},
    {"paceline_member_gpu_slowdowns", "Reasons for which its clocks are lower than they could be.",
     [](const MemberStatus& m) {
       return m.telemetry.gpu ? whole(m.telemetry.gpu->slowdowns.size()) : std::nullopt;
     }},
    {"paceline_member_gpu_pcie_replays_total", "Since its driver was loaded.",
     &of_gpu<&GpuTelemetry::pcie_replays>, true},
    {"paceline_member_gpu_xids_total", "Errors that the driver told.",
     [](const MemberStatus& m) { return m.telemetry.gpu ? whole(m.telemetry.gpu->xids) : std::nullopt; },
     true},
    {"paceline_member_cpus", "Processors that it uses.", &of_kernel<&KernelTelemetry::cpu>},
    {"paceline_member_throttled_ratio", "The share of the time in which a CPU quota holds it up.",
     &of_kernel<&KernelTelemetry::throttled>},
    {"paceline_member_run_delay_ratio", "Of the time in which its threads are ready, without a processor.",
     &of_kernel<&KernelTelemetry::run_delay>},
    {"paceline_member_major_faults_per_second", "Pages that come from storage.",
     &of_kernel<&KernelTelemetry::major_faults>},
    {"paceline_member_read_bytes_per_second", "From storage.", &of_kernel<&KernelTelemetry::read_bytes>},
    {"paceline_member_retransmits_ratio", "Of its TCP segments.", &of_kernel<&KernelTelemetry::retransmits>},
    {"paceline_member_timer_delay_seconds", "How late a timer of its process rings.",
     [](const MemberStatus& m) {
       return m.telemetry.kernel ? scaled(m.telemetry.kernel->timer_delay_ms, kMillisecond) : std::nullopt;
     }},
};

void declare_families(Metrics& page) {
  page.gauge(kJobs, "Jobs by phase; only the leader counts them.");
  page.gauge(kStragglers, "Stragglers of all jobs now: Slow, MoreWork, AllSlow, SlowLink.");
  page.gauge(kDroppedSamples, "Samples that partial steps of all jobs have left out.");
  page.gauge(kJobsLeftOut, "Jobs that have not ended, and have no series of their own.");
  page.gauge(kMembersLeftOut, "Members of jobs that have not ended, without series of their own.");
  page.gauge(kInfo, "1, with what the job trains.");
  page.gauge(kPhase, "1 for the phase that the job is in.");
  page.gauge(kFailed, "When it failed, and why; for an hour from then on.");
  page.gauge(kCondition, "1: it is so; CheckpointFailed, Straggling.");
  page.gauge(kJobStragglers, "Stragglers now; action: Report, Wait, Replace, Rebalance.");
  page.gauge(kMemberInfo, "1, with where the member runs.");
  page.gauge(kParts, "Means over the last heartbeat's steps: input, compute, wait, transfer, update.");
  page.counter(kGradients, "A worker's gradients: applied, or dropped because they came too late.");
  page.counter(kEccErrors, "Since the GPU's driver was loaded: corrected, uncorrected.");
  page.gauge(kPressure, "The kernel's pressure stall information (some): cpu, memory, io.");
  const auto declare_all = [&](const auto& families) {
    for (const auto& each : families) {
      if (each.counter) {
        page.counter(each.name, each.help);
      } else {
        page.gauge(each.name, each.help);
      }
    }
  };
  declare_all(kJobFamilies);
  declare_all(kMemberFamilies);
}

void write(Metrics& page, const char* name, bool counter, web::Labels labels, const Number& value) {
  if (!value) return;
  if (counter) {
    page.add(name, labels, *value);
  } else {
    page.set(name, labels, *value);
  }
}

void write_sums(Metrics& page, const Snapshots& jobs) {
  std::map<api::Phase, std::int64_t> phases;
  std::map<api::StragglerKind, std::int64_t> stragglers;
  std::int64_t dropped = 0;
  for (const auto& each : jobs) {
    const api::Status& status = each->job.status;
    ++phases[status.phase];
    for (const api::Straggler& straggler : status.stragglers) ++stragglers[straggler.kind];
    dropped += status.progress.dropped_samples;
  }
  for_each(api::Phase::kSuspended, [&](api::Phase phase) {
    page.set(kJobs, {{"phase", api::name(phase)}}, static_cast<double>(phases[phase]));
  });
  for_each(api::StragglerKind::kSlowLink, [&](api::StragglerKind kind) {
    page.set(kStragglers, {{"kind", api::name(kind)}}, static_cast<double>(stragglers[kind]));
  });
  page.set(kDroppedSamples, {}, static_cast<double>(dropped));
}

// The two labels of a job, which go before any other.
struct JobLabels {
  std::pair<std::string_view, std::string_view> ns, name;
  explicit JobLabels(const api::Metadata& metadata)
      : ns("job_namespace", metadata.ns), name("job_name", metadata.name) {}
};

void write_job(Metrics& page, const JobSnapshot& snapshot, WallTime now) {
  const auto& [metadata, spec, status] =
      std::tie(snapshot.job.metadata, snapshot.job.spec, snapshot.job.status);
  const JobLabels of(metadata);
  for (const JobFamily& each : kJobFamilies)
    write(page, each.name, each.counter, {of.ns, of.name}, each.value(snapshot, now));
  page.set(kInfo,
           {of.ns,
            of.name,
            {"model", spec.training ? api::name(spec.training->model.type) : ""},
            {"strategy", spec.training ? api::name(spec.strategy.type) : ""}},
           1);
  page.set(kPhase, {of.ns, of.name, {"phase", api::name(status.phase)}}, 1);
  for (const char* type : {api::kCheckpointFailed, api::kStraggling}) {
    const bool is_so = std::ranges::any_of(
        status.conditions, [&](const api::Condition& each) { return each.type == type && each.status; });
    page.set(kCondition, {of.ns, of.name, {"condition", type}}, is_so ? 1 : 0);
  }
  std::map<std::pair<std::string, std::string>, double> stragglers;
  for (const api::Straggler& each : status.stragglers)
    ++stragglers[{api::name(each.kind), api::name(each.action)}];
  for (const auto& [what, count] : stragglers)
    page.set(kJobStragglers, {of.ns, of.name, {"action", what.second}, {"kind", what.first}}, count);
}

// All that is told of a job that has ended. False: nothing.
bool write_failed(Metrics& page, const JobSnapshot& snapshot, WallTime now) {
  const api::Status& status = snapshot.job.status;
  const std::optional<WallTime>& failed = status.completion_time;
  if (status.phase != api::Phase::kFailed || !failed || now - *failed > kFailedShown) return false;
  const JobLabels of(snapshot.job.metadata);
  page.set(kFailed, {of.ns, of.name, {"reason", status.reason}}, unix_seconds(*failed));
  return true;
}

void write_member(Metrics& page, const JobLabels& of, const MemberStatus& member) {
  const std::string name = member_name(member.role, member.index);
  const std::pair<std::string_view, std::string_view> who("member", name);
  for (const MemberFamily& each : kMemberFamilies)
    write(page, each.name, each.counter, {of.ns, of.name, who}, each.value(member));
  const MemberTelemetry& t = member.telemetry;
  page.set(kMemberInfo,
           {of.ns,
            of.name,
            who,
            {"gpu", t.gpu ? std::string_view(t.gpu->name) : ""},
            {"member_node", member.host},
            {"member_pod", member.pod}},
           1);
  if (t.step_ms > 0) {
    const std::pair<const char*, double> parts[] = {{"input", t.input_ms},
                                                    {"compute", t.compute_ms},
                                                    {"wait", t.wait_ms},
                                                    {"transfer", t.transfer_ms},
                                                    {"update", t.update_ms}};
    for (const auto& [part, ms] : parts)
      page.set(kParts, {of.ns, of.name, who, {"part", part}}, ms * kMillisecond);
  }
  if (t.staleness) {
    page.add(kGradients, {of.ns, of.name, who, {"result", "applied"}},
             static_cast<double>(t.staleness->applied));
    page.add(kGradients, {of.ns, of.name, who, {"result", "dropped"}},
             static_cast<double>(t.staleness->dropped));
  }
  if (t.gpu) {
    write(page, kEccErrors, true, {of.ns, of.name, who, {"kind", "corrected"}},
          scaled(t.gpu->corrected_ecc_errors));
    write(page, kEccErrors, true, {of.ns, of.name, who, {"kind", "uncorrected"}},
          scaled(t.gpu->uncorrected_ecc_errors));
  }
  if (t.kernel) {
    write(page, kPressure, false, {of.ns, of.name, who, {"resource", "cpu"}}, t.kernel->cpu_pressure);
    write(page, kPressure, false, {of.ns, of.name, who, {"resource", "memory"}}, t.kernel->memory_pressure);
    write(page, kPressure, false, {of.ns, of.name, who, {"resource", "io"}}, t.kernel->io_pressure);
  }
}

}  // namespace

std::string job_metrics(const Snapshots& jobs, const MetricsLimits& limits, WallTime now) {
  Metrics page(std::numeric_limits<std::size_t>::max());
  declare_families(page);
  write_sums(page, jobs);
  std::int64_t jobs_left = limits.jobs, members_left = limits.members, jobs_out = 0, members_out = 0;
  std::int64_t failed_left = limits.jobs;
  for (const auto& each : jobs) {
    const api::Status& status = each->job.status;
    if (plan::is_terminal(status.phase)) {
      if (failed_left > 0 && write_failed(page, *each, now)) --failed_left;
      continue;
    }
    const auto members = static_cast<std::int64_t>(status.members.size());
    const bool shown = jobs_left > 0;
    if (shown) {
      --jobs_left;
      write_job(page, *each, now);
    } else {
      ++jobs_out;
    }
    if (!shown || members > members_left) {
      members_out += members;
      continue;
    }
    members_left -= members;
    const JobLabels of(each->job.metadata);
    for (const MemberStatus& member : status.members) write_member(page, of, member);
  }
  page.set(kJobsLeftOut, {}, static_cast<double>(jobs_out));
  page.set(kMembersLeftOut, {}, static_cast<double>(members_out));
  return page.text();
}

}  // namespace paceline::controller

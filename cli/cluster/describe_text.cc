#include "cli/cluster/describe_text.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "base/pluralize.h"
#include "base/process_end.h"
#include "base/sanitize.h"
#include "base/text.h"
#include "cli/cluster/names.h"
#include "cli/state/resume_command.h"
#include "cli/view/age.h"
#include "cli/view/dashboard.h"
#include "cli/view/gpus_view.h"
#include "cli/view/gradients_text.h"
#include "cli/view/outline_text.h"
#include "controller/api/checkpoint_step.h"
#include "controller/diagnosis/fault_text.h"
#include "controller/diagnosis/straggler_text.h"
#include "controller/diagnosis/view_text.h"
#include "controller/plan/plan.h"
#include "controller/plan/restart_budget.h"
#include "controller/plan/trouble.h"

namespace paceline::cli {

namespace {

using Rows = std::vector<std::vector<std::string>>;

constexpr std::size_t kEventsShown = 20;
constexpr std::size_t kPodsShown = 100;
constexpr int kGpuLines = 50;
constexpr Duration kControllerTime = std::chrono::seconds(30);  // a controller that runs has looked by then

void add_section(const char* title, const Rows& rows, std::vector<std::string>& lines) {
  lines.emplace_back();
  lines.push_back(str_cat(title, ":"));
  for (const std::string& line : align_table(rows, {})) lines.push_back(str_cat("  ", line));
}

std::string roles_text(const api::TrainingJob& job) {
  std::string text;
  for (const Role role : {Role::kChief, Role::kWorker, Role::kServer, Role::kEvaluator}) {
    const auto& replica = api::replica_spec(job, role);
    if (!replica) continue;
    text += str_cat(text.empty() ? "" : ", ", role_name(role), "=", replica->replicas);
    if (replica->min_replicas && replica->max_replicas)
      text += str_cat(" (", *replica->min_replicas, " to ", *replica->max_replicas, ")");
    else if (replica->min_replicas || replica->max_replicas)
      text += replica->min_replicas ? str_cat(" (", *replica->min_replicas, " or more)")
                                    : str_cat(" (", *replica->max_replicas, " at most)");
    if (replica->standby.value_or(0) > 0) text += str_cat(" and ", *replica->standby, " standing by");
    text += str_cat(", restartPolicy ", api::name(replica->restart_policy));
    if (replica->restart_scope) text += str_cat(" (", api::name(*replica->restart_scope), ")");
  }
  return text;
}

std::string length_text(const api::TrainingJob& job) {
  const api::Training& training = *job.spec.training;
  std::string text =
      training.steps ? str_cat(with_commas(*training.steps), *training.steps == 1 ? " step" : " steps")
                     : str_cat(training.epochs.value_or(0), training.epochs == 1.0 ? " epoch" : " epochs");
  const auto gradients = step_gradients(job);
  return str_cat(text, ", ",
                 gradients ? samples_text(*gradients)
                           : str_cat(with_commas(training.global_batch_size),
                                     training.global_batch_size == 1 ? " sample" : " samples"),
                 " each step");
}

// "in 8.0 s"; "worker-1 in 8.0 s": of a place that waits alone.
std::vector<std::string> next_tries(const api::Restarts& restarts, WallTime now) {
  std::vector<std::string> tries;
  const auto wait = [&](const std::optional<WallTime>& then) { return then.value_or(now) - now; };
  if (wait(restarts.not_before) > Duration::zero())
    tries.push_back(str_cat("in ", format_duration(wait(restarts.not_before))));
  for (const api::Replacement& each : restarts.replacements) {
    if (wait(each.not_before) > Duration::zero())
      tries.push_back(str_cat(member_name(each.role, static_cast<int>(each.index)), " in ",
                              format_duration(wait(each.not_before))));
  }
  return tries;
}

Rows spec_rows(const Described& d) {
  const api::TrainingJob& job = *d.spec;
  const api::RunPolicy& policy = job.spec.run_policy;
  Rows rows = {{"replicas", roles_text(job)}};
  if (const auto& training = job.spec.training) {
    rows.push_back(
        {"model", str_cat(api::name(training->model.type), ", ", api::name(training->optimizer.type),
                          " with learning rate ", training->optimizer.learning_rate)});
    rows.push_back({"length", length_text(job)});
    if (std::string text = partial_steps_text(job); !text.empty())
      rows.push_back({"partial steps", std::move(text)});
    if (std::string text = preflight_text(job); !text.empty()) rows.push_back({"preflight", std::move(text)});
  } else {
    rows.push_back({"program", "the templates' own command"});
  }
  if (policy.active_deadline_seconds)
    rows.push_back({"deadline", human_seconds(static_cast<double>(*policy.active_deadline_seconds))});
  const api::Restarts& restarts = d.job.status.restarts;
  rows.push_back({"restarts", str_cat(restarts.total, " (",
                                      plan::text_of(plan::restart_budget(job, restarts, d.now)), ")")});
  std::int64_t resized = 0;
  for (const api::RestartCount& each : d.job.status.restarts.by_cause) {
    if (each.cause == api::RestartCause::kResized) {
      resized += each.count;
      continue;
    }
    rows.push_back(
        {"", str_cat(each.count, " because of ", role_name(each.role), ": ", api::name(each.cause))});
  }
  if (!plan::is_terminal(d.job.status.phase)) {
    for (const std::string& next : next_tries(restarts, d.now)) rows.push_back({"next try", next});
  }
  if (resized > 0) rows.push_back({"resized", str_cat(resized, resized == 1 ? " time" : " times")});
  if (policy.suspend) rows.push_back({"suspend", "true"});
  if (!policy.managed_by.empty()) rows.push_back({"managedBy", policy.managed_by});
  if (!policy.scheduling_policy.queue.empty()) rows.push_back({"queue", policy.scheduling_policy.queue});
  return rows;
}

Rows condition_rows(const Described& d) {
  Rows rows = {{"TYPE", "STATUS", "SINCE", "REASON", "MESSAGE"}};
  for (const api::Condition& each : d.job.status.conditions) {
    const char* const status = each.unknown ? "Unknown" : each.status ? "True" : "False";
    rows.push_back(
        {each.type, status, age_text(each.last_transition, d.now), each.reason, sanitize(each.message)});
  }
  return rows;
}

// Of a failed trainer the kubelet keeps its last lines: a cell has room for the beginning of one.
std::string first_words(const std::string& message) {
  constexpr std::size_t kMostBytes = 100;
  const std::string line = message.substr(0, message.find('\n'));
  if (line.size() <= kMostBytes) return line.size() == message.size() ? line : line + " ...";
  return line.substr(0, std::min(line.find_last_of(' ', kMostBytes), kMostBytes)) + " ...";
}

Rows pod_rows(const Described& d) {
  Rows rows = {{"MEMBER", "POD", "NODE", "PHASE", "AGE", "REASON"}};
  for (const kube::SlimPod& pod : d.pods) {
    if (rows.size() > kPodsShown) {
      rows.push_back({str_cat("... and ", d.pods.size() - kPodsShown, " more")});
      break;
    }
    std::string reason = pod.reason;
    const std::string words = first_words(pod.message);
    if (!words.empty()) reason += str_cat(reason.empty() ? "" : ": ", words);
    if (pod.exit_code && *pod.exit_code != 0)
      reason += str_cat(reason.empty() ? "" : ", ", "exit code ", *pod.exit_code);
    if (pod.signal) reason += str_cat(reason.empty() ? "" : ", ", "signal ", *pod.signal);
    rows.push_back({member_name(pod.role, pod.index), pod.name(), pod.node.empty() ? "-" : pod.node,
                    pod.deletion ? "Deleting" : cluster::pod_phase_name(pod.phase),
                    age_text(pod.created, d.now), reason});
  }
  return rows;
}

// The pod at fault; else one that failed, of the newest attempt. REQUIRES: there are pods.
const kube::SlimPod& failed_pod(const Described& d) {
  const auto order = [&](const kube::SlimPod& pod) {
    const bool at_fault = d.job.status.fault && d.job.status.fault->pod == pod.name();
    return std::tuple(at_fault, pod.phase == cluster::PodPhase::kFailed, pod.attempt);
  };
  return *std::ranges::max_element(d.pods, {}, order);
}

Rows fault_rows(const api::Fault& fault) {
  Rows rows = {{"member", str_cat(member_name(fault.role, fault.index),
                                  fault.pod.empty() ? "" : str_cat(", pod ", fault.pod),
                                  fault.host.empty() ? "" : str_cat(" on ", fault.host))},
               {"kind", api::name(fault.kind)},
               {"cause", api::name(fault.cause)}};
  if (fault.exit_code || fault.signal) rows.push_back({"exit", exit_text(fault.exit_code, fault.signal)});
  for (const api::Observation& seen : fault.evidence)
    rows.push_back({"evidence", sanitize(first_words(diagnosis::text_of(seen)))});
  for (const api::Victim& victim : fault.victims)
    rows.push_back({"victim", sanitize(first_words(diagnosis::text_of(victim)))});
  if (fault.more_victims > 0) rows.push_back({"victim", str_cat(fault.more_victims, " more")});
  return rows;
}

// A run whose owner was lost ended by no fault of a member: what its status tells of is an earlier one.
bool failed_by_fault(const JobView& job) {
  return job.status.phase == api::Phase::kFailed && job.status.reason != kOwnerLost;
}

}  // namespace

std::vector<std::string> fault_lines(const JobView& job) {
  if (!job.status.fault) return {};
  std::vector<std::string> lines = {failed_by_fault(job) ? "Fault:" : "Newest fault:"};
  for (const std::string& line : align_table(fault_rows(*job.status.fault), {}))
    lines.push_back(str_cat("  ", line));
  return lines;
}

std::vector<std::string> straggler_lines(const JobView& job, WallTime now) {
  std::vector<std::string> lines;
  const auto add_replaced = [&](const char* title, auto counts) {
    for (const api::StragglerReplacement& each : job.status.straggler_replacements) {
      if (!counts(each.cause)) continue;
      if (title != nullptr) lines.emplace_back(std::exchange(title, nullptr));
      lines.push_back(str_cat("  ", age_text(each.at, now), " ago: ", api::name(each.outcome), ": ",
                              sanitize(diagnosis::text_of(each))));
    }
  };
  using enum api::StragglerCause;
  const auto is = [](api::StragglerCause one) {
    return [one](api::StragglerCause cause) { return cause == one; };
  };
  if (const auto& check = job.status.preflight) {
    lines.push_back("Check before the first step:");
    lines.push_back(str_cat("  ", check->at ? str_cat(age_text(*check->at, now), " ago: ") : "",
                            sanitize(check->message)));
  }
  add_replaced("Replaced, since they failed the check before the first step:", is(kUnfit));
  if (!job.status.stragglers.empty()) lines.push_back("Stragglers:");
  for (const api::Straggler& each : job.status.stragglers) {
    const std::string since = each.since ? str_cat(", found ", age_text(*each.since, now), " ago") : "";
    lines.push_back(str_cat("  ", sanitize(each.message), since));
    if (!each.why.empty()) lines.push_back(str_cat("    ", api::name(each.action), ": ", sanitize(each.why)));
  }
  const auto& shares = job.status.view.rebalance;
  if (shares && !shares->even) {
    lines.push_back("Shares of the global batch:");
    lines.push_back(str_cat("  since view ", shares->generation.value, ": ", sanitize(shares->message)));
  }
  add_replaced("Replaced stragglers:",
               [](api::StragglerCause cause) { return cause != kUnfit && cause != kRequested; });
  add_replaced("Replaced by request:", is(kRequested));
  return lines;
}

// Steps that would be lost now, since checkpoints can't be written; empty: they are.
std::string unsaved_hint(const JobView& job) {
  const api::Condition* const failed = failing_saves(job);
  if (failed == nullptr) return "";
  const Step saved =
      api::checkpoint_step(job.run ? job.run->checkpoint : job.status.last_checkpoint).value_or(0);
  const Step step = job.run ? job.run->progress.step : job.status.progress.step;
  return str_cat(saved == 0 ? std::string("it has no checkpoint, ")
                            : str_cat("its newest checkpoint is of step ", saved, ", "),
                 pluralize(std::max<Step>(step - saved, 0), "step", "steps"), " behind, since saves fail (",
                 sanitize(failed->message),
                 "); mend what that names: the next save tries again. Until one succeeds, a stop or "
                 "suspension loses these steps");
}

std::string nothing_saved(Step step) {
  return step > 0 ? str_cat("nothing was saved, ", pluralize(step, "step is", "steps are"), " lost; ") : "";
}

std::vector<std::string> hints_for(const Described& d) {
  std::vector<std::string> hints;
  const JobView& job = d.job;
  const std::string name = str_cat(job.name, " -n ", job.ns);
  const bool ended = has_ended(job);
  if (job.deleting)
    hints.push_back(
        "it is being deleted, and waits for its pods and for the finalizers in metadata.finalizers");
  if (!api::is_ours(job.managed_by))
    hints.push_back(
        str_cat("spec.runPolicy.managedBy is ", job.managed_by, ": paceline-controller leaves it alone"));
  else if (!job.seen && job.created && d.now - *job.created > kControllerTime)
    hints.push_back(
        "no controller has looked at it yet: see whether paceline-controller runs and watches this namespace "
        "(kubectl get pods -A | grep paceline-controller)");
  else if (job.seen && job.status.observed_generation.value < job.generation && !ended)
    hints.push_back("the controller has not acted on its newest edit yet");
  if (job.suspended && !ended)
    hints.push_back(str_cat("it is suspended; to let it go on: ", d.program, " resume ", job.name, d.where));
  if (std::string unsaved = unsaved_hint(job); !unsaved.empty()) hints.push_back(std::move(unsaved));
  if (!d.spec && !job.run)
    hints.push_back(str_cat("its spec can't be run: mend it by kubectl edit tj/", name));
  std::set<std::string> said;
  for (const kube::SlimPod& pod : present_pods(d.pods, d.job.status)) {
    const std::string_view advice = plan::pod_advice(pod.reason);
    if (advice.empty() || !said.insert(pod.reason).second) continue;
    hints.push_back(str_cat("pod ", pod.name(), ", ", pod.reason, ": ", advice));
  }
  if (const api::Condition* const trouble = plan::pod_trouble(job.status); trouble != nullptr) {
    const std::string_view advice = plan::pod_advice(trouble->reason);
    if (!advice.empty() && !said.contains(trouble->reason))
      hints.push_back(str_cat(trouble->reason, ": ", advice));
  }
  if (failed_by_fault(job)) {
    const auto add_log_hint = [&](Role role, int index) {
      hints.push_back(
          str_cat("its log: ", d.program, " logs ", job.name, " ", role_name(role), "/", index, d.where));
    };
    if (!d.pods.empty())
      add_log_hint(failed_pod(d).role, failed_pod(d).index);
    else if (job.run && job.status.fault)
      add_log_hint(job.status.fault->role, job.status.fault->index);
  }
  const bool may_go_on = job.run && (job.run->phase == "Stopped" || job.run->phase == "Failed");
  if (may_go_on && !job.run->checkpoint.empty() && job.status.reason != kOwnerLost) {  // its message says so
    hints.push_back(str_cat("it goes on from its newest checkpoint by: ",
                            resume_command("", job.run->job_file, job.run->name), d.where));
  } else if (may_go_on && job.run->checkpoint.empty() && d.spec && d.spec->spec.training &&
             job.status.reason != kOwnerLost) {
    hints.push_back(str_cat(nothing_saved(job.run->progress.step), "it begins anew by: paceline run ",
                            shell_word(job.run->job_file), d.where));
  } else if (!job.run && job.status.phase == api::Phase::kFailed && job.status.last_checkpoint.empty() &&
             d.spec && d.spec->spec.training) {
    hints.push_back(str_cat(nothing_saved(job.status.progress.step), "it begins anew once it is deleted (",
                            d.program, " delete ", job.name, d.where, ") and applied again"));
  }
  return hints;
}

std::vector<std::string> describe_lines(const Described& d, const Terminal& terminal) {
  const RunState state = run_state_of(d.job, d.spec ? &*d.spec : nullptr, d.pods, d.now);
  std::vector<std::string> lines = render_summary(state, terminal);
  Rows rows = {{"job", str_cat(state.ns, "/", state.job)}};
  if (d.job.run) {
    rows.push_back({"job file", state.job_file});
    rows.push_back({"folder", state.folder});
  } else {
    rows.push_back({"uid", d.job.uid});
  }
  rows.push_back({"ready", str_cat(d.job.ready, " of ", d.job.wanted, d.job.wanted == 1 ? " pod" : " pods")});
  rows.push_back({"created", str_cat(state.created, " (", age_text(d.job.created, d.now), " ago)")});
  if (!state.finished.empty()) rows.push_back({"finished", state.finished});
  if (state.parameters > 0)
    rows.push_back({"parameters", with_commas(static_cast<std::int64_t>(state.parameters))});
  if (const auto& change = d.job.status.view.change) {
    rows.push_back({"newest view", str_cat(diagnosis::members_of(*change),
                                           change->message.empty() ? "" : ": ", sanitize(change->message))});
    rows.push_back({"", diagnosis::times_of(*change)});
  }
  if (state.weights_checked_step > 0)
    rows.push_back(
        {"weights equal", str_cat("on all ranks, last seen at step ", state.weights_checked_step)});
  for (const std::string& line : align_table(rows, {})) lines.push_back(str_cat("  ", line));
  if (!state.message.empty()) {
    lines.insert(lines.end(), {"", "Message:"});
    const std::string message = sanitize(state.message);
    for (std::size_t from = 0; from <= message.size();) {
      const std::size_t to = std::min(message.find('\n', from), message.size());
      lines.push_back(str_cat("  ", message.substr(from, to - from)));
      from = to + 1;
    }
  }
  if (const auto stragglers = straggler_lines(d.job, d.now); !stragglers.empty()) {
    lines.emplace_back();
    lines.insert(lines.end(), stragglers.begin(), stragglers.end());
  }
  if (const auto fault = fault_lines(d.job); !fault.empty()) {
    lines.emplace_back();
    lines.insert(lines.end(), fault.begin(), fault.end());
  }
  if (d.spec) add_section("Spec", spec_rows(d), lines);
  if (!d.spec && !d.job.run) add_section("Spec", {{d.spec_errors}}, lines);
  if (!d.job.status.conditions.empty()) add_section("Conditions", condition_rows(d), lines);
  if (!d.pods.empty()) add_section("Pods", pod_rows(d), lines);
  if ((d.job.status.phase == api::Phase::kRunning || d.job.run) && !state.members.empty()) {
    lines.insert(lines.end(), {"", "Members:"});
    for (const std::string& line : render_members(state, terminal)) lines.push_back(str_cat("  ", line));
  } else {
    // What the GPUs of members that are gone have counted: an Xid may be why they are.
    const int width = terminal.interactive ? terminal.columns - 3 : kAnyWidth;
    const auto gpus = render_gpus(state, terminal, width, kGpuLines);
    if (!gpus.empty()) lines.insert(lines.end(), {"", "GPUs:"});
    for (std::size_t i = 1; i < gpus.size(); ++i) lines.push_back(str_cat("  ", gpus[i]));
  }
  if (!d.events_error.empty()) lines.insert(lines.end(), {"", "Events:", str_cat("  ", d.events_error)});
  if (!d.events.empty()) {
    Rows events = {event_header()};
    const std::size_t skipped = d.events.size() > kEventsShown ? d.events.size() - kEventsShown : 0;
    for (std::size_t i = skipped; i < d.events.size(); ++i) events.push_back(event_row(d.events[i], d.now));
    add_section("Events", events, lines);
    if (skipped > 0)
      lines.push_back(str_cat(
          "  ", skipped, " earlier: ",
          d.job.run ? state.folder + "/events.jsonl" : str_cat(d.program, " events ", d.job.name, d.where)));
  }
  const std::vector<std::string> hints = hints_for(d);
  if (!hints.empty()) lines.insert(lines.end(), {"", "What to do:"});
  for (const std::string& hint : hints) lines.push_back(str_cat("  ", hint));
  return lines;
}

}  // namespace paceline::cli

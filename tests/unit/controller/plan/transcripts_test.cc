// Stories of jobs, as transcripts (testdata/*.txt): what happens to a job's world, and what the planner makes
// of it. Each story begins with `running` (a job that trains), or `fresh` (one that has no pod yet).
//
//   > running chief=1 worker=2 policy=Never|OnFailure scope=Replica program=trainer|own
//       `a|b`: the story happens in a world for each, which are told apart only where they differ
//   > end worker-1 0, > kill worker-1 9, > disrupt worker-1 why=Evicted how=-9
//       how its process ended: a code, or minus a signal; ago=TIME: before now. TIME is 5s, 100ms, a limit's
//       name (verdict_grace, controller/plan/observed.h), or a sum of those
//   > finished worker-1, > deleting worker-1, > gone worker-1, > takeover (by another controller), > wait 5s
//   > look  says what the planner wants;  > plan  also does it
//   > keep, > back  to the world that was kept last
//
// A line of the planner's: phase, reason and attempt | what is done | when it looks again, where that is not
// after Limits::refresh. `create worker-1-0`; `delete chief-0-0/310 s`: with so much grace.

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string_view>
#include <utility>
#include <variant>

#include "base/text.h"
#include "controller/plan/attempts.h"
#include "controller/plan/pods.h"
#include "controller/plan/restart.h"
#include "controller/plan/rules.h"
#include "tests/support/paths.h"
#include "tests/support/script_line.h"
#include "tests/support/transcript.h"
#include "tests/unit/controller/plan/passes.h"

namespace paceline::plan {
namespace {

using Line = paceline::ScriptLine;

constexpr Role kRoles[] = {Role::kChief, Role::kWorker, Role::kServer, Role::kEvaluator};

template <typename E>
E named(const std::string& text, int count) {
  for (int i = 0; i < count; ++i) {
    if (text == api::name(static_cast<E>(i))) return static_cast<E>(i);
  }
  ADD_FAILURE() << "unknown: " << text;
  return E{};
}

struct Place {
  Role role = Role::kWorker;
  int index = 0;
};

// "worker-1"
Place place_of(const std::string& text) {
  Place place;
  for (const Role role : kRoles) {
    if (text.starts_with(role_name(role))) place.role = role;
  }
  place.index = std::atoi(text.c_str() + text.find('-') + 1);
  return place;
}

// The name without the job's: all have that.
std::string shown(const std::string& pod) {
  return pod.starts_with("fashion-") ? pod.substr(8) : pod;
}

Duration time_of(std::string_view text, const Limits& limits) {
  const std::map<std::string_view, Duration> names = {
      {"stop grace", limits.stop_grace},         {"finish grace", limits.finish_grace},
      {"attach timeout", limits.attach_timeout}, {"verdict grace", limits.verdict_grace},
      {"report grace", limits.report_grace},     {"longest back off", limits.longest_back_off},
      {"healthy after", limits.healthy_after},   {"settle time", limits.settle_time}};
  const std::pair<std::string_view, Duration> units[] = {
      {"ms", std::chrono::milliseconds(1)}, {"s", std::chrono::seconds(1)}, {"h", std::chrono::hours(1)}};
  Duration sum{};
  while (!text.empty()) {
    const int sign = text[0] == '-' ? -1 : 1;
    if (text[0] == '-' || text[0] == '+') text.remove_prefix(1);
    const std::string_view term = text.substr(0, text.find_first_of("+-"));
    text.remove_prefix(term.size());
    if (const auto known = names.find(term); known != names.end()) {
      sum += sign * known->second;
    } else {
      const std::size_t digits = std::min(term.find_first_not_of("0123456789"), term.size());
      const auto unit =
          std::ranges::find(units, term.substr(digits), &std::pair<std::string_view, Duration>::first);
      if (unit == std::end(units)) ADD_FAILURE() << "no time: " << term;
      if (unit != std::end(units)) sum += sign * std::atoi(std::string(term).c_str()) * unit->second;
    }
  }
  return sum;
}

class World {
 public:
  std::vector<std::string> chosen;  // the choices that made this world

  std::string play(const Line& line) {
    const std::string& command = line.words[0];
    const auto found = commands().find(command);
    if (found == commands().end()) return str_cat("  unknown command ", command, "\n");
    out_.clear();
    (this->*found->second)(line);
    return out_;
  }

 private:
  using Command = void (World::*)(const Line&);
  static const std::map<std::string, Command>& commands() {
    static const std::map<std::string, Command> all = {{"running", &World::make},
                                                       {"fresh", &World::make},
                                                       {"set", &World::set},
                                                       {"look", &World::look},
                                                       {"plan", &World::look},
                                                       {"pass", &World::pass},
                                                       {"settle", &World::settle_all},
                                                       {"advance", &World::go_on},
                                                       {"wait", &World::wait},
                                                       {"end", &World::end},
                                                       {"kill", &World::end},
                                                       {"disrupt", &World::disrupt},
                                                       {"pod", &World::change_pod},
                                                       {"deleting", &World::deleting},
                                                       {"gone", &World::gone},
                                                       {"finished", &World::finished},
                                                       {"takeover", &World::take_over},
                                                       {"joins", &World::join},
                                                       {"report", &World::report},
                                                       {"fault", &World::fault},
                                                       {"lost", &World::lose},
                                                       {"saved", &World::saved},
                                                       {"create-failure", &World::create_failure},
                                                       {"why", &World::why},
                                                       {"told", &World::told},
                                                       {"forget", &World::forget},
                                                       {"members", &World::members},
                                                       {"counts", &World::counts},
                                                       {"conditions", &World::conditions},
                                                       {"restarts", &World::restarts},
                                                       {"at-fault", &World::at_fault},
                                                       {"pods", &World::pods},
                                                       {"progress", &World::progress}};
    return all;
  }

  // ---- what there is

  void make(const Line& line) {
    const auto count = [&](Role role) { return static_cast<int>(line.number(role_name(role))); };
    api::TrainingJob job = make_job(count(Role::kChief), count(Role::kWorker));
    auto& roles = job.spec.replica_specs;
    if (count(Role::kServer) > 0) roles.ps = api::ReplicaSpec{count(Role::kServer), {}, {}};
    if (count(Role::kEvaluator) > 0) roles.evaluator = api::ReplicaSpec{count(Role::kEvaluator), {}, {}};
    const bool own = line.text("program") == "own";
    if (roles.ps && !own) job.spec.strategy.type = api::StrategyType::kParameterServer;
    if (line.says("async")) job.spec.strategy.synchronization = api::Synchronization::kAsynchronous;
    job.spec.strategy.backup_workers = line.number("backup");
    if (own) job.spec.training.reset();
    set_policies(line, job);
    if (line.has("min")) roles.worker->min_replicas = line.number("min");
    if (line.words[0] == "fresh" || own) {
      world_ = make_world(std::move(job));
      if (own && !line.says("coordinated")) world_.report.reset();
      if (line.words[0] == "running") settle(world_);
    } else {
      world_ = make_running_world(std::move(job), line.number("step", 120));
    }
    set(line);
  }

  // "OnFailure": of all roles; "OnFailure,ps": of this one.
  void set_policies(const Line& line, api::TrainingJob& job) {
    const std::string text = line.text("policy"), policy = text.substr(0, text.find(','));
    if (text.empty()) return;
    auto& roles = job.spec.replica_specs;
    const std::pair<Role, std::optional<api::ReplicaSpec>*> all[] = {{Role::kChief, &roles.chief},
                                                                     {Role::kWorker, &roles.worker},
                                                                     {Role::kServer, &roles.ps},
                                                                     {Role::kEvaluator, &roles.evaluator}};
    for (const auto& [role, replica] : all) {
      const bool meant = text == policy || text.find(role_name(role), policy.size()) != std::string::npos;
      if (*replica && meant) (*replica)->restart_policy = named<api::RestartPolicy>(policy, 4);
      const std::string scopes = line.text("scope"), scope = scopes.substr(0, scopes.find(','));
      const bool scoped = scopes == scope || scopes.find(role_name(role), scope.size()) != std::string::npos;
      if (*replica && scoped && !scope.empty())
        (*replica)->restart_scope = named<api::RestartScope>(scope, 3);
    }
  }

  void set(const Line& line) {
    api::RunPolicy& policy = world_.job.spec.run_policy;
    set_policies(line, world_.job);
    policy.backoff_limit = line.number("backoff", policy.backoff_limit);
    if (line.has("window")) policy.restart_window_seconds = line.number("window");
    if (line.has("deadline")) policy.active_deadline_seconds = line.number("deadline");
    if (line.has("ttl")) policy.ttl_seconds_after_finished = line.number("ttl");
    if (line.has("clean")) policy.clean_pod_policy = named<api::CleanPodPolicy>(line.text("clean"), 3);
    if (line.has("managed"))
      policy.managed_by =
          line.text("managed") == "paceline" ? std::string(api::kManager) : line.text("managed");
    if (line.has("silences"))
      count_restart(world_.job.status.restarts, Role::kWorker, api::RestartCause::kSilent);
    if (line.has("not_before")) world_.job.status.restarts.not_before = world_.now + std::chrono::seconds(1);
    if (line.has("suspend")) policy.suspend = line.number("suspend") != 0;
    if (line.has("stop")) world_.stop = static_cast<Stop>(line.number("stop"));
    if (line.has("deleted")) world_.deleted = line.number("deleted") != 0;
    if (line.has("workers")) world_.job.spec.replica_specs.worker->replicas = line.number("workers");
    if (line.has("grace"))
      world_.job.spec.replica_specs.worker->termination_grace_seconds = line.number("grace");
    if (line.has("chief_grace"))
      world_.job.spec.replica_specs.chief->termination_grace_seconds = line.number("chief_grace");
    if (line.has("phase")) world_.job.status.phase = named<api::Phase>(line.text("phase"), 7);
    if (line.has("members")) world_.job.status.members.clear();  // those of the attempt were not written
    if (line.has("accuracy")) world_.job.status.progress.test_accuracy = std::stod(line.text("accuracy"));
    world_.limits.disruptions = static_cast<int>(line.number("disruptions", world_.limits.disruptions));
    world_.limits.first_batch = static_cast<int>(line.number("first_batch", world_.limits.first_batch));
  }

  // The pod that a place has had last, or that of this name.
  cluster::Pod& pod(const std::string& member) {
    const auto it = std::ranges::find(world_.pods, "fashion-" + member,
                                      [](const cluster::Pod& each) { return each.spec.name; });
    if (it != world_.pods.end()) return *it;
    const Place place = place_of(member);
    cluster::Pod* newest = nullptr;
    for (cluster::Pod& each : world_.pods) {
      const bool its = each.spec.role == place.role && each.spec.index == place.index;
      if (its && (newest == nullptr || newest->spec.attempt < each.spec.attempt)) newest = &each;
    }
    if (newest == nullptr) throw std::runtime_error("no pod of " + member);
    return *newest;
  }

  // ---- what happens

  void end(const Line& line) {
    const int how =
        static_cast<int>(line.has("code") ? line.number("code") : std::atoi(line.words.at(2).c_str()));
    const Duration ago = time_of(line.text("ago"), world_.limits);
    std::vector<std::string> members = {line.words[1]};
    if (line.words[1] == "all") {
      members.clear();
      for (const cluster::Pod& each : world_.pods)
        members.push_back(str_cat(role_name(each.spec.role), "-", each.spec.index));
    }
    for (const std::string& member : members)
      line.words[0] == "kill" ? kill(world_, pod(member), how, ago) : finish(world_, pod(member), how, ago);
  }

  // No verdict is waited for any more.
  void disrupt(const Line& line) {
    cluster::Pod& disrupted = pod(line.words[1]);
    finish(world_, disrupted, 1, world_.limits.verdict_grace);
    disrupted.reason = line.text("why");
    disrupted.exit_code.reset();
    const std::int64_t how = line.number("how");
    if (how < 0) disrupted.signal = static_cast<int>(-how);
    if (how >= 0 && line.text("how", "none") != "none") disrupted.exit_code = static_cast<int>(how);
  }

  void change_pod(const Line& line) {
    cluster::Pod& changed = pod(line.words[1]);
    if (line.has("reason")) changed.reason = line.text("reason");
    if (line.has("message")) changed.message = line.text("message");
    if (line.has("signal")) changed.signal = static_cast<int>(line.number("signal"));
    for (const auto phase :
         {cluster::PodPhase::kPending, cluster::PodPhase::kRunning, cluster::PodPhase::kFailed}) {
      if (line.text("phase") == cluster::pod_phase_name(phase)) changed.phase = phase;
    }
    changed.lingers = changed.lingers || line.says("lingers");
    changed.ended_first = changed.ended_first || line.says("ended-first");
    changed.node_not_ready = changed.node_not_ready || line.says("node-not-ready");
  }

  void deleting(const Line& line) { pod(line.words[1]).deleting = true; }
  void gone(const Line& line) {
    if (line.words[1] == "all") return world_.pods.clear();
    const std::string name = pod(line.words[1]).spec.name;
    std::erase_if(world_.pods, [&](const cluster::Pod& each) { return each.spec.name == name; });
  }
  void forget(const Line&) { world_.seen.clear(); }  // what the last controller's process had seen
  void wait(const Line& line) {
    const Duration time = time_of(line.words[1], world_.limits);
    world_.now += time;
    if (line.says("report")) world_.report->in_state += time;
  }
  void go_on(const Line& line) {
    if (!line.has("but")) return advance(world_);
    const cluster::Pod stuck = pod(line.text("but"));  // its kubelet does not do what it is told
    advance(world_);
    world_.pods.push_back(stuck);
  }
  void settle_all(const Line&) { settle(world_); }
  void pass(const Line& line) {
    for (int i = 0; i < std::atoi(line.words[1].c_str()); ++i) {
      last_ = plan::step(world_);
      for (const RecordEvent& each : actions_of<RecordEvent>(last_)) out_ += "  " + event_text(each) + "\n";
      world_.now += time_of(line.text("each"), world_.limits);
    }
  }

  // ---- what the coordinator says

  void finished(const Line& line) {
    for (std::size_t i = 1; i < line.words.size(); ++i) {
      const Place place = place_of(line.words[i]);
      for (ReportedMember& each : world_.report->members)
        each.finished = each.finished || (each.role == place.role && each.index == place.index);
    }
  }
  void take_over(const Line& line) {
    if (world_.report) world_.report = JobReport{};
    if (world_.report) world_.report->attempt = world_.job.status.restarts.attempt;
    if (line.says("without")) world_.report.reset();
  }
  void join(const Line& line) {
    for (std::size_t i = 1; i < line.words.size(); ++i) {
      const Place place = place_of(line.words[i]);
      world_.report->members.push_back({{.role = place.role, .index = place.index}});
    }
    note_pod_observations(world_);
  }
  void report(const Line& line) {
    if (!world_.report) return;
    JobReport& report = *world_.report;
    for (int i = 0; i < 6; ++i) {
      if (line.text("phase") == job_state_name(static_cast<JobState>(i)))
        report.state = static_cast<JobState>(i);
    }
    if (line.has("attempt")) report.attempt = line.number("attempt");
    if (line.has("in_phase")) report.in_state = time_of(line.text("in_phase"), world_.limits);
    if (line.has("view")) report.generation.value = static_cast<std::uint64_t>(line.number("view"));
    if (line.has("step"))
      report.progress = {.step = line.number("step"), .total_steps = line.number("total")};
    if (line.has("eta")) report.progress.eta_seconds = static_cast<double>(line.number("eta"));
    if (line.has("model")) report.model_path = line.text("model");
    if (line.has("checkpoint")) report.checkpoint_path = line.text("checkpoint");
    if (line.has("reason")) report.reason = line.text("reason");
    if (line.has("refused"))
      report.refused.push_back(line.text("refused") == "stranger" ? "stranger"
                                                                  : pod(line.text("refused")).uid);
    if (line.has("without")) {
      const Place place = place_of(line.text("without"));
      std::erase_if(report.members, [&](const ReportedMember& each) {
        return each.role == place.role && each.index == place.index;
      });
    }
    note_pod_observations(world_);
  }
  void fault(const Line& line) {
    const Place place = place_of(line.words[1]);
    api::Fault& fault = world_.report->fault.emplace();
    fault.role = place.role;
    fault.index = place.index;
    if (line.says("named")) {
      fault.pod = pod(line.words[1]).spec.name;
      fault.step = 120;
    }
    if (line.has("kind")) fault.kind = named<api::FaultKind>(line.text("kind"), 15);
    if (line.has("exit")) fault.exit_code = static_cast<int>(line.number("exit"));
    if (line.has("signal")) fault.signal = static_cast<int>(line.number("signal"));
    if (line.has("evidence"))
      fault.evidence = {{named<api::ObservationKind>(line.text("evidence"), 20), line.text("detail")}};
    if (line.has("victim"))
      fault.victims = {{place_of(line.text("victim")).role,
                        place_of(line.text("victim")).index,
                        {api::ObservationKind::kLostLink, line.words[1]}}};
    world_.report->fault_age = time_of(line.text("age"), world_.limits);
  }
  void lose(const Line& line) {
    const Place place = place_of(line.words[1]);
    const std::string name =
        pod_name(world_.job, place.role, place.index, wanted_attempt(world_.job, place.role, place.index));
    LostMember lost{.fault = {.role = place.role, .index = place.index, .pod = name},
                    .age = time_of(line.text("age"), world_.limits)};
    if (line.has("kind")) lost.fault.kind = named<api::FaultKind>(line.text("kind"), 15);
    world_.report->lost.push_back(std::move(lost));
  }
  void saved(const Line& line) {
    world_.report->last_save = LastSave{line.number("step"), line.text("error")};
    if (line.number("step") == 0) world_.report->last_save.reset();
  }
  void create_failure(const Line& line) {
    world_.create_failure =
        CreateFailure{std::atoi(line.words[1].c_str()), "fashion-worker-0-0", line.text("error")};
    if (world_.create_failure->count == 0) world_.create_failure.reset();
  }

  // ---- what the planner says

  void look(const Line& line) {
    last_ = plan::plan(world_);
    if (line.words[0] == "plan") apply(last_, world_);
    out_ = "  " + text_of(last_) + "\n";
  }

  std::string event_text(const RecordEvent& told) const {
    EXPECT_EQ(told.event.job_uid, world_.job_uid);
    return str_cat(told.event.warning ? "warning " : "event ", told.event.reason);
  }
  std::string text_of(const Plan& made) const {
    std::vector<std::string> created, deleted, parts;
    for (const Action& action : made.actions) {
      if (const auto* create = std::get_if<CreatePod>(&action)) created.push_back(shown(create->spec.name));
      if (const auto* gone = std::get_if<DeletePod>(&action)) {
        EXPECT_FALSE(gone->uid.empty());
        deleted.push_back(str_cat(shown(gone->name), "/", format_duration(gone->grace)));
      }
      if (const auto* told = std::get_if<RecordEvent>(&action)) parts.push_back(event_text(*told));
      if (std::holds_alternative<DeleteJob>(action))
        parts.push_back(str_cat("delete job ", std::get<DeleteJob>(action).uid));
    }
    if (!deleted.empty()) parts.insert(parts.begin(), "delete " + joined(deleted));
    if (!created.empty()) parts.insert(parts.begin(), "create " + joined(created));
    if (!made.gone.empty()) parts.push_back("gone " + joined(made.gone));
    std::vector<std::string> absent;
    for (const AbsentMember& each : made.absent) absent.push_back(shown(each.pod));
    if (!absent.empty()) parts.push_back("absent " + joined(absent));
    if (made.leader_finished) parts.emplace_back("the leader has finished");
    if (made.failed_pod) parts.push_back("log of " + shown(made.failed_pod->spec.name));
    if (made.requeue_after && *made.requeue_after != world_.limits.refresh)
      parts.push_back(str_cat("again in ", format_duration(*made.requeue_after)));
    if (made.done) parts.emplace_back("done");
    std::string text = api::name(made.status.phase);
    if (!made.status.reason.empty()) text += " " + made.status.reason;
    if (made.status.restarts.attempt > 0) text += str_cat(", attempt ", made.status.restarts.attempt);
    for (const std::string& part : parts) text += " | " + part;
    return text;
  }
  static std::string joined(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : " ") + shown(name);
    return text;
  }

  void told(const Line&) {
    for (const RecordEvent& each : actions_of<RecordEvent>(last_))
      out_ += str_cat("  ", each.event.message, "\n");
  }
  void why(const Line&) { out_ = str_cat("  ", last_.status.message, "\n"); }

  // The members that the line names, or all.
  void members(const Line& line) {
    for (const api::MemberStatus& each : last_.status.members) {
      const std::string name = str_cat(role_name(each.role), "-", each.index);
      if (line.words.size() > 1 && !line.says(name)) continue;
      out_ +=
          str_cat("  ", shown(each.pod), " ", each.phase, ", rank ", each.rank, ", step ", each.step, "\n");
    }
  }
  void counts(const Line&) {
    std::string text;
    for (const api::ReplicaStatus& each : last_.status.replica_statuses)
      text += str_cat(text.empty() ? "  " : "; ", role_name(each.role), " ", each.active, " active, ",
                      each.ready, " ready, ", each.succeeded, " succeeded, ", each.failed, " failed");
    out_ = text + "\n";
  }
  void conditions(const Line&) {
    std::string text = " ";
    for (const api::Condition& each : last_.status.conditions)
      text += str_cat(" ", each.status ? "" : "no ", each.type, "(", each.reason, ")");
    out_ = text + "\n";
  }
  void restarts(const Line&) {
    const api::Restarts& restarts = last_.status.restarts;
    std::string text =
        str_cat("  total ", restarts.total, ", in a row ", restarts.in_a_row, ", size ", restarts.size);
    for (const api::RestartCount& each : restarts.by_cause)
      text += str_cat(", ", role_name(each.role), " ", api::name(each.cause), " ", each.count);
    for (const api::Replacement& each : restarts.replacements)
      text += str_cat(", replaced ", role_name(each.role), "-", each.index, " ", each.count);
    for (const api::RestartTime& each : restarts.recent)
      text += str_cat(", ", each.count, " ", format_duration(world_.now - each.at), " ago");
    for (const api::Replacement& each : restarts.replacements) {
      if (each.not_before && *each.not_before > world_.now)
        text += str_cat(", ", role_name(each.role), "-", each.index, " not before ",
                        format_duration(*each.not_before - world_.now));
    }
    if (restarts.not_before)
      text += str_cat(", not before ", format_duration(*restarts.not_before - world_.now));
    out_ = text + "\n";
  }
  void at_fault(const Line&) {
    const auto& fault = last_.status.fault;
    if (!fault) {
      out_ = "  nobody\n";
      return;
    }
    std::string text = str_cat("  ", role_name(fault->role), "-", fault->index, " ", api::name(fault->kind),
                               ", ", api::name(fault->cause));
    for (const api::Observation& seen : fault->evidence) text += str_cat(", ", api::name(seen.kind));
    for (const api::Victim& victim : fault->victims)
      text += str_cat(", victim ", role_name(victim.role), "-", victim.index);
    out_ = text + (fault->provisional_since ? ", provisional\n" : "\n");
  }
  void pods(const Line&) {
    std::string text = " ";
    for (const cluster::Pod& each : world_.pods)
      text += str_cat(" ", shown(each.spec.name), each.ended() ? "(ended)" : "");
    out_ = text + (world_.pods.empty() ? " none\n" : "\n");
  }
  void progress(const Line&) {
    const api::Status& status = last_.status;
    out_ = str_cat("  view ", status.view.generation.value, " of ", status.view.size, ", step ",
                   status.progress.step, ", checkpoint ",
                   status.last_checkpoint.empty() ? "none" : status.last_checkpoint, ", model ",
                   status.model.empty() ? "none" : status.model, ", eta ",
                   status.progress.eta_seconds ? str_cat(*status.progress.eta_seconds) : "none", ", started ",
                   status.start_time ? format_duration(world_.now - *status.start_time) + " ago" : "never",
                   status.completion_time ? ", completed\n" : "\n");
  }

  Observed world_;
  Plan last_;
  std::string out_;
};

class Player {
 public:
  std::string play(const Line& line) {
    const std::string& command = line.words.at(0);
    if (command == "keep") return kept_.push_back(worlds_), "";
    if (command == "back") {
      worlds_ = kept_.back();
      return kept_.pop_back(), "";
    }
    if (command == "running" || command == "fresh") {
      worlds_ = {World()};
      kept_.clear();
    }
    std::vector<World> next;
    std::vector<std::pair<std::string, std::vector<std::size_t>>> outputs;  // with their worlds
    for (const World& world : worlds_) {
      for (const auto& [chosen, choice] : choices(line)) {
        World& made = next.emplace_back(world);
        made.chosen.insert(made.chosen.end(), chosen.begin(), chosen.end());
        const std::string output = made.play(choice);
        auto same = std::ranges::find(outputs, output, [](const auto& each) { return each.first; });
        if (same == outputs.end()) same = outputs.insert(same, {output, {}});
        same->second.push_back(next.size() - 1);
      }
    }
    worlds_ = std::move(next);
    if (outputs.size() == 1) return outputs[0].first;
    std::string text;
    for (const auto& [output, indices] : outputs) text += str_cat("  [", label_of(indices), "]\n", output);
    return text;
  }

 private:
  // These worlds' choices: of the one that makes the difference, where one alone does.
  std::string label_of(const std::vector<std::size_t>& indices) const {
    for (std::size_t at = 0; at < worlds_[0].chosen.size(); ++at) {
      std::vector<std::string> mine, all;
      for (std::size_t i = 0; i < worlds_.size(); ++i) {
        const std::string& choice = worlds_[i].chosen[at];
        const bool is_mine = std::ranges::count(indices, i) > 0;
        if (is_mine && std::ranges::count(mine, choice) == 0) mine.push_back(choice);
        if (!is_mine) all.push_back(choice);
      }
      if (std::ranges::none_of(mine,
                               [&](const std::string& each) { return std::ranges::count(all, each) > 0; }))
        return text_of(mine, ", ");
    }
    std::vector<std::string> full;
    for (const std::size_t i : indices) full.push_back(text_of(worlds_[i].chosen, " "));
    return text_of(full, ", ");
  }
  static std::string text_of(const std::vector<std::string>& words, std::string_view between) {
    std::string text;
    for (const std::string& word : words) text += str_cat(text.empty() ? "" : between, word);
    return text;
  }

  // The line for each choice of its values, with what is chosen.
  using Choice = std::pair<std::vector<std::string>, Line>;
  static std::vector<Choice> choices(const Line& line) {
    std::vector<Choice> all = {{{}, line}};
    for (const auto& [key, value] : line.values) {
      if (value.find('|') == std::string::npos) continue;
      std::vector<Choice> next;
      for (const Choice& one : all) {
        for (std::size_t begin = 0; begin <= value.size();) {
          const std::size_t end = std::min(value.find('|', begin), value.size());
          Choice& made = next.emplace_back(one);
          made.first.push_back(value.substr(begin, end - begin));
          made.second.values[key] = made.first.back();
          begin = end + 1;
        }
      }
      all = std::move(next);
    }
    return all;
  }

  std::vector<World> worlds_;
  std::vector<std::vector<World>> kept_;
};

std::string run_transcript(const std::string& transcript) {
  Player player;
  return replay(transcript, [&](const std::string& command) { return player.play(Line(command)); });
}

const std::filesystem::path kFolder =
    std::filesystem::path(source_path("tests/unit/controller/plan/testdata"));

class TranscriptTest : public ::testing::TestWithParam<std::string> {};

TEST_P(TranscriptTest, HappensAsWritten) {
  happens_as_written(kFolder, GetParam(), run_transcript);
}

INSTANTIATE_TEST_SUITE_P(Plan, TranscriptTest, ::testing::ValuesIn(transcripts(kFolder)),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace paceline::plan

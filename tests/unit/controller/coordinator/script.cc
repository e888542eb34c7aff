#include "tests/unit/controller/coordinator/script.h"

#include <algorithm>
#include <cstdlib>
#include <iomanip>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "controller/coordinator/core.h"
#include "controller/diagnosis/fault_text.h"
#include "tests/support/script_line.h"
#include "tests/support/transcript.h"

namespace paceline::coordinator {

namespace {

using std::chrono::milliseconds;

LossDecision next_view(const api::Fault&, int) {
  return {LossAction::kFormNextView, "the script's policy: go on"};
}

using Line = paceline::ScriptLine;

constexpr RebalanceRules kRules{.lost_seconds = 0};

Role role_of(const std::string& name) {
  for (const Role role : {Role::kChief, Role::kWorker, Role::kServer, Role::kEvaluator}) {
    if (name == role_name(role)) return role;
  }
  return static_cast<Role>(9);
}

StreamId stream_of(const std::string& word) {
  return {static_cast<std::uint64_t>(std::strtoull(word.c_str() + 1, nullptr, 10))};
}

std::string seconds(Duration duration) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(2) << std::chrono::duration<double>(duration).count() << "s";
  return out.str();
}

class Player {
 public:
  std::string play(const Line& line) {
    out_.str("");
    const std::string& command = line.words[0];
    if (command == "job") {
      make(line);
    } else if (command == "wait" || command == "away") {
      pass(milliseconds(std::atoi(line.words[1].c_str())), command == "wait");
    } else if (command == "alive") {
      alive_.assign(line.words.begin() + 1, line.words.end());
    } else if (command == "report") {
      print(core_->report(now_));
    } else {
      if (line.words[0] == "leave" && line.words[2] == "finished" && generation_ > 0)
        beat_last(line.words[1]);
      feed(input(line));
    }
    return out_.str();
  }

 private:
  void make(const Line& line) {
    CoreConfig config;
    config.job = "default/digits";
    config.link_key = std::string(32, 'k');
    for (const Role role : {Role::kChief, Role::kWorker, Role::kServer, Role::kEvaluator})
      config.roles.push_back({role, static_cast<int>(line.number(role_name(role)))});
    standby_ = static_cast<int>(line.number("standby"));
    for (ExpectedRole& each : config.roles) each.standby = each.role == Role::kWorker ? standby_ : 0;
    if (line.has("ps")) use_servers(line, config);
    config.form_timeout = config.start_timeout = milliseconds(line.number("form", 10000));
    config.same_machine = line.number("elsewhere") == 0;
    config.rejoin_grace = milliseconds(line.number("rejoin", 0));
    config.trained_before = line.number("trained") != 0;
    config.built_in = line.number("built_in") != 0;
    config.told_generation.value = static_cast<std::uint64_t>(line.number("told"));
    config.attempt = line.number("attempt");
    if (line.has("reached")) config.restarts_from = line.number("reached");
    if (line.has("chief_incarnation"))
      config.incarnations.push_back({Role::kChief, 0, line.number("chief_incarnation")});
    config.min_trainers = static_cast<int>(line.number("min", 1));
    config.elastic = line.has("policy") || line.has("min");
    if (line.text("policy") == "next") config.on_member_lost = next_view;
    if (line.text("policy") == "Never")
      config.on_member_lost =
          ring_policy({.least = static_cast<int>(line.number("least", line.number("min", 1)))});
    if (line.text("policy") == "OnFailure" || line.text("policy") == "ExitCode") {
      using enum api::RestartPolicy;
      const api::RestartPolicy policy = line.text("policy") == "ExitCode" ? kExitCode : kOnFailure;
      const auto scope =
          line.text("worker_scope") == "Job" ? api::RestartScope::kJob : api::RestartScope::kReplica;
      config.on_member_lost = ring_policy({.chief = policy, .worker = policy, .worker_scope = scope});
    }
    if (line.has("handover"))
      config.handover = {Role::kWorker, static_cast<int>(line.number("handover")), line.number("number", 1)};
    if (line.has("given_up"))
      config.given_up = {
          {Role::kWorker, static_cast<int>(line.number("given_up")), line.number("number", 1)}};
    config.training.set_global_batch_size(line.number("batch"));
    config.training.set_encrypts_links(line.has("encrypts"));
    if (line.has("rebalance")) config.rebalance = kRules;
    if (line.has("preflight"))
      config.preflight = PreflightRules{.factor = static_cast<double>(line.number("preflight")),
                                        .excludes = line.has("excludes"),
                                        .most = static_cast<int>(line.number("excludes")),
                                        .replaced = {Role::kWorker}};
    config.save_request = line.text("save");
    if (line.has("lost")) config.lost.push_back({.fault = {.index = static_cast<int>(line.number("lost"))}});
    if (line.has("finished"))
      config.finished.push_back({Role::kWorker, static_cast<int>(line.number("finished"))});
    PL_CHECK(validate(config).ok(), "the script's job");
    attempt_ = config.attempt;
    chiefs_ = static_cast<int>(line.number("chief"));
    workers_ = static_cast<int>(line.number("worker"));
    members_ = chiefs_ + workers_ + static_cast<int>(line.number("ps"));
    core_ = std::make_unique<CoordinatorCore>(config, now_);
  }

  static void use_servers(const Line& line, CoreConfig& config) {
    v1::ParameterServerSpec& spec = *config.training.mutable_parameter_server();
    const std::string mode = line.text("mode");
    if (mode == "async") spec.set_synchronization(v1::ParameterServerSpec::ASYNCHRONOUS);
    if (mode == "ssp") spec.set_synchronization(v1::ParameterServerSpec::BOUNDED_STALENESS);
    spec.set_workers(line.number("chief") + line.number("worker"));
    spec.set_gradients_per_step(line.number("gradients", spec.workers()));
    config.on_member_lost = loss_policy(config.training, {});
  }

  void pass(Duration time, bool listening) {
    const TimePoint until = now_ + time;
    if (!listening) now_ = until;
    while (now_ < until) {
      now_ += milliseconds(50);
      if ((now_.time_since_epoch() % milliseconds(200)) == Duration::zero()) {
        for (const std::string& stream : alive_) feed(input(last_beat(stream)));
      }
      feed(Tick{});
    }
  }

  // A member sends a heartbeat before its goodbye.
  void beat_last(const std::string& stream) {
    Line beat = last_beat(stream);
    beat.values["phase"] = "FINISHED";
    feed(input(beat));
  }

  Line last_beat(const std::string& stream) const {
    const auto it = beats_.find(stream);
    return it != beats_.end() ? it->second : Line("beat " + stream + " gen=" + std::to_string(generation_));
  }

  Input input(const Line& line) {
    const std::string& command = line.words[0];
    if (command == "stop") return Stop{line.words[1], line.words.size() > 2 && line.words[2] == "another"};
    if (command == "absent")
      return AbsentMember{role_of(line.words[1]),
                          std::atoi(line.words[2].c_str()),
                          line.text("pod"),
                          {api::ObservationKind::kNotJoined, line.text("within")}};
    if (command == "handover") {
      if (line.words[1] == "none") return Handover{};
      return Handover{Incarnation{role_of(line.words[1]), std::atoi(line.words[2].c_str()),
                                  std::atoi(line.words[3].c_str())}};
    }
    if (command == "rebalance")
      return Rebalance{line.words[1] == "on" ? std::optional(kRules) : std::nullopt};
    if (command == "refused") return Refused{line.words[1]};
    if (command == "save") return Save{line.words.size() > 1 ? line.words[1] : ""};
    if (command == "resize") {
      Resize resize{
          {{Role::kChief, chiefs_}, {Role::kWorker, static_cast<int>(line.number("worker")), standby_}}};
      if (line.has("least"))
        resize.on_member_lost = ring_policy({.least = static_cast<int>(line.number("least"))});
      return resize;
    }
    if (command == "pod") {
      PodFact fact{role_of(line.words[1]),
                   std::atoi(line.words[2].c_str()),
                   line.text("pod", "pod-" + line.words[1] + line.words[2]),
                   {},
                   {},
                   line.text("words")};
      if (line.has("exit")) fact.exit_code = static_cast<int>(line.number("exit"));
      if (line.has("signal")) fact.signal = static_cast<int>(line.number("signal"));
      fact.deleted = line.has("deleted");
      fact.incarnation = line.number("incarnation", attempt_);
      return fact;
    }
    const StreamId stream = stream_of(line.words[1]);
    if (command == "end") return StreamEnded{stream, line.text("reason")};
    if (command == "hello") return Attached{stream, hello(line)};
    v1::MemberMessage message;
    if (command == "beat") *message.mutable_heartbeat() = heartbeat(line);
    if (command == "again") message.mutable_hello();
    if (command == "fault") {
      message.mutable_peer_fault()->set_peer_member_id(line.words[2]);
      message.mutable_peer_fault()->set_generation(
          static_cast<std::uint64_t>(line.number("gen", generation_)));
      message.mutable_peer_fault()->set_reason(line.text("reason", "connection reset"));
    }
    if (command == "leave") {
      const std::map<std::string, v1::Leaving::Outcome> outcomes = {{"finished", v1::Leaving::FINISHED},
                                                                    {"failed", v1::Leaving::FAILED},
                                                                    {"stopped", v1::Leaving::STOPPED}};
      message.mutable_leaving()->set_outcome(outcomes.at(line.words[2]));
      message.mutable_leaving()->set_reason(line.text("reason"));
      const std::map<std::string, v1::Leaving::Cause> causes = {
          {"", v1::Leaving::OTHER},
          {"OutOfMemory", v1::Leaving::OUT_OF_MEMORY},
          {"NotFinite", v1::Leaving::NOT_FINITE},
          {"DataUnreadable", v1::Leaving::DATA_UNREADABLE}};
      message.mutable_leaving()->set_cause(causes.at(line.text("cause")));
      message.mutable_leaving()->set_model_path(line.text("model"));
      message.mutable_leaving()->set_checkpoint_path(line.text("checkpoint"));
      message.mutable_leaving()->set_follows(line.number("follows") != 0);
    }
    if (command == "caught") {
      message.mutable_caught_up()->set_generation(
          static_cast<std::uint64_t>(line.number("gen", generation_)));
      message.mutable_caught_up()->set_error(line.text("error"));
    }
    if (command == "checked") {
      v1::PreflightResult& result = *message.mutable_preflight();
      result.set_number(static_cast<std::uint64_t>(line.number("number")));
      result.set_compute_seconds(static_cast<double>(line.number("compute_ms")) / 1000);
      result.set_link_seconds(static_cast<double>(line.number("link_ms")) / 1000);
      result.mutable_address()->set_local_socket(line.words[1]);
      result.set_error(line.text("error"));
    }
    if (command == "checkpoint") {
      message.mutable_checkpoint()->set_step(line.number("step"));
      message.mutable_checkpoint()->set_path(line.text("path"));
      message.mutable_checkpoint()->set_error(line.text("error"));
    }
    return Received{stream, message};
  }

  v1::Hello hello(const Line& line) const {
    const std::string &role = line.words[2], &index = line.words[3];
    v1::Hello hello;
    hello.set_protocol_version(static_cast<std::uint32_t>(line.number("version", 1)));
    hello.set_member_id(line.text("id", role + index));
    hello.set_job(line.text("job", "default/digits"));
    hello.set_role(static_cast<v1::RoleKind>(role_of(role)));
    hello.set_index(static_cast<std::uint32_t>(std::atoi(index.c_str())));
    hello.set_pod(line.text("pod", "pod-" + role + index));
    hello.set_host("host-a");
    hello.set_host_id(line.text("on", ""));
    hello.set_pid(100 + std::atoi(index.c_str()));
    hello.set_held_generation(static_cast<std::uint64_t>(line.number("held")));
    hello.set_known_generation(static_cast<std::uint64_t>(line.number("known")));
    hello.set_attempt(line.number("attempt", attempt_));
    hello.set_incarnation(line.number("incarnation", attempt_));
    hello.set_catches_up(line.number("catches", 1) != 0);
    hello.set_answers_preflight(line.number("checks", 1) != 0);
    hello.set_speaks_tls(line.number("tls", 1) != 0);
    const int place =
        std::atoi(index.c_str()) + (role == "chief" ? 0 : chiefs_) + (role == "ps" ? workers_ : 0);
    hello.set_held_rank(static_cast<std::uint32_t>(line.number("rank", place)));
    hello.set_held_share(std::atof(line.text("share").c_str()));
    hello.set_held_size(static_cast<std::uint32_t>(line.number("size", members_)));
    return hello;
  }

  v1::Heartbeat heartbeat(const Line& line) {
    v1::Heartbeat beat;
    beat.set_generation(static_cast<std::uint64_t>(line.number("gen", generation_)));
    beat.set_number(static_cast<std::uint64_t>(line.number("number")));
    beat.set_step(line.number("step"));
    beat.set_steps(line.number("steps"));
    beat.mutable_times()->set_step_ns(line.number("step_ms") * line.number("steps") * 1'000'000);
    beat.set_samples(line.number("samples"));
    beat.set_total_steps(line.number("total"));
    v1::MemberPhase phase = v1::TRAINING;
    (void)v1::MemberPhase_Parse(line.text("phase", "TRAINING"), &phase);
    beat.set_phase(phase);
    beat.set_weights_hash(static_cast<std::uint64_t>(line.number("hash")));
    beat.set_weights_hash_step(line.number("hash_step"));
    for (int i = 0; i < line.number("records"); ++i) {
      v1::StepRecord& record = *beat.add_records();
      record.set_step(line.number("step") - line.number("records") + i + 1);
      record.set_loss(0.5);
    }
    if (line.has("evaluation")) {
      v1::EvaluationRecord& record = *beat.add_evaluations();
      record.set_step(line.number("evaluation"));
      record.set_accuracy(0.5);
    }
    if (line.has("busy_ms")) {
      v1::ServerStats& server = *beat.mutable_server();
      server.set_busy_ns(line.number("busy_ms") * 1'000'000);
      server.set_bytes_received(static_cast<std::uint64_t>(line.number("in")));
      server.set_bytes_sent(static_cast<std::uint64_t>(line.number("out")));
      server.set_queue(line.number("queue"));
    }
    if (line.has("dropped")) {
      beat.mutable_staleness()->set_dropped(line.number("dropped"));
      beat.mutable_staleness()->set_max(line.number("stale"));
    }
    if (line.has("begun_ms")) {
      beat.mutable_view_begin()->set_step(line.number("step"));
      beat.mutable_view_begin()->set_view_ns(line.number("begun_ms") * 1'000'000);
    }
    v1::StepPart part = v1::PART_NONE;
    (void)v1::StepPart_Parse("PART_" + line.text("part", "NONE"), &part);
    beat.set_part(part);
    beat.set_part_ns(line.number("part_ms") * 1'000'000);
    beat.set_dropped_samples(line.number("left"));
    if (line.has("gpu")) beat.mutable_gpu()->set_name(line.text("gpu"));
    for (int i = 0; i < line.number("times"); ++i) {
      v1::StepTimes& times = *beat.add_step_times();
      times.set_compute_ns(line.number("own_ms") * 1'000'000);
      times.set_left_out_ns(line.number("left_ms") * 1'000'000);
      beat.add_step_time_steps(line.number("first", 1) + i);
    }
    Line repeated("beat " + line.words[1]);
    for (const char* key : {"gen", "phase", "step", "samples"}) {
      if (line.has(key)) repeated.values[key] = line.text(key);
    }
    beats_.insert_or_assign(line.words[1], repeated);
    return beat;
  }

  void feed(const Input& input) { print(core_->step(input, now_)); }

  std::ostream& at() { return out_ << std::setw(6) << now_.time_since_epoch() / milliseconds(1) << "  "; }

  void print(const Effects& effects) {
    for (const std::string& reason : effects.reasons) at() << reason << "\n";
    for (const Send& send : effects.send)
      at() << "-> s" << send.stream.value << " " << describe(send.message) << "\n";
    for (const StreamId& stream : effects.close) at() << "-- s" << stream.value << " closed\n";
    if (effects.preflight)
      at() << "PREFLIGHT " << api::name(effects.preflight->outcome) << ": " << effects.preflight->message
           << "\n";
    if (effects.view) {
      generation_ = static_cast<std::int64_t>(effects.view->generation.value);
      beats_.clear();
      at() << "VIEW " << generation_ << ":";
      for (const std::string& member : effects.view->members) out_ << " " << member;
      out_ << "\n";
    }
    if (effects.rebalance) at() << "REBALANCE: " << effects.rebalance->message << "\n";
    for (const StepRecord& record : effects.steps) at() << "record of step " << record.step << "\n";
    for (const MemberSteps& steps : effects.member_steps)
      at() << "times of " << steps.steps.size() << " steps, rank " << steps.rank << "\n";
    for (const EvaluationRecord& e : effects.evaluations) at() << "evaluation of step " << e.step << "\n";
    for (const CheckpointRecord& c : effects.checkpoints)
      at() << "checkpoint of step " << c.step << " in " << c.path << "\n";
    if (effects.verdict) print("VERDICT ", *effects.verdict);
    for (const api::Fault& lost : effects.lost) print("LOST ", lost);
  }

  void print(const char* what, const api::Fault& fault) {
    at() << what << api::name(fault.kind) << ": " << diagnosis::message_of(fault) << "\n";
    for (const api::Victim& victim : fault.victims) at() << "  victim " << diagnosis::text_of(victim) << "\n";
  }

  // In thousandths; empty: all are equal.
  static std::string shares_of(const v1::View& view) {
    std::string text;
    bool even = true;
    for (const v1::ViewMember& each : view.members()) {
      if (each.share() == 0) continue;  // a server's
      text += str_cat(text.empty() ? ", shares " : " ", static_cast<int>(each.share() * 1000 + 0.5));
      even &= each.share() == view.members(0).share();
    }
    return even ? "" : text;
  }

  static std::string describe(const v1::CoordinatorMessage& message) {
    switch (message.kind_case()) {
      case v1::CoordinatorMessage::kWelcome:
        return "Welcome";
      case v1::CoordinatorMessage::kView:
        return str_cat("View ", message.view().generation(), " of ", message.view().members_size(),
                       shares_of(message.view()));
      case v1::CoordinatorMessage::kDrain:
        return str_cat("Drain ", message.drain().generation());
      case v1::CoordinatorMessage::kCatchUp: {
        std::string names;
        for (const v1::ViewMember& each : message.catch_up().group().members())
          names += str_cat(names.empty() ? "" : ", ", each.member_id());
        return str_cat("CatchUp ", message.catch_up().group().generation(), ": ", names);
      }
      case v1::CoordinatorMessage::kPreflight: {
        std::string names;
        for (const v1::ViewMember& each : message.preflight().group().members())
          names +=
              str_cat(names.empty() ? ": " : ", ", each.member_id(), " at ", each.address().local_socket());
        return str_cat("Preflight ", message.preflight().number(), names);
      }
      case v1::CoordinatorMessage::kSave:
        return "Save";
      case v1::CoordinatorMessage::kTaken:
        return str_cat("Taken ", message.taken().heartbeat());
      case v1::CoordinatorMessage::kEvict:
        if (message.evict().discard()) return "Evict (discard)";
        if (message.evict().save()) return "Evict (save)";
        return message.evict().job_finished() ? "Evict (job finished)" : "Evict";
      case v1::CoordinatorMessage::KIND_NOT_SET:
        break;
    }
    return "?";
  }

  void print(const Report& report) {
    at() << job_state_name(report.state) << " " << report.generation.value << ": " << report.reason << "\n";
    for (const MemberReport& m : report.members) {
      at() << "  " << role_name(m.role) << "-" << m.index << " rank " << m.rank
           << (m.attached ? " attached" : "") << (m.left ? " left" : "") << (m.lost ? " lost" : "") << ", "
           << phase_name(m.phase) << ", step " << m.step << ", silent " << seconds(m.silent);
      if (m.telemetry.server)
        out_ << ", load " << static_cast<int>(m.telemetry.server->load * 100 + 0.5) << " %, queue "
             << m.telemetry.server->queue << ", "
             << static_cast<std::int64_t>(m.telemetry.server->bytes_per_second + 0.5) << " bytes/s";
      if (m.telemetry.staleness)
        out_ << ", dropped " << m.telemetry.staleness->dropped << ", stale " << m.telemetry.staleness->max;
      if (m.telemetry.gpu) out_ << ", on " << m.telemetry.gpu->name;
      if (m.telemetry.samples > 0) out_ << ", takes " << m.telemetry.samples;
      if (m.telemetry.dropped_samples > 0) out_ << ", left out " << m.telemetry.dropped_samples;
      out_ << "\n";
    }
    if (report.stragglers) {
      for (const api::Straggler& each : *report.stragglers)
        at() << "  straggler " << member_name(each.role, each.index) << ": " << api::name(each.action) << ": "
             << each.why << "\n";
    }
    at() << "  step " << report.step << "/" << report.total_steps << ", " << report.samples << " samples, "
         << static_cast<int>(report.samples_per_second + 0.5) << "/s, eta "
         << (report.eta ? seconds(*report.eta) : "-") << ", elapsed " << seconds(report.elapsed)
         << ", goodput " << static_cast<int>(report.goodput * 100 + 0.5) << " %\n";
    if (report.weights_checked_step > 0)
      at() << "  weights are equal at step " << report.weights_checked_step << "\n";
    if (const auto& answer = report.save_answer)
      at() << "  " << answer->request << " is answered: step " << answer->step
           << (answer->error.empty() ? "" : ", " + answer->error) << "\n";
    if (!report.checkpoint_path.empty()) at() << "  checkpoint " << report.checkpoint_path << "\n";
    if (report.last_evaluation) at() << "  evaluated at step " << report.last_evaluation->step << "\n";
    for (const LostMember& lost : report.lost)
      at() << "  lost " << member_name(lost.fault.role, lost.fault.index) << ": "
           << diagnosis::message_of(lost.fault) << "\n";
    if (report.successor)
      at() << "  successor of " << member_name(report.successor->role, report.successor->index) << ": "
           << (report.successor->attached ? phase_name(report.successor->phase) : "not here") << "\n";
    if (report.handed_over)
      at() << "  handed over " << member_name(report.handed_over->role, report.handed_over->index) << " to "
           << report.handed_over->number << "\n";
    if (report.shortage)
      at() << "  " << report.shortage->here << " here, " << report.shortage->missing << " missing\n";
    if (!report.model_path.empty()) at() << "  model " << report.model_path << "\n";
  }

  std::unique_ptr<CoordinatorCore> core_;
  TimePoint now_{};
  std::int64_t generation_ = 0, attempt_ = 0;
  int chiefs_ = 0, workers_ = 0, members_ = 0;
  int standby_ = 0;
  std::vector<std::string> alive_;
  std::map<std::string, Line> beats_;
  std::ostringstream out_;
};

}  // namespace

std::string run_transcript(const std::string& transcript) {
  Player player;
  return replay(transcript, [&](const std::string& command) { return player.play(Line(command)); });
}

}  // namespace paceline::coordinator

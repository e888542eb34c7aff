// paceline run FILE: owns a run from its folder to its summary.

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "base/cuda_build.h"
#include "base/machine_load.h"
#include "base/pluralize.h"
#include "base/program.h"
#include "base/status.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "cli/cluster/interrupt.h"
#include "cli/dashboard/local_dashboard.h"
#include "cli/run/failed_save.h"
#include "cli/run/held_checkpoints.h"
#include "cli/run/local_run.h"
#include "cli/run/non_blocking_output.h"
#include "cli/run/output.h"
#include "cli/run/resume.h"
#include "cli/run/run_setup.h"
#include "cli/run/run_state_builder.h"
#include "cli/run/stop_requests.h"
#include "cli/session.h"
#include "cli/state/lost_steps.h"
#include "cli/state/owner_process.h"
#include "cli/state/resume_command.h"
#include "cli/state/run_edits.h"
#include "cli/state/stopped.h"
#include "cli/view/device_text.h"
#include "cli/view/gradients_text.h"
#include "cli/view/load_text.h"
#include "cli/view/outline_text.h"
#include "cli/view/run_cells.h"
#include "controller/api/checkpoint_step.h"
#include "controller/traces/exporter.h"

namespace paceline::cli {

namespace {

using namespace std::chrono_literals;

constexpr Duration kFrameInterval = 100ms;
constexpr Duration kStateInterval = 500ms;
constexpr Duration kStandstill = 5s;    // a busy machine may hold up the loop for a second or two
constexpr auto kStartLimit = 30s;       // of the coordinator and of what starts the members
constexpr auto kEndLimit = 10s;         // after its result is told and written
constexpr int kStoppedReaderMs = 1000;  // who stopped the run does not wait for whoever reads its output

std::unique_ptr<RunOutput> make_output(const std::string& kind, bool live, std::ostream& out) {
  if (kind == "json") return make_json_output(out, ::isatty(STDOUT_FILENO) == 1);
  return live ? make_live_output(out, 1) : make_plain_output(out);
}

std::string no_checkpoint(const absl::Status& status) {
  return str_cat(checkpoint::is_no_fault_of_it(status)
                     ? "whether there is a checkpoint to go on from is not known: "
                     : "there is no checkpoint to go on from: ",
                 status.message());
}

class RunCommand {
 public:
  RunCommand(Session& session, const RunOptions& options) : session_(session), options_(options) {}

  void run() {
    const absl::Status status = without_exceptions([this] {
      run_to_the_end();
      return absl::OkStatus();
    });
    if (!status.ok()) {
      if (setup_.run != nullptr) fail_run("OutOfResources", std::string(status.message()));
      session_.fail(status);
    }
    if (local_ == nullptr) return;
    if (dashboard_ != nullptr) dashboard_->show_end();
    // All is told and written. gRPC waits at its end for threads that it could not start.
    end_within(kEndLimit, session_.exit_code, {SIGINT, SIGTERM, SIGHUP});
    dashboard_.reset();
    local_.reset();
    traces_.reset();
  }

 private:
  void run_to_the_end() {
    signal(SIGPIPE, SIG_IGN);  // a reader that goes away must not kill the training
    // While that is waited for, signals end the process: there is nothing to put in order.
    if (const absl::Status status = read_run_job(options_, setup_); !status.ok())
      return session_.fail(status);
    const auto interrupts = take_signals({SIGINT, SIGTERM, SIGHUP});  // pods get a clean mask
    if (!interrupts.ok()) return session_.fail(interrupts.status());
    const UniqueFd& interrupted = *interrupts;
    if (const absl::Status status = set_up_run(session_, options_, setup_); !status.ok())
      return session_.fail(status);
    live_ = options_.output == "auto" && session_.out_terminal.interactive;
    output_ = make_output(options_.output, live_, stdout_.stream());
    began_from_ = state_.checkpoint;
    output_->started(state_);
    if (!setup_.warning.empty()) output_->note(setup_.warning);
    if (state_.gradients) output_->note(step_text(*state_.gradients));
    if (const std::string text = unsaved_text(setup_.job.job); !text.empty()) output_->note(text);
    if (options_.dashboard) start_dashboard();
    start_traces();
    auto newest = newest_checkpoint(setup_.job, setup_.run->folder());
    if (newest.ok() && *newest) began_ = (*newest)->progress.step;
    const bool none_before = newest.ok() && !*newest;
    if (!setup_.passed_over.empty()) output_->note(setup_.passed_over);
    if (options_.resume) note_checkpoint(std::move(newest));
    if (!setup_.workers.empty()) output_->note(setup_.workers);
    edits_.emplace(setup_.run->folder());
    api::TrainingJob job = setup_.job.job;
    if (noted_) job.status.last_checkpoint = noted_->path;
    if (setup_.earlier) job.status.progress = progress_to_go_on(setup_.earlier->state.progress);
    end_within(kStartLimit, kExitSystem);  // gRPC may wait for good for threads that somebody else took
    const absl::Status started =
        LocalRun::start({.job = std::move(job),
                         .job_uid = state_.name,
                         .base_folder = setup_.job.base_folder,
                         .run_folder = setup_.run->folder(),
                         .program_folder = session_.program_folder,
                         .log_level = options_.log_level,
                         // No attempt of a new run trains where others have saved.
                         .resumes_from = options_.resume ? 0
                                         : none_before   ? 1
                                                         : std::numeric_limits<std::int64_t>::max(),
                         .resume_text = str_cat(
                             "; `", let_go_on_command(session_.state_dir_option, state_.name), "` goes on"),
                         .on_view_change = on_view_change()},
                        session_.clock, local_);
    end_when_ready();
    if (!started.ok()) {
      fail_run("StartFailed", std::string(started.message()));
      return session_.fail(started);
    }
    loop(interrupted);
    finish(interrupted);
  }

  // Without it the run goes on, as it is only looked at there.
  void start_dashboard() {
    const auto store = session_.store();
    auto started = store.ok() ? LocalDashboard::start(*store, 0, session_.clock)
                              : absl::StatusOr<std::unique_ptr<LocalDashboard>>(store.status());
    if (!started.ok()) return output_->note(str_cat("there is no dashboard: ", started.status().message()));
    dashboard_ = *std::move(started);
    output_->note(str_cat("the dashboard, for one browser: ", dashboard_->new_address()));
  }

  reconcile::OnViewChange on_view_change() {
    if (traces_ == nullptr) return nullptr;
    return [this, name = state_.name](const std::string&, const std::string&, const api::ViewChange& change) {
      traces_->add("", name, "", change);
    };
  }

  void start_traces() {
    const auto variable = [](const char* name) {
      const char* const value = std::getenv(name);
      return value == nullptr ? std::nullopt : std::optional<std::string>(value);
    };
    auto started = traces::Exporter::from_environment(
        variable, session_.clock, Logger::to_stderr("paceline", LogLevel::kWarning, LogFormat::kText));
    if (!started.ok()) return output_->note(str_cat("there are no traces: ", started.status().message()));
    traces_ = *std::move(started);
  }

  // Where a resumed run begins: its members will say the same in their logs, or which one they refuse: only
  // they read all of it.
  void note_checkpoint(absl::StatusOr<std::optional<FoundCheckpoint>> newest) {
    if (!newest.ok())
      return output_->note(str_cat("run ", state_.name, ": ", no_checkpoint(newest.status())));
    noted_ = *std::move(newest);
    output_->note(noted_ ? str_cat("run ", state_.name, " goes on; its newest checkpoint is ", noted_->path)
                         : str_cat("run ", state_.name, " has no checkpoint: it begins anew at step 0"));
    if (!noted_) return;
    for (const std::string& refused : noted_->refused)
      output_->note(str_cat("a newer checkpoint is passed over: ", refused));
  }

  void loop(const UniqueFd& interrupted) {
    TimePoint next_frame = session_.clock.now(), next_state = next_frame, last = next_frame;
    while (true) {
      const bool ended = local_->ended();  // before the events, so that none of them is missed
      refresh();  // before them, too: progress must not be ahead of what is told of the steps before it
      take_events();
      print_failure();
      print_device(ended);
      const TimePoint now = session_.clock.now(), before = std::exchange(last, now);
      if (now - before >= kStandstill) local_->stood_still(now - before);
      if (now >= next_frame || ended) {
        stdout_.write_some();
        if (!stdout_.waiting())
          output_->progress(state_);  // else the reader is behind, and gets the newest later
        next_frame = now + kFrameInterval;
      }
      if (now >= next_state) {
        setup_.metrics->flush();
        state_.written = format_wall_time(session_.clock.wall_now());
        note_once(setup_.run->write_state(state_, false));
        if (const auto edit = edits_->look()) local_->edit(*edit);
        note_once(setup_.metrics->status());
        next_state = now + kStateInterval;
      }
      if (ended) return;
      pollfd waits[2] = {{interrupted.get(), POLLIN, 0}, {local_->wake_fd(), POLLIN, 0}};
      const auto wait =
          std::chrono::duration_cast<std::chrono::milliseconds>(next_frame - session_.clock.now()) + 1ms;
      ::poll(waits, 2, static_cast<int>(std::max<std::int64_t>(1, wait.count())));
      if (waits[0].revents != 0) interrupt(interrupted);
      if (waits[1].revents != 0) rest_until(next_frame, interrupted);
    }
  }

  // Members report many times a second; looking at each report at once would only take processors from them.
  void rest_until(TimePoint next_frame, const UniqueFd& interrupted) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(next_frame - session_.clock.now()).count();
    if (left <= 0 || local_->ended()) return;
    pollfd wait{interrupted.get(), POLLIN, 0};
    if (::poll(&wait, 1, static_cast<int>(std::min<std::int64_t>(left, 20))) > 0) interrupt(interrupted);
  }

  void interrupt(const UniqueFd& interrupted) {
    signalfd_siginfo info;
    while (::read(interrupted.get(), &info, sizeof(info)) == sizeof(info)) {
      const bool deletes = info.ssi_code == SI_QUEUE && info.ssi_int == kDeletionNotice;
      const StopRequest request = stops_.add(
          session_.clock.now(), deletes ? std::optional<std::int64_t>(info.ssi_pid) : std::nullopt);
      if (request == StopRequest::kSame) continue;
      local_->stop();
      output_->note(request == StopRequest::kInOrder ? "stopping in order; ctrl-C again stops at once"
                                                     : "stopping at once");
    }
  }

  void take_events() {
    for (const RunEvent& event : local_->take_events()) {
      if (const auto* view = std::get_if<coordinator::ViewRecord>(&event)) {
        setup_.metrics->view(*view);
        output_->view(*view);
      }
      if (const auto* change = std::get_if<api::ViewChange>(&event)) note_view_change(*change);
      if (const auto* change = std::get_if<coordinator::StragglerChange>(&event)) output_->straggler(*change);
      if (const auto* each = std::get_if<api::StragglerReplacement>(&event)) output_->replacement(*each);
      if (const auto* result = std::get_if<api::Preflight>(&event)) output_->preflight(*result);
      if (const auto* rebalance = std::get_if<api::Rebalance>(&event)) output_->rebalance(*rebalance);
      if (const auto* note = std::get_if<RunNote>(&event)) output_->note(note->message);
      if (const auto* steps = std::get_if<std::vector<coordinator::StepRecord>>(&event)) note_steps(*steps);
      if (const auto* steps = std::get_if<coordinator::MemberSteps>(&event))
        setup_.metrics->member_steps(*steps);
      if (const auto* checkpoint = std::get_if<coordinator::CheckpointRecord>(&event))
        checkpoints_.add(*checkpoint, session_.clock.now());
      if (const auto* evaluation = std::get_if<coordinator::EvaluationRecord>(&event)) {
        const bool observed = !evaluation->observer.empty();
        print_checkpoints(observed ? evaluation->step : evaluation->step - 1);
        setup_.metrics->evaluation(*evaluation);
        output_->evaluation(state_, *evaluation);
      }
    }
    print_checkpoints(last_step_.step);
  }

  // Those of steps up to this one.
  void print_checkpoints(Step told) {
    for (const auto& checkpoint : checkpoints_.take(told, session_.clock.now()))
      output_->checkpoint(checkpoint);
  }

  // The first of a resumed run tells whether its newest checkpoint was whole: only its members read all of
  // it.
  void note_view_change(const api::ViewChange& change) {
    const bool first = !std::exchange(begun_, true);
    if (first && noted_ && change.restarted && change.step <= noted_->progress.step) {
      const std::string why = why_passed_over(setup_.run->path("logs"), noted_->path);
      output_->note(
          str_cat(noted_->path, " was passed over, and training goes on from step ", change.step - 1, ": ",
                  why.empty() ? str_cat("`paceline logs ", state_.name, where(), "` says why") : why));
    }
    output_->view_change(change);
  }

  void note_steps(const std::vector<coordinator::StepRecord>& steps) {
    if (steps.empty()) return;
    if (!first_step_) first_step_ = steps.front();
    last_step_ = steps.back();
    setup_.metrics->steps(steps);
  }

  void refresh() {
    const RunState before = state_;
    apply_report(local_->report(), state_, seconds_before(setup_));
    if (!setup_.job.job.spec.training)
      state_.device.clear();  // a program of its own computes wherever it likes
    if (state_.progress.step == 0) keep_earlier(before, state_);  // a new attempt has taken no step yet
    apply_status(local_->status(), state_);
    const std::optional<api::Fault>& fault = state_.status.fault;
    if (state_.phase != "Failed" || !fault || fault->kind != api::FaultKind::kFrozen) return;
    if (!load_) load_ = load_text(machine_load());
    if (load_->empty()) return;
    state_.message.insert(std::min(state_.message.find('\n'), state_.message.size()), str_cat("; ", *load_));
  }

  // Once, when all members are at work. Of a program without CUDA it is said before.
  void print_device(bool ended) {
    if (device_told_ || !first_step_ || state_.device.empty()) return;
    const std::string kinds = training_kinds(state_.members);
    if (kinds.empty() && !ended) return;
    device_told_ = true;
    std::string before = noted_ ? training_kinds(setup_.earlier->state.members) : "";
    if (before == kinds || kinds.empty()) before.clear();
    const std::string note = computing_note(setup_.job.job, device_environment(), state_.device,
                                            built_with_cuda() && has_nvidia_gpu(), before);
    if (!note.empty()) output_->note(note);
  }

  // At once: the other members may take a while to end. Once: where the live view and stderr are one
  // terminal, above the view; else on stderr.
  void print_failure() {
    if (failure_told_ || stops_.any() || state_.phase != "Failed") return;
    failure_told_ = true;
    const std::string text = str_cat("run \"", state_.name, "\" failed: ", state_.message);
    if (live_ && session_.error_terminal.interactive) {
      output_->note(text);
      session_.exit_code = kExitFailed;
    } else {
      session_.fail(kExitFailed, text);
    }
  }

  void finish(const UniqueFd& interrupted) {
    const bool stopped = stops_.any() && !failure_told_ && state_.phase != "Succeeded";
    if (stopped) state_.phase = state_.reason = kStopped;
    if (!is_finished(state_)) {
      state_.phase = "Failed";
      state_.reason = "Lost";
      state_.message = "the controller ended without a result";
    }
    print_failure();
    // Now the mean over the whole run, where the live view shows the last seconds.
    const auto rate = first_step_ ? mean_rate(*first_step_, last_step_, samples_per_step(setup_.job.job)) : 0;
    if (rate) state_.progress.samples_per_second = *rate;
    state_.finished = format_wall_time(session_.clock.wall_now());
    state_.progress.eta_seconds.reset();
    setup_.metrics->flush();
    const auto newest = newest_checkpoint(setup_.job, setup_.run->folder());
    if (newest.ok()) note_last_checkpoint(*newest);
    note_failed_save();
    if (stopped) state_.message = stop_text();
    trained_ = first_step_ || state_.checkpoint != began_from_;
    if (setup_.earlier && !first_step_) keep_earlier(setup_.earlier->state, state_);
    const absl::Status written = write_last_state(setup_, trained_);
    print_checkpoints(std::numeric_limits<Step>::max());
    if (const std::string note = evaluator_note(setup_.job.job.spec, local_->report(), state_, where());
        !note.empty())
      output_->note(note);
    const auto is_deleted = [this] { return std::ranges::any_of(stops_.deleters(), is_alive); };
    output_->finished(is_deleted() ? without_own_paths(state_) : state_);
    output_.reset();
    stdout_.drain(interrupted.get(), stops_.any() ? kStoppedReaderMs : -1);
    if (!written.ok()) session_.fail(written);
    if (!stdout_.status().ok()) session_.fail(stdout_.status());
    deleted_ = is_deleted();  // else who deletes has given up, and the run stays
    tell_end(how_to_resume(newest));
  }

  // `again`: how_to_resume().
  void tell_end(const std::string& again) {
    if (state_.phase == "Failed") {
      const std::string words = joined(failed_save_, again);
      if (!words.empty()) session_.fail(kExitFailed, words);
      session_.exit_code = kExitFailed;
    } else if (state_.phase == kStopped) {
      const bool own_program = !setup_.job.job.spec.training;  // what it has saved is its own
      const std::string end = deleted_        ? ", and is deleted"
                              : own_program   ? ""
                              : again.empty() ? str_cat("; it has no checkpoint to go on from", why_none())
                                              : str_cat("; ", again);
      session_.fail(kExitInterrupted, str_cat("run \"", state_.name, "\" was ", state_.message, end));
    }
  }

  // The newest save counts, where it failed. Of one that was made as the members left only a log tells, which
  // may be an earlier session's.
  void note_failed_save() {
    if (state_.phase == "Succeeded") return;
    std::optional<FailedSave> failed = checkpoints_.failed_save();
    auto logged = logged_failed_save(setup_.run->path("logs"));
    const Step known = failed ? failed->step : std::max(checkpoints_.newest().value_or(-1), began_);
    if (logged && logged->step > known && logged->step <= state_.progress.step) failed = std::move(logged);
    if (!failed) return;
    failed_save_ = failed_save_text(*failed);
    state_.message.insert(std::min(state_.message.find('\n'), state_.message.size()),
                          str_cat("; ", failed_save_));
  }

  static std::string joined(const std::string& first, const std::string& second) {
    return str_cat(first, first.empty() || second.empty() ? "" : "; ", second);
  }

  // "stopped by its user at step 8518"; of one that was stopped at once, or could not save, also what it
  // lost.
  std::string stop_text() const {
    const bool own_program = !setup_.job.job.spec.training;
    const Step step = state_.progress.step;
    if (own_program && step == 0) return "stopped by its user";  // it tells of no steps
    const std::string text = joined(
        str_cat("stopped by its user at step ", step, stops_.at_once() ? ", at once" : ""), failed_save_);
    if (own_program || (failed_save_.empty() && !stops_.at_once())) return text;
    return joined(text, lost_steps_text(step, api::checkpoint_step(state_.checkpoint).value_or(0)));
  }

  // What rank 0 saved when the job had failed already was told to nobody; nor was any step, perhaps.
  void note_last_checkpoint(const std::optional<FoundCheckpoint>& newest) {
    if (state_.phase == "Succeeded" || !newest) return;
    const Step step = newest->progress.step;
    if (!first_step_ && step <= began_) return;
    if (step > api::checkpoint_step(state_.checkpoint).value_or(-1)) state_.checkpoint = newest->path;
    state_.progress.step =
        std::max(state_.progress.step, step);  // the members' last word may be of an earlier one
    if (step > std::max(checkpoints_.newest().value_or(-1), began_))
      checkpoints_.add({.step = step, .path = newest->path, .bytes = newest->bytes}, session_.clock.now());
  }

  std::string how_to_begin_anew() const {
    if (!setup_.job.job.spec.training) return "";
    return str_cat("nothing was saved: ", pluralize(state_.progress.step, "step is", "steps are"),
                   " lost; begin anew with `paceline run ", shell_word(options_.file), where(), "`");
  }

  // Empty where that would lead nowhere: the run is being deleted, has no checkpoint of its own, or has just
  // failed to go on from it.
  std::string how_to_resume(const absl::StatusOr<std::optional<FoundCheckpoint>>& newest) const {
    const bool in_vain = !trained_ && (!setup_.earlier || state_.phase == "Failed");
    if (deleted_ || in_vain) return "";
    if (!newest.ok()) return no_checkpoint(newest.status());
    if (!*newest) return state_.phase == "Failed" ? how_to_begin_anew() : "";
    return str_cat("go on from its newest checkpoint with `",
                   resume_command(session_.state_dir_option, options_.file, state_.name), "`");
  }

  // One that is stopped in order saves its last step, whatever the job says. Empty where its message says
  // why.
  std::string why_none() const {
    if (!first_step_) return ": it had taken no step yet";
    if (stops_.at_once() || !failed_save_.empty()) return "";
    return str_cat(": none was saved; `paceline logs ", state_.name, where(), "` may say why");
  }

  void fail_run(const std::string& reason, const std::string& message) {
    state_.phase = "Failed";
    state_.reason = reason;
    state_.message = message;
    state_.progress.eta_seconds.reset();
    state_.finished = format_wall_time(session_.clock.wall_now());
    (void)write_last_state(setup_, first_step_.has_value());
  }

  std::string where() const { return state_dir_words(session_.state_dir_option); }

  // A full disk must not end a training; its user hears of it once.
  void note_once(const absl::Status& status) {
    if (status.ok() || fault_noted_) return;
    fault_noted_ = true;
    output_->note(std::string(status.message()));
  }

  Session& session_;
  NonBlockingOutput stdout_{STDOUT_FILENO};
  const RunOptions& options_;
  RunSetup setup_;
  RunState& state_ = setup_.state;
  std::unique_ptr<LocalRun> local_;
  std::unique_ptr<LocalDashboard> dashboard_;
  std::unique_ptr<traces::Exporter> traces_;
  std::unique_ptr<RunOutput> output_;
  std::optional<coordinator::StepRecord> first_step_;  // the first that was heard of
  std::optional<FoundCheckpoint> noted_;               // what a resumed run is to go on from
  std::string failed_save_;                            // the newest save failed, and why; empty: it did not
  std::string began_from_;                             // the checkpoint that the state began with
  Step began_ = -1;                                    // of the newest checkpoint before; -1: there was none
  coordinator::StepRecord last_step_;
  HeldCheckpoints checkpoints_;
  std::optional<RunEdits> edits_;
  std::optional<std::string> load_;  // of the machine when a member had stopped answering
  StopRequests stops_;
  bool begun_ = false;  // a view has told of its first step
  bool fault_noted_ = false;
  bool failure_told_ = false;
  bool device_told_ = false;
  bool trained_ = false;  // or saved, in this session
  bool deleted_ = false;  // `paceline delete` has stopped the run, and removes it
  bool live_ = false;
};

}  // namespace

void add_run(CLI::App& app, Session& session) {
  auto* command = app.add_subcommand("run", "Train a TrainingJob with processes of this machine");
  auto options = std::make_shared<RunOptions>();
  command->add_option("FILE", options->file, "TrainingJob file, YAML or JSON; - is standard input")
      ->type_name("")
      ->required();
  command
      ->add_option("--name", options->name,
                   "Name of the run (default: the job's; -2, -3, ... where it is taken)")
      ->type_name("NAME");
  command
      ->add_option("--resume", options->resume,
                   "Continue a run from its newest checkpoint, in its folder (default: the newest run of "
                   "this job that "
                   "has a checkpoint)")
      ->type_name("[RUN]")
      ->expected(0, 1);
  command
      ->add_option("--output", options->output,
                   "auto is a live view on a terminal, else lines (default: auto)")
      ->check(CLI::IsMember({"auto", "plain", "json"}));
  command->add_flag("--dashboard", options->dashboard,
                    "Serve the dashboard while the run goes on, and print its address");
  command->add_option("--log-level", options->log_level, "How much the members log (default: info)")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}));
  command->footer(
      "Ctrl-C stops in order, a second one, half a second later or more, at once. PACELINE_DEVICE in the "
      "environment says where members "
      "compute: auto (default: a GPU where there is one), cpu, cuda, cuda:N.\n\nExamples:\n  paceline run "
      "examples/fashion-allreduce.yaml\n"
      "  paceline run job.yaml --output json | jq .loss\n  paceline run job.yaml --resume");
  command->callback([&session, options] { RunCommand(session, *options).run(); });
}

}  // namespace paceline::cli

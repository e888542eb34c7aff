#pragma once

// A member's process: the real step machine, with a shell that does as runtime/trainer/trainer.cc does, in
// virtual time. Weights are a number into which each step folds its samples, by the real ledger: it says what
// was trained, and in which order.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "runtime/data/ledger.h"
#include "runtime/member/step_clock.h"
#include "runtime/trainer/step_machine.h"
#include "tests/simulation/attachment.h"
#include "tests/simulation/exchange.h"

namespace paceline::simulation {

class Checks;
class Storage;

// How a job's members train, whatever happens to them.
struct Training {
  data::LedgerConfig ledger;
  trainer::StepPlan plan;
  Duration compute = std::chrono::milliseconds(50);  // of a step
  Duration fastest{}, slowest{};                     // step: any time between
  bool follows_shares = false;                       // so long with even shares; else whatever they are
  Duration save = std::chrono::milliseconds(100);    // of a checkpoint
};

// A member is given these, which outlive it.
struct Surroundings {
  Events& events;
  Dice& dice;
  Trace& trace;
  Exchange& exchange;
  Storage& storage;
  Checks& checks;
  const Training& training;
};

class MemberProcess {
 public:
  // `ended`: its exit code.
  MemberProcess(Surroundings around, member::Environment environment, std::string job_uid, Host node,
                Attachment::Open open, std::function<void(int code)> ended);

  void start();
  void ask_to_stop();  // SIGTERM
  void kill();         // SIGKILL, or its node's end
  void pause() { process_.pause(); }
  void resume() {
    process_.resume();
    if (waits_since_) waits_since_ = clock_.now();  // it could do nothing before
  }
  // In its own part of a step, once it has taken a few in a view: before, nobody knows how long one takes.
  void hang() { hangs_ = true; }
  // It hangs no more, where it is alone: else it is found by the others' waiting.
  void recover(bool alone);
  void fail() { fails_ = true; }  // an error of its own, in the next step
  // From the next step on its part takes so many times as long as the others'.
  void slow_down(double factor) { slowness_ = factor; }
  // Its try to attach leads to a controller; `answers`: which does not stand still.
  void tries(bool answers) {
    unanswered_ = answers ? 0 : unanswered_ + 1;
    was_kept_ |= unanswered_ > 1;
  }

  Process& process() { return process_; }
  std::string describe() const;  // what it does, for people
  bool alive() const { return process_.alive(); }
  bool has_finished() const { return machine_.ending() == trainer::Ending::kFinished; }
  // It has finished, failed, or was asked to stop, has saved what it held, and says goodbye.
  bool has_left() const { return machine_.decision().todo >= trainer::Todo::kLeave; }
  bool wrote_model() const { return !model_path_.empty(); }
  bool trains() const { return aligned_ && whole_; }
  // It has a place in no view that trains, and waits for one; since when.
  std::optional<TimePoint> waits_since() const { return waits_since_; }
  std::optional<TimePoint> stepped_at() const { return stepped_at_; }
  bool hangs() const { return hangs_; }
  bool is_stuck() const { return hanging_ || process_.paused(); }  // nothing comes from it
  // Controllers that stood still kept it from the one that leads, perhaps beyond the grace to come back.
  bool was_kept() const { return was_kept_; }
  bool evicted() const { return !attachment_.status().ok(); }
  const std::string& name() const { return name_; }
  std::string pod_key() const;
  const std::string& member_id() const { return attachment_.member_id(); }
  const std::string& job_uid() const { return job_uid_; }
  int attempt() const { return environment_.attempt; }
  const member::Environment& environment() const { return environment_; }
  Host node() const { return node_; }
  Step step() const { return held_step_; }  // applied, in its weights
  std::uint64_t weights() const { return weights_; }
  Host coordinator() const { return attachment_.viewed_by(); }  // of its view
  std::uint64_t generation() const { return view_.generation(); }

 private:
  void go_on(trainer::Decision decision);
  void carry_out();
  void on_change();  // of the attachment, or of a wish to stop
  void look_for_view();
  void align();
  void gather();
  void load();
  void share();
  void begin_training();
  void take_step();
  void compute();
  void applied(const std::vector<Part>& parts);
  void evaluate();
  void save_checkpoint();
  void report_fault();
  void leave();
  void exit(int code);
  void enter(Part part, std::function<void(const std::vector<Part>&)> then);
  void on_error(const absl::Status& error, int faulty);
  void close_links(const absl::Status& why, bool in_order = false);
  void wait_for_end(Duration idle);
  void after(Duration wait, Events::Action action);  // of what it does now
  bool others_go_on() const { return view_.members_size() > 1 && attachment_.welcome().elastic(); }
  bool saves_here() const { return rank_ == 0; }

  Surroundings around_;
  const member::Environment environment_;
  const std::string job_uid_, name_;
  const Host node_;
  const std::function<void(int)> ended_;
  Process process_;
  VirtualClock clock_;
  Attachment attachment_;
  trainer::StepMachine machine_;
  member::StepClock step_clock_;
  std::optional<member::StepClock::Scope> scope_;

  bool stop_requested_ = false, stop_expired_ = false, saving_ = false, hangs_ = false, hanging_ = false,
       fails_ = false;
  double slowness_ = 1;
  int unanswered_ = 0;  // tries in a row
  bool was_kept_ = false;
  bool waits_for_view_ = false, aligned_ = false, whole_ = true, stepped_ = false, to_be_late_ = false;
  std::optional<TimePoint> waits_since_, stepped_at_;
  int steps_in_view_ = 0;
  std::uint64_t doing_ = 0;  // what was begun before counts no more
  v1::View view_;
  int rank_ = -1;
  std::shared_ptr<Communicator> communicator_;
  int linked_rank_ = -1;  // in it, which may be of the view before
  std::optional<trainer::Source> source_;
  std::uint64_t weights_ = 0;
  Step held_step_ = 0;
  trainer::Agreement wishes_, agreed_;
  absl::Status error_;
  std::string checkpoint_path_, model_path_, fault_peer_;
};

}  // namespace paceline::simulation

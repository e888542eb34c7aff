#include "tests/simulation/member_process.h"

#include <algorithm>
#include <utility>

#include "base/process_end.h"
#include "tests/simulation/checks.h"
#include "tests/simulation/storage.h"

namespace paceline::simulation {

using trainer::Decision;
using trainer::Ending;
using trainer::Todo;

namespace {
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kAttachLimit = seconds(60);
constexpr Duration kLoadLimit = std::chrono::minutes(30), kSaveLimit = std::chrono::minutes(30);
constexpr Duration kOthersPatience = seconds(2);  // StopPatience::others
constexpr Duration kLook = milliseconds(100);     // at whether something is being saved
constexpr int kFewSteps = 4;
constexpr std::uint64_t kGarbage = 0xbadbadbadbadbad;

std::vector<double> shares_of(const v1::View& view) {
  std::vector<double> shares;
  for (const v1::ViewMember& member : view.members()) shares.push_back(member.share());
  return shares;
}
}  // namespace

MemberProcess::MemberProcess(Surroundings around, member::Environment environment, std::string job_uid,
                             Host node, Attachment::Open open, std::function<void(int)> ended)
    : around_(around),
      environment_(std::move(environment)),
      job_uid_(std::move(job_uid)),
      name_(environment_.pod),
      node_(node),
      ended_(std::move(ended)),
      process_(around.events),
      clock_(around.events),
      attachment_(environment_, process_, clock_, around.dice, std::move(open), [this] { on_change(); }),
      step_clock_(clock_, &attachment_.progress().current_part()) {}

void MemberProcess::start() {
  attachment_.start();
  process_.after(kAttachLimit, [this] {
    if (!attachment_.welcomed()) exit(kExitEnded);
  });
}

void MemberProcess::after(Duration wait, Events::Action action) {
  process_.after(wait, [this, number = doing_, action = std::move(action)] {
    if (number == doing_) action();
  });
}

void MemberProcess::go_on(Decision) {
  ++doing_;
  scope_.reset();
  after(Duration::zero(), [this] { carry_out(); });
}

void MemberProcess::carry_out() {
  waits_for_view_ = false;
  const bool waits =
      machine_.decision().todo == Todo::kWaitForView || machine_.decision().todo == Todo::kReportFault;
  waits_since_ = waits && !waits_since_ ? std::optional(clock_.now()) : waits ? waits_since_ : std::nullopt;
  member::Progress& progress = attachment_.progress();
  switch (machine_.decision().todo) {
    case Todo::kPrepare:
      progress.set_phase(v1::STARTING);
      return after(around_.dice.between(milliseconds(50), seconds(3)), [this] {
        const data::LedgerConfig& ledger = around_.training.ledger;
        attachment_.progress().set_plan(around_.training.plan.total_steps, ledger.samples, 1);
        go_on(machine_.prepared(around_.training.plan));
      });
    case Todo::kWaitForView:
      progress.set_phase(v1::WAITING);
      waits_for_view_ = true;
      return look_for_view();
    case Todo::kAlign:
      return align();
    case Todo::kStep:
      return take_step();
    case Todo::kEvaluate:
      return evaluate();
    case Todo::kCheckpoint:
      return save_checkpoint();
    case Todo::kWriteModel:
      saving_ = true;
      return after(around_.training.save, [this] {
        saving_ = false;
        model_path_ = "/paceline/model";
        go_on(machine_.model_written());
      });
    case Todo::kReportFault:
      return report_fault();
    case Todo::kLeave:
      return leave();
    case Todo::kExit:
      progress.set_phase(v1::FINISHED);
      switch (machine_.ending()) {
        case Ending::kFinished:
          return exit(kExitFinished);
        case Ending::kFailed:
          return exit(kExitFailed);
        default:
          return exit(kExitEnded);
      }
  }
}

void MemberProcess::exit(int code) {
  if (!process_.alive()) return;
  around_.trace.add(name_, " exits with ", code, " at step ", held_step_, ": ", machine_.decision().reason,
                    attachment_.status().ok() ? "" : ": ", std::string(attachment_.status().message()));
  close_links(absl::AbortedError("its process ends"), machine_.ending() == Ending::kFinished);
  attachment_.drop();
  process_.kill();
  ended_(code);
}

void MemberProcess::kill() {
  close_links(absl::AbortedError("its process is killed"));
  attachment_.drop();
  process_.kill();
}

// ---- wishes to end

void MemberProcess::ask_to_stop() {
  process_.soon([this] {
    if (std::exchange(stop_requested_, true)) return;
    around_.trace.add(name_, " is asked to stop");
    on_change();
    process_.after(kOthersPatience, [this] {
      stop_expired_ = true;
      close_links(absl::AbortedError("this member was stopped"));
      on_change();
      wait_for_end(Duration::zero());
    });
  });
}

void MemberProcess::wait_for_end(Duration idle) {
  if (idle >= kOthersPatience) return exit(kExitEnded);
  process_.after(kLook, [this, idle] { wait_for_end(saving_ ? Duration::zero() : idle + kLook); });
}

void MemberProcess::recover(bool alone) {
  fails_ = false;
  if (hanging_ && !alone && view_.members_size() > 1) return;
  hangs_ = false;
  process_.soon([this] {
    if (std::exchange(hanging_, false)) compute();
  });
}

std::string MemberProcess::describe() const {
  return str_cat(name_, ": ", trainer::todo_name(machine_.decision().todo), " at step ", held_step_,
                 " in view ", view_.generation(), process_.paused() ? ", stands still" : "",
                 hanging_ ? ", hangs" : "",
                 attachment_.status().ok() ? "" : str_cat(", ", std::string(attachment_.status().message())));
}

std::string MemberProcess::pod_key() const {
  return str_cat(environment_.job.substr(0, environment_.job.find('/')), "/", name_);
}

// ---- views

void MemberProcess::on_change() {
  if (!process_.alive()) return;
  if (attachment_.welcomed() && doing_ == 0) {
    ++doing_;
    carry_out();
  }
  around_.checks.on_view_seen(*this, attachment_.view());
  if (attachment_.is_contradicted())
    around_.trace.fail("one view for each generation", name_, " is given another view ",
                       attachment_.view().generation());
  if (communicator_ != nullptr && attachment_.view().generation() > view_.generation())
    close_links(absl::AbortedError("another view has taken this one's place"));
  if (!attachment_.status().ok()) close_links(absl::AbortedError("the membership ended"));
  if (waits_for_view_) look_for_view();
}

void MemberProcess::look_for_view() {
  if (!attachment_.status().ok()) return on_error(absl::OkStatus(), -1);
  if (stop_requested_) return go_on(machine_.stopped());
  if (attachment_.view().generation() <= view_.generation()) return;
  view_ = attachment_.view();
  rank_ = -1;
  for (int rank = 0; rank < view_.members_size(); ++rank) {
    if (view_.members(rank).member_id() == attachment_.member_id()) rank_ = rank;
  }
  if (rank_ < 0) {
    attachment_.progress().set_generation({});
    return go_on(machine_.left_out());
  }
  attachment_.progress().set_generation(Generation{view_.generation()});
  waits_since_.reset();
  go_on(machine_.viewed(rank_));
}

void MemberProcess::close_links(const absl::Status& why, bool in_order) {
  if (communicator_ != nullptr) communicator_->close(linked_rank_, why, in_order);
}

void MemberProcess::enter(Part part, std::function<void(const std::vector<Part>&)> then) {
  const Duration limit = part.what.starts_with("step")
                             ? seconds(30) + (to_be_late_ ? kSaveLimit : Duration::zero())
                             : kLoadLimit;
  communicator_->enter(rank_, std::move(part), limit,
                       [this, number = doing_, then = std::move(then)](const absl::Status& error, int faulty,
                                                                       const std::vector<Part>& parts) {
                         if (number != doing_ || !process_.alive()) return;
                         if (!error.ok()) return on_error(error, faulty);
                         then(parts);
                       });
}

void MemberProcess::on_error(const absl::Status& error, int faulty) {
  const absl::Status membership = attachment_.status();
  if (absl::IsDataLoss(membership)) return go_on(machine_.ended_in_vain());
  if (!membership.ok()) return go_on(machine_.ended(absl::IsCancelled(membership), attachment_.is_to_save()));
  if (stop_expired_) return go_on(machine_.stopped());
  error_ = error;
  fault_peer_ = faulty >= 0 && faulty < view_.members_size() && faulty != rank_
                    ? view_.members(faulty).member_id()
                    : "";
  go_on(machine_.peer_failed());
}

void MemberProcess::align() {
  if (communicator_ != nullptr) close_links(absl::AbortedError("another view follows"), true);
  std::string group = str_cat(job_uid_, " view ", view_.generation());
  for (const v1::ViewMember& member : view_.members()) group += str_cat(" ", member.member_id());
  communicator_ = around_.exchange.connect(group, static_cast<std::size_t>(view_.members_size()));
  linked_rank_ = rank_;
  communicator_->join(rank_, process_, node_);
  if (!attachment_.status().ok() || stop_expired_ || attachment_.view().generation() > view_.generation())
    close_links(absl::AbortedError("it was closed before it was made"));
  source_.reset();
  enter({.what = "connect"}, [this](const auto&) { gather(); });
}

void MemberProcess::gather() {
  Part part{.what = "held"};
  if (aligned_ && whole_) part.held = {held_step_, machine_.saved_step(), machine_.evaluation_due() ? 1 : 0};
  enter(std::move(part), [this](const std::vector<Part>& parts) {
    std::vector<trainer::Held> ranks;
    for (const Part& each : parts) ranks.push_back(each.held);
    source_ = trainer::find_source(ranks);
    around_.checks.on_source(*this, view_, source_);
    if (source_ || rank_ != 0) return share();
    load();
  });
}

void MemberProcess::load() {
  after(around_.dice.between(milliseconds(5), milliseconds(300)), [this] {
    held_step_ = 0;
    whole_ = true;
    weights_ = around_.checks.weights_after(0);
    const v1::CheckpointSpec& checkpoint = attachment_.welcome().training().checkpoint();
    const auto newest = around_.storage.newest(job_uid_, environment_.pod_uid);
    if (newest && !checkpoint.resume()) {
      around_.trace.fail("training goes on from its checkpoints", name_,
                         " begins anew beside the checkpoint of step ", newest->step);
      return;
    }
    if (newest) {
      held_step_ = newest->step;
      weights_ = newest->weights;
    }
    around_.trace.add(name_, " loads step ", held_step_);
    share();
  });
}

// Replica::align() is its model: nothing moves where all hold the same; else another state is overwritten
// piece by piece, and its step is known last.
void MemberProcess::share() {
  enter({.what = "compare", .weights = weights_, .step = held_step_}, [this](const std::vector<Part>& parts) {
    const bool same = std::ranges::all_of(parts, [&](const Part& each) {
      return each.weights == parts[0].weights && each.step == parts[0].step;
    });
    if (same) return begin_training();
    const auto source = static_cast<std::size_t>(source_ ? source_->rank : 0);
    whole_ = weights_ == parts[source].weights && held_step_ == parts[source].step;
    if (!whole_) weights_ = kGarbage;
    enter({.what = "state", .weights = weights_, .step = held_step_},
          [this, source](const std::vector<Part>& got) {
            weights_ = got[source].weights;
            held_step_ = got[source].step;
            whole_ = true;
            begin_training();
          });
  });
}

void MemberProcess::begin_training() {
  aligned_ = true;
  steps_in_view_ = 0;
  member::Progress& progress = attachment_.progress();
  if (!stepped_) progress.set_resumed(held_step_, held_step_ * around_.training.ledger.global_batch_size);
  progress.set_phase(v1::TRAINING);
  progress.set_weights_hash(held_step_, weights_);
  around_.checks.on_aligned(*this, view_);
  const Step saved = source_ ? source_->saved_step : held_step_;
  go_on(machine_.aligned(held_step_, saved, source_ && source_->evaluates, clock_.now()));
}

// ---- training

void MemberProcess::take_step() {
  const bool leaves = stop_requested_;
  const bool drains = attachment_.draining() >= view_.generation() || (leaves && others_go_on());
  const trainer::Agreement wishes{
      .stop = leaves && !others_go_on(), .drain = drains, .save = machine_.wants_save(clock_.now())};
  step_clock_.begin();
  scope_.emplace(step_clock_.part(member::StepPart::kCompute));
  wishes_ = wishes;
  compute();
}

void MemberProcess::compute() {
  hanging_ = hangs_ && steps_in_view_ >= kFewSteps;
  if (hanging_) return around_.trace.add(name_, " hangs at step ", held_step_);
  const Duration time = around_.dice.between(around_.training.fastest, around_.training.slowest);
  const double of_even = around_.training.follows_shares
                             ? view_.members(rank_).share() * static_cast<double>(view_.members_size())
                             : 1;
  after(std::chrono::round<Duration>(time * slowness_ * of_even), [this] {
    scope_.reset();
    if (fails_) {
      error_ = absl::InternalError("an error of its own");
      return go_on(machine_.failed());
    }
    scope_.emplace(step_clock_.part(member::StepPart::kWait));
    Part part{.what = str_cat("step ", held_step_), .step = held_step_, .wishes = wishes_};
    std::vector<std::int64_t> samples;
    const data::Ledger ledger(around_.training.ledger);
    ledger.samples_of(held_step_, rank_, shares_of(view_), samples);
    part.sum = Checks::sum_of(samples);
    enter(std::move(part), [this](const std::vector<Part>& parts) { applied(parts); });
  });
}

void MemberProcess::applied(const std::vector<Part>& parts) {
  scope_.reset();
  std::uint64_t sum = 0;
  agreed_ = {};
  for (const Part& each : parts) {
    sum += each.sum;
    agreed_.stop |= each.wishes.stop;
    agreed_.drain |= each.wishes.drain;
    agreed_.save |= each.wishes.save;
  }
  weights_ = Checks::fold(weights_, held_step_, sum);
  ++held_step_;
  to_be_late_ = agreed_.save;
  stepped_ = true;
  stepped_at_ = clock_.now();
  ++steps_in_view_;
  around_.checks.on_applied(*this, view_);
  member::AppliedStep applied;
  applied.step = held_step_;
  applied.samples = held_step_ * around_.training.ledger.global_batch_size;
  applied.has_loss = rank_ == 0;
  applied.times = step_clock_.end();
  member::Progress& progress = attachment_.progress();
  progress.step_applied(applied);
  if (held_step_ % 4 == 0) progress.offer_weights_hash(held_step_, weights_);
  const Decision next = machine_.applied(held_step_, agreed_);
  const bool over = machine_.ending() != Ending::kNone;
  go_on(agreed_.drain && stop_requested_ && !over && others_go_on() ? machine_.stopped() : next);
}

void MemberProcess::evaluate() {
  attachment_.progress().set_phase(v1::EVALUATING);
  after(around_.training.compute / 2, [this] {
    enter({.what = str_cat("evaluation after ", held_step_), .step = held_step_}, [this](const auto&) {
      attachment_.progress().set_phase(v1::TRAINING);
      const Decision next = machine_.evaluated(1, 0.5);
      if (rank_ == 0)
        attachment_.progress().evaluated({.step = held_step_, .loss = 1, .accuracy = 0.5, .samples = 10});
      go_on(next);
    });
  });
}

void MemberProcess::save_checkpoint() {
  saving_ = true;
  attachment_.progress().set_phase(v1::CHECKPOINTING);
  after(around_.dice.between(around_.training.save / 2, around_.training.save * 2), [this] {
    saving_ = false;
    around_.storage.save(job_uid_, environment_.pod_uid, {held_step_, weights_});
    around_.checks.on_saved(*this);
    around_.trace.add(name_, " saves step ", held_step_);
    v1::CheckpointResult result;
    result.set_step(held_step_);
    result.set_path(str_cat("/paceline/checkpoints/step-", held_step_));
    checkpoint_path_ = result.path();
    attachment_.report_checkpoint(result);
    attachment_.progress().set_phase(v1::TRAINING);
    go_on(machine_.checkpointed(clock_.now()));
  });
}

void MemberProcess::report_fault() {
  attachment_.progress().set_phase(v1::WAITING);
  waits_for_view_ = true;
  if (attachment_.view().generation() <= view_.generation())
    attachment_.report_peer_fault(view_.generation(), machine_.step(), fault_peer_,
                                  std::string(error_.message()));
  look_for_view();
}

void MemberProcess::leave() {
  attachment_.progress().set_phase(v1::FINISHED);
  v1::Leaving leaving;
  leaving.set_step(machine_.step());
  leaving.set_outcome(machine_.ending() == Ending::kFinished ? v1::Leaving::FINISHED
                      : machine_.ending() == Ending::kFailed ? v1::Leaving::FAILED
                                                             : v1::Leaving::STOPPED);
  if (leaving.outcome() == v1::Leaving::STOPPED) leaving.set_follows(!stop_requested_);
  const bool failed = machine_.ending() == Ending::kFailed;
  leaving.set_reason(failed ? std::string(error_.message()) : std::string(machine_.decision().reason));
  leaving.set_model_path(model_path_);
  leaving.set_checkpoint_path(checkpoint_path_);
  attachment_.leave(std::move(leaving), [this](bool told) { go_on(machine_.left(told)); });
}

}  // namespace paceline::simulation

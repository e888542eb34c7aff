// What comes before a view's first step: data and model, the view, the links, one state on all members.

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/pluralize.h"
#include "base/program.h"
#include "base/status.h"
#include "runtime/checkpoint/checkpoint_store.h"
#include "runtime/collective/fault.h"
#include "runtime/data/ledger.h"
#include "runtime/trainer/all_reduce_session.h"
#include "runtime/trainer/auc_target.h"
#include "runtime/trainer/limits.h"
#include "runtime/trainer/plan.h"
#include "runtime/trainer/trainer.h"

namespace paceline::trainer {

namespace {

constexpr Duration kPatience = std::chrono::milliseconds(200);  // between looks at the stop request
constexpr Duration kTellLoading = std::chrono::seconds(1);      // between words to who waits for a load

}  // namespace

Decision Trainer::prepare() {
  parts_.membership.progress().set_phase(v1::STARTING);
  const absl::Status opened = open_workload();
  if (!opened.ok()) {
    outcome_.configuration = true;
    return fail(opened);
  }
  const std::int64_t train = workload_.data.train->size();
  const std::int64_t test = workload_.data.test == nullptr ? 0 : workload_.data.test->size();
  auto plan = make_plan(spec_, train, test);
  const absl::Status planned = plan.ok() ? check_target(*plan) : plan.status();
  if (!planned.ok()) return gave_up(planned, absl::IsInvalidArgument(planned));
  plan->servers = servers_;
  parts_.membership.progress().set_plan(plan->total_steps, train, replica_->layout().trained_elements);
  parts_.logger.info(str_cat("ready after ", format_duration(now() - started_), ": ", train, " training and ",
                             test, " held-out samples, ", replica_->layout().trained_elements,
                             " parameters, ", pluralize(plan->total_steps, "step", "steps"), " of ",
                             spec_.global_batch_size()));
  if (!servers_) catch_ups_.offer(replica_.get());
  return machine_.prepared(*plan);
}

// Whether what takes long before the first step is still wanted.
absl::Status Trainer::go_on() const {
  PL_RETURN_IF_ERROR(parts_.membership.status());
  return parts_.stop.requested() ? absl::CancelledError("asked to stop") : absl::OkStatus();
}

// Before the first step, with what was found wrong, unless nobody wanted it any more.
Decision Trainer::gave_up(const absl::Status& found, bool configuration) {
  if (!parts_.membership.status().ok()) return on_error(found);
  if (absl::IsCancelled(found) && parts_.stop.requested()) return machine_.stopped();
  outcome_.configuration = configuration;
  return fail(found);
}

absl::Status Trainer::check_target(const StepPlan& plan) {
  if (!plan.target.has_value() || plan.target->metric != TargetMetric::kAuc) return absl::OkStatus();
  PL_ASSIGN_OR_RETURN(const std::string warning,
                      check_auc_target(plan.target->value, *programs_.evaluator(), workload_.data,
                                       [this] { return go_on(); }));
  if (!warning.empty()) parts_.logger.warning(warning);
  return absl::OkStatus();
}

absl::Status Trainer::open_workload() {
  PL_ASSIGN_OR_RETURN(workload_, parts_.open_workload(spec_));
  if (!workload_.data.warning.empty()) parts_.logger.warning(workload_.data.warning);
  if (spec_.exchange().max_drop_rate() > 0 && workload_.make_state != nullptr)
    return absl::InvalidArgumentError(
        "spec.strategy.allReduce.maxDropRate is for members on processors: passes on a GPU run behind the "
        "host, which can't end a step early; allowed: 0, or PACELINE_DEVICE: cpu in the members' env");
  PL_RETURN_IF_ERROR(open_tables());
  return programs_.open([this](const tensor::Program& program) -> absl::StatusOr<Replica*> {
    PL_RETURN_IF_ERROR(make_replica(program));
    return replica_.get();
  });
}

absl::Status Trainer::make_replica(const tensor::Program& program) {
  if (workload_.check_host != nullptr) PL_RETURN_IF_ERROR(workload_.check_host());
  return without_exceptions([&]() -> absl::Status {
    PL_ASSIGN_OR_RETURN(replica_, Replica::create(spec_, program, parts_.fabric.arena()));
    return absl::OkStatus();
  });
}

absl::StatusOr<v1::View> Trainer::next_view(Duration limit) {
  const Deadline end = Deadline::after(now(), limit);
  while (true) {
    if (parts_.stop.requested()) return absl::CancelledError("asked to stop");
    if (const auto word = parts_.membership.take_preflight()) answer(*word);
    const Duration wait = std::min(kPatience, end.remaining(now()));
    auto view = parts_.membership.wait_view(Generation{view_.generation()}, Deadline::after(now(), wait));
    if (view.ok() || view.status().code() != absl::StatusCode::kDeadlineExceeded || end.expired(now())) {
      return view;
    }
  }
}

// A check before the first step: what ends the wait for a view ends its tests, too, and so does its next
// message: it begins anew where a member is lost, for which this one would wait.
void Trainer::answer(const v1::Preflight& word) {
  const Generation view{view_.generation()};
  if (!word.has_group() || preflight_ == nullptr) {
    preflight_ = std::make_shared<Preflight>(
        parts_.membership.member_id(), parts_.membership.welcome(), parts_.fabric, workload_, parts_.clock,
        [this, view] { return !go_on().ok() || parts_.membership.newest_view() > view; });
  }
  links_.adopt(view, [check = preflight_](const absl::Status& why) { check->cancel(why); });
  parts_.membership.on_preflight([check = preflight_](std::uint64_t number) { check->supersede(number); });
  v1::PreflightResult result = preflight_->answer(word);
  parts_.membership.on_preflight(nullptr);
  links_.drop();
  if (!result.error().empty())
    parts_.logger.info(str_cat("the check before the first step: ", result.error()));
  parts_.membership.report_preflight(std::move(result));
}

Decision Trainer::wait_for_view() {
  if (session_ != nullptr) {  // the view is drained
    if (!left_view_) left_view_ = now();
    const absl::Status taken = servers_ ? take_state_from_servers() : absl::OkStatus();
    if (!taken.ok()) return on_error(taken);
    session_->leave();
  }
  session_.reset();
  if (!servers_) tell_of_links(nullptr);
  if (communicator_ != nullptr) communicator_->retire();  // all of its steps have ended well
  parts_.membership.progress().set_phase(v1::WAITING);
  parts_.membership.beat_now();  // the next view waits for it
  return enter(next_view(kFormingLimit), "the coordinator formed no view in time");
}

Decision Trainer::enter(absl::StatusOr<v1::View> view, const std::string& late) {
  preflight_.reset();
  if (!view.ok()) {
    if (parts_.membership.status().ok() && parts_.stop.requested()) return machine_.stopped();
    if (view.status().code() != absl::StatusCode::kDeadlineExceeded) return on_error(view.status());
    return on_error(absl::InternalError(late));
  }
  view_ = *std::move(view);
  if (!is_in(view_, parts_.membership.member_id())) return stand_by();
  auto group = group_of(view_, parts_.membership.member_id(), parts_.membership.welcome());
  if (!group.ok()) return on_error(group.status());
  group_ = *std::move(group);
  viewed_at_ = now();
  parts_.membership.progress().set_generation(group_.generation);
  return machine_.viewed(group_.rank);
}

// Others train, and this one is ready to: as a newcomer, which gets their state when it is needed.
Decision Trainer::stand_by() {
  settle_save();
  left_view_.reset();
  const absl::Status left = replica_->leave_device();
  if (!left.ok()) return on_error(own_fault(left));
  catch_ups_.offer(replica_.get());
  parts_.membership.progress().set_generation({});  // of no view: another coordinator knows it as a newcomer
  parts_.logger.info(str_cat("view ", view_.generation(), " has other members: this one stands by"));
  return machine_.left_out();
}

absl::Status Trainer::connect() {
  if (servers_) return connect_servers();
  links_.drop();
  tell_of_links(nullptr);
  communicator_.reset();  // peers may wait for its end
  PL_ASSIGN_OR_RETURN(communicator_, parts_.fabric.connect(group_, Deadline::after(now(), kLoadLimit)));
  links_.adopt(group_.generation,
               [links = communicator_](absl::Status reason) { links->close(std::move(reason)); });
  tell_of_links(communicator_);
  return absl::OkStatus();
}

// In its heartbeats; null: no more.
void Trainer::tell_of_links(const std::shared_ptr<collective::Communicator>& communicator) {
  static constexpr Duration kInterval = std::chrono::milliseconds(500);
  static constexpr int kMostLinks = 64;
  if (communicator == nullptr) return parts_.membership.progress().set_extra(nullptr);
  const auto tell = [communicator, &clock = parts_.clock,
                     last = TimePoint()](v1::Heartbeat& heartbeat) mutable {
    if (clock.now() - last < kInterval) return;
    last = clock.now();
    for (const collective::Link& each : communicator->links()) {
      v1::Links& links = *heartbeat.mutable_links();
      if (links.links_size() == kMostLinks) break;
      links.set_at_ns(last.time_since_epoch().count());
      v1::LinkStats& link = *links.add_links();
      link.set_rank(static_cast<std::uint32_t>(each.rank));
      link.set_bytes(each.use.bytes);
      link.set_rate(each.use.rate);
      link.set_segments(each.use.segments);
      link.set_segments_again(each.use.segments_again);
    }
  };
  parts_.membership.progress().set_extra(tell);
}

// All members say what they hold.
absl::Status Trainer::find_source() {
  std::vector<Held> ranks(static_cast<std::size_t>(communicator_->world_size()));
  if (aligned_ && replica_->is_whole()) {
    ranks[static_cast<std::size_t>(group_.rank)] = {replica_->step(), machine_.saved_step(),
                                                    machine_.evaluation_due() ? 1 : 0};
  }
  if (ranks.size() > 1) {
    PL_RETURN_IF_ERROR(communicator_->all_gather(ranks.data(), ranks.size() * kHeldWords, DType::kI64,
                                                 Deadline::after(now(), kLoadLimit)));
  }
  source_ = trainer::find_source(ranks);
  return absl::OkStatus();
}

checkpoint::CheckpointStore Trainer::checkpoints() {
  return {files_, spec_.checkpoint().directory(), std::max<std::int64_t>(1, spec_.checkpoint().keep())};
}

// With servers they are told, and their workers ask them. A word that a broken link loses is no error of the
// load: what comes after it meets the same.
absl::Status Trainer::report_loading(bool still) {
  if (servers_) return still ? client_->report_loading() : absl::OkStatus();  // initialize() says it again
  if (communicator_->world_size() == 1) return absl::OkStatus();
  std::int64_t word = still ? 1 : 0;
  return communicator_->broadcast(&word, 1, DType::kI64, 0, Deadline::after(now(), kLoadLimit));
}

// However long it takes, as long as rank 0 says that it goes on. Who hands its words on is not to blame.
absl::Status Trainer::wait_for_load() {
  for (std::int64_t still = 1; still != 0;) {
    const absl::Status heard =
        communicator_->broadcast(&still, 1, DType::kI64, 0, Deadline::after(now(), kLoadLimit));
    if (!absl::IsDeadlineExceeded(heard)) {
      PL_RETURN_IF_ERROR(heard);
      continue;
    }
    const std::string& folder = spec_.checkpoint().directory();
    return collective::with_faulty_rank(
        absl::DeadlineExceededError(
            str_cat("rank 0 (", group_.members[0].member_id, ") has read nothing of ",
                    folder.empty() ? "what the members begin with" : str_cat("the checkpoints in ", folder),
                    " for ", format_duration(kLoadLimit))),
        0);
  }
  return absl::OkStatus();
}

// Rank 0 reads, where no member holds a state, while the others wait in align(): they get it from rank 0.
absl::Status Trainer::resume() {
  const std::string& folder = spec_.checkpoint().directory();
  if (source_.has_value() || (servers_ && aligned_) || group_.rank != 0) return absl::OkStatus();
  server_state_.begins_with(StatePosition::after(0));
  const auto nothing_found = [&]() -> absl::Status {
    if (replica_->is_whole()) return absl::OkStatus();
    return absl::DataLossError("those that held the state are gone, and there is no checkpoint");
  };
  if (folder.empty()) return nothing_found();
  checkpoint::CheckpointStore store = checkpoints();
  // Members have trained where the view is not the first: those that stood by go on as resumed ones do.
  const bool resumes = spec_.checkpoint().resume() || group_.generation.value > 1;
  const auto newest = store.newest();  // before anything is touched: another training may be saving there
  if (!resumes && newest.ok() && !newest->empty()) {
    return absl::InvalidArgumentError(
        str_cat(folder, " holds checkpoints of an earlier training, ", *newest,
                " the newest; continue it with --resume, or give another checkpoint.location"));
  }
  const StepPlan& plan = machine_.plan();
  if (plan.checkpoint_every > 0 || plan.checkpoint_time > Duration::zero()) {
    const absl::Status writable = with_context(store.check_writable(), "no checkpoints can be written");
    if (absl::IsResourceExhausted(writable))  // of the disk, not of memory
      return absl::FailedPreconditionError(writable.message());
    PL_RETURN_IF_ERROR(writable);
  }
  if (!resumes) return newest.status();
  TimePoint told = now();
  const auto loaded = store.load_latest([&] {  // all of it is read once before anything goes to anybody
    if (now() - told >= kTellLoading) {
      told = now();
      report_loading(true).IgnoreError();
    }
    return go_on();
  });
  if (loaded.status().code() == absl::StatusCode::kNotFound) {
    parts_.logger.info(str_cat("nothing to resume from: ", loaded.status().message()));
    return nothing_found();
  }
  PL_RETURN_IF_ERROR(loaded.status());
  for (const std::string& refused : loaded->refused) parts_.logger.warning(str_cat("passed over ", refused));
  if (loaded->progress.step > plan.total_steps) {
    return absl::InvalidArgumentError(
        str_cat("checkpoint ", loaded->name, " has ", loaded->progress.step, " steps already, more than the ",
                plan.total_steps,
                " of this job; give more steps or epochs, or begin in another checkpoint.location"));
  }
  PL_RETURN_IF_ERROR(replica_->make_optimizer());
  PL_ASSIGN_OR_RETURN(StatePosition position, replica_->restore(*loaded));
  std::unique_ptr<TablePartsReader> rows;
  if (!tables_.empty()) {
    PL_ASSIGN_OR_RETURN(rows, TablePartsReader::open(store, *loaded, tables_));
  }
  server_state_.begins_with(std::move(position), std::move(rows));
  parts_.logger.info(str_cat("resumes from ", loaded->name));
  return absl::OkStatus();
}

absl::Status Trainer::compile_for(std::span<const std::int64_t> rows) {
  const bool warns = !aligned_ && group_.rank == 0;  // it is said by one, and once
  return programs_.compile(rows, {trainers(), !servers_ || group_.rank == 0, warns});
}

absl::Status Trainer::open_ring_session() {
  PL_ASSIGN_OR_RETURN(auto device_exchange, share_state());
  const std::vector<double> shares = shares_of(view_);
  const std::int64_t rows =
      data::cut_batch(spec_.global_batch_size(), shares)[static_cast<std::size_t>(group_.rank)];
  PL_RETURN_IF_ERROR(compile_for(std::span(&rows, 1)));
  const SessionParts parts{spec_,
                           parts_.clock,
                           *replica_,
                           programs_.training(),
                           *communicator_,
                           trainers(),
                           [this] { catch_ups_.take_back(); },
                           std::move(device_exchange),
                           [this](const auto& threshold) { report_threshold(threshold); }};
  PL_ASSIGN_OR_RETURN(
      session_, AllReduceSession::open(parts, workload_.data.train, shares, machine_.plan().total_steps));
  return absl::OkStatus();
}

void Trainer::report_threshold(const std::optional<PartialSteps::Threshold>& threshold) {
  // Told where that changes.
  if (std::exchange(leaves_out_, threshold.has_value()) == threshold.has_value() || group_.rank != 0) return;
  if (!threshold) return parts_.logger.info("steps are whole: leaving samples out would gain little");
  parts_.logger.info(absl::StrFormat(
      "members that have computed for %s leave the rest of a step's samples out: %.1f %% of the last steps' "
      "samples, for %.1f %% more in the same time",
      format_duration(threshold->tau), 100 * threshold->drop_rate, 100 * threshold->gain));
}

// A state that is on devices stays there where these can give it to each other.
absl::StatusOr<std::shared_ptr<exchange::GradientExchange>> Trainer::share_state() {
  if (!source_.has_value()) PL_RETURN_IF_ERROR(group_.rank == 0 ? report_loading(false) : wait_for_load());
  PL_ASSIGN_OR_RETURN(bool agrees, replica_->agrees(*communicator_, Deadline::after(now(), kLoadLimit)));
  const int source = source_.has_value() ? source_->rank : 0;
  const auto spread_by_hosts = [&]() -> absl::Status {
    if (std::exchange(agrees, true)) return absl::OkStatus();
    const absl::Status left = replica_->leave_device();
    if (!left.ok()) return own_fault(left);
    return replica_->spread(*communicator_, nullptr, source, parts_.clock, kLoadLimit);
  };
  PL_ASSIGN_OR_RETURN(const Placing placing, survey_devices());
  if (!placing.why_by_hosts.empty()) PL_RETURN_IF_ERROR(spread_by_hosts());
  PL_RETURN_IF_ERROR(place_state(placing));
  PL_ASSIGN_OR_RETURN(auto device_exchange, open_device_exchange(placing.why_by_hosts));
  if (agrees) return device_exchange;
  if (device_exchange != nullptr) {
    PL_RETURN_IF_ERROR(
        replica_->spread(*communicator_, device_exchange.get(), source, parts_.clock, kLoadLimit));
    return device_exchange;
  }
  PL_RETURN_IF_ERROR(spread_by_hosts());
  PL_RETURN_IF_ERROR(place_state(placing));
  return device_exchange;
}

Decision Trainer::align() {
  settle_save();  // before the state may have to come to the host
  if (const auto learned = catch_ups_.enter(group_.generation)) aligned_ = *learned;
  absl::Status status = connect();
  if (status.ok()) catch_ups_.leave(group_.generation);
  if (status.ok() && !servers_) status = find_source();
  if (!status.ok()) return on_error(status);
  status = resume();
  if (!status.ok()) return gave_up(status, absl::IsInvalidArgument(status));
  if (servers_) {
    status = initialize_servers();
    if (status.ok()) status = open_server_session();
  } else {
    status = open_ring_session();
  }
  if (!stepped_ && absl::IsResourceExhausted(status)) return gave_up(status, true);
  if (!status.ok()) return on_error(status);
  aligned_ = true;
  aligned_at_ = now();
  begins_view_ = true;

  member::Progress& progress = parts_.membership.progress();
  if (!stepped_) {
    training_since_ = now();
    progress.set_resumed(replica_->step(), samples_of_steps(spec_, replica_->step()));
  }
  progress.set_phase(v1::TRAINING);
  const int kept = servers_ ? 0 : communicator_->counters().kept_links;
  parts_.logger.info(
      str_cat("view ", group_.generation.value, ": rank ", group_.rank, " of ", group_.members.size(),
              ", from step ", replica_->step(), ", ", format_duration(now() - started_), " after the start",
              kept == 0 ? "" : str_cat(", ", pluralize(kept, "link was", "links were"), " there before")));
  const Step saved = source_.has_value() ? source_->saved_step : replica_->step();
  const bool evaluates = source_.has_value() && source_->evaluates;
  const Decision decision = machine_.aligned(replica_->step(), saved, evaluates, now());
  report_hash();
  return decision;
}

}  // namespace paceline::trainer

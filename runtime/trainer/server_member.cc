#include "runtime/trainer/server_member.h"

#include <algorithm>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/status.h"
#include "runtime/collective/fault.h"
#include "runtime/pserver/progress_deadline.h"
#include "runtime/trainer/leaving_cause.h"
#include "runtime/trainer/limits.h"
#include "runtime/trainer/table_specs.h"
#include "runtime/trainer/view_group.h"

namespace paceline::trainer {

namespace {

constexpr Duration kWordLimit = std::chrono::seconds(10);       // for the coordinator's, when a view broke
constexpr Duration kPatience = std::chrono::milliseconds(200);  // between looks at the stop request
constexpr Duration kLong = std::chrono::hours(24);              // the server ends the wait, or the job
constexpr Duration kLook = std::chrono::milliseconds(500);      // between looks at what is collected
constexpr Duration kGoodbyeLimit = std::chrono::seconds(2);
constexpr char kStopped[] = "this member was asked to stop (SIGTERM or SIGINT)";

}  // namespace

absl::StatusOr<pserver::ServerOptions> server_options(const v1::TrainingSpec& spec, const v1::View& view) {
  pserver::ServerOptions options;
  for (const v1::ViewMember& member : view.members()) {
    ++(member.role() == v1::ROLE_PS ? options.shape.servers : options.shape.workers);
  }
  const v1::ParameterServerSpec& servers = spec.parameter_server();
  if (options.shape.workers == 0) {
    return absl::InvalidArgumentError(str_cat("view ", view.generation(), " has servers but no workers"));
  }
  options.shape.slice_bytes = static_cast<std::size_t>(servers.slice_bytes());
  options.shape.tables = table_specs(spec);
  options.optimizer = spec.optimizer();
  options.delay_compensation = servers.delay_compensation();
  options.units_per_step = servers.units_per_step();
  options.holds = pserver::holds_of(servers);
  options.policy = [servers](const pserver::PolicyStart& start) {
    return pserver::make_policy(servers, start);
  };
  return options;
}

ServerMember::ServerMember(ServerParts parts)
    : parts_(std::move(parts)), spec_(parts_.membership.welcome().training()) {
  parts_.membership.on_cancel([this](const absl::Status&) {
    parts_.fabric.cancel_connects(kLastGeneration);
    events_.lock()->ended = true;
  });
  parts_.stop.on_expire([this] {
    parts_.fabric.cancel_connects(kLastGeneration);
    events_.lock()->expired = true;
  });
}

ServerMember::~ServerMember() {
  parts_.membership.on_cancel(nullptr);
  parts_.stop.on_expire(nullptr);
  parts_.membership.progress().set_extra(nullptr);
}

Outcome ServerMember::run() {
  member::Progress& progress = parts_.membership.progress();
  Duration limit = kFormingLimit;
  while (true) {
    progress.set_phase(v1::WAITING);
    const auto view = next_view(limit);
    if (!view.ok()) return end(view.status());
    generation_ = Generation{view->generation()};
    progress.set_generation(generation_);
    const absl::Status served = serve(*view);
    if (!parts_.membership.status().ok() || parts_.stop.expired()) return end(served);
    if (served.ok()) {
      parts_.logger.info(str_cat("view ", generation_.value, ": all workers have left"));
      limit = kFormingLimit;  // the coordinator says what follows, however long it is away
      continue;
    }
    const auto rank = collective::faulty_rank(served);
    const bool known = rank.has_value() && *rank >= 0 && *rank < view->members_size();
    parts_.logger.warning(str_cat("view ", generation_.value, " is over: ", served.message()));
    const bool own = absl::IsResourceExhausted(served) || absl::IsOutOfRange(served);
    if (own && !rank.has_value()) return end(served);  // nobody else's
    parts_.membership.report_peer_fault(generation_, 0, known ? view->members(*rank).member_id() : "",
                                        std::string(served.message()));
    limit = kWordLimit;
  }
}

absl::StatusOr<v1::View> ServerMember::next_view(Duration limit) {
  const Deadline deadline = Deadline::after(now(), limit);
  while (true) {
    if (parts_.stop.requested()) return absl::CancelledError("asked to stop");
    const Duration wait = std::min(kPatience, deadline.remaining(now()));
    auto view = parts_.membership.wait_view(generation_, Deadline::after(now(), wait));
    if (view.ok() || view.status().code() != absl::StatusCode::kDeadlineExceeded || deadline.expired(now())) {
      return view;
    }
  }
}

absl::Status ServerMember::serve(const v1::View& view) {
  PL_ASSIGN_OR_RETURN(const collective::Group group,
                      group_of(view, parts_.membership.member_id(), parts_.membership.welcome()));
  PL_ASSIGN_OR_RETURN(pserver::ServerOptions options, server_options(spec_, view));
  // The coordinator's word decides what follows: beside others' reports this one tells who is cut off.
  options.on_lost = [this, &view, &group](int rank, const absl::Status& why) {
    parts_.logger.warning(
        str_cat(group.members[static_cast<std::size_t>(rank)].member_id, " is gone: ", why.message()));
    parts_.membership.report_peer_fault(group.generation, 0, view.members(rank).member_id(),
                                        std::string(why.message()));
  };
  if (parts_.fabric.arena().mapped() > 0) PL_RETURN_IF_ERROR(parts_.fabric.renew_arena());  // a view before
  PL_ASSIGN_OR_RETURN(
      std::shared_ptr<pserver::Server> server,
      parts_.connect(parts_.fabric, group, options, parts_.clock, Deadline::after(now(), kLoadLimit)));
  // Statistics of one that waits are its last: below.
  parts_.membership.progress().set_phase(v1::TRAINING);
  parts_.membership.progress().set_extra(
      [server](v1::Heartbeat& beat) { *beat.mutable_server() = server->stats(); });
  parts_.logger.info(str_cat("view ", view.generation(), ": server ", group.rank - options.shape.workers,
                             " of ", options.shape.servers, " for ", options.shape.workers,
                             options.shape.workers == 1 ? " worker" : " workers"));
  // What it holds is not written anywhere else yet: the process is not ended while somebody may be saving it.
  const StopRequest::Saving saving(parts_.stop);
  events_.lock()->served = false;
  const std::jthread serving([this, &server] {
    absl::Status result = server->run(Deadline::after(now(), kLoadLimit));
    auto events = events_.lock();
    events->served = true;
    events->result = std::move(result);
  });
  const absl::Status served = watch(*server);
  // What it held goes with it: between two views only the numbers stay.
  parts_.membership.progress().set_extra(
      [stats = server->stats()](v1::Heartbeat& beat) { *beat.mutable_server() = stats; });
  parts_.membership.progress().set_phase(v1::WAITING);
  parts_.membership.beat_now();  // what it did in the end: the coordinator waits for that, if all is over
  return served;
}

// Closes the server when the job has ended, or this process is to, and the workers stay. REQUIRES: its run()
// is under way.
absl::Status ServerMember::watch(pserver::Server& server) {
  std::optional<pserver::ProgressDeadline> progress;
  const auto close_within = [&](Duration limit) {
    if (progress.has_value()) limit = std::min(limit, progress->limit());
    progress.emplace(parts_.clock, Deadline::after(now(), limit));
  };
  Events seen;
  std::uint64_t seen_bytes = 0;
  while (true) {
    bool ended = false, expired = false;
    {
      auto events = events_.lock_when(
          [&](const Events& e) { return e.served || e.ended != seen.ended || e.expired != seen.expired; },
          progress.has_value() ? std::min(kLook, progress->left()) : kLong);
      if (events->served) return events->result;
      ended = events->ended && !std::exchange(seen.ended, events->ended);
      expired = events->expired && !std::exchange(seen.expired, events->expired);
    }
    if (progress.has_value()) {
      const std::uint64_t taken = server.snapshot_bytes();
      if (std::exchange(seen_bytes, taken) != taken) parts_.stop.moved();
      progress->count(taken);
      if (progress->expired()) {
        server.close(
            absl::AbortedError(str_cat("the job has ended, and the workers neither went nor took "
                                       "anything of what is here for ",
                                       format_duration(progress->limit()))));
        progress.reset();
      }
    }
    if (ended) {
      close_within(absl::IsCancelled(parts_.membership.status()) ? Duration::zero() : kLastServiceLimit);
    }
    if (expired) {
      close_within(kStoppedServiceLimit);
      if (parts_.membership.status().ok()) send_goodbye(v1::Leaving::STOPPED, kStopped);
    }
  }
}

Outcome ServerMember::end(absl::Status error) {
  Outcome outcome;
  const absl::Status membership = parts_.membership.status();
  if (!membership.ok()) {
    outcome.ending = absl::IsCancelled(membership) ? Ending::kFinished : Ending::kEnded;
    if (outcome.ending == Ending::kEnded) outcome.error = membership;
    parts_.logger.info(str_cat("ends: ", membership.message()));
    return outcome;
  }
  if (parts_.stop.requested()) return leave(v1::Leaving::STOPPED, kStopped);
  const bool late = error.code() == absl::StatusCode::kDeadlineExceeded;
  return leave(v1::Leaving::FAILED,
               late ? "the coordinator had no word when the view was over" : std::string(error.message()),
               leaving_cause(error));
}

Outcome ServerMember::leave(v1::Leaving::Outcome how, const std::string& reason, v1::Leaving::Cause cause) {
  Outcome outcome;
  outcome.ending = how == v1::Leaving::STOPPED ? Ending::kStopped : Ending::kFailed;
  if (outcome.ending == Ending::kFailed) outcome.error = absl::InternalError(reason);
  parts_.membership.progress().set_phase(v1::FINISHED);
  const bool failed = outcome.ending == Ending::kFailed;
  if (failed)
    parts_.logger.error(
        str_cat("fails: ", reason));  // before anybody is told, who may look into the log then
  send_goodbye(how, reason, cause);
  if (!failed) parts_.logger.info(str_cat("ends: ", reason));
  return outcome;
}

void ServerMember::send_goodbye(v1::Leaving::Outcome how, const std::string& reason,
                                v1::Leaving::Cause cause) {
  if (std::exchange(said_goodbye_, true)) return;
  v1::Leaving leaving;
  leaving.set_outcome(how);
  leaving.set_reason(reason);
  leaving.set_cause(cause);
  const absl::Status said = parts_.membership.leave(leaving, Deadline::after(now(), kGoodbyeLimit));
  if (!said.ok()) parts_.logger.debug(str_cat("goodbye: ", said.message()));
}

}  // namespace paceline::trainer

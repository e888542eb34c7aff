#include "runtime/member/membership.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "runtime/member/membership_impl.h"

namespace paceline::member {

namespace {
constexpr Duration kTakenLimit = std::chrono::seconds(20);  // for a goodbye that was sent
}  // namespace

absl::Status MembershipImpl::wait_welcome(Deadline deadline) {
  auto state = state_.lock_when([](const State& s) { return s.welcomed || !s.status.ok(); },
                                deadline.remaining(clock_.now()));
  if (!state->status.ok()) return state->status;
  if (state->welcomed) return absl::OkStatus();
  return absl::DeadlineExceededError(
      str_cat("no coordinator at ", environment_.coordinator, " for ", environment_.name(), ": ",
              state->last_trouble.empty() ? "no answer" : state->last_trouble));
}

absl::StatusOr<v1::View> MembershipImpl::wait_view(Generation after, Deadline deadline) {
  auto state = state_.lock_when(
      [&](const State& s) {
        return s.view.generation() > after.value || !s.status.ok() || s.preflight.has_value();
      },
      deadline.remaining(clock_.now()));
  if (!state->status.ok()) return state->status;
  if (state->view.generation() > after.value) return state->view;
  return absl::DeadlineExceededError(
      str_cat(environment_.name(), " waited for a view after generation ", after.value));
}

void MembershipImpl::report_peer_fault(Generation generation, Step step, std::string_view peer,
                                       std::string_view reason) {
  v1::MemberMessage message;
  v1::PeerFault& fault = *message.mutable_peer_fault();
  fault.set_generation(generation.value);
  fault.set_step(step);
  fault.set_peer_member_id(std::string(peer));
  fault.set_reason(std::string(reason));
  state_.lock()->reports.add(std::move(message));
}

void MembershipImpl::report_checkpoint(v1::CheckpointResult result) {
  v1::MemberMessage message;
  *message.mutable_checkpoint() = std::move(result);
  state_.lock()->reports.add(std::move(message));
}

void MembershipImpl::report_caught_up(Generation generation, std::string_view error) {
  v1::MemberMessage message;
  message.mutable_caught_up()->set_generation(generation.value);
  message.mutable_caught_up()->set_error(std::string(error));
  state_.lock()->reports.add(std::move(message));
}

void MembershipImpl::report_preflight(v1::PreflightResult result) {
  v1::MemberMessage message;
  *message.mutable_preflight() = std::move(result);
  state_.lock()->reports.add(std::move(message));
}

void MembershipImpl::on_cancel(CancelHook hook) {
  absl::Status status;
  {
    auto state = state_.lock_when([](const State& s) { return !s.hook_running; }, std::chrono::hours(1));
    status = state->status;
    state->hook = status.ok() ? std::move(hook) : nullptr;
    state->hook_due = false;
  }
  if (!status.ok() && hook != nullptr) hook(status);
}

void MembershipImpl::on_view(ViewHook hook) {
  auto state = state_.lock_when([](const State& s) { return !s.hook_running; }, std::chrono::hours(1));
  state->view_hook = std::move(hook);
  state->view_due = false;
}

void MembershipImpl::on_catch_up(CatchUpHook hook) {
  auto state = state_.lock_when([](const State& s) { return !s.hook_running; }, std::chrono::hours(1));
  state->catch_up_hook = std::move(hook);
  state->catch_ups.clear();
}

void MembershipImpl::on_preflight(PreflightHook hook) {
  auto state = state_.lock_when([](const State& s) { return !s.hook_running; }, std::chrono::hours(1));
  state->preflight_hook = std::move(hook);
  state->preflight_due = state->preflight_hook != nullptr && state->preflight.has_value();
}

absl::Status MembershipImpl::leave(const v1::Leaving& leaving, Deadline deadline) {
  absl::Status ended;
  bool up = false;
  {
    auto state = state_.lock_when([](const State& s) { return s.line == Line::kUp || !s.status.ok(); },
                                  deadline.remaining(clock_.now()));
    state->leaving = true;
    state->hook_due = state->view_due = state->preflight_due = false;
    state->view_hook = nullptr;
    state->preflight_hook = nullptr;
    state->catch_up_hook = nullptr;
    state->catch_ups.clear();
    ended = state->status;
    up = state->line == Line::kUp && !state->stream_ended;
  }
  stop_thread();
  if (!up) {
    stream_.reset();
    return ended.ok() ? absl::DeadlineExceededError(
                            str_cat(environment_.name(), " could not say goodbye: no coordinator"))
                      : ended;
  }
  send_reports();
  const auto send = [this](const v1::Heartbeat& heartbeat) {
    v1::MemberMessage message;
    *message.mutable_heartbeat() = heartbeat;
    (void)stream_->send(std::move(message));
  };
  const std::uint64_t counted = state_.lock()->taken;
  const bool repeats = heartbeats_.number() > counted;
  send(heartbeats_.next(counted));
  if (repeats) send(heartbeats_.newest());
  while (progress_.evaluations_wait()) send(heartbeats_.newest());
  v1::MemberMessage goodbye;
  *goodbye.mutable_leaving() = leaving;
  (void)stream_->send(std::move(goodbye));
  stream_->half_close();
  bool taken = false;
  absl::Status last;
  {
    auto state = state_.lock_when([](const State& s) { return s.stream_ended; },
                                  std::max(deadline.remaining(clock_.now()), kTakenLimit), &taken);
    last = state->stream_status;
  }
  stream_.reset();
  if (!ended.ok()) return ended;
  if (!taken)
    return absl::DeadlineExceededError(str_cat(environment_.name(), "'s goodbye was not taken in time"));
  return with_context(last, str_cat(environment_.name(), "'s goodbye"));
}

absl::StatusOr<std::unique_ptr<Membership>> Membership::attach(const Environment& environment,
                                                               const Presence& presence,
                                                               const MembershipOptions& options,
                                                               const Clock& clock, Deadline deadline) {
  auto membership = std::make_unique<MembershipImpl>(environment, presence, options, clock);
  PL_RETURN_IF_ERROR(membership->wait_welcome(deadline));
  return membership;
}

}  // namespace paceline::member

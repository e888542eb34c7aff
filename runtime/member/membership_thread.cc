#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "runtime/member/membership_impl.h"

// The membership's thread, and what gRPC's threads do.

namespace paceline::member {

namespace {

constexpr std::uint32_t kProtocolVersion = 1;

// An answer that another try would only get again.
bool is_final(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kUnimplemented:
      return true;
    default:
      return false;
  }
}

absl::Status evicted(const v1::Evict& evict) {
  if (evict.job_finished()) return absl::CancelledError(evict.reason());
  return evict.discard() ? absl::DataLossError(evict.reason()) : absl::AbortedError(evict.reason());
}

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

}  // namespace

// Stops at a stop request, and at nothing else: after the end it still runs the hook, and sends heartbeats
// while a stream is open.
void MembershipImpl::run(const std::stop_token& stop) {
  next_beat_ = clock_.now();
  while (!stop.stop_requested()) {
    run_hooks();
    const TimePoint now = clock_.now();
    bool up = false, over = false;
    std::string trouble;
    {
      auto state = state_.lock();
      if (std::exchange(state->stream_ended, false)) {
        state->line = Line::kDown;
        // To the leader at once, but only from the address that we were given: two replicas that send us to
        // each other are tried as slowly as any.
        const bool told = leader_.empty() && !state->leader.empty();
        leader_ = told ? state->leader : "";
        state->leader.clear();
        if (told) {
          next_try_ = now;
        } else {
          trouble = state->last_trouble;
        }
      }
      up = state->line == Line::kUp;
      over = !state->status.ok();
    }
    if (!up && !over) {
      log_trouble(trouble, now);
      reconnect(now);
    }
    if (up) {
      if (down_since_) {
        options_.logger.info(str_cat("attached to ", environment_.coordinator, " as ", member_id_));
        next_beat_ = now;  // none was due meanwhile
      }
      down_since_.reset();
      trouble_ = {};
      backoff_ = options_.first_backoff;
      connect_limit_ = kFirstConnectLimit;
      send_reports();
      send_heartbeat(now);
    }
    wait_for_work(stop);
  }
}

void MembershipImpl::log_trouble(const std::string& trouble, TimePoint now) {
  if (trouble.empty() || !trouble_.is_due(trouble, now)) return;
  options_.logger.warning(str_cat("no stream to the coordinator at ", environment_.coordinator, ": ", trouble,
                                  "; it is tried again"));
}

void MembershipImpl::wait_for_work(const std::stop_token& stop) {
  const TimePoint now = clock_.now();
  Duration wait = kFirstInterval;
  Line line = Line::kDown;
  {
    auto state = state_.lock();
    line = state->line;
    wait = std::min(wait, state->interval);
    if (line == Line::kUp) wait = std::min(wait, next_beat_ - now);
    if (line == Line::kDown && state->status.ok()) wait = std::min(wait, next_try_ - now);
  }
  if (wait <= Duration::zero()) return;
  (void)state_.lock_when(
      [&](const State& s) {
        return stop.stop_requested() || s.stream_ended || s.hook_due || s.view_due || s.preflight_due ||
               !s.catch_ups.empty() || s.line != line ||
               ((s.reports.next() != nullptr || s.beat_due) && s.line == Line::kUp);
      },
      wait);
}

void MembershipImpl::reconnect(TimePoint now) {
  if (!down_since_) {
    down_since_ = next_try_ = now;
    backoff_ = options_.first_backoff;
  }
  {
    auto state = state_.lock();
    const Duration limit =
        state->reattach_limit > Duration::zero() ? state->reattach_limit : options_.reattach_limit;
    if (now - *down_since_ > limit && state->welcomed) {  // the first attach is limited by its deadline
      return finish(*state, absl::UnavailableError(str_cat("the coordinator at ", environment_.coordinator,
                                                           " is gone for ", format_duration(limit), ": ",
                                                           state->last_trouble)));
    }
  }
  if (now < next_try_ || state_.lock()->line != Line::kDown) return;
  const auto random = static_cast<double>(jitter_.uniform());
  next_try_ = now + std::chrono::duration_cast<Duration>(backoff_ * (0.5 + 0.5 * random));
  backoff_ = std::min(2 * backoff_, options_.last_backoff);
  open_stream();
}

void MembershipImpl::open_stream() {
  // The last one goes when the next is there: gRPC that nobody uses any more ends itself, and waits up to 10
  // s for what it has left (iomgr_shutdown), as if the network were still away.
  const std::unique_ptr<Stream> last = std::move(stream_);
  const std::uint64_t number = ++streams_;
  {
    auto state = state_.lock();
    state->line = Line::kOpening;
    state->stream = number;
    state->stream_ended = false;
    state->reports.new_stream();
  }
  stream_ = Stream::open(leader_.empty() ? environment_.coordinator : leader_,
                         {environment_.token, environment_.job, environment_.pod_uid, environment_.authority},
                         {[this, number](const v1::CoordinatorMessage& m) { on_message(number, m); },
                          [this, number](const absl::Status& s) { on_ended(number, s); },
                          [this, number](const std::string& leader) { on_elsewhere(number, leader); }},
                         connect_limit_);
  connect_limit_ = std::min(2 * connect_limit_, kLongestConnectLimit);
  (void)stream_->send(hello());
}

v1::MemberMessage MembershipImpl::hello() {
  v1::MemberMessage message;
  v1::Hello& hello = *message.mutable_hello();
  hello.set_protocol_version(kProtocolVersion);
  hello.set_member_id(member_id_);
  hello.set_job(environment_.job);
  hello.set_role(static_cast<v1::RoleKind>(environment_.role));
  hello.set_index(static_cast<std::uint32_t>(environment_.index));
  hello.set_pod(environment_.pod);
  hello.set_host(host_name());
  hello.set_host_id(presence_.host_id);
  hello.set_pid(presence_.pid == 0 ? getpid() : std::max<std::int64_t>(presence_.pid, 0));
  hello.mutable_address()->set_local_socket(presence_.local_socket);
  for (const std::string& tcp : presence_.tcp) hello.mutable_address()->add_tcp(tcp);
  hello.set_threads(static_cast<std::uint32_t>(std::max(0, environment_.threads)));
  hello.set_attempt(environment_.attempt);
  hello.set_incarnation(environment_.incarnation);
  hello.set_catches_up(true);
  hello.set_answers_preflight(true);
  hello.set_speaks_tls(true);
  auto state = state_.lock();
  hello.set_known_generation(state->view.generation());
  for (int rank = 0; rank < state->view.members_size(); ++rank) {  // of one that others are in it holds none
    if (state->view.members(rank).member_id() != member_id_) continue;
    hello.set_held_generation(state->view.generation());
    hello.set_held_size(static_cast<std::uint32_t>(state->view.members_size()));
    hello.set_held_rank(static_cast<std::uint32_t>(rank));
    hello.set_held_share(state->view.members(rank).share());
  }
  return message;
}

void MembershipImpl::on_message(std::uint64_t stream, const v1::CoordinatorMessage& message) {
  auto state = state_.lock();
  if (state->stream != stream) return;
  switch (message.kind_case()) {
    case v1::CoordinatorMessage::kWelcome:
      state->line = Line::kUp;
      state->interval = std::chrono::milliseconds(
          std::clamp<std::uint32_t>(message.welcome().heartbeat_interval_ms(), 1, 10'000));
      state->reattach_limit = std::chrono::milliseconds(message.welcome().reattach_limit_ms());
      if (!std::exchange(state->welcomed, true)) welcome_ = message.welcome();
      break;
    case v1::CoordinatorMessage::kView:
      if (message.view().generation() <= state->view.generation()) break;
      state->view = message.view();
      state->preflight.reset();  // nobody waits for that answer any more
      state->view_due = state->view_hook != nullptr;
      break;
    case v1::CoordinatorMessage::kCatchUp:
      if (state->catch_up_hook != nullptr) state->catch_ups.push_back(message.catch_up());
      break;
    case v1::CoordinatorMessage::kPreflight:
      state->preflight = message.preflight();
      state->preflight_due = state->preflight_hook != nullptr;
      break;
    case v1::CoordinatorMessage::kDrain: {
      const std::uint64_t known = draining_.load(std::memory_order_relaxed);
      draining_.store(std::max(known, message.drain().generation()), std::memory_order_release);
      break;
    }
    case v1::CoordinatorMessage::kSave:
      saves_asked_.fetch_add(1, std::memory_order_acq_rel);
      break;
    case v1::CoordinatorMessage::kTaken:
      state->taken = std::max(state->taken, message.taken().heartbeat());
      state->reports.taken(message.taken().heartbeat());
      break;
    case v1::CoordinatorMessage::kEvict:
      state->to_save |= message.evict().save() && state->status.ok();
      finish(*state, evicted(message.evict()));
      break;
    case v1::CoordinatorMessage::KIND_NOT_SET:
      break;  // of a later release
  }
}

void MembershipImpl::on_elsewhere(std::uint64_t stream, const std::string& leader) {
  constexpr std::size_t kMaxAddressBytes = 300;
  auto state = state_.lock();
  if (state->stream == stream && leader.size() <= kMaxAddressBytes) state->leader = leader;
}

void MembershipImpl::on_ended(std::uint64_t stream, const absl::Status& status) {
  auto state = state_.lock();
  if (state->stream != stream) return;
  state->stream_ended = true;
  state->stream_status = status;
  state->last_trouble = status.ok() ? "the stream was closed" : std::string(status.message());
  if (is_final(status))
    finish(*state, with_context(status, str_cat("the coordinator at ", environment_.coordinator)));
}

void MembershipImpl::finish(State& state, absl::Status status) {
  if (!state.status.ok()) return;
  state.status = std::move(status);
  state.hook_due = state.hook != nullptr && !state.leaving;
}

void MembershipImpl::send_reports() {
  while (true) {
    v1::MemberMessage message;
    {
      auto state = state_.lock();
      const v1::MemberMessage* const next = state->reports.next();
      if (next == nullptr) return;
      message = *next;
    }
    if (!stream_->send(std::move(message))) return;
    state_.lock()->reports.sent(heartbeats_.number());
  }
}

// Beats fall on multiples of the interval; those that could not be sent in time are left out, not made up
// for. While the last one is still on its way (a stopped coordinator), or not taken, the board goes on
// collecting; one that was asked for goes behind it.
void MembershipImpl::send_heartbeat(TimePoint now) {
  const bool in_time = now >= next_beat_;
  bool due = false;
  Duration interval{};
  std::uint64_t taken = 0;
  {
    auto state = state_.lock();
    due = std::exchange(state->beat_due, false);
    if (!in_time && !due) return;
    interval = state->interval;
    taken = state->taken;
  }
  if (in_time) kernel_watch_.rang(now - next_beat_);
  if (in_time) next_beat_ += interval * ((now - next_beat_) / interval + 1);
  if (!due && !stream_->idle()) return;
  v1::MemberMessage message;
  *message.mutable_heartbeat() = heartbeats_.next(taken);
  kernel_watch_.add_to(*message.mutable_heartbeat(), now);
  (void)stream_->send(std::move(message));
}

void MembershipImpl::run_hooks() {
  CancelHook cancel;
  ViewHook view;
  CatchUpHook catch_up;
  PreflightHook preflight;
  std::uint64_t check = 0;
  std::deque<v1::CatchUp> catch_ups;
  absl::Status status;
  Generation newest;
  {
    auto state = state_.lock();
    if (std::exchange(state->hook_due, false)) cancel = std::exchange(state->hook, nullptr);
    if (std::exchange(state->view_due, false)) view = state->view_hook;
    catch_ups.swap(state->catch_ups);
    if (!catch_ups.empty()) catch_up = state->catch_up_hook;
    if (std::exchange(state->preflight_due, false) && state->preflight) {
      preflight = state->preflight_hook;
      check = state->preflight->number();
    }
    if (cancel == nullptr && view == nullptr && catch_up == nullptr && preflight == nullptr) return;
    state->hook_running = true;
    status = state->status;
    newest = {state->view.generation()};
  }
  for (const v1::CatchUp& each : catch_ups) catch_up(each);
  if (view != nullptr) view(newest);
  if (preflight != nullptr) preflight(check);
  if (cancel != nullptr) cancel(status);
  state_.lock()->hook_running = false;
}

}  // namespace paceline::member

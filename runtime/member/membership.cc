#include "runtime/member/membership.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "base/guarded.h"
#include "base/rng.h"
#include "base/status.h"
#include "runtime/member/stream.h"

// One thread does everything that takes time: it opens streams, says Hello, sends heartbeats and reports,
// runs the cancel hook. gRPC's threads only put what arrives into the shared state, and wake it.

namespace paceline::member {

namespace {

constexpr std::size_t kMaxReports = 64;
constexpr std::uint32_t kProtocolVersion = 1;
constexpr Duration kFirstInterval = std::chrono::milliseconds(200);  // until Welcome says otherwise

// An answer that another try would only get again.
bool is_final(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnauthenticated:
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

class MembershipImpl final : public Membership {
 public:
  MembershipImpl(const Environment& environment, const Presence& presence, const MembershipOptions& options,
                 const Clock& clock)
      : environment_(environment),
        presence_(presence),
        options_(options),
        clock_(clock),
        member_id_(environment.member_id()),
        jitter_(std::hash<std::string>()(member_id_), 1),
        thread_([this](std::stop_token stop) { run(stop); }) {}

  ~MembershipImpl() override { stop_thread(); }

  absl::Status wait_welcome(Deadline deadline) {
    auto state = state_.lock_when([](const State& s) { return s.welcomed || !s.status.ok(); },
                                  deadline.remaining(clock_.now()));
    if (!state->status.ok()) return state->status;
    if (state->welcomed) return absl::OkStatus();
    return absl::DeadlineExceededError(
        str_cat("no coordinator at ", environment_.coordinator, " for ", environment_.name(), ": ",
                state->last_trouble.empty() ? "no answer" : state->last_trouble));
  }

  const v1::Welcome& welcome() const override {
    return welcome_;
  }  // written before wait_welcome() returns, never again
  const std::string& member_id() const override { return member_id_; }
  Generation draining() const override { return {draining_.load(std::memory_order_acquire)}; }
  Progress& progress() override { return progress_; }
  absl::Status status() const override { return state_.lock()->status; }

  absl::StatusOr<v1::View> wait_view(Generation after, Deadline deadline) override {
    auto state =
        state_.lock_when([&](const State& s) { return s.view.generation() > after.value || !s.status.ok(); },
                         deadline.remaining(clock_.now()));
    if (!state->status.ok()) return state->status;
    if (state->view.generation() > after.value) return state->view;
    return absl::DeadlineExceededError(
        str_cat(environment_.name(), " waited for a view after generation ", after.value));
  }

  void report_peer_fault(Generation generation, Step step, std::string_view peer,
                         std::string_view reason) override {
    v1::MemberMessage message;
    v1::PeerFault& fault = *message.mutable_peer_fault();
    fault.set_generation(generation.value);
    fault.set_step(step);
    fault.set_peer_member_id(std::string(peer));
    fault.set_reason(std::string(reason));
    report(std::move(message));
  }

  void report_checkpoint(v1::CheckpointResult result) override {
    v1::MemberMessage message;
    *message.mutable_checkpoint() = std::move(result);
    report(std::move(message));
  }

  void on_cancel(CancelHook hook) override;
  absl::Status leave(const v1::Leaving& leaving, Deadline deadline) override;

 private:
  enum class Line : std::uint8_t { kDown, kOpening, kUp };  // no stream; Hello is sent; Welcome has come

  struct State {
    Line line = Line::kDown;
    std::uint64_t stream = 0;    // number of the newest stream: an older one's news are old
    bool stream_ended = false;   // and the thread hasn't seen it yet
    absl::Status stream_status;  // how
    bool welcomed = false;       // ever
    Duration interval = kFirstInterval;
    Duration reattach_limit{};  // the coordinator's; zero: ours
    v1::View view;
    absl::Status status;  // why the membership ended
    std::string last_trouble;
    std::deque<v1::MemberMessage> reports;
    CancelHook hook;
    bool hook_due = false, hook_running = false;
    bool leaving = false;
  };

  void report(v1::MemberMessage message) {
    auto state = state_.lock();
    if (state->reports.size() < kMaxReports) state->reports.push_back(std::move(message));
  }

  void run(const std::stop_token& stop);
  void wait_for_work(const std::stop_token& stop);
  void reconnect(TimePoint now);
  void open_stream();
  void on_message(std::uint64_t stream, const v1::CoordinatorMessage& message);
  void on_ended(std::uint64_t stream, const absl::Status& status);
  void send_reports();
  void send_heartbeat(TimePoint now);
  void run_hook();
  void finish(State& state, absl::Status status);
  void stop_thread() {
    thread_.request_stop();
    { auto wake = state_.lock(); }
    if (thread_.joinable()) thread_.join();
  }
  v1::MemberMessage hello();

  const Environment environment_;
  const Presence presence_;
  const MembershipOptions options_;
  const Clock& clock_;
  const std::string member_id_;
  v1::Welcome welcome_;
  Progress progress_;
  std::atomic<std::uint64_t> draining_{0};
  mutable Guarded<State> state_;

  // The thread's alone; leave()'s once the thread has ended.
  Rng jitter_;
  std::unique_ptr<Stream> stream_;
  std::uint64_t streams_ = 0;
  std::optional<TimePoint> down_since_;
  TimePoint next_try_{}, next_beat_{};
  Duration backoff_{};

  std::jthread thread_;  // last: it uses all of the above
};

// Stops at a stop request, and at nothing else: after the end it still runs the hook, and sends heartbeats
// while a stream is open.
void MembershipImpl::run(const std::stop_token& stop) {
  next_beat_ = clock_.now();
  while (!stop.stop_requested()) {
    run_hook();
    const TimePoint now = clock_.now();
    bool up = false, over = false;
    {
      auto state = state_.lock();
      if (std::exchange(state->stream_ended, false)) state->line = Line::kDown;
      up = state->line == Line::kUp;
      over = !state->status.ok();
    }
    if (!up && !over) reconnect(now);
    if (up) {
      down_since_.reset();
      backoff_ = options_.first_backoff;
      send_reports();
      send_heartbeat(now);
    }
    wait_for_work(stop);
  }
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
        return stop.stop_requested() || s.stream_ended || s.hook_due || s.line != line ||
               (!s.reports.empty() && s.line == Line::kUp);
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
  stream_.reset();
  const std::uint64_t number = ++streams_;
  {
    auto state = state_.lock();
    state->line = Line::kOpening;
    state->stream = number;
    state->stream_ended = false;
  }
  stream_ = Stream::open(environment_.coordinator, environment_.token,
                         {[this, number](const v1::CoordinatorMessage& m) { on_message(number, m); },
                          [this, number](const absl::Status& s) { on_ended(number, s); }});
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
  hello.set_pid(getpid());
  hello.mutable_address()->set_local_socket(presence_.local_socket);
  for (const std::string& tcp : presence_.tcp) hello.mutable_address()->add_tcp(tcp);
  hello.set_threads(static_cast<std::uint32_t>(std::max(0, environment_.threads)));
  const std::uint64_t viewed = state_.lock()->view.generation();
  hello.set_held_generation(std::max(viewed, presence_.held_generation.value));
  hello.set_held_step(presence_.held_step);
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
      if (message.view().generation() > state->view.generation()) state->view = message.view();
      break;
    case v1::CoordinatorMessage::kDrain: {
      const std::uint64_t known = draining_.load(std::memory_order_relaxed);
      draining_.store(std::max(known, message.drain().generation()), std::memory_order_release);
      break;
    }
    case v1::CoordinatorMessage::kEvict:
      finish(*state, evicted(message.evict()));
      break;
    case v1::CoordinatorMessage::KIND_NOT_SET:
      break;  // of a later release
  }
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
      if (state->reports.empty()) return;
      message = state->reports.front();
    }
    if (!stream_->send(std::move(message))) return;  // it stays for the next stream
    state_.lock()->reports.pop_front();
  }
}

// Beats fall on multiples of the interval; those that could not be sent in time are left out, not made up
// for. While the last one is still on its way (a stopped coordinator), the board goes on collecting.
void MembershipImpl::send_heartbeat(TimePoint now) {
  if (now < next_beat_) return;
  const Duration interval = state_.lock()->interval;
  next_beat_ += interval * ((now - next_beat_) / interval + 1);
  if (!stream_->idle()) return;
  v1::MemberMessage message;
  progress_.collect(message.mutable_heartbeat());
  (void)stream_->send(std::move(message));
}

void MembershipImpl::run_hook() {
  CancelHook hook;
  absl::Status status;
  {
    auto state = state_.lock();
    if (!std::exchange(state->hook_due, false)) return;
    hook = std::exchange(state->hook, nullptr);
    if (hook == nullptr) return;
    state->hook_running = true;
    status = state->status;
  }
  hook(status);
  state_.lock()->hook_running = false;
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

absl::Status MembershipImpl::leave(const v1::Leaving& leaving, Deadline deadline) {
  absl::Status ended;
  bool up = false;
  {
    auto state = state_.lock_when([](const State& s) { return s.line == Line::kUp || !s.status.ok(); },
                                  deadline.remaining(clock_.now()));
    state->leaving = true;
    state->hook_due = false;
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
  v1::MemberMessage heartbeat, goodbye;
  progress_.collect(heartbeat.mutable_heartbeat());
  *goodbye.mutable_leaving() = leaving;
  (void)stream_->send(std::move(heartbeat));
  (void)stream_->send(std::move(goodbye));
  stream_->half_close();
  bool taken = false;
  absl::Status last;
  {
    auto state = state_.lock_when([](const State& s) { return s.stream_ended; },
                                  deadline.remaining(clock_.now()), &taken);
    last = state->stream_status;
  }
  stream_.reset();
  if (!ended.ok()) return ended;
  if (!taken)
    return absl::DeadlineExceededError(str_cat(environment_.name(), "'s goodbye was not taken in time"));
  return with_context(last, str_cat(environment_.name(), "'s goodbye"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Membership>> Membership::attach(const Environment& environment,
                                                               const Presence& presence,
                                                               const MembershipOptions& options,
                                                               const Clock& clock, Deadline deadline) {
  auto membership = std::make_unique<MembershipImpl>(environment, presence, options, clock);
  PL_RETURN_IF_ERROR(membership->wait_welcome(deadline));
  options.logger.info(str_cat("attached to ", environment.coordinator, " as ", membership->member_id()));
  return membership;
}

}  // namespace paceline::member

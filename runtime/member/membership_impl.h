#pragma once

// The inside of Membership, for its own files only: membership.cc (what the training thread and others call),
// membership_thread.cc.
//
// One thread does everything that takes time: it opens streams, says Hello, sends heartbeats and reports,
// runs the cancel hook. gRPC's threads only put what arrives into the shared state, and wake it.

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "base/guarded.h"
#include "base/rng.h"
#include "runtime/member/kernel_watch.h"
#include "runtime/member/membership.h"
#include "runtime/member/outbox.h"
#include "runtime/member/stream.h"
#include "runtime/member/trouble.h"

namespace paceline::member {

inline constexpr Duration kFirstInterval = std::chrono::milliseconds(200);  // until Welcome says otherwise

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
        kernel_watch_("", presence.pid),
        thread_([this](std::stop_token stop) { run(stop); }) {}

  ~MembershipImpl() override { stop_thread(); }

  absl::Status wait_welcome(Deadline deadline);

  const v1::Welcome& welcome() const override {
    return welcome_;
  }  // written before wait_welcome() returns, never again
  const std::string& member_id() const override { return member_id_; }
  Generation newest_view() const override { return {state_.lock()->view.generation()}; }
  Generation draining() const override { return {draining_.load(std::memory_order_acquire)}; }
  std::uint64_t saves_asked() const override { return saves_asked_.load(std::memory_order_acquire); }
  Progress& progress() override { return progress_; }
  void beat_now() override { state_.lock()->beat_due = true; }
  absl::Status status() const override { return state_.lock()->status; }
  bool is_to_save() const override { return state_.lock()->to_save; }

  absl::StatusOr<v1::View> wait_view(Generation after, Deadline deadline) override;
  std::optional<v1::Preflight> take_preflight() override {
    return std::exchange(state_.lock()->preflight, std::nullopt);
  }
  void report_preflight(v1::PreflightResult result) override;
  void report_peer_fault(Generation generation, Step step, std::string_view peer,
                         std::string_view reason) override;
  void report_checkpoint(v1::CheckpointResult result) override;
  void report_caught_up(Generation generation, std::string_view error) override;
  void on_cancel(CancelHook hook) override;
  void on_view(ViewHook hook) override;
  void on_catch_up(CatchUpHook hook) override;
  void on_preflight(PreflightHook hook) override;
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
    std::optional<v1::Preflight> preflight;  // that nobody has taken
    absl::Status status;                     // why the membership ended
    bool to_save = false;
    std::string last_trouble;
    std::string leader;  // the next try goes there
    Reports reports;
    std::uint64_t taken = 0;  // the coordinator has that heartbeat and those before it
    bool beat_due = false;    // a heartbeat, before its time
    CancelHook hook;
    ViewHook view_hook;
    CatchUpHook catch_up_hook;
    PreflightHook preflight_hook;
    std::deque<v1::CatchUp> catch_ups;  // that the hook has not heard
    bool hook_due = false, view_due = false, preflight_due = false, hook_running = false;
    bool leaving = false;
  };

  void run(const std::stop_token& stop);
  void wait_for_work(const std::stop_token& stop);
  void reconnect(TimePoint now);
  void open_stream();
  void log_trouble(const std::string& trouble, TimePoint now);
  void on_message(std::uint64_t stream, const v1::CoordinatorMessage& message);
  void on_ended(std::uint64_t stream, const absl::Status& status);
  void on_elsewhere(std::uint64_t stream, const std::string& leader);
  void send_reports();
  void send_heartbeat(TimePoint now);
  void run_hooks();
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
  Progress progress_{&clock_};
  std::atomic<std::uint64_t> draining_{0}, saves_asked_{0};
  mutable Guarded<State> state_;

  // The thread's alone; leave()'s once the thread has ended.
  Rng jitter_;
  std::unique_ptr<Stream> stream_;
  Heartbeats heartbeats_{progress_};
  KernelWatch kernel_watch_;
  std::uint64_t streams_ = 0;
  std::string leader_;  // of the present try; empty: environment_.coordinator
  std::optional<TimePoint> down_since_;
  Trouble trouble_;
  TimePoint next_try_{}, next_beat_{};
  Duration backoff_{}, connect_limit_ = kFirstConnectLimit;

  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace paceline::member

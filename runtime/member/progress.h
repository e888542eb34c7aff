#pragma once

// The board between the training thread, which writes what it does, and the heartbeat thread, which reports
// it.
//
// Threads: the methods under "training thread" belong to one thread, collect() to another one. In a step
// neither waits for the other (set_extra() and evaluated() do, outside of steps): current values are under a
// sequence lock of atomics, step records go through a single-producer ring. Writing costs well under a
// microsecond. Bounds: the ring holds kRingSteps steps between two heartbeats; when it is full the single
// step's record is dropped and counted, its times still being in the sums. A heartbeat carries at most
// kMaxPerHeartbeat steps, evenly thinned, the newest always among them. Steps are counted as "applied so far"
// everywhere.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>

#include "base/guarded.h"
#include "base/ids.h"
#include "proto/paceline/v1/coordinator.pb.h"
#include "runtime/member/step_clock.h"

namespace paceline::member {

struct AppliedStep {
  Step step = 0;             // steps applied, this one included
  std::int64_t samples = 0;  // applied so far, over all members
  StepTimes times;
  std::uint64_t bytes_sent = 0;  // by this member's exchange so far
  bool has_loss = false;         // rank 0: a StepRecord is made of the rest
  double loss = 0, learning_rate = 0;
  std::int64_t since_start_ns = 0;
  std::int64_t left_out = 0;  // of this member's samples of the step
};

struct Evaluation {
  Step step = 0;
  double loss = 0, accuracy = 0;
  std::int64_t samples = 0;
  std::int64_t since_start_ns = 0;
  bool target_reached = false;
  std::optional<double> auc = std::nullopt;
};

// From the view before to the first step in the present one.
struct ViewBegin {
  Duration view{}, state{}, first_step{};  // v1::ViewBegin
  Step step = 0;
};

class Progress {
 public:
  static constexpr std::size_t kRingSteps = 4096;
  static constexpr std::size_t kMaxEvaluations = 64;  // of a heartbeat: the coordinator takes no more at once
  static constexpr std::size_t kWaitingEvaluations = 4096;
  static constexpr int kMaxPerHeartbeat = 256;
  // Between two heartbeats: then the process stood still, and no part lasts since before that.
  static constexpr Duration kStandstill = std::chrono::seconds(2);

  // `clock`: the training thread's, which outlives this; null: nobody asks since when a part is current.
  explicit Progress(const Clock* clock = nullptr) : clock_(clock) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // --- training thread ---
  void set_generation(Generation generation);
  void set_phase(v1::MemberPhase phase);
  void set_view_begin(const ViewBegin& begin);  // until the generation changes
  void set_plan(std::int64_t total_steps, std::int64_t train_samples, std::uint64_t parameter_count);
  void set_resumed(Step step, std::int64_t samples);  // where training begins
  void step_applied(const AppliedStep& step);
  void set_weights_hash(Step step, std::uint64_t hash);  // of the weights after `step` steps
  // The same, unless the hash of a rounder step (one with more factors of two) still waits for its heartbeat:
  // so that members whose heartbeats come at different moments tell of the same steps.
  void offer_weights_hash(Step step, std::uint64_t hash);
  // Waits for the heartbeat's thread to take what was told, a few microseconds. What one heartbeat can't
  // carry waits for the next ones. Of more than kWaitingEvaluations the newest takes the place of the one
  // before it, which is counted as dropped: so the last one, which may have reached the target, is always
  // told.
  void evaluated(const Evaluation& evaluation);
  // The part of the step that it is in, for its step clock to set.
  CurrentPart& current_part() { return current_part_; }
  // What else a heartbeat says: `extra` adds it, in the heartbeat's thread, and waits for nobody. Null:
  // nothing. When this returns the one before runs no more; what it told last is not told again.
  using Extra = std::function<void(v1::Heartbeat&)>;
  void set_extra(Extra extra);
  // The same, of the device that the member computes on, whatever its role has to say.
  void set_device_extra(Extra extra);

  // --- heartbeat thread ---
  // Everything since the last call, but for evaluations beyond the oldest kMaxEvaluations; `out` is
  // overwritten.
  void collect(v1::Heartbeat* out);
  // The present values into a heartbeat of an earlier collect(), which keeps the steps, times, records and
  // evaluations that it brought then.
  void refresh(v1::Heartbeat* out);
  // Whether collect() left evaluations, or there are new ones.
  bool evaluations_wait() const { return !evaluations_.lock()->empty(); }
  std::uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  enum Word : std::size_t {
    kGeneration,
    kPhase,
    kStep,
    kSamples,
    kTotalSteps,
    kTrainSamples,
    kParameters,
    kHash,
    kHashStep,
    kSent,
    kLeftOut,
    kBeginView,
    kBeginState,
    kBeginFirst,
    kBeginStep,
    kSteps,
    kInput,
    kCompute,
    kWait,
    kTransfer,
    kUpdate,
    kCheckpoint,
    kWhole,
    kWords
  };
  using Values = std::array<std::uint64_t, kWords>;
  Values read() const;
  // The values, and the part of the step after theirs.
  struct Moment {
    Values values{};
    CurrentPart::Seen part;
    Duration in_part{};
  };
  Moment look();
  template <typename Change>
  void write(Change change);
  void set_values(const Moment& moment, v1::Heartbeat* out);
  void collect_steps(v1::Heartbeat* out);
  void collect_evaluations(v1::Heartbeat* out);

  const Clock* const clock_;
  CurrentPart current_part_;

  // Sequence lock: odd while the training thread writes.
  std::atomic<std::uint64_t> sequence_{0};
  std::array<std::atomic<std::uint64_t>, kWords> words_{};
  Values written_{};  // training thread's own copy

  // Slots [tail, head) are the reader's, the rest the writer's.
  std::array<AppliedStep, kRingSteps> steps_{};
  alignas(64) std::atomic<std::uint64_t> steps_head_{0};
  alignas(64) std::atomic<std::uint64_t> steps_tail_{0};
  mutable Guarded<std::deque<Evaluation>> evaluations_;  // that no heartbeat has carried
  std::atomic<std::uint64_t> dropped_{0};
  std::atomic<std::uint64_t> told_hash_step_{0};  // by the last heartbeat

  // The heartbeat thread's.
  Values collected_{};  // what the last collect() saw
  TimePoint looked_at_{}, stood_until_{};

  std::mutex extra_mutex_;  // held while it runs
  Extra extra_, device_extra_;
};

}  // namespace paceline::member

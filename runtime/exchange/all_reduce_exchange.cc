// Idea: one cursor over the buckets, `started`. Whoever holds the turn (`busy`) takes the bucket at the
// cursor if it is complete, reduces it without the lock, and gives the turn back. The communication thread
// takes turns whenever a bucket other than the last is complete; the training thread takes them in finish().
// So collectives are called by one thread at a time and in the same order on all ranks.
//
// Cost per step: one lock per declared range and per bucket; one wake-up per bucket that is reduced behind
// the caller's back.

#include "runtime/exchange/all_reduce_exchange.h"

#include <algorithm>
#include <stop_token>
#include <thread>

#include "base/guarded.h"
#include "base/status.h"
#include "runtime/exchange/buckets.h"

namespace paceline::exchange {

namespace {

using collective::Communicator;

class AllReduceExchange final : public GradientExchange {
 public:
  AllReduceExchange(const v1::ExchangeSpec& spec, Communicator& communicator, std::span<float> gradient,
                    const Clock& clock)
      : communicator_(communicator),
        gradient_(gradient),
        clock_(clock),
        timeout_(std::chrono::milliseconds(spec.timeout_ms())),
        algorithm_(static_cast<collective::Algorithm>(spec.algorithm())),
        buckets_(cut_buckets(gradient.size(), static_cast<std::size_t>(spec.bucket_bytes()) / sizeof(float))),
        turns_(ReadyTracker(buckets_)) {
    if (spec.overlap() && buckets_.size() > 1 && communicator.world_size() > 1) {
      thread_ = std::jthread([this](const std::stop_token& stop) { communicate(stop); });
    }
  }

  // A bucket under way ends with the communicator, or at its timeout.
  ~AllReduceExchange() override {
    thread_.request_stop();
    { turns_.lock()->stopped = true; }
  }

  absl::Status begin_step(Step step, Duration late) override {
    PL_RETURN_IF_ERROR(communicator_.closed());
    auto turns = turns_.lock();
    PL_RETURN_IF_ERROR(turns->error);
    turns->ready.reset();
    turns->started = 0;
    late_ = late;
    step_ = step;
    at_begin_ = communicator_.counters();
    return absl::OkStatus();
  }

  absl::Status range_ready(std::size_t begin, std::size_t end) override {
    auto turns = turns_.lock();
    PL_RETURN_IF_ERROR(turns->error);
    return turns->ready.mark(begin, end);
  }

  absl::Status finish(Deadline deadline) override {
    const TimePoint from = clock_.now();
    const collective::Counters before = communicator_.counters();
    const absl::Status status = drain(deadline);
    measure(clock_.now() - from, before);
    return status;
  }

  void set_on_summed(OnSummed on_summed) override { on_summed_ = std::move(on_summed); }
  ExchangeTimes last_times() const override { return times_; }

  void close(absl::Status reason) override { communicator_.close(std::move(reason)); }

 private:
  struct Turns {
    explicit Turns(ReadyTracker tracker) : ready(std::move(tracker)) {}
    ReadyTracker ready;
    std::size_t started = 0;  // buckets [0, started) are reduced, or the last of them is being
    bool busy = false;
    bool finishing = false;  // the training thread wants the next turn
    bool stopped = false;
    absl::Status error;
  };

  absl::Status reduce(std::size_t bucket, Deadline deadline) {
    const Bucket& b = buckets_[bucket];
    const absl::Status status = communicator_.all_reduce(gradient_.data() + b.begin, b.size(), DType::kF32,
                                                         collective::ReduceOp::kSum, deadline, algorithm_);
    if (status.ok()) return status;
    absl::Status named = with_context(
        status, str_cat("step ", step_.load(), ", gradient bucket ", bucket, " of ", buckets_.size()));
    status.ForEachPayload([&named](auto url, const absl::Cord& payload) { named.SetPayload(url, payload); });
    return named;
  }

  Deadline bucket_deadline() const { return Deadline::after(clock_.now(), timeout_ + late_.load()); }

  void give_back(const absl::Status& status) {
    auto turns = turns_.lock();
    turns->busy = false;
    if (!status.ok() && turns->error.ok()) turns->error = status;
  }

  void communicate(const std::stop_token& stop) {
    const std::size_t last = buckets_.size() - 1;
    const auto turn = [last](const Turns& t) {
      return t.stopped ||
             (t.error.ok() && !t.busy && !t.finishing && t.started < last && t.started < t.ready.startable());
    };
    while (!stop.stop_requested()) {
      std::size_t bucket = 0;
      {
        auto turns = turns_.lock_when(turn, kIdle);
        if (turns->stopped) return;
        if (!turn(*turns)) continue;
        turns->busy = true;
        bucket = turns->started++;
      }
      give_back(reduce(bucket, bucket_deadline()));
    }
  }

  void publish_summed(std::size_t buckets_summed) const {
    if (on_summed_ != nullptr && buckets_summed > 0) on_summed_(buckets_[buckets_summed - 1].begin);
  }

  // The rest, in this thread.
  absl::Status drain(Deadline deadline) {
    std::size_t summed = 0;
    {
      auto turns = turns_.lock();
      PL_RETURN_IF_ERROR(turns->error);
      if (!turns->ready.complete()) {
        return absl::FailedPreconditionError(str_cat("step ", step_.load(), ": gradient bucket ",
                                                     turns->ready.startable(),
                                                     " isn't complete, but the step is to be finished"));
      }
      turns->finishing = true;
      summed = turns->started - (turns->busy ? 1 : 0);
    }
    publish_summed(summed);
    absl::Status status;
    bool done = false;
    while (status.ok() && !done) status = take_turn(deadline, &done);
    turns_.lock()->finishing = false;
    return status;
  }

  absl::Status take_turn(Deadline deadline, bool* done) {
    std::size_t bucket = 0;
    {
      bool free = false;
      auto turns =
          turns_.lock_when([](const Turns& t) { return !t.busy; }, deadline.remaining(clock_.now()), &free);
      PL_RETURN_IF_ERROR(turns->error);
      if (!free) {
        turns->error = absl::DeadlineExceededError(str_cat("step ", step_.load(), ": gradient bucket ",
                                                           turns->started - 1, " of ", buckets_.size(),
                                                           " was still under way at the deadline"));
        return turns->error;
      }
      bucket = turns->started;
      *done = bucket == buckets_.size();
      if (!*done) {
        turns->busy = true;
        ++turns->started;
      }
    }
    publish_summed(bucket);
    if (*done) return absl::OkStatus();
    const absl::Status status = reduce(bucket, Deadline(std::min(deadline.at(), bucket_deadline().at())));
    give_back(status);
    return status;
  }

  // The communicator counts waiting and moving over all buckets, also those that were hidden behind compute:
  // what the caller was blocked for is split in the same proportion.
  void measure(Duration blocked, const collective::Counters& before) {
    const collective::Counters after = communicator_.counters();
    const double wait = static_cast<double>(after.wait_ns - before.wait_ns);
    const double transfer = static_cast<double>(after.transfer_ns - before.transfer_ns);
    const double share = wait + transfer > 0 ? wait / (wait + transfer) : 0;
    times_.wait = Duration(static_cast<std::int64_t>(static_cast<double>(blocked.count()) * share));
    times_.transfer = blocked - times_.wait;
    times_.bytes_sent = after.bytes_sent - at_begin_.bytes_sent;
  }

  static constexpr Duration kIdle =
      std::chrono::seconds(3600);  // of the communication thread, between checks

  Communicator& communicator_;
  const std::span<float> gradient_;
  const Clock& clock_;
  const Duration timeout_;
  const collective::Algorithm algorithm_;
  const std::vector<Bucket> buckets_;
  std::atomic<Step> step_{0};
  std::atomic<Duration> late_{};
  // The training thread's.
  collective::Counters at_begin_;
  ExchangeTimes times_;
  OnSummed on_summed_;

  Guarded<Turns> turns_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace

absl::Status check_spec(const v1::ExchangeSpec& spec) {
  if (spec.bucket_bytes() <= 0) {
    return absl::InvalidArgumentError(
        str_cat("allReduce.bucketBytes ", spec.bucket_bytes(), "; allowed: above 0"));
  }
  if (spec.timeout_ms() <= 0) {
    return absl::InvalidArgumentError(
        str_cat("allReduce.timeoutSeconds is ", spec.timeout_ms(), " ms; allowed: above 0"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<GradientExchange>> make_all_reduce_exchange(const v1::ExchangeSpec& spec,
                                                                           Communicator& communicator,
                                                                           std::span<float> gradient,
                                                                           const Clock& clock) {
  PL_RETURN_IF_ERROR(check_spec(spec));
  if (gradient.empty()) return absl::InvalidArgumentError("the gradient is empty");
  return std::make_unique<AllReduceExchange>(spec, communicator, gradient, clock);
}

}  // namespace paceline::exchange

#include "runtime/nccl/nccl_exchange.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/status.h"
#include "runtime/cuda/polling.h"
#include "runtime/exchange/all_reduce_exchange.h"
#include "runtime/exchange/buckets.h"

namespace paceline::nccl {

namespace {

using collective::Communicator;
using exchange::Bucket;
using OnEnd = std::function<void(std::unique_ptr<NcclCommunicator>)>;

absl::Status own_fault(const absl::Status& status) {
  return status.ok() ? status
                     : absl::InternalError(str_cat("this member's device failed: ", status.message()));
}

class NcclExchange final : public exchange::GradientExchange {
 public:
  NcclExchange(exchange::DeviceExchangeParts parts, cuda::Stream& stream, cuda::Stream idle,
               std::unique_ptr<NcclCommunicator> communicator, OnEnd on_end, std::size_t bucket_bytes)
      : parts_(std::move(parts)),
        stream_(stream),
        idle_(std::move(idle)),
        timeout_(std::chrono::milliseconds(parts_.spec.timeout_ms())),
        ready_(exchange::cut_buckets(parts_.elements, bucket_bytes / sizeof(float))),
        communicator_(std::move(communicator)),
        on_end_(std::move(on_end)) {}

  ~NcclExchange() override { on_end_(std::move(communicator_)); }

  absl::Status begin_step(Step step, Duration late) override {
    PL_RETURN_IF_ERROR(parts_.links.closed());
    PL_RETURN_IF_ERROR(communicator_->closed());
    ready_.reset();
    started_ = 0;
    computing_ = 0;
    behind_ready_ = 0;
    step_ = step;
    late_ = late;
    at_begin_ = communicator_->counters();
    return absl::OkStatus();
  }

  absl::Status range_ready(std::size_t begin, std::size_t end) override {
    if (begin >= parts_.elements) {
      if (end > parts_.elements + parts_.behind.size() || end < begin) return outside(begin, end);
      behind_ready_ += end - begin;
      return absl::OkStatus();
    }
    if (end > parts_.elements || end < begin) return outside(begin, end);
    if (computing_ == ranges_.size()) {
      auto event = cuda::Event::create(context(), cuda::Event::Kind::kOrder);
      if (!event.ok()) return ended(own_fault(event.status()));
      ranges_.push_back({{}, *std::move(event)});
    }
    Range& range = ranges_[computing_];
    range.elements = {begin, end};
    PL_RETURN_IF_ERROR(ended(own_fault(range.computed.record(stream_))));
    ++computing_;
    return absl::OkStatus();
  }

  absl::Status wait_for_device() override { return ended(start_what_is_there()); }

  absl::Status finish(Deadline deadline) override {
    PL_RETURN_IF_ERROR(wait_for_device());
    if (!ready_.complete() || behind_ready_ != parts_.behind.size()) {
      return ended(absl::FailedPreconditionError(
          str_cat("step ", step_, ": not all of the gradient is ready, but the step is to be finished")));
    }
    const TimePoint from = parts_.clock.now();
    const Deadline end(std::min(deadline.at(), bucket_deadline().at()));
    absl::Status status = parts_.links.all_reduce(parts_.behind.data(), parts_.behind.size(), DType::kF32,
                                                  collective::ReduceOp::kSum, end);
    if (status.ok()) status = named(communicator_->wait(last_, end), "the gradient's last bucket");
    ended(status).IgnoreError();
    measure(parts_.clock.now() - from);
    return status;
  }

  absl::Status broadcast(float* vector, std::size_t count, int root, Deadline deadline) override {
    return ended(communicator_->broadcast(vector, count, DType::kF32, root, deadline));
  }

  exchange::ExchangeTimes last_times() const override { return times_; }

  void close(absl::Status reason) override { communicator_->close(std::move(reason)); }

 private:
  struct Range {
    Bucket elements;
    cuda::Event computed;
  };

  std::shared_ptr<const cuda::Context> context() const { return stream_.shared_context(); }
  Deadline bucket_deadline() const { return Deadline::after(parts_.clock.now(), timeout_ + late_); }

  absl::Status outside(std::size_t begin, std::size_t end) const {
    return absl::InvalidArgumentError(str_cat("elements [", begin, ", ", end,
                                              ") are not within the gradient's ", parts_.elements,
                                              ", nor within the ", parts_.behind.size(), " behind it"));
  }

  // The same error, which says whose it is still.
  absl::Status named(const absl::Status& status, std::string_view what) const {
    if (status.ok()) return status;
    absl::Status told = with_context(status, str_cat("step ", step_, ", ", what));
    status.ForEachPayload([&told](auto url, const absl::Cord& payload) { told.SetPayload(url, payload); });
    return told;
  }

  // Neither the links nor NCCL's communicator can do without the other: peers that wait in one of them see
  // that this member waits in neither.
  absl::Status ended(absl::Status why) {
    if (why.ok()) return why;
    const absl::Status reason = absl::AbortedError(str_cat("the exchange failed: ", why.message()));
    communicator_->close(reason);
    parts_.links.close(reason);
    return why;
  }

  absl::Status start_what_is_there() {
    for (std::size_t i = 0; i < computing_; ++i) {
      const Range& range = ranges_[i];
      PL_RETURN_IF_ERROR(own_fault(
          range.computed.wait(parts_.clock, Deadline::after(parts_.clock.now(), cuda::kLongestWork))));
      PL_RETURN_IF_ERROR(ready_.mark(range.elements.begin, range.elements.end));
      while (started_ < ready_.startable()) PL_RETURN_IF_ERROR(start(started_++));
    }
    computing_ = 0;
    return absl::OkStatus();
  }

  // What it waits for is done already: nothing is on the idle stream.
  absl::Status start(std::size_t number) {
    const Bucket& bucket = ready_.buckets()[number];
    const auto operation =
        communicator_->enqueue_all_reduce(parts_.gradient + bucket.begin, bucket.size(), DType::kF32,
                                          collective::ReduceOp::kSum, idle_, bucket_deadline());
    if (!operation.ok())
      return named(operation.status(), str_cat("gradient bucket ", number, " of ", ready_.buckets().size()));
    last_ = *operation;
    return absl::OkStatus();
  }

  // As AllReduceExchange does: what the caller was blocked for is split as the communicator counts it.
  void measure(Duration blocked) {
    const collective::Counters now = communicator_->counters();
    const auto wait = static_cast<double>(now.wait_ns - at_begin_.wait_ns);
    const auto transfer = static_cast<double>(now.transfer_ns - at_begin_.transfer_ns);
    const double share = wait + transfer > 0 ? wait / (wait + transfer) : 0;
    times_.wait = Duration(static_cast<std::int64_t>(static_cast<double>(blocked.count()) * share));
    times_.transfer = blocked - times_.wait;
    times_.bytes_sent = now.bytes_sent - at_begin_.bytes_sent;
  }

  const exchange::DeviceExchangeParts parts_;
  cuda::Stream& stream_;
  cuda::Stream idle_;
  const Duration timeout_;
  exchange::ReadyTracker ready_;
  std::size_t started_ = 0;    // buckets
  std::vector<Range> ranges_;  // the first computing_ of them are this step's, and not there yet
  std::size_t computing_ = 0;
  std::size_t behind_ready_ = 0;
  std::uint64_t last_ = 0;  // operation
  Step step_ = 0;
  Duration late_{};
  collective::Counters at_begin_;
  exchange::ExchangeTimes times_;
  std::unique_ptr<NcclCommunicator> communicator_;
  const OnEnd on_end_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<exchange::GradientExchange>> make_nccl_exchange(
    exchange::DeviceExchangeParts parts, cuda::Stream& stream, std::unique_ptr<NcclCommunicator> communicator,
    OnEnd on_end, std::size_t least_bucket_bytes) {
  PL_RETURN_IF_ERROR(exchange::check_spec(parts.spec));
  PL_ASSIGN_OR_RETURN(cuda::Stream idle, cuda::Stream::create(stream.shared_context()));
  const std::size_t bucket_bytes =
      std::max(static_cast<std::size_t>(parts.spec.bucket_bytes()), least_bucket_bytes);
  return std::make_unique<NcclExchange>(std::move(parts), stream, std::move(idle), std::move(communicator),
                                        std::move(on_end), bucket_bytes);
}

}  // namespace paceline::nccl

#pragma once

// What a measurement of kernels is made of: memory, a stream, and the GPU's own clock.

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/dtype.h"
#include "base/rng.h"
#include "base/status.h"
#include "runtime/cuda/buffer.h"
#include "runtime/cuda/stream.h"

namespace paceline::cuda {

// Of a GPT-2.
inline constexpr std::uint32_t kTime = 1024, kWidth = 768, kHeads = 12, kVocabulary = 50304;
inline constexpr std::size_t kParameters = 124'000'256;

struct Options {
  std::uint32_t samples = 16, time = kTime, width = kWidth, vocabulary = kVocabulary;
  std::size_t parameters = kParameters;
  int rounds = 20;
  std::string json, driver, cublaslt;
};

// A kernel's name, what it moves or computes, and one launch of it.
struct Subject {
  std::string name;
  double bytes = 0;
  double operations = 0;
  std::function<absl::Status(Stream&)> launch;
};

struct Spread {
  double least = 0, median = 0, most = 0;
};

class Bench {
 public:
  static absl::StatusOr<std::unique_ptr<Bench>> open(const Options& options) {
    PL_ASSIGN_OR_RETURN(auto driver, Driver::open(options.driver));
    PL_ASSIGN_OR_RETURN(auto context, Context::open(std::move(driver), 0));
    PL_RETURN_IF_ERROR(context->enter());
    PL_ASSIGN_OR_RETURN(Stream stream, Stream::create(context));
    auto bench = std::unique_ptr<Bench>(new Bench(context, std::move(stream)));
    PL_ASSIGN_OR_RETURN(Event from, Event::create(context, Event::Kind::kTiming));
    PL_ASSIGN_OR_RETURN(Event to, Event::create(context, Event::Kind::kTiming));
    bench->events_.push_back(std::move(from));
    bench->events_.push_back(std::move(to));
    return bench;
  }

  const std::shared_ptr<const Context>& context() const { return context_; }

  // They stay as long as the bench.
  absl::StatusOr<void*> zeros(std::size_t bytes) {
    PL_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(context_, bytes));
    PL_RETURN_IF_ERROR(stream_.clear(buffer.address(), bytes));
    buffers_.push_back(std::move(buffer));
    return buffers_.back().address();
  }
  // Normal values in bf16 (as fp32 they are finite, too): products of zeros are faster than those of numbers.
  absl::StatusOr<void*> values(std::size_t bytes) {
    constexpr std::size_t kPiece = 1 << 20;
    PL_ASSIGN_OR_RETURN(void* const address, zeros(bytes));
    std::vector<BFloat16> piece;
    Rng rng(1, 2);
    for (std::size_t i = 0; i < std::min(bytes, kPiece) / 2; ++i) piece.emplace_back(rng.normal());
    for (std::size_t at = 0; at < bytes; at += kPiece) {
      const auto part = std::as_bytes(std::span(piece)).first(std::min(kPiece, bytes - at) / 2 * 2);
      PL_RETURN_IF_ERROR(stream_.to_device(static_cast<std::byte*>(address) + at, part));
    }
    PL_RETURN_IF_ERROR(stream_.finish(clock_, Deadline::after(clock_.now(), std::chrono::minutes(1))));
    return address;
  }

  absl::StatusOr<void*> copy(std::span<const std::byte> of) {
    PL_ASSIGN_OR_RETURN(void* const address, zeros(of.size()));
    PL_RETURN_IF_ERROR(stream_.to_device(address, of));
    PL_RETURN_IF_ERROR(stream_.finish(clock_, Deadline::after(clock_.now(), std::chrono::minutes(1))));
    return address;
  }

  // Microseconds of one launch: of `rounds` series of launches, after one that is not counted.
  absl::StatusOr<Spread> time(const Subject& subject, int rounds) {
    constexpr int kSeries = 5;
    std::vector<double> times;
    for (int r = -1; r < rounds; ++r) {
      PL_RETURN_IF_ERROR(events_[0].record(stream_));
      for (int i = 0; i < kSeries; ++i) PL_RETURN_IF_ERROR(subject.launch(stream_));
      PL_RETURN_IF_ERROR(events_[1].record(stream_));
      PL_RETURN_IF_ERROR(stream_.finish(clock_, Deadline::after(clock_.now(), std::chrono::minutes(2))));
      PL_ASSIGN_OR_RETURN(const auto took, time_between(*context_, events_[0], events_[1]));
      if (r >= 0) times.push_back(std::chrono::duration<double, std::micro>(took.value()).count() / kSeries);
    }
    std::sort(times.begin(), times.end());
    return Spread{times.front(), times[times.size() / 2], times.back()};
  }

 private:
  Bench(std::shared_ptr<const Context> context, Stream stream)
      : context_(std::move(context)), stream_(std::move(stream)) {}

  std::shared_ptr<const Context> context_;
  Stream stream_;
  std::vector<Event> events_;
  std::vector<DeviceBuffer> buffers_;
  SystemClock clock_;
};

}  // namespace paceline::cuda

#pragma once

// Work of one GPU in order, and marks in it. Streams run beside each other: what must come after another
// stream's work waits for an event of it.
//
// One thread at a time for each; the context is entered on it (context.h). Errors of earlier work come from
// later calls.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "runtime/cuda/context.h"

namespace paceline::cuda {

class Event;

class Stream {
 public:
  // Whose kernels' blocks come first where a multiprocessor is free: it takes none from those at work.
  enum class Priority : std::uint8_t { kUsual, kGreatest };
  // One that does not wait for, or hold up, the legacy default stream.
  static absl::StatusOr<Stream> create(std::shared_ptr<const Context> context,
                                       Priority priority = Priority::kUsual);
  // Does not wait: work under way goes on, and its memory must stay.
  ~Stream();
  Stream(Stream&& other) noexcept
      : context_(std::move(other.context_)), handle_(std::exchange(other.handle_, nullptr)) {}
  Stream& operator=(Stream&&) = delete;

  // Copies, in the stream's order. Memory of the host that is pinned (buffer.h) is read or written when the
  // copy's turn comes, and must stay until then; other memory before the call returns. Both lie in one
  // allocation each. Zero bytes are fine.
  absl::Status to_device(void* to, std::span<const std::byte> from);
  absl::Status to_host(std::span<std::byte> to, const void* from);
  absl::Status copy(void* to, const void* from, std::size_t bytes);
  absl::Status clear(void* address, std::size_t bytes);  // to zeros

  // What is added from now on comes after what the event was last recorded behind, in whatever stream.
  absl::Status wait_for(const Event& event);
  // All that was added is done. DEADLINE_EXCEEDED where it is not by then: it goes on.
  absl::Status finish(const Clock& clock, Deadline deadline);

  CUstream handle() const { return handle_; }
  const Context& context() const { return *context_; }
  const std::shared_ptr<const Context>& shared_context() const { return context_; }

 private:
  Stream(std::shared_ptr<const Context> context, CUstream handle)
      : context_(std::move(context)), handle_(handle) {}

  std::shared_ptr<const Context> context_;
  CUstream handle_;
};

class Event {
 public:
  enum class Kind : std::uint8_t { kOrder, kTiming };  // timing costs a little
  static absl::StatusOr<Event> create(std::shared_ptr<const Context> context, Kind kind);
  ~Event();
  Event(Event&& other) noexcept
      : context_(std::move(other.context_)), handle_(std::exchange(other.handle_, nullptr)) {}
  Event& operator=(Event&&) = delete;

  // Behind all that was added to the stream so far.
  absl::Status record(Stream& stream);
  // Whether that is done. True where it was never recorded.
  absl::StatusOr<bool> reached() const;
  absl::Status wait(const Clock& clock, Deadline deadline) const;

  CUevent handle() const { return handle_; }

 private:
  Event(std::shared_ptr<const Context> context, CUevent handle)
      : context_(std::move(context)), handle_(handle) {}

  std::shared_ptr<const Context> context_;
  CUevent handle_;
};

// Of the GPU's own time, to half a microsecond. Nothing where one of them is not reached yet; never waits.
// REQUIRES: both are of kTiming and recorded, else INTERNAL.
absl::StatusOr<std::optional<Duration>> time_between(const Context& context, const Event& from,
                                                     const Event& to);

}  // namespace paceline::cuda

#pragma once

// Work of a stream that is kept, to be added again as a whole: a CUDA graph. A launch costs the host about
// as much as that of one kernel, and what is in it follows each other without the host.
//
// What is kept has the addresses, sizes and parameters that it was added with; memory is read when its turn
// comes. One thread at a time, which has entered the context.

#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/stream.h"

namespace paceline::cuda {

class Graph {
 public:
  // Calls `add` once, and keeps what it adds to `stream`, which does none of it. `add` takes and frees no
  // memory of CUDA's, copies from and to pinned memory alone, waits and asks for nothing, and has to do with
  // no event. Errors: those of `add`; INTERNAL, RESOURCE_EXHAUSTED of the driver, which keeps no such work.
  // After one, too, the stream goes on as before.
  static absl::StatusOr<Graph> record(Stream& stream, absl::FunctionRef<absl::Status()> add);
  // Does not wait: what is under way of it goes on.
  ~Graph();
  Graph(Graph&& other) noexcept
      : context_(std::move(other.context_)), handle_(std::exchange(other.handle_, nullptr)) {}
  Graph& operator=(Graph&&) = delete;

  // Adds all of it, to whatever stream of the context; behind its launch before, too.
  absl::Status launch(Stream& stream) const;

 private:
  Graph(std::shared_ptr<const Context> context, CUgraphExec handle)
      : context_(std::move(context)), handle_(handle) {}

  std::shared_ptr<const Context> context_;
  CUgraphExec handle_;
};

}  // namespace paceline::cuda

#pragma once

// A Communicator whose collectives are all one function of a Call. Threads and errors: communicator.h.

#include "runtime/collective/arguments.h"
#include "runtime/collective/communicator.h"

namespace paceline::collective {

class CallCommunicator : public Communicator {
 public:
  absl::Status all_reduce(void* data, std::size_t count, DType dtype, ReduceOp op, Deadline deadline,
                          Algorithm algorithm = Algorithm::kAuto) final {
    return run({Kind::kAllReduce, static_cast<std::byte*>(data), count, dtype, op, algorithm}, deadline);
  }
  absl::Status reduce_scatter(void* data, std::size_t count, DType dtype, ReduceOp op,
                              Deadline deadline) final {
    return run({Kind::kReduceScatter, static_cast<std::byte*>(data), count, dtype, op}, deadline);
  }
  absl::Status all_gather(void* data, std::size_t count, DType dtype, Deadline deadline) final {
    return run({Kind::kAllGather, static_cast<std::byte*>(data), count, dtype}, deadline);
  }
  absl::Status broadcast(void* data, std::size_t count, DType dtype, int root, Deadline deadline) final {
    Call call{Kind::kBroadcast, static_cast<std::byte*>(data), count, dtype};
    call.root = root;
    return run(call, deadline);
  }
  absl::Status barrier(Deadline deadline) final { return run({Kind::kBarrier}, deadline); }

 private:
  // The call is not checked yet: see check_call().
  virtual absl::Status run(const Call& call, Deadline deadline) = 0;
};

}  // namespace paceline::collective

#pragma once

// Links of a member that pass all calls on, and tell of each before it waits.

#include <functional>
#include <memory>
#include <utility>

#include "base/check.h"
#include "runtime/collective/call_communicator.h"

namespace paceline::trainer {

class CallTeller final : public collective::CallCommunicator {
 public:
  using Tell = std::function<void(collective::Kind kind, Deadline deadline)>;
  CallTeller(std::unique_ptr<collective::Communicator> links, Tell tell)
      : links_(std::move(links)), tell_(std::move(tell)) {}
  int rank() const override { return links_->rank(); }
  int world_size() const override { return links_->world_size(); }
  Generation generation() const override { return links_->generation(); }
  void close(absl::Status reason) override { links_->close(std::move(reason)); }
  absl::Status closed() const override { return links_->closed(); }
  collective::Counters counters() const override { return links_->counters(); }

 private:
  absl::Status run(const collective::Call& call, Deadline deadline) override {
    tell_(call.kind, deadline);
    if (call.kind == collective::Kind::kBroadcast) {
      return links_->broadcast(call.data, call.count, call.dtype, call.root, deadline);
    }
    if (call.kind == collective::Kind::kAllGather)
      return links_->all_gather(call.data, call.count, call.dtype, deadline);
    PL_CHECK(call.kind == collective::Kind::kAllReduce, "what a trainer calls");
    return links_->all_reduce(call.data, call.count, call.dtype, call.op, deadline, call.algorithm);
  }

  const std::unique_ptr<collective::Communicator> links_;
  const Tell tell_;
};

}  // namespace paceline::trainer

#include "runtime/nccl/communicator.h"

#include <thread>
#include <utility>

#include "base/status.h"
#include "runtime/collective/arguments.h"
#include "runtime/nccl/service.h"

namespace paceline::nccl {

namespace {

using collective::Algorithm;
using collective::Call;
using collective::Kind;
using collective::ReduceOp;

class Served final : public NcclCommunicator {
 public:
  explicit Served(std::shared_ptr<Service> service)
      : service_(std::move(service)), thread_([service = service_] { service->run(); }) {}
  ~Served() override { Served::end(); }

  int rank() const override { return service_->rank(); }
  int world_size() const override { return service_->world_size(); }
  Generation generation() const override { return service_->generation(); }

  absl::Status all_reduce(void* data, std::size_t count, DType dtype, ReduceOp op, Deadline deadline,
                          Algorithm) override {
    return run({Kind::kAllReduce, static_cast<std::byte*>(data), count, dtype, op}, deadline);
  }
  absl::Status reduce_scatter(void* data, std::size_t count, DType dtype, ReduceOp op,
                              Deadline deadline) override {
    return run({Kind::kReduceScatter, static_cast<std::byte*>(data), count, dtype, op}, deadline);
  }
  absl::Status all_gather(void* data, std::size_t count, DType dtype, Deadline deadline) override {
    return run({Kind::kAllGather, static_cast<std::byte*>(data), count, dtype}, deadline);
  }
  absl::Status broadcast(void* data, std::size_t count, DType dtype, int root, Deadline deadline) override {
    Call call{Kind::kBroadcast, static_cast<std::byte*>(data), count, dtype};
    call.root = root;
    return run(call, deadline);
  }
  absl::Status barrier(Deadline deadline) override { return run({Kind::kBarrier}, deadline); }

  absl::StatusOr<std::uint64_t> enqueue_all_reduce(void* data, std::size_t count, DType dtype, ReduceOp op,
                                                   cuda::Stream& after, Deadline deadline) override {
    return service_->post({Kind::kAllReduce, static_cast<std::byte*>(data), count, dtype, op}, &after,
                          deadline);
  }
  absl::Status wait(std::uint64_t number, Deadline deadline) override {
    return service_->wait(number, deadline);
  }
  absl::Status join(cuda::Stream& stream, Deadline deadline) override {
    return service_->join(stream, deadline);
  }

  void close(absl::Status reason) override { service_->close(std::move(reason)); }
  absl::Status closed() const override { return service_->closed(); }
  collective::Counters counters() const override { return service_->counters(); }
  State state() const override { return service_->state(); }
  bool end() override {
    if (!thread_.joinable()) return !given_up_;
    given_up_ = !service_->end();
    if (given_up_) {
      thread_.detach();
    } else {
      thread_.join();
    }
    return !given_up_;
  }

 private:
  absl::Status run(const Call& call, Deadline deadline) {
    PL_ASSIGN_OR_RETURN(const std::uint64_t number, service_->post(call, nullptr, deadline));
    return service_->wait_for_end(number, deadline);
  }

  const std::shared_ptr<Service> service_;
  std::jthread thread_;
  bool given_up_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<NcclCommunicator>> NcclCommunicator::create(Setup setup, const Clock& clock,
                                                                           Deadline deadline) {
  PL_ASSIGN_OR_RETURN(std::shared_ptr<Service> service, Service::make(std::move(setup), clock, deadline));
  auto made = std::make_unique<Served>(service);
  PL_RETURN_IF_ERROR(service->wait_until_open());
  return made;
}

}  // namespace paceline::nccl

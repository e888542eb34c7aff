#include "runtime/nccl/communicator.h"

#include <thread>
#include <utility>

#include "base/status.h"
#include "runtime/nccl/service.h"

namespace paceline::nccl {

namespace {

using collective::Call;
using collective::Kind;
using collective::ReduceOp;

class Served final : public NcclCommunicator {
 public:
  Served(std::shared_ptr<Service> service, std::function<void()> on_stuck)
      : service_(std::move(service)),
        on_stuck_(std::move(on_stuck)),
        thread_([service = service_] { service->run(); }) {}
  ~Served() override { Served::end(); }

  int rank() const override { return service_->rank(); }
  int world_size() const override { return service_->world_size(); }
  Generation generation() const override { return service_->generation(); }

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
  std::string origin() const override { return service_->origin(); }
  bool end() override {
    if (!thread_.joinable()) return !given_up_;
    if (!service_->end()) return give_up();
    thread_.join();
    return true;
  }
  bool keep() override {
    if (!thread_.joinable()) return !given_up_;
    if (!service_->may_be_kept()) return end();
    return service_->keep() || give_up();
  }
  std::optional<Parent> offer() override { return service_->offer(); }
  ncclComm_t hand_over() override { return service_->hand_over(); }

 private:
  absl::Status run(const Call& asked, Deadline deadline) override {
    Call call = asked;
    call.algorithm = collective::Algorithm::kAuto;  // NCCL chooses it
    PL_ASSIGN_OR_RETURN(const std::uint64_t number, service_->post(call, nullptr, deadline));
    return service_->wait_for_end(number, deadline);
  }
  bool give_up() {
    given_up_ = true;
    thread_.detach();
    if (on_stuck_ != nullptr) on_stuck_();
    return false;
  }

  const std::shared_ptr<Service> service_;
  const std::function<void()> on_stuck_;
  std::jthread thread_;
  bool given_up_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<NcclCommunicator>> NcclCommunicator::create(Setup setup, const Clock& clock,
                                                                           Deadline deadline) {
  const std::unique_ptr<NcclCommunicator> parent = std::move(setup.parent);
  const bool shrinks = setup.library->calls().ncclCommShrink != nullptr;
  PL_ASSIGN_OR_RETURN(Origin origin,
                      Agreement(*setup.host)
                          .on_setup(setup.context->device().uuid, setup.library->version(),
                                    parent != nullptr && shrinks ? parent->offer() : std::nullopt, deadline));
  std::function<void()> on_stuck = std::move(setup.on_stuck);
  PL_ASSIGN_OR_RETURN(std::shared_ptr<Service> service, Service::make(std::move(setup), clock, deadline));
  ncclComm_t handed = nullptr;
  if (origin.shrinks) handed = parent->hand_over();
  if (parent != nullptr && !parent->end())
    return absl::InternalError("NCCL does not let go of the last view's communicator");
  service->begin_from(std::move(origin), handed);
  auto made = std::make_unique<Served>(service, std::move(on_stuck));
  PL_RETURN_IF_ERROR(service->wait_until_open());
  return made;
}

}  // namespace paceline::nccl

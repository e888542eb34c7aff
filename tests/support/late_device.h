#pragma once

// A device with memory of its own for tests of what trains on it, without a GPU: the memory is the host's,
// and work is done as late as it may be, when somebody waits for a mark. Who reads what nobody waited for
// reads something old.

#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "base/vector_hash.h"
#include "runtime/optimizer/device_state.h"
#include "tests/support/late_queue.h"
#include "tests/support/step_model.h"

namespace paceline {

// On the queue's clock: who hears of it, what a piece of work takes (a pass has two, an update one), and an
// update beside that.
struct LateTimes {
  std::shared_ptr<tensor::DeviceTimer::Sums> sums = nullptr;
  Duration piece = std::chrono::milliseconds(1);
  Duration update = {};
};

// The optimizer of the host on vectors of the device.
class LateState final : public optimizer::DeviceState {
 public:
  // `gradients`, where there are any, outlive it.
  LateState(std::shared_ptr<LateQueue> queue, const v1::OptimizerSpec& spec,
            const tensor::ParameterLayout& layout, Duration update_takes = {},
            std::span<float> gradients = {})
      : queue_(std::move(queue)),
        update_takes_(update_takes),
        optimizer_(*optimizer::Optimizer::create(spec, layout)),
        bytes_((2 + optimizer_.state().size()) * layout.elements * sizeof(float)),
        weights_(layout.elements),
        own_gradients_(gradients.empty() ? layout.elements : 0),
        gradients_(gradients.empty() ? std::span(own_gradients_) : gradients) {}

  tensor::Queue& queue() override { return *queue_; }
  tensor::DeviceVectors vectors() const override {
    return {const_cast<float*>(weights_.data()), gradients_.data(), &version_};
  }
  absl::StatusOr<std::unique_ptr<tensor::Queue>> open_queue() override {
    return std::make_unique<LateQueue>(LateQueue::AtEnd::kFinishes);
  }
  std::vector<float*> state_vectors() override {
    std::vector<float*> all = {weights_.data()};
    for (const optimizer::StateVector& each : optimizer_.state()) all.push_back(each.values.data());
    return all;
  }
  void taken(std::int64_t steps) override {
    optimizer_.set_steps(steps);
    steps_ = steps;
    ++version_;
  }
  absl::Status upload(const optimizer::HostVectors& from, std::int64_t steps) override {
    queue_->add([this, from, steps] {
      std::ranges::copy(from.weights, weights_.begin());
      for (std::size_t i = 0; i < from.state.size(); ++i)
        std::ranges::copy(from.state[i].values, optimizer_.state()[i].values.begin());
      optimizer_.set_steps(steps);
      return absl::OkStatus();
    });
    steps_ = steps;
    ++version_;
    return wait();
  }
  absl::Status begin_download(const optimizer::HostVectors& to) override {
    PL_RETURN_IF_ERROR(queue_->set_mark(kMark + 1));
    PL_RETURN_IF_ERROR(side_.follow(*queue_, kMark + 1));
    side_.add([this, to] {
      std::ranges::copy(weights_, to.weights.begin());
      for (std::size_t i = 0; i < to.state.size(); ++i)
        std::ranges::copy(optimizer_.state()[i].values, to.state[i].values.begin());
      return absl::OkStatus();
    });
    downloads_ = true;
    return side_.set_mark(kMark);
  }
  absl::Status finish_download() override {
    return std::exchange(downloads_, false) ? side_.wait_for_mark(kMark) : absl::OkStatus();
  }
  absl::Status update(double learning_rate) override {
    PL_RETURN_IF_ERROR(check());
    if (downloads_) PL_RETURN_IF_ERROR(queue_->follow(side_, kMark));
    PL_RETURN_IF_ERROR(queue_->timer().begin_update());
    queue_->add([this, learning_rate] {
      queue_->take(update_takes_);
      status_ = optimizer_.step(weights_, gradients_, learning_rate).status();
      return absl::OkStatus();
    });
    PL_RETURN_IF_ERROR(queue_->timer().end());
    ++steps_;
    ++version_;
    stepped_ = true;
    return queue_->set_mark(kMark + 2);
  }
  absl::Status check() override {
    if (stepped_) PL_RETURN_IF_ERROR(queue_->wait_for_mark(kMark + 2));
    return status_;
  }
  std::int64_t steps() const override { return steps_; }
  absl::StatusOr<std::uint64_t> hash() override {
    PL_RETURN_IF_ERROR(wait());
    return vector_hash(weights_);
  }
  std::size_t bytes() const override { return bytes_; }
  std::shared_ptr<const void> pin(std::span<std::byte>) override { return nullptr; }

 private:
  static constexpr std::size_t kMark = tensor::kMarksOfState;
  absl::Status wait() {
    PL_RETURN_IF_ERROR(queue_->set_mark(kMark));
    return queue_->wait_for_mark(kMark);
  }

  const std::shared_ptr<LateQueue> queue_;
  const Duration update_takes_;
  LateQueue side_;
  optimizer::Optimizer optimizer_;
  const std::size_t bytes_;
  std::vector<float> weights_, own_gradients_;
  const std::span<float> gradients_;
  std::uint64_t version_ = 1;
  std::int64_t steps_ = 0;
  bool downloads_ = false, stepped_ = false;
  absl::Status status_;  // of the last step
};

// The step model on such a device.
class LateProgram final : public tensor::Program {
 public:
  LateProgram(std::int64_t max_rows, std::shared_ptr<LateQueue> queue)
      : device_(max_rows),
        queue_(std::move(queue)),
        inputs_(device_.batch().inputs.size()),
        labels_(device_.batch().labels.size()) {}

  const tensor::ParameterLayout& parameters() const override { return device_.parameters(); }
  std::int64_t max_rows() const override { return device_.max_rows(); }
  void initialize(std::uint64_t seed, std::span<float> weights) const override {
    device_.initialize(seed, weights);
  }
  void weights_changed() override {}
  tensor::BatchMemory batch() override { return {inputs_, {}, labels_}; }
  void bind(std::span<float> weights, std::span<float> gradients) override {
    late_ = false;
    copies_ = true;
    device_.bind(weights, gradients);
  }
  absl::Status unbind() override {
    copies_ = false;
    return absl::OkStatus();
  }
  // Has no room beside copies of the host's.
  absl::Status bind_on_device(const tensor::DeviceVectors& vectors) override {
    if (copies_) return absl::ResourceExhaustedError("copies of the host's vectors are there");
    late_ = true;
    const std::size_t elements = parameters().elements;
    device_.bind({vectors.weights, elements},
                 {vectors.gradients, vectors.gradients == nullptr ? 0 : elements});
    return absl::OkStatus();
  }
  absl::StatusOr<tensor::ForwardResult> forward(std::int64_t rows) override {
    add_forward(rows);
    PL_RETURN_IF_ERROR(queue_->set_mark(0));
    PL_RETURN_IF_ERROR(queue_->wait_for_mark(0));
    return result_;
  }
  absl::Status backward(float scale, bool accumulate, const OnReady& on_ready) override {
    queue_->add([=, this] { return device_.backward(scale, accumulate, nullptr); });
    PL_RETURN_IF_ERROR(queue_->timer().end());
    if (!late_) {
      PL_RETURN_IF_ERROR(queue_->set_mark(1));
      PL_RETURN_IF_ERROR(queue_->wait_for_mark(1));
    }
    if (on_ready == nullptr) return absl::OkStatus();
    on_ready(32, 48);
    on_ready(0, 32);
    return absl::OkStatus();
  }
  absl::Status pass(std::int64_t rows, float scale, bool accumulate, const OnResult& on_result,
                    const OnReady& on_ready) override {
    PL_RETURN_IF_ERROR(queue_->timer().begin_pass(!accumulate));
    add_forward(rows);
    PL_RETURN_IF_ERROR(queue_->set_mark(0));
    PL_RETURN_IF_ERROR(backward(scale, accumulate, on_ready));
    PL_RETURN_IF_ERROR(queue_->wait_for_mark(0));
    return on_result(result_);
  }

 private:
  void add_forward(std::int64_t rows) {
    queue_->add([this, rows]() -> absl::Status {
      std::ranges::copy(inputs_, device_.batch().inputs.begin());
      std::ranges::copy(labels_, device_.batch().labels.begin());
      PL_ASSIGN_OR_RETURN(result_, device_.forward(rows));
      return absl::OkStatus();
    });
  }

  StepProgram device_;
  const std::shared_ptr<LateQueue> queue_;
  std::vector<float> inputs_;
  std::vector<std::int32_t> labels_;
  tensor::ForwardResult result_;
  bool late_ = false, copies_ = false;
};

// Sums the devices' gradients where they lie, over links of its own.
class LateExchange final : public exchange::GradientExchange {
 public:
  explicit LateExchange(exchange::DeviceExchangeParts parts) : parts_(std::move(parts)) {}
  absl::Status begin_step(Step, Duration) override { return parts_.own->closed(); }
  absl::Status range_ready(std::size_t, std::size_t) override { return absl::OkStatus(); }
  absl::Status wait_for_device() override {
    PL_RETURN_IF_ERROR(parts_.queue.set_mark(tensor::kMarksOfExchange));
    return parts_.queue.wait_for_mark(tensor::kMarksOfExchange);
  }
  absl::Status finish(Deadline deadline) override {
    PL_RETURN_IF_ERROR(parts_.links.all_reduce(parts_.behind.data(), parts_.behind.size(), DType::kF32,
                                               collective::ReduceOp::kSum, deadline));
    return parts_.own->all_reduce(parts_.gradient, parts_.elements, DType::kF32, collective::ReduceOp::kSum,
                                  deadline);
  }
  absl::Status broadcast(float* vector, std::size_t count, int root, Deadline deadline) override {
    return parts_.own->broadcast(vector, count, DType::kF32, root, deadline);
  }
  exchange::ExchangeTimes last_times() const override { return {}; }
  void close(absl::Status reason) override { parts_.own->close(std::move(reason)); }

 private:
  const exchange::DeviceExchangeParts parts_;
};

// As step_workload(), on a device of its own.
using MakeLateState = std::function<std::unique_ptr<optimizer::DeviceState>(
    std::shared_ptr<LateQueue>, const v1::OptimizerSpec&, const tensor::ParameterLayout&)>;
inline trainer::OpenWorkload late_workload(std::int64_t train, std::int64_t test,
                                           exchange::OpenDeviceExchange open_exchange = nullptr,
                                           const LateTimes& times = {}, MakeLateState make_state = nullptr) {
  return [=](const v1::TrainingSpec&) -> absl::StatusOr<trainer::Workload> {
    trainer::Workload workload = workload_of<StepDataset, StepProgram>(train, test);
    const auto queue = std::make_shared<LateQueue>();
    queue->timer().collect_into(times.sums);
    queue->piece = times.piece;
    workload.compile = [queue](trainer::Purpose, std::int64_t rows,
                               const tensor::LeftRoom&) -> absl::StatusOr<std::unique_ptr<tensor::Program>> {
      return std::make_unique<LateProgram>(rows, queue);
    };
    workload.make_state = [=](const v1::OptimizerSpec& spec, const tensor::ParameterLayout& layout)
        -> absl::StatusOr<std::unique_ptr<optimizer::DeviceState>> {
      if (make_state != nullptr) return make_state(queue, spec, layout);
      return std::make_unique<LateState>(queue, spec, layout, times.update);
    };
    workload.open_exchange = open_exchange;
    return workload;
  };
}

}  // namespace paceline

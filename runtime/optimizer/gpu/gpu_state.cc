#include "runtime/optimizer/gpu/gpu_state.h"

#include <array>
#include <cstddef>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "runtime/cuda/optimizer.h"
#include "runtime/cuda/weights_hash.h"
#include "runtime/optimizer/step_terms.h"
#include "runtime/tensor/gpu/gpu_queue.h"

namespace paceline::optimizer {

namespace {

using tensor::DeviceMemory;
using tensor::Queue;

// Of the queue of the programs.
constexpr std::size_t kDoneMark = tensor::kMarksOfState;         // what the host waits for next
constexpr std::size_t kUpdatedMark = tensor::kMarksOfState + 1;  // the last step
constexpr std::size_t kStateMark = tensor::kMarksOfState + 2;    // what a download follows
// Of the side queue.
constexpr std::size_t kDownloadedMark = tensor::kMarksOfState;

class GpuState final : public DeviceState {
 public:
  GpuState(tensor::Device& device, std::shared_ptr<Queue> queue, const v1::OptimizerSpec& spec,
           std::size_t elements, cuda::GpuOptimizer optimizer, cuda::WeightsHash hash)
      : device_(device),
        queue_(std::move(queue)),
        stream_(static_cast<tensor::gpu::GpuQueue&>(*queue_).stream()),
        half_weights_(static_cast<tensor::gpu::GpuQueue&>(*queue_).half_weights()),
        spec_(spec),
        elements_(elements),
        optimizer_(std::move(optimizer)),
        hash_(std::move(hash)) {}

  absl::Status allocate(const tensor::ParameterLayout& layout) {
    std::vector<cuda::UpdateRange> ranges;
    for (const DecayRange& range : decay_ranges(layout))
      ranges.push_back({range.begin, range.end, range.decay});
    half_weights_.forget();
    const std::vector<cuda::UpdateChunk> chunks = cuda::update_chunks(ranges);
    chunk_count_ = chunks.size();
    const std::size_t bytes = elements_ * sizeof(float);
    PL_ASSIGN_OR_RETURN(weights_, device_.allocate(bytes));
    PL_ASSIGN_OR_RETURN(gradients_, device_.allocate(bytes));
    for (std::size_t i = 0; i < state_names(spec_).size(); ++i) {
      PL_ASSIGN_OR_RETURN(state_[i], device_.allocate(bytes));
    }
    PL_ASSIGN_OR_RETURN(chunks_, device_.allocate(chunks.size() * sizeof(cuda::UpdateChunk)));
    PL_ASSIGN_OR_RETURN(squares_, device_.allocate(cuda::square_parts(elements_) * sizeof(double)));
    PL_ASSIGN_OR_RETURN(clipping_, device_.allocate(sizeof(cuda::Clipping)));
    PL_ASSIGN_OR_RETURN(told_clipping_, device_.allocate_staging(sizeof(cuda::Clipping)));
    const std::size_t sums = cuda::WeightsHash::parts(elements_) * sizeof(std::uint64_t);
    PL_ASSIGN_OR_RETURN(sums_, device_.allocate(sums));
    PL_ASSIGN_OR_RETURN(told_sums_, device_.allocate_staging(sums));
    PL_ASSIGN_OR_RETURN(side_, device_.open_queue());
    PL_RETURN_IF_ERROR(queue_->upload(chunks_->data(), std::as_bytes(std::span(chunks))));
    return wait();
  }

  Queue& queue() override { return *queue_; }
  tensor::DeviceVectors vectors() const override { return {floats(weights_), floats(gradients_), &version_}; }
  absl::StatusOr<std::unique_ptr<Queue>> open_queue() override {
    PL_RETURN_IF_ERROR(device_.enter());
    return device_.open_queue();
  }

  std::vector<float*> state_vectors() override {
    std::vector<float*> all = {floats(weights_)};
    for (std::size_t i = 0; i < state_names(spec_).size(); ++i) all.push_back(floats(state_[i]));
    return all;
  }
  void taken(std::int64_t steps) override {
    ++version_;
    half_weights_.forget();
    steps_ = steps;
    checked_ = true;
  }

  absl::Status upload(const HostVectors& from, std::int64_t steps) override {
    PL_RETURN_IF_ERROR(move(from, [&](DeviceMemory& memory, std::span<std::byte> host) {
      return queue_->upload(memory.data(), host);
    }));
    taken(steps);
    return wait();
  }

  absl::Status begin_download(const HostVectors& to) override {
    PL_CHECK(!downloads_, "one download at a time");
    PL_RETURN_IF_ERROR(device_.enter());
    PL_RETURN_IF_ERROR(queue_->set_mark(kStateMark));
    PL_RETURN_IF_ERROR(side_->follow(*queue_, kStateMark));
    PL_RETURN_IF_ERROR(move(to, [&](DeviceMemory& memory, std::span<std::byte> host) {
      return side_->download(host, memory.data());
    }));
    downloads_ = true;
    return side_->set_mark(kDownloadedMark);
  }

  absl::Status finish_download() override {
    if (!std::exchange(downloads_, false)) return absl::OkStatus();
    PL_RETURN_IF_ERROR(device_.enter());
    return side_->wait_for_mark(kDownloadedMark);
  }

  absl::Status update(double learning_rate) override {
    PL_RETURN_IF_ERROR(check());
    PL_RETURN_IF_ERROR(device_.enter());
    if (downloads_) PL_RETURN_IF_ERROR(queue_->follow(*side_, kDownloadedMark));
    PL_RETURN_IF_ERROR(queue_->timer().begin_update());
    const bool clips = spec_.clip_norm() > 0;
    auto* const clipping = reinterpret_cast<cuda::Clipping*>(clipping_->data());
    if (clips) {
      PL_RETURN_IF_ERROR(optimizer_.clip(stream_, floats(gradients_), elements_, spec_.clip_norm(),
                                         reinterpret_cast<double*>(squares_->data()), clipping));
    }
    const cuda::UpdateParams update{.chunks = reinterpret_cast<const cuda::UpdateChunk*>(chunks_->data()),
                                    .weights = floats(weights_),
                                    .gradient = floats(gradients_),
                                    .copy = half_weights_.whole(elements_),
                                    .clipping = clips ? clipping : nullptr};
    PL_RETURN_IF_ERROR(step(update, step_terms(spec_, learning_rate, steps_ + 1)));
    PL_RETURN_IF_ERROR(queue_->timer().end());
    if (clips)  // behind the step: between its kernels it would hold them up
      PL_RETURN_IF_ERROR(queue_->download({told_clipping_->data(), sizeof(cuda::Clipping)}, clipping));
    half_weights_.written(floats(weights_), version_, version_ + 1, !clips);
    ++steps_;
    ++version_;
    checked_ = !clips;
    return queue_->set_mark(kUpdatedMark);
  }

  absl::Status check() override {
    if (checked_) return absl::OkStatus();
    PL_RETURN_IF_ERROR(device_.enter());
    PL_RETURN_IF_ERROR(queue_->wait_for_mark(kUpdatedMark));
    const auto& told = *reinterpret_cast<const cuda::Clipping*>(told_clipping_->data());
    if (told.finite == 0) return diverged(told.norm, steps_);
    checked_ = true;
    return absl::OkStatus();
  }

  std::int64_t steps() const override { return steps_; }

  absl::StatusOr<std::uint64_t> hash() override {
    PL_RETURN_IF_ERROR(device_.enter());
    auto* const sums = reinterpret_cast<std::uint64_t*>(sums_->data());
    const std::span<std::uint64_t> told(reinterpret_cast<std::uint64_t*>(told_sums_->data()),
                                        cuda::WeightsHash::parts(elements_));
    PL_RETURN_IF_ERROR(hash_.add(stream_, floats(weights_), elements_, sums));
    PL_RETURN_IF_ERROR(queue_->download(std::as_writable_bytes(told), sums));
    PL_RETURN_IF_ERROR(wait());
    return cuda::WeightsHash::result(told, elements_);
  }

  std::size_t bytes() const override { return (2 + state_names(spec_).size()) * elements_ * sizeof(float); }
  std::shared_ptr<const void> pin(std::span<std::byte> memory) override { return device_.pin(memory); }

 private:
  static float* floats(const std::unique_ptr<DeviceMemory>& memory) {
    return memory == nullptr ? nullptr : reinterpret_cast<float*>(memory->data());
  }

  absl::Status wait() {
    PL_RETURN_IF_ERROR(queue_->set_mark(kDoneMark));
    return queue_->wait_for_mark(kDoneMark);
  }

  // All vectors, pinned where they come for the first time.
  template <typename Move>
  absl::Status move(const HostVectors& host, Move move_one) {
    PL_RETURN_IF_ERROR(device_.enter());
    PL_CHECK(host.weights.size() == elements_ && host.state.size() == state_names(spec_).size(),
             "the host has as many vectors, as long as the device's");
    PL_RETURN_IF_ERROR(move_one(*weights_, pinned(0, host.weights)));
    for (std::size_t i = 0; i < host.state.size(); ++i) {
      PL_RETURN_IF_ERROR(move_one(*state_[i], pinned(i + 1, host.state[i].values)));
    }
    return absl::OkStatus();
  }
  std::span<std::byte> pinned(std::size_t number, std::span<float> vector) {
    const std::span<std::byte> bytes = std::as_writable_bytes(vector);
    Pinned& known = pinned_[number];
    if (known.address != bytes.data()) {
      known.pin.reset();
      known = {bytes.data(), device_.pin(bytes)};
    }
    return bytes;
  }

  absl::Status step(const cuda::UpdateParams& update, const StepTerms& terms) {
    if (uses_moments(spec_)) {
      const tensor::cpu::AdamStep s = adam_step(spec_, terms, true);
      return optimizer_.adam(stream_,
                             {.update = update,
                              .first = floats(state_[0]),
                              .second = floats(state_[1]),
                              .step_size = s.step_size,
                              .beta1 = s.beta1,
                              .one_minus_beta1 = s.one_minus_beta1,
                              .beta2 = s.beta2,
                              .one_minus_beta2 = s.one_minus_beta2,
                              .root_correction = s.root_correction,
                              .epsilon = s.epsilon,
                              .weight_decay = s.weight_decay,
                              .shrink = s.shrink},
                             chunk_count_);
    }
    if (spec_.type() == v1::OptimizerSpec::ADAGRAD) {
      const tensor::cpu::AdagradStep s = adagrad_step(spec_, terms, true);
      return optimizer_.adagrad(stream_,
                                {.update = update,
                                 .sum = floats(state_[0]),
                                 .learning_rate = s.learning_rate,
                                 .epsilon = s.epsilon,
                                 .weight_decay = s.weight_decay},
                                chunk_count_);
    }
    const tensor::cpu::SgdStep s = sgd_step(spec_, terms, true);
    return optimizer_.sgd(stream_,
                          {.update = update,
                           .momentum = floats(state_[0]),
                           .learning_rate = s.learning_rate,
                           .factor = s.momentum,
                           .weight_decay = s.weight_decay,
                           .nesterov = s.nesterov},
                          chunk_count_);
  }

  struct Pinned {
    const std::byte* address = nullptr;
    std::shared_ptr<const void> pin;
  };

  tensor::Device& device_;
  const std::shared_ptr<Queue> queue_;
  cuda::Stream& stream_;                    // the queue's
  tensor::gpu::HalfWeights& half_weights_;  // the queue's
  const v1::OptimizerSpec spec_;
  const std::size_t elements_;
  const cuda::GpuOptimizer optimizer_;
  const cuda::WeightsHash hash_;

  std::unique_ptr<DeviceMemory> weights_, gradients_, chunks_, squares_, clipping_, sums_;
  std::array<std::unique_ptr<DeviceMemory>, 2> state_;
  std::unique_ptr<DeviceMemory> told_clipping_, told_sums_;  // staging
  std::array<Pinned, 3> pinned_;
  std::size_t chunk_count_ = 0;
  std::int64_t steps_ = 0;
  std::uint64_t version_ = 1;
  bool checked_ = true;          // what the last step's norm was
  bool downloads_ = false;       // and nobody has waited for it
  std::unique_ptr<Queue> side_;  // last: it waits for what uses the others
};

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceState>> make_gpu_state(tensor::Device& device,
                                                            std::shared_ptr<Queue> queue,
                                                            const v1::OptimizerSpec& spec,
                                                            const tensor::ParameterLayout& layout) {
  PL_CHECK(queue != nullptr, "a GPU has queues");
  PL_RETURN_IF_ERROR(device.enter());
  const auto context = static_cast<tensor::gpu::GpuQueue&>(*queue).context();
  PL_ASSIGN_OR_RETURN(auto optimizer, cuda::GpuOptimizer::load(context));
  PL_ASSIGN_OR_RETURN(auto hash, cuda::WeightsHash::load(context));
  auto state = std::make_unique<GpuState>(device, std::move(queue), spec, layout.elements,
                                          std::move(optimizer), std::move(hash));
  PL_RETURN_IF_ERROR(state->allocate(layout));
  return state;
}

}  // namespace paceline::optimizer

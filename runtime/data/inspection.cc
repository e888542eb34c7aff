#include "runtime/data/inspection.h"

#include <atomic>
#include <thread>
#include <utility>

#include "base/status.h"

namespace paceline::data {

namespace {

using Sets = std::vector<std::shared_ptr<const FileDataset>>;

absl::Status inspect_all(const Sets& sets, const std::stop_token& stop) {
  for (const auto& set : sets) PL_RETURN_IF_ERROR(set->inspect(stop));
  return absl::OkStatus();
}

class Inspection {
 public:
  explicit Inspection(Sets sets)
      : thread_([this, sets = std::move(sets)](const std::stop_token& stop) {
          found_ = inspect_all(sets, stop);
          done_.store(true, std::memory_order_release);
        }) {}

  absl::Status found() const { return done_.load(std::memory_order_acquire) ? found_ : absl::OkStatus(); }

 private:
  absl::Status found_;  // the thread's until it is done
  std::atomic<bool> done_ = false;
  std::jthread thread_;  // last: it uses the others
};

class InspectedDataset final : public Dataset {
 public:
  InspectedDataset(std::shared_ptr<const Dataset> samples, std::shared_ptr<const Inspection> inspection)
      : samples_(std::move(samples)), inspection_(std::move(inspection)) {}

  const SampleShape& shape() const override { return samples_->shape(); }
  std::int64_t size() const override { return samples_->size(); }
  std::string place_of(std::int64_t index) const override { return samples_->place_of(index); }
  absl::Status fetch(std::span<const std::int64_t> indices, std::uint64_t augmentation_seed,
                     const BatchView& batch) const override {
    PL_RETURN_IF_ERROR(inspection_->found());
    return samples_->fetch(indices, augmentation_seed, batch);
  }

 private:
  const std::shared_ptr<const Dataset> samples_;
  const std::shared_ptr<const Inspection> inspection_;
};

}  // namespace

absl::StatusOr<std::vector<std::shared_ptr<const Dataset>>> inspect(Sets sets, std::uint64_t at_once) {
  std::uint64_t bytes = 0;
  for (const auto& set : sets) bytes += set->inspected_bytes();
  std::vector<std::shared_ptr<const Dataset>> inspected(sets.begin(), sets.end());
  if (bytes <= at_once) {
    PL_RETURN_IF_ERROR(inspect_all(sets, {}));
    return inspected;
  }
  const auto inspection = std::make_shared<const Inspection>(std::move(sets));
  for (auto& set : inspected) set = std::make_shared<InspectedDataset>(std::move(set), inspection);
  return inspected;
}

}  // namespace paceline::data

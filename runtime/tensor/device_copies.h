#pragma once

// What a program keeps on a device that has its own memory: the batch, the result, and the weights and the
// gradients, where it was bound to the host's; and which of them move, when. The host's side of the batch
// lies in staging memory. One thread at a time; errors: the device's.
//
// Of vectors on the device nobody waits for the end of a pass: the host fills the next batch while its
// backward pass and the optimizer's step go on. That batch goes to the device beside them, by a queue of its
// own into memory of its own (the landing), from where the programs' queue takes it. One staging area is
// enough: the host has waited for the result by then, of what was read from there. Of vectors of the host
// there is nothing to hide it behind, and the batch goes by the programs' queue.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/tensor/batch_areas.h"
#include "runtime/tensor/device.h"
#include "runtime/tensor/executable.h"

namespace paceline::tensor {

class DeviceCopies {
 public:
  // `staging`: areas.bytes() of the host's memory. All that it is given outlives it.
  static absl::StatusOr<std::unique_ptr<DeviceCopies>> make(Device& device, Queue& queue,
                                                            const BatchAreas& areas, std::byte* staging,
                                                            std::size_t elements, bool training);

  // The device's side of everything; of the vectors, once upload_weights() has made them.
  const ExternalMemory& memory() const { return memory_; }
  void bind(std::span<float> weights, std::span<float> gradients);
  absl::Status bind_on_device();  // vectors of others
  // What upload_weights() took, once the queue is done with it; bind() before the next.
  absl::Status release_vectors();

  std::size_t vector_bytes() const;  // that upload_weights() has taken
  std::size_t batch_bytes() const;
  // Begins to bring the samples. What is added to the programs' queue from now on comes after that.
  absl::Status upload_batch(std::int64_t rows);
  // Adds what puts them where memory() says. REQUIRES: upload_batch() of as many.
  absl::Status take_batch(std::int64_t rows);
  // The bound weights, where their version is another than at the last time. Memory for them and the
  // gradients is taken at the first time, which it tells.
  absl::StatusOr<bool> upload_weights(std::uint64_t version);
  // What the forward pass left: the result, and scores.
  absl::Status download_result(std::int64_t rows);
  // Behind download_result(); and waits for it. Three doubles; see Place::kResult.
  absl::Status mark_result();
  absl::StatusOr<const double*> wait_for_result();
  // Elements [begin, end) of the gradients.
  absl::Status download_gradients(std::size_t begin, std::size_t end);
  // What the backward pass left for the inputs and offsets.
  absl::Status download_batch_gradients(std::int64_t rows);

 private:
  DeviceCopies(Device& device, Queue& queue, const BatchAreas& areas, std::byte* staging,
               std::size_t elements, bool training)
      : device_(device),
        queue_(queue),
        areas_(areas),
        staging_(staging),
        elements_(elements),
        training_(training) {}
  absl::Status make_vectors();
  absl::Status download_part(BatchPart part, std::int64_t rows);

  Device& device_;
  Queue& queue_;
  const BatchAreas& areas_;
  std::byte* const staging_;
  const std::size_t elements_;  // of the vectors
  const bool training_;
  std::unique_ptr<DeviceMemory> batch_, weights_, gradients_;
  std::unique_ptr<DeviceMemory> result_;  // staging
  ExternalMemory memory_;
  std::span<float> bound_weights_, bound_gradients_;
  std::shared_ptr<const void> pinned_weights_, pinned_gradients_;
  std::uint64_t uploaded_version_ = 0;  // 0: none

  bool beside_ = false;                    // the batch lands
  bool marked_ = false;                    // a result was
  std::unique_ptr<DeviceMemory> landing_;  // laid out as the batch, its inputs alone
  std::unique_ptr<Queue> side_;            // last: it waits for what uses the others
};

}  // namespace paceline::tensor

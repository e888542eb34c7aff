#include "runtime/pserver/slab.h"

#include "base/check.h"
#include "base/status.h"

namespace paceline::pserver {

namespace {
constexpr std::size_t kUses = 3;
}

Slab::Slab(transport::Arena& arena, std::size_t elements, int workers)
    : arena_(arena),
      elements_(elements),
      borrowed_(static_cast<std::size_t>(workers), -1),
      of_workers_(kUses * static_cast<std::size_t>(workers)) {
  buffers_.reserve(static_cast<std::size_t>(workers) + 1);
}

absl::StatusOr<std::span<float>> Slab::take() {
  PL_ASSIGN_OR_RETURN(const std::span<std::byte> memory, arena_.allocate(elements_ * sizeof(float)));
  return std::span<float>(reinterpret_cast<float*>(memory.data()), elements_);
}

absl::StatusOr<std::span<float>> Slab::first_time(std::span<float>& memory) {
  if (memory.size() == elements_) return memory;
  PL_ASSIGN_OR_RETURN(memory, take());
  return memory;
}

absl::Status Slab::check(const SlabNeed& need) const {
  constexpr std::size_t kPage = transport::Arena::kAlignment;
  const std::size_t each = (elements_ * sizeof(float) + kPage - 1) / kPage * kPage, vectors = need.vectors();
  if (each == 0 || vectors <= arena_.left() / each) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      str_cat("a server's share of the weights is ", each, " bytes, and it may need ", vectors,
              " times as much (weights ", need.weights, ", gradients ", need.gradients, ", put aside ",
              need.kept, ", weights that workers have read ", need.read, ", snapshot ", need.copies,
              "): ", vectors * each, " bytes, and ", arena_.left(), " of the ", arena_.capacity(),
              " that this process may share are left; take more servers (ps), so that each holds less, or "
              "fewer workers"));
}

absl::Status Slab::open() {
  PL_ASSIGN_OR_RETURN(const std::span<float> memory, take());
  buffers_.push_back({memory, 0});
  return absl::OkStatus();
}

void Slab::lend(int worker) {
  lend_buffer(worker, current_);
}

void Slab::lend_next(int worker) {
  lend_buffer(worker, next_);
}

void Slab::lend_buffer(int worker, std::size_t buffer) {
  give_back(worker);
  borrowed_[static_cast<std::size_t>(worker)] = static_cast<int>(buffer);
  ++buffers_[buffer].borrowers;
}

void Slab::give_back(int worker) {
  int& borrowed = borrowed_[static_cast<std::size_t>(worker)];
  if (borrowed < 0) return;
  --buffers_[static_cast<std::size_t>(borrowed)].borrowers;
  borrowed = -1;
}

absl::StatusOr<std::span<float>> Slab::next() {
  next_ = current_;
  if (buffers_[current_].borrowers > 0) {
    for (next_ = 0; next_ < buffers_.size() && (next_ == current_ || buffers_[next_].borrowers > 0);) ++next_;
    if (next_ == buffers_.size()) {
      PL_CHECK(buffers_.size() <= borrowed_.size(), "each worker borrows at most one buffer");
      PL_RETURN_IF_ERROR(open());
    }
  }
  return buffers_[next_].memory;
}

absl::StatusOr<std::span<float>> Slab::of_worker(int worker, Use use) {
  return first_time(of_workers_[static_cast<std::size_t>(worker) * kUses + static_cast<std::size_t>(use)]);
}

absl::StatusOr<std::span<float>> Slab::copy(std::size_t k) {
  if (copies_.size() <= k) copies_.resize(k + 1);
  return first_time(copies_[k]);
}

}  // namespace paceline::pserver

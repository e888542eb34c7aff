#pragma once

// Ranks of one group as threads of the test, over any transport: the same suite runs on all. A program that
// runs it defines which media it has, and how they are wired.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "runtime/collective/communicator.h"

namespace paceline::collective {

inline constexpr DType kTypes[] = {DType::kF32, DType::kF64, DType::kBF16,
                                   DType::kF16, DType::kI32, DType::kI64};
inline constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kMean, ReduceOp::kMin, ReduceOp::kMax};

enum class Medium { kInProcess, kSharedMemory, kTcp, kTls, kNccl, kNcclShrunk };
std::string medium_name(Medium medium);

// What connects ranks; outlives their communicators.
class Wiring {
 public:
  virtual ~Wiring() = default;
  // By rank. Fails the test and returns none if that is not possible.
  virtual std::vector<std::unique_ptr<Communicator>> connect(int size, Generation generation,
                                                             const Clock& clock) = 0;
  // Memory for rank r, registered where the medium has such.
  virtual std::span<std::byte> registered(int r, std::size_t bytes);

 private:
  std::vector<std::vector<std::byte>> plain_;
};

// The program's own.
std::vector<Medium> media();
std::unique_ptr<Wiring> make_wiring(Medium medium);

// Runs body(rank) on one thread per rank, and waits for all.
void run_ranks(int size, const std::function<void(int)>& body);

class World {
 public:
  // Connects `size` ranks; fails the test and leaves an empty world if that is not possible.
  World(Medium medium, int size, std::uint64_t generation = 1);

  int size() const { return static_cast<int>(ranks_.size()); }
  Communicator& rank(int r) { return *ranks_[static_cast<std::size_t>(r)]; }
  // Frees one rank's communicator, as a member that ends does.
  void drop(int r) { ranks_[static_cast<std::size_t>(r)].reset(); }
  std::span<std::byte> registered(int r, std::size_t bytes) { return wiring_->registered(r, bytes); }

  void run(const std::function<void(int)>& body) { run_ranks(size(), body); }

  Deadline deadline(Duration wait = std::chrono::seconds(60)) const {
    return Deadline::after(clock_.now(), wait);
  }
  const Clock& clock() const { return clock_; }

 private:
  SystemClock clock_;
  std::unique_ptr<Wiring> wiring_;
  std::vector<std::unique_ptr<Communicator>> ranks_;
};

}  // namespace paceline::collective

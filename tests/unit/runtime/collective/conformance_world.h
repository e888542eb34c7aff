#pragma once

// Ranks of one group as threads of the test, over any transport: the same suite runs on all.

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "runtime/collective/fabric.h"

namespace paceline::collective::testing {

enum class Medium { kInProcess, kSharedMemory, kTcp };
std::string medium_name(Medium medium);

class World {
 public:
  // Connects `size` ranks; fails the test and leaves an empty world if that is not possible.
  World(Medium medium, int size, std::uint64_t generation = 1);

  int size() const { return static_cast<int>(ranks_.size()); }
  Communicator& rank(int r) { return *ranks_[static_cast<std::size_t>(r)]; }
  // Frees one rank's communicator, as a member that ends does.
  void drop(int r) { ranks_[static_cast<std::size_t>(r)].reset(); }
  // Memory for rank r, registered where the medium has such.
  std::span<std::byte> registered(int r, std::size_t bytes);

  // Runs body(rank) on one thread per rank, and waits for all.
  void run(const std::function<void(int)>& body);

  Deadline deadline(Duration wait = std::chrono::seconds(60)) const {
    return Deadline::after(clock_.now(), wait);
  }
  const Clock& clock() const { return clock_; }

 private:
  void connect(Medium medium, int size, std::uint64_t generation);

  SystemClock clock_;
  std::vector<std::unique_ptr<Fabric>> fabrics_;
  std::vector<std::unique_ptr<Communicator>> ranks_;
  std::vector<std::vector<std::byte>> plain_;
};

}  // namespace paceline::collective::testing

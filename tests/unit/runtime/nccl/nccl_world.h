#pragma once

// Ranks of NCCL as threads of the test, each with a GPU and a communicator of the host of its own, on the
// libraries of the tests.

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/cuda/buffer.h"
#include "runtime/nccl/communicator.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_cuda/gpu_test.h"
#include "tests/support/fake_nccl/fake_nccl.h"
#include "tests/support/paths.h"
#include "tests/unit/runtime/collective/conformance_world.h"

namespace paceline::nccl {

using collective::ReduceOp;
using collective::run_ranks;
using cuda::must;

// The library of that path, as tests control it.
fake_nccl::FakeNccl& fake_library(const std::string& path = binary_path(PACELINE_FAKE_NCCL));

// One rank's: destroyed after its communicator.
struct Gpu {
  explicit Gpu(int ordinal);
  std::shared_ptr<const cuda::Context> context;
  std::unique_ptr<cuda::Stream> stream;
};

class NcclTest : public ::testing::Test {
 protected:
  NcclTest();
  ~NcclTest() override;
  // All is given back, and nothing that is forbidden was done.
  void TearDown() override;

  using Made = std::vector<absl::StatusOr<std::unique_ptr<NcclCommunicator>>>;
  // Of `size` ranks, or why not; gpus_ has one for each.
  Made create(int size, const Clock& clock);
  // The same, and it succeeds.
  void connect(int size, const Clock& clock);
  void connect(int size) { connect(size, clock_); }
  // Of the next view, of these ranks of the last, with what they have kept.
  Made create_from(const std::vector<int>& ranks, const Clock& clock);
  void connect_from(const std::vector<int>& ranks, const Clock& clock);
  void connect_from(const std::vector<int>& ranks) { connect_from(ranks, clock_); }
  NcclCommunicator& rank(int r) { return *ranks_[static_cast<std::size_t>(r)]; }
  Gpu& gpu(int r) { return *gpus_[static_cast<std::size_t>(places_[static_cast<std::size_t>(r)])]; }

  // Memory of rank r's GPU that holds these, and what it holds now.
  cuda::DeviceBuffer upload(int r, const std::vector<float>& values);
  std::vector<float> download(int r, const cuda::DeviceBuffer& from);

  static Deadline later(const Clock& clock) { return Deadline::after(clock.now(), std::chrono::seconds(60)); }
  // Waits until it holds.
  static void until(const std::function<bool()>& condition) {
    while (!condition()) std::this_thread::yield();
  }

  SystemClock clock_;
  FakeClock still_;  // a clock that moves when a test says so
  std::string library_ = binary_path(PACELINE_FAKE_NCCL);
  Limits limits_;
  bool keeps_ = false;
  std::atomic<int> stuck_{0};  // communicators that were given up
  std::uint64_t view_ = 0;     // the last one
  std::vector<std::unique_ptr<Gpu>> gpus_;
  std::vector<int> places_;  // of each rank's in gpus_
  std::vector<collective::Communicator*> hosts_;
  std::vector<std::unique_ptr<NcclCommunicator>> ranks_;

 private:
  void take(Made made);
};

// Moves a clock on and on, from when `calls` of NCCL hang.
class Ticker {
 public:
  Ticker(FakeClock& clock, std::size_t calls)
      : thread_([&clock, calls](const std::stop_token& stop) {
          fake_library().wait_for_hanging(calls);
          while (!stop.stop_requested()) {
            clock.advance(std::chrono::seconds(1));
            std::this_thread::yield();
          }
        }) {}

 private:
  std::jthread thread_;
};

}  // namespace paceline::nccl

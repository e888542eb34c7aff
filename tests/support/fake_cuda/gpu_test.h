#pragma once

// What tests on the emulated GPU share: the library, a context with a stream, memory of the GPU from and to
// vectors, and the check at the end that nothing went wrong unseen and nothing is left.
//
// A test of kernels runs its body by in_both_orders(): a missing barrier shows in one of them.
//
// With PACELINE_TEST_GPU=real in the environment the same tests run on this machine's GPU
// (scripts/gpu-suite); those that are about the emulated one alone begin with PL_EMULATED_ONLY().

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "runtime/cuda/buffer.h"
#include "runtime/cuda/shared_object.h"
#include "runtime/cuda/stream.h"
#include "tests/support/fake_cuda/fake_cuda.h"
#include "tests/support/paths.h"

namespace paceline::cuda {

// `T` of a test that fails where it has no value.
template <typename T>
T must(absl::StatusOr<T> value) {
  if (!value.ok()) {
    ADD_FAILURE() << value.status();
    std::abort();
  }
  return *std::move(value);
}

inline bool on_real_gpu() {
  const char* const gpu = std::getenv("PACELINE_TEST_GPU");
  return gpu != nullptr && std::string(gpu) == "real";
}
#define PL_EMULATED_ONLY() \
  if (::paceline::cuda::on_real_gpu()) GTEST_SKIP() << "a test of the emulated GPU"

// Of the library under test; empty: the system's.
inline std::string test_driver() {
  return on_real_gpu() ? "" : binary_path(PACELINE_FAKE_CUDA);
}

inline fake_cuda::FakeCuda& fake() {
  static const auto get = [] {
    const std::array names{binary_path(PACELINE_FAKE_CUDA)};
    return reinterpret_cast<fake_cuda::Get>(must(must(SharedObject::open(names)).find(fake_cuda::kGet)));
  }();
  return *get();
}

// Memory of the GPU that holds `count` values.
template <typename T>
struct DeviceArray {
  DeviceBuffer buffer;
  std::size_t count;
  T* data() const { return buffer.as<T>(); }
};

class GpuTest : public ::testing::Test {
 protected:
  // Few multiprocessors, so that threads go on in strides.
  explicit GpuTest(int multiprocessors = 2) {
    if (!on_real_gpu()) {
      fake().reset();
      fake().control().multiprocessors = multiprocessors;
    }
    context_ = must(Context::open(must(Driver::open(test_driver())), 0));
    stream_ = std::make_unique<Stream>(must(Stream::create(context_)));
  }
  ~GpuTest() override {
    if (!on_real_gpu()) fake().reset();
  }

  void TearDown() override {
    stream_.reset();
    context_.reset();
    if (on_real_gpu()) return;
    EXPECT_THAT(fake().problems(), ::testing::IsEmpty());
    const fake_cuda::Counts left = fake().counts();
    EXPECT_EQ(left.allocations + left.pinned + left.streams + left.events + left.modules + left.contexts +
                  left.graphs,
              0U);
  }

  template <typename T>
  DeviceArray<T> array(std::size_t count) {
    return {must(DeviceBuffer::create(context_, count * sizeof(T))), count};
  }
  template <typename T>
  DeviceArray<T> upload(const std::vector<T>& values) {
    DeviceArray<T> made = array<T>(values.size());
    EXPECT_TRUE(stream_->to_device(made.buffer.address(), std::as_bytes(std::span(values))).ok());
    return made;
  }
  template <typename T>
  std::vector<T> download(const DeviceArray<T>& from) {
    std::vector<T> values(from.count);
    EXPECT_TRUE(stream_->to_host(std::as_writable_bytes(std::span(values)), from.buffer.address()).ok());
    finish();
    return values;
  }
  void finish() {
    const absl::Status status =
        stream_->finish(clock_, Deadline::after(clock_.now(), std::chrono::seconds(60)));
    EXPECT_TRUE(status.ok()) << status;
  }

  // ThreadSanitizer tells of a missing barrier in either order, and takes long for many threads.
#if defined(__SANITIZE_THREAD__)
  static constexpr bool kSlow = true;
#else
  static constexpr bool kSlow = false;
#endif
  template <typename Body>
  void in_both_orders(Body body) {
    for (const auto order : {fake_cuda::Order::kAscending, fake_cuda::Order::kDescending}) {
      if (on_real_gpu()) return body();
      if (kSlow && order == fake_cuda::Order::kDescending) break;
      SCOPED_TRACE(order == fake_cuda::Order::kAscending ? "first threads first" : "last threads first");
      fake().control().order = order;
      body();
    }
  }

  SystemClock clock_;
  std::shared_ptr<const Context> context_;
  std::unique_ptr<Stream> stream_;
};

// A GpuTest of the kernels that `Kernels` loads.
template <typename Kernels>
class KernelsTest : public GpuTest {
 protected:
  void TearDown() override {
    kernels_.reset();
    GpuTest::TearDown();
  }

  std::optional<Kernels> kernels_ = must(Kernels::load(context_));
};

}  // namespace paceline::cuda

// The emulated GPU itself: what kernels' tests rely on. Compiled with tests/support/fake_cuda/device.h before
// all else.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "runtime/cuda/kernels/portable.h"
#include "runtime/cuda/kernels/tensor_core.h"
#include "tests/support/fake_cuda/block.h"
#include "tests/support/fake_cuda/memory.h"
#include "tests/support/fake_cuda/streams.h"

namespace paceline::cuda {

struct Values {
  int* out;
  int how;
};

// Everyone tells its neighbour, around a barrier or not.
PL_KERNEL(256, tell_neighbour, Values, p) {
  __shared__ int told[256];
  const unsigned next = (threadIdx.x + 1) % blockDim.x;
  told[next] = static_cast<int>(threadIdx.x + 1000 * blockIdx.x);
  if (p.how != 0) __syncthreads();
  p.out[blockIdx.x * blockDim.x + threadIdx.x] = told[threadIdx.x];
}

PL_KERNEL(256, sum_warp, Values, p) {
  int x = static_cast<int>(threadIdx.x);
  for (int lanes = 16; lanes > 0; lanes /= 2) x += __shfl_xor_sync(kWholeWarp, x, lanes);
  p.out[threadIdx.x] = x;
}

PL_KERNEL(256, misbehave, Values, p) {
  const bool odd = threadIdx.x % 2 == 1;
  switch (p.how) {
    case 0:  // some return before the barrier
      if (odd) return;
      __syncthreads();
      break;
    case 1:  // two barriers
      if (odd) {
        __syncthreads();
      } else {
        __syncthreads();
      }
      break;
    case 2:  // half a warp at a shuffle
      if (odd) p.out[threadIdx.x] = __shfl_xor_sync(kWholeWarp, 1, 1);
      break;
    case 3:  // a barrier beside a shuffle
      if (threadIdx.x < 32) {
        __syncthreads();
      } else {
        p.out[threadIdx.x] = __shfl_xor_sync(kWholeWarp, 1, 1);
        __syncthreads();
      }
      break;
    case 4:
      p.out[threadIdx.x] = __shfl_xor_sync(0x55555555U, 1, 2);
      break;
    default:
      p.out[4 * p.how] = 1;
  }
}

// One copy, and what goes wrong with it.
PL_KERNEL(64, copy_wrongly, Values, p) {
  const unsigned next = (threadIdx.x + 1) % blockDim.x;
  const Shared own = shared_memory() + threadIdx.x * 4, other = shared_memory() + next * 4;
  shared_at<int>(own) = 5;
  if (p.how == 3) shared_at<int>(shared_memory() + 1024) = 5;
  __syncthreads();
  if (p.how == 2) p.out[threadIdx.x] = shared_at<int>(other);  // beside another's copy
  copy_begin<4>(own, p.out + 64, true);
  copies_commit();
  if (p.how == 0) return;                                    // without a wait
  if (p.how == 1) p.out[threadIdx.x] = shared_at<int>(own);  // before it is there
  copies_wait<0>();
}

namespace {

using fake_cuda::Index;
using fake_cuda::Order;
using ::testing::HasSubstr;

constexpr std::array kOrders{Order::kAscending, Order::kDescending};

std::string run(const std::string& name, const Values& values, unsigned threads, Order order,
                unsigned block = 0, std::size_t shared_bytes = 0) {
  const fake_cuda::Kernel* const kernel = fake_cuda::find_kernel(name);
  EXPECT_NE(kernel, nullptr) << name;
  return run_block(*kernel, &values, {threads, 1, 1}, {4, 1, 1}, {block, 0, 0}, order, shared_bytes);
}

// In a process of its own: in one that was forked while there are fibers ThreadSanitizer orders nothing any
// more.
void begin_death_test() {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
}

TEST(Emulator, ABarrierShowsWhatOthersWrote) {
  for (const Order order : kOrders) {
    for (const unsigned threads : {32U, 33U, 256U}) {
      std::vector<int> out(4 * 256, -1);
      for (unsigned block = 0; block < 4; ++block)
        ASSERT_EQ(run("tell_neighbour", {out.data(), 1}, threads, order, block), "");
      for (unsigned i = 0; i < 4 * threads; ++i) {
        ASSERT_EQ(out[i], static_cast<int>((i % threads + threads - 1) % threads + 1000 * (i / threads)));
      }
    }
  }
}

#if defined(PACELINE_THREAD_SANITIZER)
TEST(Emulator, WithoutABarrierThereIsARace) {
  begin_death_test();
  std::vector<int> out(256);
  EXPECT_DEATH(
      {
        run("tell_neighbour", {out.data(), 0}, 64, Order::kAscending);
        std::exit(1);
      },
      "data race");
}
#else
TEST(Emulator, WithoutABarrierTheOrdersDiffer) {
  std::array<std::vector<int>, 2> out;
  for (std::size_t i = 0; i < 2; ++i) {
    out[i].resize(64);
    ASSERT_EQ(run("tell_neighbour", {out[i].data(), 0}, 64, kOrders[i]), "");
  }
  EXPECT_NE(out[0], out[1]);
}
#endif

TEST(Emulator, ShufflesAreOfWarps) {
  for (const Order order : kOrders) {
    std::vector<int> out(96);
    ASSERT_EQ(run("sum_warp", {out.data(), 0}, 96, order), "");
    for (int i = 0; i < 96; ++i) ASSERT_EQ(out[static_cast<std::size_t>(i)], 496 + i / 32 * 1024);
  }
}

TEST(Emulator, AWarpThatIsNotWholeHasNoPartner) {
  std::vector<int> out(64);
  EXPECT_THAT(run("sum_warp", {out.data(), 0}, 40, Order::kAscending), HasSubstr("a lane that is not there"));
}

TEST(Emulator, DeadlockIsNamedWithBothSides) {
  for (const Order order : kOrders) {
    std::vector<int> out(256, 0);
    EXPECT_THAT(run("misbehave", {out.data(), 0}, 64, order, 3),
                AllOf(HasSubstr("misbehave, block 3: "), HasSubstr("waits at the barrier of "),
                      HasSubstr("emulator_test.cc:"), HasSubstr("has returned")));
    EXPECT_THAT(run("misbehave", {out.data(), 1}, 64, order), HasSubstr("waits at the barrier of "));
    EXPECT_THAT(run("misbehave", {out.data(), 2}, 64, order),
                AllOf(HasSubstr("waits at the shuffle of "), HasSubstr("has returned")));
    EXPECT_THAT(run("misbehave", {out.data(), 3}, 64, order), HasSubstr("waits at the barrier of "));
    EXPECT_THAT(run("misbehave", {out.data(), 4}, 64, order), HasSubstr("a part of its warp"));
    // And it goes on afterwards.
    EXPECT_EQ(run("sum_warp", {out.data(), 0}, 256, order), "");
  }
}

TEST(Emulator, CopiesAreNeitherThereBeforeNorKeptFromOthers) {
  for (const Order order : kOrders) {
    std::vector<int> out(65, 0);
    out[64] = 7;
    EXPECT_THAT(run("copy_wrongly", {out.data(), 0}, 64, order, 0, 256),
                HasSubstr("has returned and did not wait for its copies"));
    ASSERT_EQ(run("copy_wrongly", {out.data(), 1}, 64, order, 0, 256), "");
    for (int i = 0; i < 64; ++i) ASSERT_EQ(out[static_cast<std::size_t>(i)], -1);
  }
}

#if !defined(PACELINE_THREAD_SANITIZER)
TEST(Emulator, ACopyIntoWhatOthersReadShowsInOneOrder) {
  std::array<std::vector<int>, 2> out;
  for (std::size_t i = 0; i < 2; ++i) {
    out[i].resize(65, 7);
    ASSERT_EQ(run("copy_wrongly", {out[i].data(), 2}, 64, kOrders[i], 0, 256), "");
  }
  EXPECT_NE(out[0], out[1]);
}
#else
TEST(Emulator, ACopyIntoWhatOthersReadIsARace) {
  begin_death_test();
  std::vector<int> out(65, 7);
  EXPECT_DEATH(
      {
        run("copy_wrongly", {out.data(), 2}, 64, Order::kAscending, 0, 256);
        std::exit(1);
      },
      "data race");
}
#endif

TEST(Emulator, SharedMemoryEndsWhereItWasLaunchedTo) {
  begin_death_test();
  std::vector<int> out(65, 7);
  EXPECT_DEATH(
      {
        fake_cuda::explain_faults();
        run("copy_wrongly", {out.data(), 3}, 64, Order::kAscending, 0, 1024);
      },
      "copy_wrongly touched byte 1024 of an allocation of 1024 bytes");
}

TEST(Emulator, MemoryKnowsItsBounds) {
  fake_cuda::Memory memory;
  auto* const first = static_cast<std::byte*>(memory.allocate(40));
  auto* const second = static_cast<std::byte*>(memory.allocate(5000));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 16, 0U);
  EXPECT_EQ(memory.used(), 5040U);
  EXPECT_TRUE(memory.contains(first, 40));
  EXPECT_TRUE(memory.contains(first + 40, 0));
  EXPECT_FALSE(memory.contains(first, 41));
  EXPECT_FALSE(memory.contains(first - 1, 1));
  EXPECT_TRUE(memory.contains(second + 4999, 1));
  EXPECT_EQ(second[4999], std::byte{0xff});
  std::string problem;
  EXPECT_FALSE(memory.free(first + 16, problem));
#if !defined(__SANITIZE_ADDRESS__)
  first[41] = std::byte{0};
#endif
  EXPECT_TRUE(memory.free(first, problem));
#if !defined(__SANITIZE_ADDRESS__)
  EXPECT_EQ(problem, "byte 41 of an allocation of 40 bytes was written");
#endif
  problem.clear();
  EXPECT_TRUE(memory.free(second, problem));
  EXPECT_EQ(problem, "");
  EXPECT_EQ(memory.count(), 0U);
}

TEST(Emulator, AKernelThatLeavesItsMemoryEndsThere) {
  begin_death_test();
  fake_cuda::Memory memory;
  auto* const values = static_cast<int*>(memory.allocate(100 * sizeof(int)));
  EXPECT_DEATH(
      {
        fake_cuda::explain_faults();
        run("misbehave", {values, 25}, 32, Order::kAscending);
      },
      "misbehave touched byte 400 of an allocation of 400 bytes");
  std::string problem;
  EXPECT_TRUE(memory.free(values, problem));
}

TEST(Emulator, StreamsDoNothingUnasked) {
  fake_cuda::Streams streams;
  std::vector<int> done;
  const auto a = streams.create(), b = streams.create();
  const auto event = streams.create_event(false);
  EXPECT_TRUE(streams.reached(event));
  streams.add(a, [&] { done.push_back(1); });
  streams.record(event, a);
  streams.add(a, [&] { done.push_back(2); });
  streams.wait(b, event);
  streams.add(b, [&] { done.push_back(3); });
  EXPECT_FALSE(streams.reached(event));
  EXPECT_TRUE(done.empty());
  streams.finish(b);
  EXPECT_EQ(done, (std::vector<int>{1, 3}));
  EXPECT_TRUE(streams.reached(event));
  EXPECT_TRUE(streams.destroy(a));
  EXPECT_EQ(done, (std::vector<int>{1, 3, 2}));
  EXPECT_TRUE(streams.reached(event));
  EXPECT_FALSE(streams.destroy(a));
}

}  // namespace
}  // namespace paceline::cuda

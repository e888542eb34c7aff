#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/dtype.h"
#include "base/rng.h"
#include "runtime/cuda/module.h"
#include "tests/support/fake_cuda/gpu_test.h"
#include "tests/unit/runtime/cuda/tensor_core_kernels.h"

extern "C" const std::byte paceline_image_tensor_core_kernels[], paceline_image_tensor_core_kernels_end[];

namespace paceline::cuda {
namespace {

using Words = std::vector<std::uint32_t>;

std::uint32_t word(BFloat16 low, BFloat16 high) {
  return std::bit_cast<std::uint16_t>(low) | static_cast<std::uint32_t>(std::bit_cast<std::uint16_t>(high))
                                                 << 16U;
}
std::uint32_t word(float x) {
  return std::bit_cast<std::uint32_t>(x);
}

class TensorCoreTest : public GpuTest {
 protected:
  TensorCoreTest() {
    module_.emplace(must(Module::load(
        context_, std::span(paceline_image_tensor_core_kernels, paceline_image_tensor_core_kernels_end))));
  }
  void TearDown() override {
    module_.reset();
    GpuTest::TearDown();
  }

  Words run(const char* name, std::uint32_t threads, const Words& in, std::size_t out,
            std::uint32_t shared_bytes = 0) {
    const auto kernel = must(module_->kernel<TensorCoreParams>(name, shared_bytes));
    const auto from = upload(in), to = array<std::uint32_t>(out);
    EXPECT_TRUE(kernel.launch(*stream_, {.threads = threads}, {.in = from.data(), .out = to.data()}).ok());
    return download(to);
  }

  std::optional<Module> module_;
};

// Small whole numbers: every sum is exact, in whatever order. Elements are where the PTX ISA's figures of
// m16n8k16 have them, written here as those figures say it.
TEST_F(TensorCoreTest, ProductsAreThoseOfTheMatrices) {
  Rng rng(7, 0);
  const auto small = [&] { return std::round(4 * rng.normal()); };
  float a[16][16], b[16][8], c[16][8];
  for (auto& row : a) {
    for (float& x : row) x = static_cast<float>(small());
  }
  for (auto& row : b) {
    for (float& x : row) x = static_cast<float>(small());
  }
  for (auto& row : c) {
    for (float& x : row) x = static_cast<float>(small());
  }
  const auto pair_of_a = [&](unsigned row, unsigned column) {
    return word(BFloat16(a[row][column]), BFloat16(a[row][column + 1]));
  };
  const auto pair_of_b = [&](unsigned row, unsigned column) {
    return word(BFloat16(b[row][column]), BFloat16(b[row + 1][column]));
  };
  Words in;
  for (unsigned lane = 0; lane < 32; ++lane) {
    const unsigned group = lane >> 2U, thread = lane % 4;
    for (const float x : {c[group][thread * 2], c[group][thread * 2 + 1], c[group + 8][thread * 2],
                          c[group + 8][thread * 2 + 1]})
      in.push_back(word(x));
    in.push_back(pair_of_a(group, thread * 2));
    in.push_back(pair_of_a(group + 8, thread * 2));
    in.push_back(pair_of_a(group, thread * 2 + 8));
    in.push_back(pair_of_a(group + 8, thread * 2 + 8));
    in.push_back(pair_of_b(thread * 2, group));
    in.push_back(pair_of_b(thread * 2 + 8, group));
  }
  in_both_orders([&] {
    const Words out = run("tensor_core_multiply", 32, in, 128);
    for (unsigned lane = 0; lane < 32; ++lane) {
      for (unsigned i = 0; i < 4; ++i) {
        const unsigned row = (lane >> 2U) + (i < 2 ? 0 : 8), column = lane % 4 * 2 + (i & 1U);
        float expected = c[row][column];
        for (unsigned k = 0; k < 16; ++k) expected += a[row][k] * b[k][column];
        ASSERT_EQ(out[lane * 4 + i], word(expected)) << "lane " << lane << ", register " << i;
      }
    }
  });
}

// Element (r, c) of tile i is the number 64 i + 8 r + c, and tile i's row r has lane 8 i + r's address.
TEST_F(TensorCoreTest, TilesAreDealtOutByRowAndByColumn) {
  const auto number = [](unsigned tile, unsigned row, unsigned column) {
    return std::bit_cast<BFloat16>(static_cast<std::uint16_t>(tile * 64 + row * 8 + column));
  };
  Words in;
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned c = 0; c < 8; c += 2)
      in.push_back(word(number(lane / 8, lane % 8, c), number(lane / 8, lane % 8, c + 1)));
  }
  in_both_orders([&] {
    const Words out = run("tensor_core_tiles", 32, in, 256, 512);
    for (unsigned lane = 0; lane < 32; ++lane) {
      for (unsigned tile = 0; tile < 4; ++tile) {
        const unsigned r = lane / 4, c = lane % 4 * 2;
        ASSERT_EQ(out[lane * 4 + tile], word(number(tile, r, c), number(tile, r, c + 1))) << lane;
        ASSERT_EQ(out[128 + lane * 4 + tile], word(number(tile, c, r), number(tile, c + 1, r))) << lane;
      }
    }
  });
}

TEST_F(TensorCoreTest, CopiesAreThereForOthersAfterWaitAndBarrier) {
  Words in;
  for (std::uint32_t i = 0; i < 64 * 8; ++i) in.push_back(1000 + i);
  in_both_orders([&] {
    const Words out = run("tensor_core_copies", 64, in, 64 * 12, 64 * 32);
    for (unsigned thread = 0; thread < 64; ++thread) {
      const unsigned of = (thread + 33) % 64;
      const std::uint32_t* const got = &out[thread * 12];
      for (unsigned i = 0; i < 4; ++i) ASSERT_EQ(got[i], in[of * 8 + i]) << thread;
      ASSERT_EQ(got[4], in[of * 8 + 6]) << thread;
      for (unsigned i = 0; i < 7; ++i) {
        const bool cleared = of % 2 == 1 && (i == 4 || i == 5);
        ASSERT_EQ(got[5 + i], cleared ? 0 : in[of * 8 + i]) << thread;
      }
    }
  });
}

TEST_F(TensorCoreTest, ValuesAreRoundedAndRaised) {
  Words in;
  std::vector<float> x;
  for (int i = 0; i < 32; ++i) x.push_back(static_cast<float>(i - 20) * 1.37F);
  x[3] = -std::numeric_limits<float>::infinity();
  x[4] = std::numeric_limits<float>::quiet_NaN();
  for (std::size_t i = 0; i < 32; ++i) {
    in.push_back(word(x[i]));
    in.push_back(word(1 / (1 + static_cast<float>(i))));
  }
  const Words out = run("tensor_core_values", 32, in, 64);
  for (std::size_t i = 0; i < 32; ++i) {
    if (i != 4) {
      EXPECT_EQ(out[2 * i], word(BFloat16(x[i]), BFloat16(1 / (1 + static_cast<float>(i))))) << i;
    }
    const double power = std::bit_cast<float>(out[2 * i + 1]),
                 expected = std::exp2(static_cast<double>(x[i]));
    EXPECT_TRUE(std::isnan(expected) ? std::isnan(power) : std::abs(power - expected) <= 3e-7 * expected)
        << x[i] << ": " << power;
  }
}

}  // namespace
}  // namespace paceline::cuda

#include "runtime/collective/reduce.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/rng.h"
#include "tests/unit/runtime/collective/conformance_world.h"

namespace paceline::collective {
namespace {

// Random bits: every kind of NaN, infinity, subnormal and zero turns up.
std::vector<std::byte> random_bits(std::size_t bytes, std::uint64_t seed, std::uint64_t stream) {
  Rng rng(seed, stream);
  std::vector<std::byte> data(bytes);
  for (std::byte& b : data) b = static_cast<std::byte>(rng.below(256));
  // Every few elements, something special in the upper bytes (little-endian).
  constexpr std::uint8_t kSpecial[][2] = {{0x7f, 0xc0}, {0xff, 0x80}, {0x7f, 0x80}, {0x7c, 0x00},
                                          {0x7e, 0x01}, {0x80, 0x00}, {0x00, 0x00}};
  for (std::size_t i = 0; i + 8 <= bytes; i += 8 * (1 + rng.below(4))) {
    const auto& special = kSpecial[rng.below(std::size(kSpecial))];
    data[i + 7] = static_cast<std::byte>(special[0]);
    data[i + 6] = static_cast<std::byte>(special[1]);
    data[i + 3] = static_cast<std::byte>(special[0]);
    data[i + 2] = static_cast<std::byte>(special[1]);
  }
  return data;
}

struct Case {
  DType dtype;
  ReduceOp op;
};

class ReduceBits : public ::testing::TestWithParam<SimdLevel> {};

TEST_P(ReduceBits, AgreesWithPortable) {
  if (GetParam() > best_simd_level()) GTEST_SKIP() << "this processor lacks " << simd_level_name(GetParam());
  constexpr std::uint64_t kSeed = 20261;
  for (DType dtype : kTypes) {
    for (ReduceOp op : kOps) {
      for (int inputs = 1; inputs <= 5; ++inputs) {
        for (std::size_t count : {0u, 1u, 3u, 7u, 8u, 15u, 16u, 33u, 64u, 65u, 1031u}) {
          for (std::size_t offset : {0u, 1u}) {
            const std::size_t element = dtype_bytes(dtype), bytes = count * element;
            std::vector<std::vector<std::byte>> arrays;
            std::vector<const std::byte*> pointers;
            for (int k = 0; k < inputs; ++k) {
              arrays.push_back(
                  random_bits(bytes + element, kSeed, static_cast<std::uint64_t>(k) * 1000 + count));
              pointers.push_back(arrays.back().data() + offset * element);
            }
            std::vector<std::byte> expected(bytes + element), got(bytes + element), second(bytes + element);
            std::byte* const expected_out[] = {expected.data()};
            std::byte* const got_out[] = {got.data() + offset * element, second.data()};
            const int divisor = op == ReduceOp::kMean ? 3 : 1;
            reduce({expected_out, pointers, count, dtype, op, divisor}, SimdLevel::kPortable);
            reduce({got_out, pointers, count, dtype, op, divisor}, GetParam());
            ASSERT_EQ(0, std::memcmp(expected.data(), got.data() + offset * element, bytes))
                << dtype_name(dtype) << " op " << static_cast<int>(op) << " inputs " << inputs << " count "
                << count;
            ASSERT_EQ(0, std::memcmp(expected.data(), second.data(), bytes));
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, ReduceBits,
                         ::testing::Values(SimdLevel::kPortable, SimdLevel::kAvx2, SimdLevel::kAvx512),
                         [](const auto& param) {
                           return param.param == SimdLevel::kAvx512 ? "Avx512"
                                  : param.param == SimdLevel::kAvx2 ? "Avx2"
                                                                    : "Portable";
                         });

template <typename T>
std::vector<T> reduce_values(std::vector<std::vector<T>> inputs, DType dtype, ReduceOp op, int divisor = 1) {
  std::vector<const std::byte*> pointers;
  for (const auto& input : inputs) pointers.push_back(reinterpret_cast<const std::byte*>(input.data()));
  std::vector<T> out(inputs[0].size());
  std::byte* const outputs[] = {reinterpret_cast<std::byte*>(out.data())};
  reduce({outputs, pointers, out.size(), dtype, op, divisor});
  return out;
}

TEST(Reduce, KnownValues) {
  using Floats = std::vector<float>;
  EXPECT_EQ(reduce_values<float>({{1, 2, 3}, {10, 20, 30}}, DType::kF32, ReduceOp::kSum),
            (Floats{11, 22, 33}));
  EXPECT_EQ(reduce_values<float>({{1, 2, 3}, {2, 4, 6}}, DType::kF32, ReduceOp::kMean, 2),
            (Floats{1.5f, 3, 4.5f}));
  EXPECT_EQ(reduce_values<std::int32_t>({{-5, 5}, {-2, 2}}, DType::kI32, ReduceOp::kMean, 2),
            (std::vector<std::int32_t>{-3, 3}));
  EXPECT_EQ(reduce_values<std::int64_t>({{-5, 5}, {3, 9}}, DType::kI64, ReduceOp::kMax),
            (std::vector<std::int64_t>{3, 9}));
  EXPECT_EQ(reduce_values<std::int32_t>({{INT32_MAX}, {1}}, DType::kI32, ReduceOp::kSum),
            (std::vector<std::int32_t>{INT32_MIN}));
}

TEST(Reduce, HalvesAreSummedInFloat) {
  // 2048 + 1 is 2048 in fp16; three of them in fp32 are 2051, which rounds to 2052.
  const auto half = [](float v) { return Float16(v).bits; };
  const auto out = reduce_values<std::uint16_t>({{half(2048)}, {half(1)}, {half(1)}, {half(1)}}, DType::kF16,
                                                ReduceOp::kSum);
  EXPECT_EQ(out[0], half(2052));
}

TEST(Reduce, FirstNanWins) {
  const auto first = std::bit_cast<float>(0x7fc00001u), second = std::bit_cast<float>(0xffc00002u);
  for (ReduceOp op : kOps) {
    const auto out = reduce_values<float>({{1.0f, first}, {first, second}, {second, 1.0f}}, DType::kF32, op);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(out[0]), 0x7fc00001u) << static_cast<int>(op);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(out[1]), 0x7fc00001u) << static_cast<int>(op);
  }
}

TEST(Reduce, StreamingGivesTheSame) {
  constexpr std::size_t kCount = 4099;
  alignas(64) static float plain[kCount], streamed[kCount], a[kCount], b[kCount];
  for (std::size_t i = 0; i < kCount; ++i)
    a[i] = static_cast<float>(i) * 0.37f, b[i] = 1.0f / static_cast<float>(i + 1);
  const std::byte* const inputs[] = {reinterpret_cast<std::byte*>(a), reinterpret_cast<std::byte*>(b)};
  std::byte* const out_plain[] = {reinterpret_cast<std::byte*>(plain)};
  std::byte* const out_streamed[] = {reinterpret_cast<std::byte*>(streamed)};
  reduce({out_plain, inputs, kCount, DType::kF32, ReduceOp::kSum, 1, false});
  reduce({out_streamed, inputs, kCount, DType::kF32, ReduceOp::kSum, 1, true});
  EXPECT_EQ(0, std::memcmp(plain, streamed, sizeof(plain)));
}

TEST(CopyStreaming, AnyAlignment) {
  std::vector<std::byte> from = random_bits(300'000, 7, 1);
  for (std::size_t offset : {0u, 1u, 17u, 63u}) {
    for (std::size_t bytes : {0u, 1u, 65'536u, 200'001u}) {
      std::vector<std::byte> to(300'100, std::byte{0xee});
      copy_streaming(to.data() + offset, from.data() + offset / 2, bytes);
      ASSERT_EQ(0, std::memcmp(to.data() + offset, from.data() + offset / 2, bytes));
      ASSERT_EQ(to[offset + bytes], std::byte{0xee});
    }
  }
}

}  // namespace
}  // namespace paceline::collective

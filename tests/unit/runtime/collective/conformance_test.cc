// One suite for every transport: against a serial reference, bit for bit.

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>

#include "base/rng.h"
#include "conformance_world.h"
#include "runtime/collective/reduce.h"

namespace paceline::collective {
namespace {

using Bytes = std::vector<std::byte>;

// Element i of rank r; floats of any exponent that sums can take, so that the order of additions shows in the
// bits.
Bytes input_of(int rank, std::size_t count, DType dtype, std::uint64_t seed) {
  Rng rng(seed, static_cast<std::uint64_t>(rank));
  Bytes data(count * dtype_bytes(dtype));
  for (std::size_t i = 0; i < count; ++i) {
    const float value = rng.normal() * std::ldexp(1.0f, static_cast<int>(rng.below(12)) - 6);
    std::byte* at = data.data() + i * dtype_bytes(dtype);
    const auto put = [at](auto v) { std::memcpy(at, &v, sizeof(v)); };
    switch (dtype) {
      case DType::kF32:
        put(value);
        break;
      case DType::kF64:
        put(static_cast<double>(value) * 1.000000001);
        break;
      case DType::kBF16:
        put(BFloat16(value));
        break;
      case DType::kF16:
        put(Float16(value));
        break;
      case DType::kI32:
        put(static_cast<std::int32_t>(rng.next_u64()));
        break;
      case DType::kI64:
        put(static_cast<std::int64_t>(rng.next_u64()));
        break;
    }
  }
  return data;
}

// The documented order: ranks 0 to N-1, left to right, by the portable kernel.
Bytes rank_order_reference(const std::vector<Bytes>& inputs, DType dtype, ReduceOp op) {
  Bytes result(inputs[0].size());
  std::vector<const std::byte*> pointers;
  for (const Bytes& input : inputs) pointers.push_back(input.data());
  std::byte* const output[] = {result.data()};
  const int divisor = op == ReduceOp::kMean ? static_cast<int>(inputs.size()) : 1;
  reduce({output, pointers, result.size() / dtype_bytes(dtype), dtype, op, divisor}, SimdLevel::kPortable);
  return result;
}

class Conformance : public ::testing::TestWithParam<std::tuple<Medium, int>> {
 protected:
  Medium medium() const { return std::get<0>(GetParam()); }
  int world_size() const { return std::get<1>(GetParam()); }
  std::vector<Bytes> inputs(std::size_t count, DType dtype, std::uint64_t seed = 1) const {
    std::vector<Bytes> all;
    for (int r = 0; r < world_size(); ++r) all.push_back(input_of(r, count, dtype, seed));
    return all;
  }
  std::vector<std::size_t> sizes() const {
    const auto n = static_cast<std::size_t>(world_size());
    return {0, 1, n - 1, n, n + 1, 997};
  }
};

// Where a rank needs others: to wait for, to leave, to differ from.
class ConformanceOfSeveral : public Conformance {};

TEST_P(Conformance, AllReduceEveryTypeAndOperation) {
  World world(medium(), world_size());
  ASSERT_EQ(world.size(), world_size());
  for (DType dtype : kTypes) {
    for (ReduceOp op : kOps) {
      for (std::size_t count : sizes()) {
        std::vector<Bytes> data = inputs(count, dtype);
        const Bytes expected = rank_order_reference(data, dtype, op);
        world.run([&](int r) {
          ASSERT_EQ(absl::OkStatus(), world.rank(r).all_reduce(data[static_cast<std::size_t>(r)].data(),
                                                               count, dtype, op, world.deadline()));
        });
        for (const Bytes& result : data) {
          ASSERT_EQ(result, expected)
              << dtype_name(dtype) << " op " << static_cast<int>(op) << " count " << count;
        }
      }
    }
  }
}

// Large enough for every path; unregistered at odd offsets and registered.
TEST_P(Conformance, LargeAllReduceTwiceTheSame) {
  constexpr std::size_t kCount = 200'001;
  World world(medium(), world_size());
  ASSERT_EQ(world.size(), world_size());
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    const std::size_t element = dtype_bytes(dtype), bytes = kCount * element;
    const std::vector<Bytes> original = inputs(kCount, dtype);
    std::vector<Bytes> results[2];
    for (bool registered : {false, true}) {
      std::vector<Bytes> plain(static_cast<std::size_t>(world_size()), Bytes(bytes + 64));
      std::vector<std::byte*> data;
      for (int r = 0; r < world_size(); ++r) {
        std::byte* base =
            registered ? world.registered(r, bytes + 64).data() : plain[static_cast<std::size_t>(r)].data();
        data.push_back(base + element * static_cast<std::size_t>(r % 3));
        std::memcpy(data.back(), original[static_cast<std::size_t>(r)].data(), bytes);
      }
      world.run([&](int r) {
        ASSERT_EQ(absl::OkStatus(), world.rank(r).all_reduce(data[static_cast<std::size_t>(r)], kCount, dtype,
                                                             ReduceOp::kSum, world.deadline()));
      });
      for (std::byte* d : data) results[registered].emplace_back(d, d + bytes);
    }
    for (int r = 0; r < world_size(); ++r) {
      ASSERT_EQ(results[0][static_cast<std::size_t>(r)], results[0][0]) << "rank " << r;
      ASSERT_EQ(results[1][static_cast<std::size_t>(r)], results[0][0]) << "registered, rank " << r;
    }
    if (dtype == DType::kBF16 || (medium() != Medium::kTcp && medium() != Medium::kTls)) {
      ASSERT_EQ(results[0][0], rank_order_reference(original, dtype, ReduceOp::kSum));
    }
  }
}

// Whatever the algorithm: exact for integers, and for floats the same bits on all ranks.
TEST_P(Conformance, EveryAlgorithm) {
  World world(medium(), world_size());
  ASSERT_EQ(world.size(), world_size());
  for (Algorithm algorithm : {Algorithm::kRing, Algorithm::kRecursiveDoubling, Algorithm::kHalvingDoubling,
                              Algorithm::kDirect, Algorithm::kDirectWhole, Algorithm::kDirectBlocks}) {
    for (std::size_t count :
         {std::size_t{0}, std::size_t{1}, std::size_t{5}, std::size_t{997}, std::size_t{70'001}}) {
      for (DType dtype : {DType::kI64, DType::kF16}) {
        std::vector<Bytes> data = inputs(count, dtype);
        const Bytes expected = rank_order_reference(data, dtype, ReduceOp::kSum);
        world.run([&](int r) {
          ASSERT_EQ(absl::OkStatus(),
                    world.rank(r).all_reduce(data[static_cast<std::size_t>(r)].data(), count, dtype,
                                             ReduceOp::kSum, world.deadline(), algorithm));
        });
        for (const Bytes& result : data) ASSERT_EQ(result, dtype == DType::kI64 ? expected : data[0]);
      }
    }
  }
}

TEST_P(Conformance, ReduceScatterThenAllGatherIsAllReduce) {
  World world(medium(), world_size());
  ASSERT_EQ(world.size(), world_size());
  for (std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{997}, std::size_t{100'001}}) {
    std::vector<Bytes> data = inputs(count, DType::kI64);
    const Bytes expected = rank_order_reference(data, DType::kI64, ReduceOp::kSum);
    for (bool registered : {false, true}) {
      std::vector<Bytes> plain = data;
      std::vector<std::byte*> at;
      for (int r = 0; r < world_size(); ++r) {
        const auto index = static_cast<std::size_t>(r);
        at.push_back(registered ? world.registered(r, plain[index].size() + 8).data() : plain[index].data());
        if (count > 0) std::memcpy(at.back(), data[index].data(), data[index].size());
      }
      world.run([&](int r) {
        std::byte* mine = at[static_cast<std::size_t>(r)];
        ASSERT_EQ(absl::OkStatus(),
                  world.rank(r).reduce_scatter(mine, count, DType::kI64, ReduceOp::kSum, world.deadline()));
        const std::size_t begin = block_begin(count, world_size(), r) * 8,
                          end = block_begin(count, world_size(), r + 1) * 8;
        ASSERT_TRUE(end == begin || std::memcmp(mine + begin, expected.data() + begin, end - begin) == 0)
            << "rank " << r;
        ASSERT_EQ(absl::OkStatus(), world.rank(r).all_gather(mine, count, DType::kI64, world.deadline()));
        ASSERT_TRUE(count == 0 || std::memcmp(mine, expected.data(), expected.size()) == 0) << "rank " << r;
      });
    }
  }
}

TEST_P(Conformance, BroadcastFromEveryRoot) {
  World world(medium(), world_size());
  ASSERT_EQ(world.size(), world_size());
  for (std::size_t count : {std::size_t{0}, std::size_t{5}, std::size_t{150'001}}) {
    for (int root = 0; root < world_size(); ++root) {
      if (count > 1000 && root != 0 && root != world_size() - 1) continue;
      std::vector<Bytes> data = inputs(count, DType::kF32, static_cast<std::uint64_t>(root));
      const Bytes expected = data[static_cast<std::size_t>(root)];
      world.run([&](int r) {
        ASSERT_EQ(absl::OkStatus(), world.rank(r).broadcast(data[static_cast<std::size_t>(r)].data(), count,
                                                            DType::kF32, root, world.deadline()));
      });
      for (const Bytes& result : data) ASSERT_EQ(result, expected) << "root " << root << " count " << count;
    }
  }
}

TEST_P(Conformance, BarrierWaitsForAll) {
  World world(medium(), world_size());
  ASSERT_EQ(world.size(), world_size());
  std::atomic<int> arrived{0};
  world.run([&](int r) {
    for (int round = 1; round <= 50; ++round) {
      arrived.fetch_add(1);
      ASSERT_EQ(absl::OkStatus(), world.rank(r).barrier(world.deadline()));
      ASSERT_GE(arrived.load(), round * world_size());
    }
  });
}

// A waiter that close() does not wake ends with DeadlineExceeded instead.
TEST_P(ConformanceOfSeveral, CloseWakesEveryWaiter) {
  for (int yields : {0, 1, 50}) {  // a waiter has not begun to send yet, or waits for what does not come
    World world(medium(), world_size());
    ASSERT_EQ(world.size(), world_size());
    const int last = world.size() - 1;
    std::atomic<int> waiting{0};
    world.run([&](int r) {
      if (r == last) {
        while (waiting.load() != last) std::this_thread::yield();
        for (int i = 0; i < yields; ++i) std::this_thread::yield();
        world.rank(r).close(absl::AbortedError("test"));
        EXPECT_EQ(world.rank(r).closed().code(), absl::StatusCode::kAborted);
        EXPECT_EQ(world.rank(r).barrier(world.deadline()).code(), absl::StatusCode::kAborted);
        return;
      }
      waiting.fetch_add(1);
      std::vector<float> data(100'000, 1.0f);
      const absl::Status status =
          world.rank(r).all_reduce(data.data(), data.size(), DType::kF32, ReduceOp::kSum, world.deadline());
      EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
      EXPECT_EQ(world.rank(r).closed(), status);
    });
  }
}

// A rank that the machine lets come later than its peers' deadline is rightly named as well, and finds that a
// peer has ended the group: then the same again with more time.
TEST_P(ConformanceOfSeveral, DeadlineNamesTheRank) {
  const std::string missing = "rank " + std::to_string(world_size() - 1);
  bool named = false;
  for (std::chrono::milliseconds wait(50); !named && wait < std::chrono::seconds(60); wait *= 4) {
    World world(medium(), world_size());
    ASSERT_EQ(world.size(), world_size());
    std::atomic<int> naming_it{0};
    world.run([&](int r) {
      if (r == world_size() - 1) return;
      std::vector<float> data(8);
      const absl::Status status = world.rank(r).all_reduce(data.data(), data.size(), DType::kF32,
                                                           ReduceOp::kSum, world.deadline(wait));
      const bool exceeded = absl::IsDeadlineExceeded(status);
      EXPECT_TRUE(exceeded || absl::IsUnavailable(status)) << status;
      if (exceeded && std::string(status.message()).find(missing) != std::string::npos)
        naming_it.fetch_add(1);
    });
    named = naming_it.load() == world_size() - 1;
  }
  EXPECT_TRUE(named) << "no error named " << missing;
}

// A rank that finished goes away at once; the others still finish what it took part in.
TEST_P(Conformance, LeavingAfterTheLastCallHarmsNobody) {
  for (int repeat = 0; repeat < 5; ++repeat) {
    World world(medium(), world_size());
    ASSERT_EQ(world.size(), world_size());
    world.run([&](int r) {
      std::vector<float> data(20'000, 1.0f);
      ASSERT_EQ(absl::OkStatus(), world.rank(r).all_reduce(data.data(), data.size(), DType::kF32,
                                                           ReduceOp::kSum, world.deadline()));
      EXPECT_EQ(data[1], static_cast<float>(world_size()));
      world.drop(r);
    });
  }
}

TEST_P(ConformanceOfSeveral, LeavingEarlyIsNoticed) {
  World world(medium(), world_size());
  ASSERT_EQ(world.size(), world_size());
  world.run([&](int r) {
    if (r == world_size() - 1) return world.drop(r);
    const absl::Status status = world.rank(r).barrier(world.deadline());
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  });
}

TEST_P(ConformanceOfSeveral, DifferentCallsAreRefused) {
  World world(medium(), world_size());
  ASSERT_EQ(world.size(), world_size());
  world.run([&](int r) {
    std::vector<float> data(64);
    const absl::Status status = world.rank(r).all_reduce(data.data(), r == 0 ? 64 : 32, DType::kF32,
                                                         ReduceOp::kSum, world.deadline());
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  });
}

std::string case_name(const ::testing::TestParamInfo<std::tuple<Medium, int>>& info) {
  return medium_name(std::get<0>(info.param)) + std::to_string(std::get<1>(info.param));
}

const auto kMedia = ::testing::ValuesIn(media());

INSTANTIATE_TEST_SUITE_P(Media, Conformance, ::testing::Combine(kMedia, ::testing::Values(1, 2, 3, 4, 5, 8)),
                         case_name);
INSTANTIATE_TEST_SUITE_P(Media, ConformanceOfSeveral,
                         ::testing::Combine(kMedia, ::testing::Values(2, 3, 4, 5, 8)), case_name);

}  // namespace
}  // namespace paceline::collective

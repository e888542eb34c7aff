#include "runtime/data/ledger.h"

// A balanced Feistel network over 2h bits is a permutation of [0, 4^h) whatever its round function is.
// Applying it again until the value falls into [0, n) ("cycle walking", Black and Rogaway 2002) makes it a
// permutation of [0, n). With the smallest h that fits, 4^h < 4n for n > 1, so a sample costs less than four
// walks on average, each of kRounds hashes, and no memory.

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "base/rng.h"

namespace paceline::data {

namespace {

constexpr int kRounds = 6;
constexpr std::uint64_t kEpochStream =
    0x6c65646765720001u;  // keeps epochs apart from other uses of the job's seed

int half_bits_for(std::int64_t size) {
  const int bits = std::bit_width(static_cast<std::uint64_t>(size - 1));
  return std::max(1, (bits + 1) / 2);
}

std::int64_t walk(std::uint64_t key, int half_bits, std::int64_t size, std::int64_t index) {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits) - 1;
  auto value = static_cast<std::uint64_t>(index);
  do {
    std::uint64_t left = value >> half_bits;
    std::uint64_t right = value & mask;
    for (int round = 0; round < kRounds; ++round) {
      const std::uint64_t mixed = mix64(key + right + (static_cast<std::uint64_t>(round) << 56)) & mask;
      const std::uint64_t next = left ^ mixed;
      left = right;
      right = next;
    }
    value = (left << half_bits) | right;
  } while (value >= static_cast<std::uint64_t>(size));
  return static_cast<std::int64_t>(value);
}

// Where member `rank`'s part begins; `before` is the sum of the shares of the members before it.
std::int64_t cut_at(std::int64_t batch, double before) {
  return std::clamp<std::int64_t>(std::llround(static_cast<double>(batch) * before), 0, batch);
}

}  // namespace

std::int64_t permute(std::uint64_t key, std::int64_t size, std::int64_t index) {
  PL_CHECK(size > 0 && index >= 0 && index < size, "permute: the index lies in the range");
  return walk(key, half_bits_for(size), size, index);
}

Ledger::Ledger(const LedgerConfig& config) : config_(config) {
  PL_CHECK(config.samples > 0, "a ledger needs at least one sample");
  PL_CHECK(config.global_batch_size > 0, "a ledger needs a global batch of at least one sample");
  half_bits_ = half_bits_for(config.samples);
}

std::int64_t Ledger::sample_at(std::int64_t position) const {
  PL_CHECK(position >= 0, "positions count from 0");
  const std::int64_t epoch = position / config_.samples;
  const std::int64_t index = position % config_.samples;
  const std::uint64_t key = mix64(mix64(config_.seed ^ kEpochStream) + static_cast<std::uint64_t>(epoch));
  return walk(key, half_bits_, config_.samples, index);
}

std::int64_t Ledger::position_of(std::int64_t step) const {
  PL_CHECK(step >= 0, "steps count from 0");
  std::int64_t next = 0;
  PL_CHECK(!__builtin_mul_overflow(step + 1, config_.global_batch_size, &next), "the position fits 63 bits");
  return next - config_.global_batch_size;
}

void Ledger::samples_of(std::int64_t step, int rank, const std::vector<double>& shares,
                        std::vector<std::int64_t>& out) const {
  PL_CHECK(rank >= 0 && static_cast<std::size_t>(rank) < shares.size(), "the rank has a share");
  double before = 0;
  for (int r = 0; r < rank; ++r) before += shares[static_cast<std::size_t>(r)];
  const bool last = static_cast<std::size_t>(rank) + 1 == shares.size();
  const std::int64_t begin = cut_at(config_.global_batch_size, before);
  const std::int64_t end =
      last ? config_.global_batch_size
           : cut_at(config_.global_batch_size, before + shares[static_cast<std::size_t>(rank)]);
  const std::int64_t first = position_of(step);
  out.clear();
  for (std::int64_t i = begin; i < end; ++i) out.push_back(sample_at(first + i));
}

void Ledger::samples_of_unit(std::int64_t unit, const std::vector<double>& shares,
                             std::vector<std::int64_t>& out) const {
  PL_CHECK(unit >= 0 && !shares.empty(), "units count from 0, and are parts of a step");
  const auto parts = static_cast<std::int64_t>(shares.size());
  samples_of(unit / parts, static_cast<int>(unit % parts), shares, out);
}

std::int64_t Ledger::steps_for_epochs(double epochs) const {
  PL_CHECK(epochs >= 0, "a number of epochs is not negative");
  if (epochs == 0) return 0;
  const double exact =
      epochs * static_cast<double>(config_.samples) / static_cast<double>(config_.global_batch_size);
  // 0.1 has no exact binary form: a product that is a whole number but for the last bits is that whole
  // number.
  const double steps = std::ceil(exact * (1 - 1e-12));
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::min(steps, 9e18)));
}

std::vector<double> equal_shares(int parts) {
  PL_CHECK(parts > 0, "a batch has at least one part");
  return std::vector<double>(static_cast<std::size_t>(parts), 1.0 / parts);
}

std::vector<std::int64_t> cut_batch(std::int64_t global_batch_size, const std::vector<double>& shares) {
  PL_CHECK(!shares.empty(), "a batch is cut among at least one member");
  std::vector<std::int64_t> counts(shares.size());
  double before = 0;
  std::int64_t begin = 0;
  for (std::size_t r = 0; r < shares.size(); ++r) {
    before += shares[r];
    const std::int64_t end = r + 1 == shares.size() ? global_batch_size : cut_at(global_batch_size, before);
    counts[r] = end - begin;
    begin = end;
  }
  return counts;
}

}  // namespace paceline::data

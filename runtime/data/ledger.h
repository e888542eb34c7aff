#pragma once

// The sample ledger: a pure function from (seed, step, shares) to the samples that each member takes. Every
// sample of an epoch counts exactly once, whatever the number of members, because the global batch of a step
// does not depend on it. Pure; immutable; thread-safe.
//
// The order of epoch e is a seeded permutation of [0, samples), computed element by element (a Feistel
// network with cycle walking, so it needs no memory). Step s takes positions [s * batch, (s + 1) * batch) of
// the concatenated epochs: a global batch may span two epochs.

#include <cstdint>
#include <vector>

namespace paceline::data {

struct LedgerConfig {
  std::uint64_t seed = 0;
  std::int64_t samples = 0;            // > 0
  std::int64_t global_batch_size = 0;  // > 0
};

class Ledger {
 public:
  explicit Ledger(const LedgerConfig& config);

  // Sample at `position` (>= 0) of the concatenated epochs.
  std::int64_t sample_at(std::int64_t position) const;
  // The first position of step `step`. REQUIRES: (step + 1) * global_batch_size < 2^63.
  std::int64_t position_of(std::int64_t step) const;

  // The samples of member `rank` in step `step`, appended to `out` (cleared first): a contiguous part of the
  // global batch, cut by `shares` (one per member, adding up to 1): member r gets [cut(r), cut(r+1)), cut(r)
  // = round(batch * sum of shares before r). Allocates only where `out` has too little capacity.
  void samples_of(std::int64_t step, int rank, const std::vector<double>& shares,
                  std::vector<std::int64_t>& out) const;

  // The samples of unit `unit` (parameter servers): part `unit` mod P of step `unit` / P, P the number of
  // `shares`.
  void samples_of_unit(std::int64_t unit, const std::vector<double>& shares,
                       std::vector<std::int64_t>& out) const;

  // Steps that make up `epochs` epochs, rounded up; at least 1 where `epochs` > 0.
  std::int64_t steps_for_epochs(double epochs) const;

  const LedgerConfig& config() const { return config_; }

 private:
  LedgerConfig config_;
  int half_bits_ =
      1;  // the network permutes [0, 4^half_bits), the smallest such range that holds [0, samples)
};

// A seeded permutation of [0, size): where `index` goes. The network behind the ledger, also used to split a
// data set.
std::int64_t permute(std::uint64_t key, std::int64_t size, std::int64_t index);

// P equal shares, as members of equal weight have them.
std::vector<double> equal_shares(int parts);

// How many samples of a global batch each member takes; the counts add up to the batch.
std::vector<std::int64_t> cut_batch(std::int64_t global_batch_size, const std::vector<double>& shares);

}  // namespace paceline::data

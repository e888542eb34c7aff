#pragma once

// The area under the ROC curve: how likely a random positive sample has a higher score than a random negative
// one, where equal scores count half. 0.5 is guessing, 1 a perfect ranking. Pure.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace paceline::data {

// Exact: all scores are kept (4 bytes each) and ranked at the end; whoever holds parts of a set merges them
// and gets the same as from the whole. One thread; a value.
class Auc {
 public:
  // So many samples are added without an allocation, whatever their labels.
  void reserve(std::size_t samples);
  void clear();
  // REQUIRES: equal sizes, labels 0 or 1.
  void add(std::span<const float> scores, std::span<const std::int32_t> labels);
  void merge(const Auc& other);
  // Sorts. Nothing where one of the two kinds is missing; NaN where a score is.
  std::optional<double> value();

 private:
  std::vector<float> positives_, negatives_;
};

struct ExpectedAuc {
  double value = 0;
  double standard_error = 0;
  double positives = 0;  // share of all samples
};

// What the best possible ranking reaches on samples that are positive with probability p, ranked by p itself
// (the Bayes-optimal score), when the given p are a random sample of a population: the mean over all pairs
// i, j of p_i (1 - p_j) [p_i > p_j, 1/2 where equal] over the mean of p_i (1 - p_j). No labels are drawn, so
// the error is that of the sample of p alone; it is estimated from each sample's influence on the result.
// REQUIRES: at least two values in [0, 1], not all 0 or all 1. Sorts `p`.
ExpectedAuc expected_auc(std::span<double> p);

// By how much the AUC of so many samples differs from that of their population, `auc` (the standard
// deviation, of which 4 are hardly ever exceeded: Hanley and McNeil 1982).
double auc_deviation(double auc, double positives, double negatives);

}  // namespace paceline::data

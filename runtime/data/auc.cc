#include "runtime/data/auc.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace paceline::data {

void Auc::reserve(std::size_t samples) {
  positives_.reserve(samples);
  negatives_.reserve(samples);
}

void Auc::clear() {
  positives_.clear();
  negatives_.clear();
}

void Auc::add(std::span<const float> scores, std::span<const std::int32_t> labels) {
  PL_CHECK(scores.size() == labels.size(), "each score has a label");
  for (std::size_t i = 0; i < scores.size(); ++i) {
    PL_CHECK(labels[i] == 0 || labels[i] == 1, "a label is 0 or 1");
    (labels[i] == 1 ? positives_ : negatives_).push_back(scores[i]);
  }
}

void Auc::merge(const Auc& other) {
  positives_.insert(positives_.end(), other.positives_.begin(), other.positives_.end());
  negatives_.insert(negatives_.end(), other.negatives_.begin(), other.negatives_.end());
}

std::optional<double> Auc::value() {
  if (positives_.empty() || negatives_.empty()) return std::nullopt;
  const auto is_nan = [](float score) { return std::isnan(score); };
  if (std::any_of(positives_.begin(), positives_.end(), is_nan) ||
      std::any_of(negatives_.begin(), negatives_.end(), is_nan)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  std::sort(positives_.begin(), positives_.end());
  std::sort(negatives_.begin(), negatives_.end());
  // Twice the number of pairs that are in order: exact up to 2^63, 3 * 10^9 samples of each kind.
  std::uint64_t twice = 0;
  std::size_t below = 0, not_above = 0;
  for (const float score : positives_) {
    while (below < negatives_.size() && negatives_[below] < score) ++below;
    while (not_above < negatives_.size() && negatives_[not_above] <= score) ++not_above;
    twice += below + not_above;
  }
  return static_cast<double>(twice) / 2 / static_cast<double>(positives_.size()) /
         static_cast<double>(negatives_.size());
}

ExpectedAuc expected_auc(std::span<double> p) {
  const auto n = static_cast<double>(p.size());
  std::sort(p.begin(), p.end());
  double clicks = 0;
  for (const double v : p) clicks += v;
  const double others = n - clicks;
  PL_CHECK(p.size() >= 2 && p.front() >= 0 && p.back() <= 1 && clicks > 0 && others > 0,
           "probabilities are in [0, 1], and some samples may be positive, some negative");
  // Visits the samples in ascending order, each with the part of all positives that is below it and the part
  // of all negatives that is, equals counting half.
  const auto each = [&](auto visit) {
    double positives_below = 0, negatives_below = 0;
    for (std::size_t begin = 0, end = 0; begin < p.size(); begin = end) {
      while (end < p.size() && p[end] == p[begin]) ++end;
      const double equal = static_cast<double>(end - begin), v = p[begin];
      for (std::size_t i = begin; i < end; ++i) {
        visit(v, (positives_below + equal * v / 2) / clicks,
              (negatives_below + equal * (1 - v) / 2) / others);
      }
      positives_below += equal * v;
      negatives_below += equal * (1 - v);
    }
  };
  double auc = 0;
  each([&](double v, double, double negatives_below) { auc += v * negatives_below / clicks; });
  // By how much the result would differ without a sample, times n: its part as a positive and as a negative.
  double squares = 0;
  each([&](double v, double positives_below, double negatives_below) {
    const double influence =
        v * (negatives_below - auc) * n / clicks + (1 - v) * (1 - positives_below - auc) * n / others;
    squares += influence * influence;
  });
  return {auc, std::sqrt(squares) / n, clicks / n};
}

double auc_deviation(double auc, double positives, double negatives) {
  const double n1 = std::max(positives, 1.0), n0 = std::max(negatives, 1.0);
  const double two_positives = auc / (2 - auc), two_negatives = 2 * auc * auc / (1 + auc);
  const double sum =
      auc * (1 - auc) + (n1 - 1) * (two_positives - auc * auc) + (n0 - 1) * (two_negatives - auc * auc);
  return std::sqrt(std::max(sum, 0.0) / (n1 * n0));
}

}  // namespace paceline::data

#pragma once

// Synthetic click logs, made as they are read: no file and no table, so that any member makes any sample from
// (seed, number) alone, and a vocabulary of 10^7 values costs no more than one of ten.
//
// A sample is a value in each categorical field, Zipf-distributed (value 0 is the most frequent), and whether
// it was clicked: 1 with probability p = sigmoid(z),
//   z = bias + signal * mean_f' w(f, v_f) + interaction * mean_p' a(f, v_f) a(f + 1, v_{f+1}),
// where mean' is the sum over n terms divided by sqrt(n), p runs over the pairs of fields (0, 1), (2, 3),
// ..., and w and a are hidden numbers of each value with mean 0 and variance 1: the sum of four uniform ones,
// from a hash of seed, field and value. The bias is set so that the share of clicks is `click_rate`, within
// 0.003.
//
// No model ranks better than p itself does: its AUC is the Bayes-optimal one. The first term is what a linear
// model can learn, the second what takes crosses or layers.
//
// Immutable; thread-safe. A sample is a few hundred nanoseconds per field.

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/data/auc.h"
#include "runtime/data/dataset.h"
#include "runtime/data/zipf.h"

namespace paceline::data {

inline constexpr std::int64_t kMaxClickFields = 1024;
inline constexpr std::int64_t kMaxClickVocabulary = std::int64_t{1} << 31;

class ClickLog final : public Dataset {
 public:
  // INVALID_ARGUMENT names the field: samples >= 1; 1 to 1024 vocabularies, each 1 to 2^31; exponent 0 to 10;
  // click_rate in (0, 1); signal and interaction >= 0, finite.
  static absl::StatusOr<std::shared_ptr<const ClickLog>> make(const v1::ClicksSpec& spec);

  // kTokens: one for each field, its value; one label, 0 or 1.
  const SampleShape& shape() const override { return shape_; }
  std::int64_t size() const override { return samples_; }
  absl::Status fetch(std::span<const std::int64_t> indices, std::uint64_t augmentation_seed,
                     const BatchView& batch) const override;

  // Of a click of sample `index`, in [0, size()).
  double probability(std::int64_t index) const;
  // Of the population that the samples are drawn from, by `draws` others (about 4 us each with 26 fields).
  // 2^20 give it within 0.0005.
  ExpectedAuc bayes_auc(std::int64_t draws) const;

 private:
  explicit ClickLog(const v1::ClicksSpec& spec);
  // The values of the fields, and z without the bias.
  double draw(Rng& rng, std::int32_t* values) const;
  double linear_weight(std::size_t field, std::int64_t value) const;
  double pair_factor(std::size_t field, std::int64_t value) const;
  double find_bias(double click_rate) const;

  const std::uint64_t key_;
  const std::int64_t samples_;
  std::vector<Zipf> fields_;
  double signal_, interaction_;  // of one field, of one pair
  double bias_ = 0;
  SampleShape shape_;
};

}  // namespace paceline::data

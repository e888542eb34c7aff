#include "runtime/data/clicks.h"

#include <cmath>

#include "base/check.h"
#include "base/rng.h"
#include "base/status.h"

namespace paceline::data {

namespace {

// What is drawn apart from each other, under one seed.
constexpr std::uint64_t kSamples = 0x636c69636b000001u;      // of the set
constexpr std::uint64_t kCalibration = 0x636c69636b000002u;  // for the bias
constexpr std::uint64_t kPopulation = 0x636c69636b000003u;   // for the Bayes-optimal AUC
constexpr std::uint64_t kWeights = 0x636c69636b000004u;
constexpr std::uint64_t kFactors = 0x636c69636b000005u;

constexpr std::int64_t kCalibrationDraws = 1 << 15;
constexpr int kBisections = 60;  // of [-64, 64]: to the last digit

double sigmoid(double z) {
  return 1 / (1 + std::exp(-z));
}

// Mean 0, variance 1: four uniform numbers of 16 bits, a variance of 1/12 each.
double hidden(std::uint64_t key, std::size_t field, std::int64_t value) {
  const std::uint64_t h =
      mix64(key ^ mix64((static_cast<std::uint64_t>(field) << 40) + static_cast<std::uint64_t>(value) + 1));
  const std::uint64_t sum = (h & 0xffff) + (h >> 16 & 0xffff) + (h >> 32 & 0xffff) + (h >> 48);
  constexpr double kRootOfThree = 1.7320508075688772;
  return (static_cast<double>(sum) / 65535.0 - 2) * kRootOfThree;
}

absl::Status check(const v1::ClicksSpec& spec) {
  const auto refuse = [](const auto&... parts) {
    return absl::InvalidArgumentError(str_cat("data.clicks.", parts...));
  };
  if (spec.samples() < 1) return refuse("samples ", spec.samples(), "; allowed: at least 1");
  if (spec.vocabularies_size() < 1 || spec.vocabularies_size() > kMaxClickFields) {
    return refuse("vocabularies has ", spec.vocabularies_size(), " fields; allowed: 1 to ", kMaxClickFields);
  }
  for (const std::int64_t size : spec.vocabularies()) {
    if (size < 1 || size > kMaxClickVocabulary)
      return refuse("vocabularies holds ", size, "; allowed: 1 to ", kMaxClickVocabulary);
  }
  if (!(spec.exponent() >= 0 && spec.exponent() <= 10))
    return refuse("exponent ", spec.exponent(), "; allowed: 0 to 10");
  if (!(spec.click_rate() > 0 && spec.click_rate() < 1))
    return refuse("clickRate ", spec.click_rate(), "; allowed: above 0 and below 1");
  if (!(spec.signal() >= 0 && spec.signal() <= 100))
    return refuse("signal ", spec.signal(), "; allowed: 0 to 100");
  if (!(spec.interaction() >= 0 && spec.interaction() <= 100))
    return refuse("interaction ", spec.interaction(), "; allowed: 0 to 100");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const ClickLog>> ClickLog::make(const v1::ClicksSpec& spec) {
  PL_RETURN_IF_ERROR(check(spec));
  std::shared_ptr<ClickLog> log(new ClickLog(spec));
  log->bias_ = log->find_bias(spec.click_rate());
  return log;
}

ClickLog::ClickLog(const v1::ClicksSpec& spec) : key_(mix64(spec.seed())), samples_(spec.samples()) {
  for (const std::int64_t size : spec.vocabularies()) fields_.emplace_back(size, spec.exponent());
  signal_ = spec.signal() / std::sqrt(static_cast<double>(fields_.size()));
  const std::size_t pairs = fields_.size() / 2;
  interaction_ = pairs == 0 ? 0 : spec.interaction() / std::sqrt(static_cast<double>(pairs));
  shape_.kind = InputKind::kTokens;
  shape_.dims = {spec.vocabularies_size()};
  shape_.labels = 1;
  shape_.classes = 2;
  shape_.vocabularies.assign(spec.vocabularies().begin(), spec.vocabularies().end());
}

double ClickLog::linear_weight(std::size_t field, std::int64_t value) const {
  return hidden(key_ ^ kWeights, field, value);
}

double ClickLog::pair_factor(std::size_t field, std::int64_t value) const {
  return hidden(key_ ^ kFactors, field, value);
}

double ClickLog::draw(Rng& rng, std::int32_t* values) const {
  double z = 0, factor = 0;  // of the pair's first field
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    const std::int64_t value = fields_[f].draw(rng);
    if (values != nullptr) values[f] = static_cast<std::int32_t>(value);
    z += signal_ * linear_weight(f, value);
    if (f % 2 == 0) {
      factor = pair_factor(f, value);
    } else {
      z += interaction_ * factor * pair_factor(f, value);
    }
  }
  return z;
}

double ClickLog::find_bias(double click_rate) const {
  std::vector<double> z(static_cast<std::size_t>(kCalibrationDraws));
  for (std::int64_t i = 0; i < kCalibrationDraws; ++i) {
    Rng rng(key_ ^ kCalibration, static_cast<std::uint64_t>(i));
    z[static_cast<std::size_t>(i)] = draw(rng, nullptr);
  }
  double low = -64, high = 64;
  for (int i = 0; i < kBisections; ++i) {
    const double bias = (low + high) / 2;
    double rate = 0;
    for (const double v : z) rate += sigmoid(v + bias);
    (rate < click_rate * static_cast<double>(kCalibrationDraws) ? low : high) = bias;
  }
  return (low + high) / 2;
}

absl::Status ClickLog::fetch(std::span<const std::int64_t> indices, std::uint64_t /*augmentation_seed*/,
                             const BatchView& batch) const {
  PL_CHECK(batch.tokens.size() == indices.size() * fields_.size() && batch.labels.size() == indices.size(),
           "the batch has room for exactly these samples");
  for (std::size_t i = 0; i < indices.size(); ++i) {
    PL_CHECK(indices[i] >= 0 && indices[i] < samples_, "the sample is in the data set");
    Rng rng(key_ ^ kSamples, static_cast<std::uint64_t>(indices[i]));
    const double p = sigmoid(bias_ + draw(rng, batch.tokens.data() + i * fields_.size()));
    batch.labels[i] = static_cast<double>(rng.next_u64() >> 11) * 0x1.0p-53 < p ? 1 : 0;
  }
  return absl::OkStatus();
}

double ClickLog::probability(std::int64_t index) const {
  PL_CHECK(index >= 0 && index < samples_, "the sample is in the data set");
  Rng rng(key_ ^ kSamples, static_cast<std::uint64_t>(index));
  return sigmoid(bias_ + draw(rng, nullptr));
}

ExpectedAuc ClickLog::bayes_auc(std::int64_t draws) const {
  std::vector<double> p(static_cast<std::size_t>(draws));
  for (std::int64_t i = 0; i < draws; ++i) {
    Rng rng(key_ ^ kPopulation, static_cast<std::uint64_t>(i));
    p[static_cast<std::size_t>(i)] = sigmoid(bias_ + draw(rng, nullptr));
  }
  return expected_auc(p);
}

}  // namespace paceline::data

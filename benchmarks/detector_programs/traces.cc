#include "traces.h"

#include <algorithm>
#include <cmath>

namespace paceline::detector {

namespace {

constexpr int kBurstSteps = 6, kBurstRest = 200, kBurstEvery = 2000, kPauseEvery = 500;
constexpr double kBurstFactor = 2, kPauseSeconds = 2, kUnevenSigma = 0.3, kFixedShare = 0.1, kTokens = 1000;

Duration from_seconds(double seconds) {
  return Duration(std::llround(seconds * 1e9));
}

}  // namespace

const char* name(Noise noise) {
  constexpr const char* kNames[] = {"plain",  "drift",          "bursts", "pauses",
                                    "uneven", "uneven, untold", "unlike"};
  return kNames[static_cast<int>(noise)];
}

const char* name(Fault fault) {
  constexpr const char* kNames[] = {"none", "compute", "reader", "more work", "half", "link"};
  return kNames[static_cast<int>(fault)];
}

Trace::Trace(const Case& which, std::uint64_t seed)
    : case_(which), rng_(seed, 0), burst_(static_cast<std::size_t>(which.members)), samples_(burst_.size()) {
  const bool one = which.fault == Fault::kCompute || which.fault == Fault::kReader ||
                   which.fault == Fault::kMoreWork || which.fault == Fault::kLink;
  if (one) culprit_ = static_cast<int>(rng_.below(static_cast<std::uint64_t>(which.members)));
}

double Trace::compute_of(int member, double* work) {
  double compute = kCompute * std::exp(case_.sigma * rng_.normal());
  *work = 0;
  switch (case_.noise) {
    case Noise::kPlain:
      break;
    case Noise::kDrift:
      compute *= 1 + 0.2 * std::sin(static_cast<double>(step_) / 3200);
      break;
    case Noise::kBurst: {
      int& left = burst_[static_cast<std::size_t>(member)];
      if (left == 0 && rng_.below(kBurstEvery) == 0) left = kBurstSteps + kBurstRest;
      if (left > kBurstRest) compute *= kBurstFactor;
      left = std::max(0, left - 1);
      break;
    }
    case Noise::kPause:
      if (rng_.below(kPauseEvery) == 0) compute += kPauseSeconds;
      break;
    case Noise::kUneven:
    case Noise::kUntold: {
      const double length = std::exp(kUnevenSigma * rng_.normal());
      compute *= kFixedShare + (1 - kFixedShare) * length;
      if (case_.noise == Noise::kUneven) *work = kTokens * length;
      break;
    }
    case Noise::kMixed:
      compute *= 1 + 0.015 * (member % 3 - 1);
      break;
  }
  return compute;
}

const std::vector<stragglers::StepSample>& Trace::next() {
  ++step_;
  const bool faulty = step_ >= kOnset;
  double longest = 0, link_wait = 0;
  std::vector<double> own(samples_.size());
  for (int member = 0; member < case_.members; ++member) {
    const auto i = static_cast<std::size_t>(member);
    stragglers::StepSample& sample = samples_[i];
    double work = 0, input = kInput;
    double compute = compute_of(member, &work);
    const bool slow = faulty && member == culprit_;
    if (case_.fault == Fault::kMoreWork) work = kTokens * (slow ? case_.factor : 1);
    if (slow && (case_.fault == Fault::kCompute || case_.fault == Fault::kMoreWork)) compute *= case_.factor;
    if (slow && case_.fault == Fault::kReader) input += (case_.factor - 1) * kCompute;
    if (slow && case_.fault == Fault::kLink) link_wait += (case_.factor - 1) * kCompute;
    if (faulty && case_.fault == Fault::kMany && member % 2 == 0) compute *= case_.factor;
    own[i] = input + compute + kUpdate;
    longest = std::max(longest, own[i]);
    sample = {.step = step_,
              .input = from_seconds(input),
              .compute = from_seconds(compute),
              .update = from_seconds(kUpdate),
              .work = work};
  }
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    samples_[i].transfer = from_seconds(kTransfer);
    samples_[i].wait = from_seconds(longest - own[i] + link_wait);
  }
  return samples_;
}

}  // namespace paceline::detector

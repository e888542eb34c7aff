#include "controller/diagnosis/straggler_cause.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "base/text.h"

namespace paceline::diagnosis {

namespace {

using Share = std::optional<double> KernelTelemetry::*;

std::string percent(double share) {
  constexpr double kPercent = 100;
  return str_cat(std::llround(share * kPercent), " %");
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// How far the member's value is above the others' median, where it is that far.
std::optional<double> above(const MemberTelemetry& own, std::span<const MemberTelemetry* const> others,
                            Share share, double telling = kTellingShare) {
  if (!own.kernel || !((*own.kernel).*share)) return std::nullopt;
  std::vector<double> theirs;
  for (const MemberTelemetry* other : others) {
    if (other->kernel && (*other->kernel).*share) theirs.push_back(*((*other->kernel).*share));
  }
  const double value = *((*own.kernel).*share);
  if (value - median(std::move(theirs)) < telling) return std::nullopt;
  return value;
}

std::optional<double> clock_share(const MemberTelemetry& member) {
  if (!member.gpu || !member.gpu->sm_clock_mhz || member.gpu->most_sm_clock_mhz.value_or(0) <= 0)
    return std::nullopt;
  return static_cast<double>(*member.gpu->sm_clock_mhz) / static_cast<double>(*member.gpu->most_sm_clock_mhz);
}

// Empty: the GPU is no slower than the others'.
std::string gpu_slowdown(const MemberTelemetry& own, std::span<const MemberTelemetry* const> others) {
  const std::optional<double> clock = clock_share(own);
  std::vector<double> theirs;
  for (const MemberTelemetry* other : others) {
    if (const auto share = clock_share(*other)) theirs.push_back(*share);
  }
  if (!clock || theirs.empty() || *clock >= kTellingClock * median(std::move(theirs))) return "";
  std::string text = str_cat("the GPU's clock is at ", percent(*clock), " of its highest");
  for (const std::string& slowdown : own.gpu->slowdowns) text += str_cat(", ", slowdown);
  if (own.gpu->temperature_celsius) text += str_cat(", ", *own.gpu->temperature_celsius, " C");
  return text;
}

// Whether threads that wait for a processor for this share of the time in which they could run may be why it
// is so slow: those of a process that hardly runs at all may wait for most of that, and it is not much.
bool explains(const MemberTelemetry& own, double run_delay, const api::Straggler& straggler) {
  constexpr double kTellingPart = 0.25, kMostDelay = 0.999;
  if (!own.kernel->cpu || straggler.own_ms <= 0) return true;
  const double delay = std::min(run_delay, kMostDelay);
  const double waiting = *own.kernel->cpu * delay / (1 - delay);
  return waiting >= kTellingPart * straggler.lost_ms / straggler.own_ms;
}

void set(api::Straggler& straggler, api::StragglerCause cause, std::string evidence) {
  straggler.cause = cause;
  straggler.evidence = std::move(evidence);
}

}  // namespace

void find_cause(const MemberTelemetry& own, std::span<const MemberTelemetry* const> others,
                api::Straggler& straggler) {
  using api::StragglerCause;
  const bool reads = straggler.part == "input";
  if (std::string slowdown = gpu_slowdown(own, others); !slowdown.empty())
    return set(straggler, StragglerCause::kGpuSlowdown, std::move(slowdown));
  if (const auto share = above(own, others, &KernelTelemetry::throttled))
    return set(straggler, StragglerCause::kCpuQuota,
               str_cat("its CPU quota holds it up ", percent(*share), " of the time"));
  const auto faults = above(own, others, &KernelTelemetry::major_faults, kTellingFaults);
  if (const auto share = above(own, others, &KernelTelemetry::memory_pressure); share || faults) {
    std::string text = share ? str_cat("it waits for memory ", percent(*share), " of the time") : "";
    if (faults)
      text += str_cat(text.empty() ? "" : ", ", std::llround(*faults), " pages a second come from storage");
    return set(straggler, StragglerCause::kMemoryPressure, std::move(text));
  }
  if (const auto late = above(own, others, &KernelTelemetry::timer_delay_ms, kTellingTimer))
    return set(
        straggler, StragglerCause::kStopped,
        str_cat("its process stands still now and then: its timers ring ", std::llround(*late), " ms late"));
  if (const auto share = above(own, others, &KernelTelemetry::run_delay);
      share && explains(own, *share, straggler)) {
    return set(straggler, StragglerCause::kCpuContention,
               str_cat("its threads are without a processor for ", percent(*share),
                       " of the time in which they could run"));
  }
  if (!reads) return set(straggler, StragglerCause::kUnknown, "");
  if (const auto share = above(own, others, &KernelTelemetry::io_pressure))
    return set(straggler, StragglerCause::kStorage,
               str_cat("it waits for storage ", percent(*share), " of the time"));
  set(straggler, StragglerCause::kInput, "its data comes late");
}

}  // namespace paceline::diagnosis

#include "controller/coordinator/core_shares.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/text.h"
#include "controller/diagnosis/straggler_text.h"
#include "controller/stragglers/detector.h"
#include "controller/stragglers/shares.h"

namespace paceline::coordinator {

namespace {

using stragglers::even_shares;

constexpr std::size_t kMostNamed = 4;  // members with fewer samples, in a text

std::string seconds_text(double seconds) {
  return format_duration(
      std::chrono::round<std::chrono::milliseconds>(std::chrono::duration<double>(seconds)));
}

// Members say them: they count where they are those of one batch, in whole samples.
std::optional<std::vector<std::int64_t>> cut(std::int64_t batch, std::span<const double> shares) {
  constexpr double kRounding = 1e-6;
  std::vector<std::int64_t> samples;
  std::int64_t begin = 0;
  double sum = 0;
  for (const double share : shares) {
    if (!(share > 0 && share <= 1)) return std::nullopt;
    sum += share;
    const std::int64_t end = std::llround(static_cast<double>(batch) * std::min(sum, 1.0));
    samples.push_back(end - begin);
    begin = end;
  }
  const bool whole = std::abs(sum - 1) < kRounding && begin == batch;
  return whole ? std::optional(std::move(samples)) : std::nullopt;
}

}  // namespace

void BatchShares::set_rules(std::optional<RebalanceRules> rules) {
  rules_ = std::move(rules);
  since_.reset();
  next_.reset();
  outlook_ = {};
}

double BatchShares::worth() const {
  return rules_->lost_seconds * (1 + changes_);
}

bool BatchShares::may_be_cut() const {
  return members_.size() > 1 && std::ranges::all_of(samples_, [](std::int64_t n) { return n > 0; });
}

std::optional<api::Rebalance> BatchShares::begin_view(Generation generation, std::vector<Member> members) {
  const std::optional<Next> next = std::exchange(next_, std::nullopt);
  since_.reset();
  outlook_ = {};
  const bool same = members == members_;
  if (same && !next) return std::nullopt;
  changes_ = same ? changes_ + 1 : 0;
  const bool was_even = std::exchange(even_, true);
  members_ = std::move(members);
  const std::vector<std::int64_t> even = even_shares(batch_, static_cast<int>(members_.size()));
  samples_ = same ? next->samples : even;
  even_ = samples_ == even;
  if (was_even && even_) return std::nullopt;
  return api::Rebalance{
      .generation = generation,
      .samples = samples_,
      .even = even_,
      .message = str_cat(same ? next->why : "shares are even in a view of other members", ": ", text())};
}

void BatchShares::adopt(std::vector<Member> members, std::span<const double> shares) {
  members_ = std::move(members);
  changes_ = 0;
  const std::vector<std::int64_t> even = even_shares(batch_, static_cast<int>(members_.size()));
  samples_ = cut(batch_, shares).value_or(even);
  even_ = samples_ == even;
}

double BatchShares::share(std::size_t rank) const {
  if (even_) return 1.0 / static_cast<double>(samples_.size());
  return static_cast<double>(samples_[rank]) / static_cast<double>(batch_);
}

void BatchShares::consider(const Sight& sight, TimePoint now) {
  next_.reset();
  outlook_ = {};
  if (!rules_ || !may_be_cut() || sight.own_seconds.size() != samples_.size() ||
      std::ranges::any_of(sight.own_seconds, [](double each) { return !(each > 0); }))
    return;
  std::vector<stragglers::Load> loads;
  for (std::size_t i = 0; i < samples_.size(); ++i) loads.push_back({samples_[i], sight.own_seconds[i]});
  std::vector<std::int64_t> best = stragglers::shares_by_speed(loads);
  outlook_ = {.known = true, .gain = 1 - stragglers::longest_with(loads, best) / stragglers::longest(loads)};
  const bool slow = std::ranges::any_of(
      sight.stragglers, [this](const api::Straggler& each) { return obstacle(each).empty(); });
  if (best == samples_ || outlook_.gain < kLeastGain || (even_ && !slow)) return since_.reset();
  if (!since_) since_ = now;
  outlook_.lost_seconds = outlook_.gain * std::chrono::duration<double>(now - *since_).count();
  if (sight.left) outlook_.left_seconds = std::chrono::duration<double>(*sight.left).count();
  const bool ends = outlook_.left_seconds.value_or(INFINITY) * outlook_.gain < worth();
  if (ends || outlook_.lost_seconds < worth()) return;
  const bool evens = best == even_shares(batch_, static_cast<int>(best.size()));
  next_ = {std::move(best), evens ? "shares are even again" : "shares follow speed"};
}

std::optional<std::string> BatchShares::due() {
  if (!rules_ && !even_) {
    next_ = {even_shares(batch_, static_cast<int>(samples_.size())),
             "shares are even again, since spec.stragglers.action is not Rebalance any more"};
  }
  return next_ ? std::optional(next_->why) : std::nullopt;
}

// Why shares can't help against it, whatever the gain; empty: they may.
std::string BatchShares::obstacle(const api::Straggler& straggler) const {
  const bool one = straggler.kind == api::StragglerKind::kSlow;
  const bool some = straggler.kind == api::StragglerKind::kAllSlow && straggler.members > 0;
  if (straggler.kind == api::StragglerKind::kSlowLink) return "its bytes are as many with any share";
  if (straggler.kind == api::StragglerKind::kMoreWork) return "it is as fast as the others for each sample";
  if (!one && !some) return "all are as slow";
  if (straggler.part != stragglers::part_name(stragglers::Part::kCompute))
    return str_cat("its time is in ", straggler.part, ", which fewer samples need not shorten");
  if (straggler.factor < rules_->factor)
    return str_cat(diagnosis::factor_text(straggler.factor), " is less than spec.stragglers.factor, ",
                   rules_->factor);
  if (!may_be_cut())
    return str_cat("a global batch of ", batch_, " leaves nothing to share out among ", members_.size());
  return "";
}

BatchShares::Answer BatchShares::answer(const api::Straggler& straggler) const {
  using enum api::StragglerAction;
  if (next_) return {kRebalance, next_->why};
  if (std::string why = obstacle(straggler); !why.empty()) return {kReport, std::move(why)};
  if (!outlook_.known) return {kWait, "members' times are not known yet"};
  if (outlook_.gain < kLeastGain) return {kReport, str_cat("other shares would not help: ", text())};
  const double left = outlook_.left_seconds.value_or(INFINITY);
  if (left * outlook_.gain < worth())
    return {kWait, str_cat("the job ends in ", seconds_text(left), ", and gains ",
                           seconds_text(left * outlook_.gain), " by other shares: less than the ",
                           seconds_text(worth()), " of loss that it takes")};
  return {kWait, str_cat("the job has lost ", seconds_text(outlook_.lost_seconds),
                         " that other shares would save; shares follow speed at ", seconds_text(worth()))};
}

std::string BatchShares::text() const {
  if (samples_.empty()) return "";
  const auto [least, most] = std::ranges::minmax_element(samples_);
  if (even_)
    return str_cat("each takes ", *most, " of ", batch_, " samples", *least < *most ? ", or one less" : "");
  const std::int64_t even = batch_ / static_cast<std::int64_t>(samples_.size());
  std::vector<std::size_t> fewer;
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    if (samples_[i] < even || samples_[i] == *least) fewer.push_back(i);
  }
  std::ranges::stable_sort(fewer, {}, [this](std::size_t i) { return samples_[i]; });
  std::string text;
  for (std::size_t i = 0; i < std::min(fewer.size(), kMostNamed); ++i) {
    text += i == 0
                ? str_cat(members_[fewer[i]].name, " takes ", samples_[fewer[i]], " of ", batch_, " samples")
                : str_cat(", ", members_[fewer[i]].name, " ", samples_[fewer[i]]);
  }
  if (fewer.size() > kMostNamed) text += str_cat(", ", fewer.size() - kMostNamed, " more below ", even);
  return str_cat(text, ", others up to ", *most);
}

}  // namespace paceline::coordinator

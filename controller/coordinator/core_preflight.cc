#include "controller/coordinator/core_preflight.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/text.h"
#include "controller/coordinator/core_hello.h"
#include "controller/diagnosis/preflight_text.h"
#include "controller/plan/elastic.h"

namespace paceline::coordinator {

namespace {

constexpr double kMilli = 1000;

// Pairs from both ends of an order: the last two or three from its middle are one group.
LinkGroups pair_up(const std::vector<std::size_t>& order, bool from_both_ends) {
  LinkGroups groups;
  for (std::size_t i = 0; i + 1 < order.size(); i += 2) {
    if (from_both_ends) {
      groups.push_back({order[i / 2], order[order.size() - 1 - i / 2]});
    } else {
      groups.push_back({order[i], order[i + 1]});
    }
  }
  if (order.size() % 2 == 1 && !groups.empty())
    groups.back().push_back(from_both_ends ? order[order.size() / 2] : order.back());
  return groups;
}

std::vector<std::size_t> positions(std::size_t members) {
  std::vector<std::size_t> order(members);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// How many times as slow as the others a member is in one test; below 1: nothing is known.
struct Ratio {
  double times = 0, typical = 0;
};
Ratio ratio_of(std::span<const Measured> members, std::size_t one, double Measured::*part) {
  std::vector<double> others;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (i != one) others.push_back(members[i].*part);
  }
  const double typical = median(std::move(others));
  if (!std::isfinite(typical) || typical <= 0) return {};
  return {members[one].*part / typical, typical};
}

// Seconds that a member tells; none where that makes no sense.
double sane_seconds(double seconds) {
  constexpr double kMost = 3600;
  return seconds > 0 && seconds < kMost ? seconds : kNotDone;
}

bool is_sane(const v1::DataAddress& address) {
  return address.local_socket().size() <= kMaxNameBytes && address.tcp_size() <= kMaxAddresses &&
         std::ranges::all_of(address.tcp(),
                             [](const std::string& each) { return each.size() <= kMaxNameBytes; });
}

}  // namespace

LinkGroups neighbours(std::size_t members) {
  return pair_up(positions(members), false);
}

LinkGroups slow_with_fast(std::span<const double> link_seconds) {
  std::vector<std::size_t> order = positions(link_seconds.size());
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return link_seconds[i]; });
  return pair_up(order, true);
}

std::vector<Unfit> judge(std::span<const Measured> members, double factor) {
  std::vector<Unfit> unfit;
  std::vector<double> times;
  if (members.size() < 2) return unfit;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Ratio compute = ratio_of(members, i, &Measured::compute_seconds);
    Ratio link = members.size() > 2 ? ratio_of(members, i, &Measured::link_seconds) : Ratio();
    if (members[i].link_seconds - link.typical < kLeastLinkExcess) link = {};
    const bool by_link = compute.times <= factor;  // else its links wait for its processors
    const Ratio& failed = by_link ? link : compute;
    if (failed.times <= factor) continue;
    const auto at = std::ranges::find_if(times, [&](double each) { return each < failed.times; });
    unfit.insert(unfit.begin() + (at - times.begin()),
                 {i, by_link ? api::PreflightPart::kLink : api::PreflightPart::kCompute,
                  by_link ? members[i].link_seconds : members[i].compute_seconds, failed.typical});
    times.insert(at, failed.times);
  }
  return unfit;
}

std::optional<double> median_done(std::vector<double> seconds) {
  std::erase_if(seconds, [](double each) { return !std::isfinite(each); });
  if (seconds.empty()) return std::nullopt;
  return median(std::move(seconds));
}

bool Preflight::tests(const std::vector<Member>& members) const {
  return std::ranges::equal(tested_, members, [](const Tested& tested, const Member& member) {
    return tested.member.stream == member.stream;
  });
}

std::optional<api::Preflight> Preflight::consider(const std::vector<Member>& all, int most, TimePoint now,
                                                  std::vector<Send>& send) {
  if (over_) return std::nullopt;
  std::vector<Member> members;
  std::ranges::copy_if(all, std::back_inserter(members), &Member::knows);
  left_out_ = static_cast<std::int64_t>(all.size() - members.size());
  due_ = TimePoint::max();
  if (!newcomers_by_ && members.size() < 2 && checks_ > 0 && most > 1) {  // the others were lost in the check
    newcomers_by_ = now + kNewcomerTimeout;
    awaited_ = 2;
  }
  if (newcomers_by_ && members.size() < awaited_) {
    tested_.clear();
    due_ = *newcomers_by_;
    if (now < due_) return std::nullopt;
    over_ = true;
    if (members.size() > 1) return std::nullopt;
    return fail(members.size(), "no other one has come in time");
  }
  newcomers_by_.reset();
  if (members.size() < 2) {
    over_ = true;
    if (most < 2) return std::nullopt;
    return fail(members.size(),
                members.empty() ? "none can be tested" : "one member has nobody to be compared with");
  }
  if (!tests(members)) {
    tested_.clear();
    if (!waits_since_) waits_since_ = now;
    due_ = *waits_since_ + kReadyTimeout;
    if (now >= due_) return fail(members.size(), "not all of them were ready in time");
    if (!std::ranges::all_of(members, &Member::ready)) return std::nullopt;
    if (++checks_ > kMostChecks) return fail(members.size(), "members came and went");
    waits_since_.reset();
    error_.clear();
    begun_ = now;
    round_ = 0;
    for (const Member& member : members) tested_.push_back({.member = member});
    begin_round(send);
  }
  due_ = begun_ + round_ * kRoundTimeout;
  const bool answered =
      std::ranges::all_of(tested_, [](const Tested& each) { return each.round.has_value(); });
  if (!answered && now < due_) return std::nullopt;
  if (round_ == kRounds) return conclude(now);
  begin_round(send);
  due_ = begun_ + round_ * kRoundTimeout;
  return std::nullopt;
}

bool Preflight::are_apart() const {
  const std::string& host = tested_.front().member.peer.host_id();
  return std::ranges::any_of(tested_, [&](const Tested& each) { return each.member.peer.host_id() != host; });
}

void Preflight::begin_round(std::vector<Send>& send) {
  ++round_;
  ++number_;
  LinkGroups groups;
  if (round_ == 2) groups = neighbours(tested_.size());
  if (round_ == 3) {
    std::vector<double> seconds;
    for (const Tested& each : tested_) seconds.push_back(each.last_link_seconds);
    groups = slow_with_fast(seconds);
  }
  const bool apart = are_apart();
  std::vector<v1::CoordinatorMessage> messages(tested_.size());
  for (v1::CoordinatorMessage& message : messages) {
    message.mutable_preflight()->set_number(number_);
    message.mutable_preflight()->set_apart(apart);
  }
  for (const std::vector<std::size_t>& group : groups) {
    v1::View view;
    view.set_generation(number_);
    for (const std::size_t each : group) {
      v1::ViewMember& peer = *view.add_members();
      peer = tested_[each].member.peer;
      *peer.mutable_address() = tested_[each].address;
    }
    for (const std::size_t each : group) *messages[each].mutable_preflight()->mutable_group() = view;
  }
  for (std::size_t i = 0; i < tested_.size(); ++i) {
    tested_[i].round.reset();
    send.push_back({tested_[i].member.stream, std::move(messages[i])});
  }
}

void Preflight::take(StreamId from, const v1::PreflightResult& result) {
  const auto one =
      std::ranges::find_if(tested_, [&](const Tested& each) { return each.member.stream == from; });
  if (one == tested_.end() || result.number() != number_ || one->round) return;
  const Measured now{sane_seconds(result.compute_seconds()), sane_seconds(result.link_seconds())};
  one->round = now;
  one->last_link_seconds = now.link_seconds;
  one->best.compute_seconds = std::min(one->best.compute_seconds, now.compute_seconds);
  one->best.link_seconds = std::min(one->best.link_seconds, now.link_seconds);
  if (round_ == 1 && is_sane(result.address())) one->address = result.address();
  if (error_.empty() && !result.error().empty()) error_ = cut(result.error(), kMaxNameBytes);
}

std::string Preflight::obstacle(const api::UnfitMember& member) const {
  if (!rules_->excludes) return "spec.preflight.action is Report";
  if (std::ranges::find(rules_->replaced, member.role) == rules_->replaced.end())
    return plan::no_successor_text(member.role);
  if (std::ranges::find(excluded_, std::pair(member.role, member.index)) != excluded_.end())
    return "the pod before it failed, too";
  if (rules_->most <= 0) return "as many were replaced as may be (spec.stragglers.maxReplacements)";
  return "";
}

api::Preflight Preflight::fail(std::size_t members, const std::string& why) {
  over_ = true;
  api::Preflight result{.outcome = api::PreflightOutcome::kFailed,
                        .members = static_cast<std::int64_t>(members),
                        .left_out = left_out_};
  result.message = diagnosis::message_of(result, why);
  return result;
}

api::Preflight Preflight::conclude(TimePoint now) {
  const bool apart = are_apart();
  std::vector<Measured> best;
  std::vector<double> compute, link;
  for (const Tested& each : tested_) {
    best.push_back(each.best);
    // On one host links are its memory, and take long where a process waits for a processor: all are as good.
    if (!apart && std::isfinite(each.best.link_seconds)) best.back().link_seconds = 1;
    compute.push_back(each.best.compute_seconds);
    link.push_back(each.best.link_seconds);
  }
  const auto compute_median = median_done(std::move(compute)), link_median = median_done(std::move(link));
  const std::vector<Unfit> unfit = judge(best, rules_->factor);
  const bool unknown = unfit.empty() && (!compute_median || !link_median);
  if (unknown) return fail(best.size(), error_.empty() ? "no member answered in time" : error_);

  using enum api::PreflightOutcome;
  api::Preflight result{.outcome = unfit.empty() ? kPassed : kReported,
                        .members = static_cast<std::int64_t>(best.size()),
                        .left_out = left_out_,
                        .seconds = std::chrono::duration<double>(now - begun_).count(),
                        .compute_ms = compute_median.value_or(0) * kMilli,
                        .link_ms = link_median.value_or(0) * kMilli};
  for (const Unfit& each : unfit) {
    if (result.unfit.size() == api::kMostUnfit) break;
    const Member& member = tested_[each.member].member;
    const bool done = std::isfinite(each.seconds);
    api::UnfitMember told{.role = static_cast<Role>(member.peer.role()),
                          .index = member.peer.index(),
                          .pod = member.peer.pod(),
                          .host = member.host,
                          .part = each.part,
                          .ms = done ? each.seconds * kMilli : 0,
                          .typical_ms = each.typical * kMilli,
                          .factor = done ? each.seconds / each.typical : 0};
    told.why = obstacle(told);
    told.excluded = told.why.empty();
    if (told.excluded) {
      result.outcome = kExcluded;
      --rules_->most;
      excluded_.emplace_back(told.role, told.index);
      newcomers_by_ = now + kNewcomerTimeout;
      awaited_ = tested_.size();
    }
    result.unfit.push_back(std::move(told));
  }
  result.message = diagnosis::message_of(result);
  over_ = result.outcome != kExcluded;
  tested_.clear();
  return result;
}

}  // namespace paceline::coordinator

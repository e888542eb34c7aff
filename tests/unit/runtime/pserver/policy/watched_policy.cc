#include "tests/unit/runtime/pserver/policy/watched_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace paceline::pserver {

namespace {
std::int64_t count_of(const std::vector<Gradient>& gradients, int worker) {
  return std::count_if(gradients.begin(), gradients.end(),
                       [&](const Gradient& g) { return g.worker == worker; });
}
}  // namespace

WatchedPolicy::WatchedPolicy(const v1::ParameterServerSpec& spec, const PolicyStart& start)
    : spec_(spec), start_(start) {
  auto made = make_policy(spec, start);
  PL_CHECK(made.ok(), "the spec makes a policy");
  policy_ = *std::move(made);
  for (int worker = 0; worker < spec.workers(); ++worker) {
    expected_.insert(worker);
    clocks_[worker] = 0;
  }
  const UnitsApplied units = policy_->units();
  const std::set<Unit> missing(units.missing.begin(), units.missing.end());
  for (Unit unit = 0; unit < units.below; ++unit) {
    if (!missing.contains(unit)) applied_[unit] = 0;
  }
}

void WatchedPolicy::join(int worker) {
  if (expected_.erase(worker) == 0) clocks_[worker] = clocks_.empty() ? last_slowest_ : slowest();
  there_.insert(worker);
  check(policy_->joined(worker));
}

void WatchedPolicy::commit(int worker) {
  const Turn turn = turns_.at(worker);
  turns_.erase(worker);
  pending_.push_back({{worker, turn.unit, turn.read}, clocks_[worker]++});
  check(policy_->committed(worker, turn.unit));
}

void WatchedPolicy::leave(int worker) {
  there_.erase(worker);
  expected_.erase(worker);
  turns_.erase(worker);
  clocks_.erase(worker);
  check(policy_->left(worker));
}

void WatchedPolicy::nobody_else_comes() {
  while (!expected_.empty()) leave(*expected_.begin());
}

std::vector<int> WatchedPolicy::computing() const {
  std::vector<int> workers;
  for (const auto& [worker, turn] : turns_) workers.push_back(worker);
  return workers;
}

std::int64_t WatchedPolicy::slowest() const {
  std::int64_t slowest = clocks_.begin()->second;
  for (const auto& [worker, clock] : clocks_) slowest = std::min(slowest, clock);
  return slowest;
}

void WatchedPolicy::check(const Effects& effects) {
  if (!clocks_.empty()) last_slowest_ = slowest();
  for (const Update& update : effects.updates) check_update(update);
  for (const Gradient& drop : effects.drops) {
    EXPECT_EQ(std::erase_if(pending_, [&](const Committed& c) { return c.gradient == drop; }), 1)
        << "what is dropped was committed";
    EXPECT_LT(drop.read, version_) << "only late gradients are dropped";
    EXPECT_TRUE(synchronous());
    ++drops_;
  }
  for (const Turn& turn : effects.turns) check_turn(turn);
  EXPECT_GE(effects.finished, finished_) << "finished stays so";
  finished_ = effects.finished;
  EXPECT_EQ(finished_, policy_->step() >= start_.total_steps);
  check_units();
  check_progress();
}

void WatchedPolicy::check_update(const Update& update) {
  EXPECT_EQ(update.version, ++version_);
  EXPECT_FALSE(update.gradients.empty());
  EXPECT_TRUE(
      std::is_sorted(update.gradients.begin(), update.gradients.end(), [](const auto& a, const auto& b) {
        return std::tuple(a.worker, a.unit) < std::tuple(b.worker, b.unit);
      }));
  bool several = false;
  for (const Gradient& gradient : update.gradients) {
    EXPECT_TRUE(applied_.emplace(gradient.unit, update.version).second)
        << "unit " << gradient.unit << " is applied twice";
    EXPECT_GE(gradient.unit, 0);
    EXPECT_LT(gradient.unit, start_.total_steps * spec_.units_per_step());
    EXPECT_EQ(std::erase_if(pending_, [&](const Committed& c) { return c.gradient == gradient; }), 1)
        << "what is applied was committed";
    several |= count_of(update.gradients, gradient.worker) > 1;
    if (synchronous()) {
      EXPECT_EQ(gradient.read, version_ - 1) << "a gradient of the present version";
    }
  }
  several_of_one_ += several;
  const auto size = static_cast<std::int64_t>(update.gradients.size());
  if (synchronous()) {
    EXPECT_EQ(size, spec_.gradients_per_step());
    EXPECT_FALSE(several && needs_all()) << "where all are needed nobody takes a part over";
    EXPECT_DOUBLE_EQ(update.scale * static_cast<double>(size), static_cast<double>(spec_.units_per_step()));
  } else {
    EXPECT_EQ(update.scale, 1);
  }
  if (spec_.synchronization() == v1::ParameterServerSpec::ASYNCHRONOUS) {
    EXPECT_EQ(size, 1);
  }
}

void WatchedPolicy::check_turn(const Turn& turn) {
  EXPECT_TRUE(there_.contains(turn.worker));
  EXPECT_FALSE(finished_);
  EXPECT_TRUE(turns_.emplace(turn.worker, turn).second) << "one turn at a time";
  EXPECT_FALSE(applied_.contains(turn.unit)) << "unit " << turn.unit << " is applied already";
  EXPECT_EQ(turn.read, version_) << "who begins reads the newest";
  EXPECT_NE(turn.unit, turn.next);
  for (const auto& [worker, other] : turns_) {
    const bool late = synchronous() && other.read < version_;  // its gradient will be dropped
    if (worker != turn.worker && !late) {
      EXPECT_NE(other.unit, turn.unit) << "two compute one unit";
    }
  }
  if (spec_.synchronization() != v1::ParameterServerSpec::BOUNDED_STALENESS) return;
  const std::int64_t clock = clocks_[turn.worker], lead = clock - slowest();
  greatest_lead_ = std::max(greatest_lead_, lead);
  EXPECT_LE(lead, spec_.staleness()) << "worker " << turn.worker << " leads by too much";
  for (const Committed& c : pending_) {
    EXPECT_GT(c.clock, clock - spec_.staleness() - 1) << "the read lacks an update of clock " << c.clock;
    EXPECT_NE(c.gradient.worker, turn.worker) << "a worker reads its own updates";
  }
}

void WatchedPolicy::check_units() {
  const UnitsApplied units = policy_->units();
  EXPECT_EQ(units.units_per_step, spec_.units_per_step());
  EXPECT_EQ(units.count(), static_cast<std::int64_t>(applied_.size()));
  EXPECT_TRUE(applied_.empty() || applied_.rbegin()->first < units.below);
  for (const Unit unit : units.missing) EXPECT_FALSE(applied_.contains(unit));
  // Those given out, those kept for workers, and those they left.
  EXPECT_LE(units.missing.size(), static_cast<std::size_t>(4 * (spec_.workers() + spec_.units_per_step())) +
                                      start_.units.missing.size());
}

void WatchedPolicy::check_progress() {
  if (finished_) {
    EXPECT_TRUE(synchronous() || pending_.empty()) << "what was committed counts";
  } else if (!there_.empty() && expected_.empty() && (!needs_all() || everybody_is_there())) {
    EXPECT_FALSE(turns_.empty()) << "everybody waits";
  }
  if (!synchronous()) {
    for (const Committed& c : pending_)
      EXPECT_EQ(1, std::count_if(pending_.begin(), pending_.end(),
                                 [&](const Committed& d) { return d.gradient.worker == c.gradient.worker; }));
  }
}

}  // namespace paceline::pserver

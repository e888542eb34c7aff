#include <gtest/gtest.h>

#include <functional>

#include "runtime/pserver/policy/policy.h"

namespace paceline::pserver {
namespace {

v1::ParameterServerSpec spec(std::int64_t workers) {
  v1::ParameterServerSpec spec;
  spec.set_workers(workers);
  spec.set_gradients_per_step(workers);
  spec.set_units_per_step(workers);
  return spec;
}

TEST(MakePolicyTest, RefusesWhatIsNoMode) {
  struct Case {
    std::function<void(v1::ParameterServerSpec&, PolicyStart&)> change;
    std::string message;
  };
  const Case cases[] = {
      {[](auto& s, auto&) { s.set_workers(0); }, "parameter servers: workers is 0; allowed: 1 to 1048576"},
      {[](auto& s, auto&) { s.set_units_per_step(0); },
       "parameter servers: units per step is 0; allowed: 1 to 1048576"},
      {[](auto& s, auto&) { s.set_gradients_per_step(5); },
       "parameter servers: gradients per step is 5; allowed: 1 to 4"},
      {[](auto& s, auto&) { s.set_gradients_per_step(0); },
       "parameter servers: gradients per step is 0; allowed: 1 to 4"},
      {[](auto& s, auto&) { s.set_units_per_step(3); },
       "parameter servers: units per step is 3; allowed: 4 to 4"},
      {[](auto& s, auto&) {
         s.set_synchronization(v1::ParameterServerSpec::BOUNDED_STALENESS);
         s.set_staleness(-1);
       },
       "parameter servers: staleness is -1; allowed: 0 to 4611686018427387903"},
      {[](auto&, auto& start) { start.total_steps = 0; },
       "parameter servers: total steps is 0; allowed: 1 to 2305843009213693951"},
      {[](auto&, auto& start) { start.step = 11; },
       "parameter servers: the first step is 11; allowed: 0 to 10"},
      {[](auto& s, auto&) {
         s.set_synchronization(static_cast<v1::ParameterServerSpec::Synchronization>(9));
       },
       "parameter servers: synchronization 9 is not known to this version; allowed: Synchronous, "
       "Asynchronous, BoundedStaleness"},
  };
  for (const Case& c : cases) {
    v1::ParameterServerSpec changed = spec(4);
    PolicyStart start{.total_steps = 10};
    c.change(changed, start);
    const auto policy = make_policy(changed, start);
    EXPECT_EQ(policy.status().code(), absl::StatusCode::kInvalidArgument) << c.message;
    EXPECT_EQ(std::string(policy.status().message()), c.message);
  }
}

UnitsApplied begins_with(const UnitsApplied& units, Step step) {
  v1::ParameterServerSpec async = spec(4);
  async.set_synchronization(v1::ParameterServerSpec::ASYNCHRONOUS);
  return (*make_policy(async, {units, step, 10}))->units();
}

TEST(MakePolicyTest, UnitsOfACheckpoint) {
  const UnitsApplied whole{.units_per_step = 4, .below = 8};
  EXPECT_EQ(begins_with({}, 2), whole) << "all-reduce knows no units";
  const UnitsApplied own{.units_per_step = 4, .below = 11, .missing = {2, 7}};
  EXPECT_EQ(begins_with(own, 2), own);
  EXPECT_EQ(begins_with({.units_per_step = 3, .below = 7}, 2), whole) << "another number of workers";
  EXPECT_EQ(begins_with({.units_per_step = 4, .below = 7}, 2), whole) << "not these steps: some were dropped";
  EXPECT_EQ(begins_with({.units_per_step = 4, .below = 10, .missing = {7, 2}}, 2), whole) << "not in order";
  EXPECT_EQ(begins_with({.units_per_step = 4, .below = 10, .missing = {2, 2}}, 2), whole) << "twice";
  EXPECT_EQ(begins_with({.units_per_step = 4, .below = 10, .missing = {12}}, 2), whole) << "beyond";
}

TEST(MakePolicyTest, ATrainingThatHasItsStepsIsFinished) {
  for (const auto mode : {v1::ParameterServerSpec::SYNCHRONOUS, v1::ParameterServerSpec::ASYNCHRONOUS,
                          v1::ParameterServerSpec::BOUNDED_STALENESS}) {
    v1::ParameterServerSpec any = spec(2);
    any.set_synchronization(mode);
    const auto policy = *make_policy(any, {.step = 10, .total_steps = 10});
    const Effects effects = policy->joined(0);
    EXPECT_TRUE(effects.finished);
    EXPECT_TRUE(effects.turns.empty());
    EXPECT_EQ(policy->step(), 10);
  }
}

}  // namespace
}  // namespace paceline::pserver

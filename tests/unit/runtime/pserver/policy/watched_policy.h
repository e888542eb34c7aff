#pragma once

// A policy under watch: after every event it checks the invariants of policy.h, and those of the mode,
// against a model of its own that keeps everything. What breaks one is a failure of the running test.

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "runtime/pserver/policy/policy.h"

namespace paceline::pserver {

class WatchedPolicy {
 public:
  // REQUIRES: a spec that make_policy takes.
  WatchedPolicy(const v1::ParameterServerSpec& spec, const PolicyStart& start);

  void join(int worker);
  void commit(int worker);  // REQUIRES: it has a turn
  void leave(int worker);
  // At the end: whoever never came is said to have left.
  void nobody_else_comes();

  // The synchronous mode without spare workers.
  bool needs_all() const { return synchronous() && spec_.gradients_per_step() == spec_.workers(); }
  bool is_there(int worker) const { return there_.contains(worker); }
  bool has_turn(int worker) const { return turns_.contains(worker); }
  std::vector<int> computing() const;
  bool finished() const { return finished_; }
  Policy& policy() { return *policy_; }

  const std::map<Unit, Version>& applied() const { return applied_; }  // by which update
  std::int64_t drops() const { return drops_; }
  std::int64_t several_of_one() const { return several_of_one_; }  // updates with two gradients of one worker
  std::int64_t greatest_lead() const { return greatest_lead_; }

 private:
  struct Committed {
    Gradient gradient;
    std::int64_t clock = 0;
  };

  void check(const Effects& effects);
  void check_update(const Update& update);
  void check_turn(const Turn& turn);
  void check_units();
  void check_progress();
  std::int64_t slowest() const;
  bool everybody_is_there() const { return static_cast<std::int64_t>(there_.size()) == spec_.workers(); }
  bool synchronous() const { return spec_.synchronization() == v1::ParameterServerSpec::SYNCHRONOUS; }

  v1::ParameterServerSpec spec_;
  PolicyStart start_;
  std::unique_ptr<Policy> policy_;
  std::set<int> there_, expected_;
  std::map<int, Turn> turns_;
  std::map<int, std::int64_t> clocks_;  // of those that are there or expected
  std::int64_t last_slowest_ = 0;
  std::vector<Committed> pending_;  // committed, neither applied nor dropped
  std::map<Unit, Version> applied_;
  Version version_ = 0;
  bool finished_ = false;
  std::int64_t drops_ = 0, several_of_one_ = 0, greatest_lead_ = 0;
};

}  // namespace paceline::pserver

#pragma once

// Our detector, and the rules of others, behind one interface. Pure.
//
// The others' rules are as research and their sources tell them: NVIDIA's resiliency extension flags a rank
// whose score, the best rank's median over its own, is below 0.75; DLRover's check before training calls a
// node slow whose time is above twice the nodes' median; the plain rule, of many home-made ones, calls a
// member slow whose step takes 1.15 times its own usual step. Each gets windows of kWindow steps, one after
// the other.

#include <memory>
#include <string>
#include <vector>

#include "controller/stragglers/detector.h"

namespace paceline::detector {

inline constexpr int kWindow = 32;

class Rule {
 public:
  virtual ~Rule() = default;
  virtual std::string name() const = 0;
  // One step of all members. The members that are called slow at present, by index.
  virtual const std::vector<int>& add(const std::vector<stragglers::StepSample>& step) = 0;
  // The newest finding, where it knows: "Slow compute", "AllSlow", ...
  virtual std::string finding() const { return ""; }
};

std::unique_ptr<Rule> make_ours(int members);
std::unique_ptr<Rule> make_best_median(int members);   // NVRx's
std::unique_ptr<Rule> make_twice_median(int members);  // DLRover's
std::unique_ptr<Rule> make_step_time(int members);

}  // namespace paceline::detector

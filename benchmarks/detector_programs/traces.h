#pragma once

// Step times of a job's members, made from a seed: harmless ones, and with one fault. Pure.
//
// A member's compute takes kCompute times a log-normal factor, its input kInput, its update kUpdate;
// everybody then waits for the slowest. From the step kOnset on the fault is there.

#include <cstdint>
#include <string>
#include <vector>

#include "base/rng.h"
#include "controller/stragglers/blocks.h"

namespace paceline::detector {

inline constexpr double kCompute = 0.24, kInput = 0.005, kUpdate = 0.005, kTransfer = 0.02;  // seconds
inline constexpr Step kOnset = 100;

enum class Noise {
  kPlain,   // log-normal alone
  kDrift,   // all members 20 % slower and faster again within 20,000 steps
  kBurst,   // now and then a member takes twice as long for 6 steps
  kPause,   // now and then a member stands still for 2 s
  kUneven,  // samples are of uneven length (0.3 in logs), and their tokens are told
  kUntold,  // and are not told
  kMixed,   // members differ by 1.5 % for good
};
enum class Fault {
  kNone,
  kCompute,   // one member's compute takes `factor` times as long
  kReader,    // one member's input takes (factor - 1) times a step's time longer
  kMoreWork,  // one member has `factor` times the work, and tells it
  kMany,      // half of the members' compute does
  kLink,      // one member's link does: all wait, since bytes that do not come are waited for
};

struct Case {
  Noise noise = Noise::kPlain;
  Fault fault = Fault::kNone;
  int members = 8;
  double sigma = 0.05, factor = 1;
};
const char* name(Noise noise);
const char* name(Fault fault);

class Trace {
 public:
  Trace(const Case& which, std::uint64_t seed);
  // The next step of each member.
  const std::vector<stragglers::StepSample>& next();
  // -1: nobody is, as in a case without a slow member.
  int culprit() const { return culprit_; }

 private:
  double compute_of(int member, double* work);

  const Case case_;
  Rng rng_;
  int culprit_ = -1;
  Step step_ = 0;
  std::vector<int> burst_;  // steps left of it, and of the rest behind it
  std::vector<stragglers::StepSample> samples_;
};

}  // namespace paceline::detector

#pragma once

// The result of the check before the first step (spec.preflight). The coordinator finds it
// (controller/coordinator/core_preflight.h), and the status keeps the newest.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fields.h"
#include "base/ids.h"

namespace paceline::api {

enum class PreflightOutcome : std::uint8_t {
  kPassed,
  kExcluded,  // some members failed it, and other pods take the places of one of them at least
  kReported,  // some members failed it, and train all the same
  kFailed,    // nothing is known: it could not be carried out
};

enum class PreflightPart : std::uint8_t { kCompute, kLink };

inline constexpr std::size_t kMostUnfit = 16;  // that a result names: the worst

// A member that failed it.
struct UnfitMember {
  Role role = Role::kWorker;
  std::int64_t index = 0;
  std::string pod, host;
  PreflightPart part = PreflightPart::kCompute;
  double ms = 0;          // of its test; 0: it did not finish it in time
  double typical_ms = 0;  // the other members' median
  double factor = 0;      // one over the other
  bool excluded = false;  // another pod takes its place
  std::string why;        // it is not
  bool operator==(const UnfitMember&) const = default;
  static void fields(auto&& visit, auto& x) {
    visit(NamedField{"role"}, x.role);
    visit(NamedField{.name = "index", .always = true}, x.index);
    visit(NamedField{"pod"}, x.pod);
    visit(NamedField{"host", "Where it runs."}, x.host);
    visit(NamedField{"part", "Compute or Link."}, x.part);
    visit(NamedField{"ms", "Of its test; absent: not done in time."}, x.ms);
    visit(NamedField{"typicalMs", "The others' median."}, x.typical_ms);
    visit(NamedField{"factor", "One over the other."}, x.factor);
    visit(NamedField{.name = "excluded", .about = "Another pod takes its place.", .always = true},
          x.excluded);
    visit(NamedField{"why", "It is not excluded."}, x.why);
  }
};

struct Preflight {
  PreflightOutcome outcome = PreflightOutcome::kPassed;
  std::optional<WallTime> at;          // when the status was told of it
  std::int64_t members = 0;            // that were checked
  std::int64_t left_out = 0;           // that were not, since their program does not know the check
  double seconds = 0;                  // that it took
  double compute_ms = 0, link_ms = 0;  // the members' medians; 0: nobody finished that test
  std::vector<UnfitMember> unfit;      // the worst first
  std::string message;                 // all this in a sentence
  bool operator==(const Preflight&) const = default;
  static void fields(auto&& visit, auto& x) {
    visit(NamedField{.name = "outcome", .about = "Passed, Excluded, Reported or Failed.", .always = true},
          x.outcome);
    visit(NamedField{"at", "When it ended."}, x.at);
    visit(NamedField{"members", "That were checked."}, x.members);
    visit(NamedField{"leftOut", "That were not, since their program does not know the check."}, x.left_out);
    visit(NamedField{"seconds", "That it took."}, x.seconds);
    visit(NamedField{"computeMs", "The members' median of the compute test."}, x.compute_ms);
    visit(NamedField{"linkMs", "The members' median of the link test."}, x.link_ms);
    visit(NamedField{"unfit", "Members that failed it: the worst 16."}, x.unfit);
    visit(NamedField{"message", "The same in a sentence."}, x.message);
  }
};

const char* name(PreflightOutcome value);
const char* name(PreflightPart value);

}  // namespace paceline::api

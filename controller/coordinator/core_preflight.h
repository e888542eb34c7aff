#pragma once

// The check before the first step (spec.preflight), for CoordinatorCore's own files. Pure; docs/stragglers.md
// tells what it does, docs/protocol.md its messages.
//
//   round 1   all compute, and make themselves ready for links
//   round 2   ... and test the link to their neighbour
//   round 3   ... and to another one: the slowest of round 2 to the fastest, and so on
//
// A member's best round counts: so one with a good link is cleared by a good peer. The
// members are compared with each other; nobody knows how fast they should be.

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "controller/api/preflight.h"
#include "controller/coordinator/core.h"
#include "proto/paceline/v1/coordinator.pb.h"

namespace paceline::coordinator {

// Members by their positions: pairs, of which the last is three where the number is odd. None for fewer than
// two.
using LinkGroups = std::vector<std::vector<std::size_t>>;
LinkGroups neighbours(std::size_t members);
// By each member's time in the round before.
LinkGroups slow_with_fast(std::span<const double> link_seconds);

inline constexpr double kLeastLinkExcess = 0.001;  // seconds, over the others' median: less is chance
inline constexpr double kNotDone = std::numeric_limits<double>::infinity();
struct Measured {
  double compute_seconds = kNotDone, link_seconds = kNotDone;
};
struct Unfit {
  std::size_t member = 0;
  api::PreflightPart part = api::PreflightPart::kCompute;
  double seconds = 0, typical = 0;  // its own, or kNotDone; the others' median
};
// Members that take more than `factor` times the others' median, the worst first. Who is slow in computing is
// so by that alone: its links wait for its processors. Of two members, whose link is one, the link test tells
// nothing.
std::vector<Unfit> judge(std::span<const Measured> members, double factor);
// The median of the tests that are done; nothing: none is.
std::optional<double> median_done(std::vector<double> seconds);

class Preflight {
 public:
  static constexpr int kRounds = 3;
  static constexpr Duration kRoundTimeout = std::chrono::seconds(20);
  static constexpr Duration kReadyTimeout = std::chrono::minutes(30);    // for members that open their data
  static constexpr Duration kNewcomerTimeout = std::chrono::minutes(2);  // for those in others' places
  static constexpr int kMostChecks = 8;  // that begin, since members come and go meanwhile

  explicit Preflight(std::optional<PreflightRules> rules) : rules_(std::move(rules)), over_(!rules_) {}

  // No view waits for it any more.
  bool is_over() const { return over_; }
  void skip() { over_ = true; }

  struct Member {
    StreamId stream;
    v1::ViewMember peer;  // as others are told of it, but for its address
    std::string host;
    bool ready = false;  // its data is open
    bool knows = true;   // the check; one of an earlier release, which does not, is left out of it
  };
  // A view of these could be formed, or in time of `most`. The messages to be sent are added. The
  // result, once there is one: those that it excludes are lost then, and are waited for.
  std::optional<api::Preflight> consider(const std::vector<Member>& all, int most, TimePoint now,
                                         std::vector<Send>& send);
  void take(StreamId from, const v1::PreflightResult& result);
  // The first moment at which consider() may say more without a result.
  TimePoint due() const { return over_ ? TimePoint::max() : due_; }

 private:
  struct Tested {
    Member member;
    v1::DataAddress address;
    std::optional<Measured> round;  // of the present one; nothing: it has not answered
    double last_link_seconds = kNotDone;
    Measured best;
  };
  bool tests(const std::vector<Member>& members) const;
  bool are_apart() const;  // on several hosts
  void begin_round(std::vector<Send>& send);
  api::Preflight conclude(TimePoint now);
  api::Preflight fail(std::size_t members, const std::string& why);
  std::string obstacle(const api::UnfitMember& member) const;

  std::optional<PreflightRules> rules_;
  bool over_ = false;
  std::vector<Tested> tested_;  // empty: no check is under way
  int round_ = 0, checks_ = 0;
  std::int64_t left_out_ = 0;
  std::uint64_t number_ = 0;              // of the newest message
  std::string error_;                     // the first that a member told
  std::optional<TimePoint> waits_since_;  // for members to be ready
  TimePoint begun_{}, due_ = TimePoint::max();
  std::vector<std::pair<Role, std::int64_t>> excluded_;  // their places
  std::optional<TimePoint> newcomers_by_;                // that make `awaited_` members
  std::size_t awaited_ = 0;
};

}  // namespace paceline::coordinator

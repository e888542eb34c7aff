#pragma once

// The shares of the global batch in a ring's views, for CoordinatorCore's own files. Pure; docs/stragglers.md
// tells when they follow the members' speeds.
//
// Shares are even as a rule. With `rules` (spec.stragglers.action: Rebalance) a member that is found to be
// slow in computing is given fewer samples, and the others more, in a next view of the same members; and
// shares follow speeds once more, perhaps back to even ones, where that makes the longest own time of a step
// shorter by kLeastGain. Each time the job has lost `lost_seconds` to the shares that it has before they are
// set anew, and would lose as much again; with the same members each time `lost_seconds` more than the time
// before: so speeds that come and go set them ever more rarely.
// A view of other members begins with even shares.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "controller/api/straggler.h"
#include "controller/coordinator/core.h"

namespace paceline::coordinator {

class BatchShares {
 public:
  // A view is not worth less than this part of the longest own time of a step.
  static constexpr double kLeastGain = 0.05;

  BatchShares(std::int64_t batch, std::optional<RebalanceRules> rules)
      : batch_(batch), rules_(std::move(rules)) {}
  // Without rules uneven shares become even again.
  void set_rules(std::optional<RebalanceRules> rules);
  bool has_rules() const { return rules_.has_value(); }

  struct Member {
    std::string id, name;  // name: "worker-1"
    bool operator==(const Member&) const = default;
  };
  // A view of these begins, by rank. Its shares are others than those before: what is to be told of that.
  std::optional<api::Rebalance> begin_view(Generation generation, std::vector<Member> members);
  // They go on in a view of an earlier coordinator, and say their shares of it. (0, of an earlier release:
  // even.)
  void adopt(std::vector<Member> members, std::span<const double> shares);

  // Each member's in the present view, by rank; they add up to the global batch.
  const std::vector<std::int64_t>& samples() const { return samples_; }
  double share(std::size_t rank) const;
  bool even() const { return even_; }

  // The present view: who is slow, each member's own time of a step in seconds, by rank (empty: not known
  // yet), and how long training goes on.
  struct Sight {
    std::span<const api::Straggler> stragglers;
    std::vector<double> own_seconds;
    std::optional<Duration> left;
  };
  void consider(const Sight& sight, TimePoint now);
  // Why a next view with other shares is due; nothing: none is. begin_view() gives it those.
  std::optional<std::string> due();

  // The answer to a straggler, as of the last consider(). REQUIRES: has_rules().
  struct Answer {
    api::StragglerAction action = api::StragglerAction::kReport;
    std::string why;
  };
  Answer answer(const api::Straggler& straggler) const;
  // "worker-1 takes 20 of 96 samples, others up to 38"; of several, "worker-1 takes 10 of 96 samples,
  // worker-2 16, others up to 35".
  std::string text() const;

 private:
  struct Outlook {
    bool known = false;  // own times are
    double gain = 0;     // of the longest own time, with the best shares
    double lost_seconds = 0;
    std::optional<double> left_seconds;
  };
  double worth() const;  // seconds that must be lost before the next change
  bool may_be_cut() const;
  std::string obstacle(const api::Straggler& straggler) const;

  const std::int64_t batch_;
  std::optional<RebalanceRules> rules_;
  // The present view's, by rank.
  std::vector<Member> members_;
  std::vector<std::int64_t> samples_;
  bool even_ = true;
  int changes_ = 0;  // with these members

  std::optional<TimePoint> since_;  // other shares are worth it
  Outlook outlook_;
  struct Next {
    std::vector<std::int64_t> samples;
    std::string why;
  };
  std::optional<Next> next_;
};

}  // namespace paceline::coordinator

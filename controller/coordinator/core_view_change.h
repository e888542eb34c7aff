#pragma once

// How a view began: who came and left since the one before, why, and how long it took. Pure.
//
// How long a loss went unnoticed is by the coordinator's clock; the rest is by that of a member of both
// views, whose word comes with a heartbeat (v1::ViewBegin). The first word counts: in a ring a step is one of
// all.

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "controller/api/status.h"
#include "proto/paceline/v1/coordinator.pb.h"

namespace paceline::coordinator {

class ViewChanges {
 public:
  struct Member {
    std::string name, id;  // "worker-1"; another one in the same place has another id
    bool operator==(const Member&) const = default;
  };

  // `reached`: the step of the attempt before this one, where there was one that trained.
  explicit ViewChanges(std::optional<Step> reached = std::nullopt) : reached_(reached) {}

  // Since the newest view was formed: a member was lost, and `noticed` after; or the view ends in order.
  void member_lost(const std::string& why, Duration noticed);
  void ends(const std::string& why) { next_.why = why; }
  // The view that is formed next has no place for this one, which goes on waiting.
  void stands_by(const std::string& name);
  // The newest view has these members; `applied`: steps by those before.
  void formed(Generation generation, std::vector<Member> members, Step applied);
  // A member's word of the newest view: what there is to tell, once, against the last view that took a step;
  // nothing where there was none.
  std::optional<api::ViewChange> begins(const v1::ViewBegin& word);

  // The first so many that came or left are named.
  static constexpr std::size_t kMostNamed = 8;

 private:
  const std::optional<Step> reached_;
  std::optional<std::vector<Member>> before_;  // of the last view that took a step
  std::vector<Member> members_;                // of the newest view
  Generation generation_;
  bool begins_ = false;  // nobody has told of a step in it
  // The word of a view's first step may come when the view ends again: each has its own cause.
  struct Cause {
    std::string why;
    std::optional<Duration> noticed;
    void add(const std::string& more, std::optional<Duration> after);
  };
  Cause newest_;  // of the newest view, since `before_`
  Cause next_;    // since the newest view was formed
  Step applied_ = 0;
};

}  // namespace paceline::coordinator

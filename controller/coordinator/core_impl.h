#pragma once

// The inside of CoordinatorCore, for its own files only: core.cc (inputs and their order), core_evidence.cc
// (diagnosis), core_states.cc (views and endings), core_report.cc. Every input first changes slots, then
// settle() draws the conclusions that the moment allows: verdict, next state, next view.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/text.h"
#include "controller/coordinator/core.h"
#include "controller/coordinator/core_hang.h"
#include "controller/coordinator/core_hello.h"
#include "controller/coordinator/core_load.h"
#include "controller/coordinator/core_places.h"
#include "controller/coordinator/core_preflight.h"
#include "controller/coordinator/core_progress.h"
#include "controller/coordinator/core_ring.h"
#include "controller/coordinator/core_save.h"
#include "controller/coordinator/core_shares.h"
#include "controller/coordinator/core_stragglers.h"
#include "controller/coordinator/core_suspicions.h"
#include "controller/coordinator/core_view_change.h"
#include "controller/coordinator/core_watch.h"
#include "controller/diagnosis/fault_text.h"
#include "controller/diagnosis/view_text.h"

namespace paceline::coordinator {

class CoordinatorCore::Impl {
 public:
  Impl(CoreConfig config, TimePoint now);
  Effects step(const Input& input, TimePoint now);
  Report report(TimePoint now) const;
  JobState state() const { return state_; }
  bool is_observer(StreamId stream) const;
  TimePoint due() const;

 private:
  // --- inputs ---
  void on(const Attached& in);
  void on(const Received& in);
  void on(const StreamEnded& in);
  void on(const PodFact& in);
  void on(const AbsentMember& in);
  void on(const Refused& in);
  void on(const Resize& in);
  void drop_surplus();
  void on(const Handover& in);
  void on(const Rebalance& in);
  void on(const Save& in);
  void on(const Tick&) {}
  void on(const Stop& in);
  void on_heartbeat(Slot& slot, const v1::Heartbeat& heartbeat);
  void on_peer_fault(Slot& slot, const v1::PeerFault& fault);
  void on_leaving(Slot& slot, const v1::Leaving& leaving);
  void on_caught_up(Slot& slot, const v1::CaughtUp& word);
  void on_observation(Slot& slot, const v1::Heartbeat& heartbeat);
  void count(Slot& slot, const v1::Heartbeat& heartbeat);
  bool take(Slot& slot, const v1::Heartbeat& heartbeat);
  void note_view_change(const v1::ViewBegin& word);
  void count_steps(Slot& slot, const v1::Heartbeat& heartbeat);
  void note_stragglers();
  void consider_shares();
  void check_weights(const Slot& slot, const v1::Heartbeat& heartbeat);
  void bind(Slot& slot, const Attached& in);
  bool gathers_earlier_view() const { return state_ == JobState::kForming && generation_.value == 0; }
  void note_end_of_work(Slot& slot);
  void note_finished(Slot& slot);
  bool take_end_of_work(Slot& slot);
  void end_of_view_before(const Slot& slot);
  void wait_for_the_others(const Slot& leader);
  void attach_observer(Slot& slot, const Attached& in);
  void put_off(const Attached& in, const std::string& why);

  // --- evidence and verdict ---
  void lose(Slot& slot, api::Observation seen, TimePoint since, bool soft = false);
  void forgive_own_absence();
  Duration longest_absence() const { return config_.heartbeat_timeout / 2; }
  LossDecision decide_on(const api::Fault& verdict);
  void lose(const std::vector<Sighting>& sightings);
  void find_silent();
  void decide();
  void carry_out(api::Fault verdict);
  void go_on_without(Slot& slot, api::Fault verdict);
  void leave_behind(Slot& slot, api::Fault verdict);
  void note_lost(Slot& slot, api::Fault verdict);
  bool is_replaced_by(const Slot& slot, const v1::Hello& hello) const;
  // One that is not to take over from its place's member any more.
  // The successor that this is, where it is not to take over any more from the one in its place.
  std::optional<Incarnation> given_up_as(int role, std::int64_t index, std::int64_t number);

  // --- states ---
  void settle();
  void settle_end();
  bool observers_look();
  void form_if_complete();
  void form_ring();
  bool checks_first(const std::vector<Slot*>& chosen);
  void exclude(const api::UnfitMember& member);
  void hand_over(std::vector<Slot*>& chosen);
  void take_over();
  void drop_successor(const std::string& why);
  void form(std::uint64_t generation, const std::vector<Slot*>& chosen, bool adopts);
  void take_in_joiners();
  void begin_catch_up(Slot& newcomer);
  bool someone_has_finished() const;
  void level_shares();
  bool begin_shares(const std::vector<Slot*>& chosen, bool adopts);
  bool misses_gone();
  void miss_lost();
  void make_view(const std::vector<Slot*>& chosen, bool keeps_ranks);
  static v1::ViewMember view_member(const Slot& slot);
  void drain_for_next_view(const std::string& why);
  void form_anew(std::string why);
  void end(JobState state, std::string reason, bool finished);
  void choose_saver();

  // --- helpers ---
  Phase phase_of(const Slot& slot) const;  // as the report has it
  TimePoint stop_by() const;               // REQUIRES: stopping_
  TimePoint end_due() const;               // REQUIRES: stopping_ or finish_by_
  bool judges() const { return !is_final(state_) && !stopping_ && !finish_by_; }
  std::vector<Slot>& slots() { return places_.slots(); }
  const std::vector<Slot>& slots() const { return places_.slots(); }
  std::span<Slot> members() { return places_.members(); }
  std::span<const Slot> members() const { return places_.members(); }
  Slot* leader() { return places_.leader(); }
  const Slot* leader() const { return places_.leader(); }
  int number(const Slot& slot) const { return places_.number(slot); }
  void log(std::string reason) { effects_.reasons.push_back(std::move(reason)); }
  void evict(StreamId stream, const std::string& reason, bool finished, bool close);
  void fence(StreamId stream, const std::string& reason);
  void refuse_lost(StreamId stream, const std::string& reason) {
    log(str_cat("stream ", stream.value, " is refused: ", reason));
    fence(stream, reason);
  }
  void refuse(StreamId stream, const std::string& reason, bool finished = false) {
    log(str_cat("stream ", stream.value, " is refused: ", reason));
    evict(stream, reason, finished, true);
  }
  void send_view(const Slot& to);
  void send_drain(const Slot& to, const std::string& reason);
  void send_save();
  void break_protocol(Slot& slot, const std::string& what);

  CoreConfig config_;
  bool ring_ = false;  // no servers
  Places places_;
  JobState state_ = JobState::kForming;
  std::string reason_;
  Generation generation_;  // newest given out
  v1::View view_;
  JobProgress progress_;
  ViewChanges view_changes_;
  std::optional<api::ViewChange> view_change_;  // the newest
  Watch watch_;
  Suspicions suspicions_;
  Stragglers stragglers_;
  BatchShares shares_;
  Preflight preflight_;
  std::optional<api::Preflight> preflight_result_;  // the newest
  std::optional<api::Rebalance> rebalance_;         // the newest
  SaveRequest save_request_;
  TimePoint now_{}, last_now_;
  TimePoint form_since_;     // Forming since
  TimePoint gathers_since_;  // somebody is attached since
  bool stopping_ = false, another_follows_ = false;
  std::string stop_reason_;
  TimePoint stop_since_{};
  std::optional<TimePoint> finish_by_;
  std::optional<TimePoint> nobody_since_;   // nobody trains any more, and the job ends
  std::optional<Incarnation> handed_over_;  // the newest
  std::optional<plan::Shortage> shortage_;  // in Forming, when it was last looked
  std::string model_path_, checkpoint_path_;
  std::string leader_;  // rank 0 of the newest view, by its member id
  StreamId
      saver_;  // of those that are evicted the one that saves what it holds; 0: as they know by themselves

  std::optional<api::Fault> verdict_;
  struct Lost {
    api::Fault fault;
    TimePoint at;
  };
  std::vector<Lost> lost_;            // whose places nobody has taken
  std::vector<std::string> refused_;  // uids of pods; of more than kMaxRefused the last
  std::string drain_reason_;
  TimePoint verdict_at_{}, state_since_{};
  JobState state_before_ = JobState::kForming;

  Effects effects_;  // of the step under way; of the first, also why those who are gone are not waited for
};

}  // namespace paceline::coordinator

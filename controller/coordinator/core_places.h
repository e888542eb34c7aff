#pragma once

// The places of a job and who holds them, for CoordinatorCore's own files. Pure.
//
// A slot is one place (core.h), or an observer's: empty, held by an attached member, or by one that has left.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "controller/coordinator/core.h"
#include "controller/coordinator/core_hang.h"
#include "controller/coordinator/core_load.h"
#include "controller/coordinator/core_ring.h"
#include "controller/coordinator/core_silence.h"
#include "controller/diagnosis/root_cause.h"

namespace paceline::coordinator {

struct Slot {
  Role role = Role::kWorker;
  int index = 0;
  std::optional<v1::Hello> hello;  // of the member that holds it
  std::string last_pod;            // of the member that held it before, whose end may still be told
  std::int64_t incarnation = 0;    // the lowest that may attach
  bool viewed = false;             // it was given a view, by this coordinator or an earlier one
  bool has_stepped = false;        // it has told of a step that it applied
  bool holds = false;              // it has trained, stands by now, and has no newer state yet
  StreamId stream;                 // 0: none
  TimePoint last_heard{};
  Gaps gaps;
  bool left = false;             // said goodbye
  bool finished = false;         // its work was done when it left
  bool lost = false;             // the others go on without it
  bool surplus = false;          // the job is to have no such place
  bool successor = false;        // it takes over from the slot of the same place
  bool finished_before = false;  // in an earlier coordinator's view, of which it has left
  int rank = -1;                 // in the current view, or the last one while the next is formed
  bool drained = false;          // waits for the next view
  // A newcomer in the present view: how it gets the state from those who train.
  enum class CatchUp : std::uint8_t { kNone, kUnderWay, kDone, kFailed } catch_up = CatchUp::kNone;
  v1::CoordinatorMessage catch_up_word;  // where it is under way, which its stream may have lost
  // In Forming, of a member that holds an earlier coordinator's view: what its first heartbeat tells.
  enum class Held : std::uint8_t { kUntold, kTrains, kWaits } held = Held::kUntold;
  Phase phase = Phase::kStarting;
  Step step = 0;
  TimePoint stepped_at{};                // when its step was last seen to rise
  Part part = Part::kNone;               // of the step after `step`
  Duration in_part{};                    // on its own clock, when it was last heard
  bool behind = false;                   // it was not heard yet in the view that it is in
  std::optional<TimePoint> saves_since;  // a checkpoint, and the others wait
  Pace pace;
  MemberTelemetry telemetry;  // but for a server's, which is load's
  ServerLoad load;
  bool served = false;  // a server all of whose workers have left, or an observer that has looked once more:
                        // these are its last numbers
  bool told_over = false;   // an observer, on its stream, that the training is
  std::uint64_t taken = 0;  // the newest heartbeat whose records are counted
  std::optional<diagnosis::Evidence> evidence;
  std::optional<int> exit_code, signal;

  bool attached() const { return stream.value != 0; }
  bool ended_well() const { return exit_code == 0 && !signal; }
  bool counts() const { return trains() && !lost && !surplus && !successor; }    // of those that are left
  bool gone() const { return lost || surplus || finished_before || successor; }  // nobody waits for it
  bool observes() const { return role == Role::kEvaluator; }
  bool trains() const { return role == Role::kChief || role == Role::kWorker; }
  // A state: it has told of its step, or was in a view of which nobody here knows more.
  bool may_hold() const { return step > 0 || (hello && hello->held_generation() > 0); }
  // A member in no view, with its data open. One of an earlier view, which comes when this one has been
  // formed without it, is a newcomer, too, and its state counts.
  bool waits_to_join() const { return attached() && rank < 0 && !surplus && phase == Phase::kWaiting; }
  // A joiner that is still at the state would be waited for by those who could train.
  bool is_ready() const { return waits_to_join() && catch_up != CatchUp::kUnderWay; }
  // A newcomer that has not tried to catch up is waited for only where the others are too few.
  bool joins() const { return is_ready() && (catch_up != CatchUp::kNone || !hello->catches_up()); }
  std::string name() const { return member_name(role, index); }
  MemberReport report(TimePoint now) const;
  void vacate() {
    Slot empty{.role = role,
               .index = index,
               .last_pod = hello ? hello->pod() : last_pod,
               .incarnation = incarnation,
               .successor = successor};
    *this = std::move(empty);
  }
};

class Places {
 public:
  explicit Places(const CoreConfig& config);

  // Chief, workers, servers; then evaluators; each by index. Workers are added behind those that there are,
  // and the last ones taken away, so that the numbers of the others stay.
  std::vector<Slot>& slots() { return slots_; }
  const std::vector<Slot>& slots() const { return slots_; }
  // A view is made of these; the rest of the slots are observers'.
  std::span<Slot> members() { return {slots_.data(), members_}; }
  std::span<const Slot> members() const { return {slots_.data(), members_}; }
  int number(const Slot& slot) const { return static_cast<int>(&slot - slots_.data()); }
  Slot* leader();  // rank 0; null: there is none
  const Slot* leader() const { return const_cast<Places*>(this)->leader(); }
  Slot* slot_of(StreamId stream);
  Slot* slot_of(int role, std::int64_t index);
  // A slot but this one whose member has said this id, and is there or in the view; null: none.
  const Slot* other_known_as(const std::string& member_id, const Slot& slot) const;

  int standby() const { return standby_; }  // of those that train so many wait until another one is lost
  bool someone_attached() const;
  bool someone_finished() const;  // of those who train
  int attached_trainers() const;
  int trainers_left() const;
  int most_trainers() const;  // of a view

  // Workers beyond so many are surplus; those that lack are made. How many places there were.
  int set_workers(int workers, int standby, std::int64_t attempt);
  void remove_last_member() { slots_.erase(slots_.begin() + static_cast<std::ptrdiff_t>(--members_)); }

  // A place whose member is to be replaced while it trains has a second slot, the last of the members', for
  // the one that is to come: it waits as a newcomer. There is one at most; null: none.
  Slot* successor();
  Slot& predecessor();  // the slot that it takes over from. REQUIRES: there is a successor
  bool is_to_hand_over(const Slot& slot) const;
  // The slot of such a member: the successor's where its number says so.
  Slot* slot_for(int role, std::int64_t index, std::int64_t incarnation);
  // REQUIRES: the place is there, and no successor.
  void add_successor(const Incarnation& to);
  // The successor has the place from now on, attached or not: in the last case nobody waits for it. Who had
  // it is nobody's member any more. REQUIRES: there is a successor.
  Slot& hand_over();

  // Whether those of an earlier coordinator's view that are here are all that may come.
  enum class Gathering : std::uint8_t { kWaits, kAdopts, kOver };
  Gathering gathered_ring() const;
  // Whether all members hold the same view of an earlier coordinator; its generation, else 0.
  std::uint64_t common_view() const;
  // The members that the next view has, and the present one has not.
  std::vector<Slot*> wanted_newcomers();
  // The members of a view that may be formed now. `begun`: some have trained; `all_newcomers`: also those
  // that have not tried to catch up.
  std::vector<Slot*> candidates(Gathering gathering, bool begun, bool all_newcomers);

 private:
  // The best ring of those that are there: without the one that is to be replaced, if it is no smaller for
  // that, and another one holds what was trained; never with it and its successor.
  std::vector<int> choose(std::vector<RingMember> there, int most);

  std::vector<Slot> slots_;
  std::size_t members_ = 0;
  int standby_ = 0;
};

}  // namespace paceline::coordinator

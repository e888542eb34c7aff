#include "controller/coordinator/core_places.h"

#include <algorithm>

#include "base/check.h"
#include "controller/coordinator/core_hello.h"

namespace paceline::coordinator {

MemberReport Slot::report(TimePoint now) const {
  MemberReport member{.role = role,
                      .index = index,
                      .attached = attached(),
                      .left = left,
                      .finished = finished,
                      .lost = lost,
                      .rank = rank,
                      .phase = phase,
                      .step = step,
                      .telemetry = telemetry};
  if (hello) {
    member.member_id = hello->member_id();
    member.pod = hello->pod();
    member.host = hello->host();
    member.pid = hello->pid();
    member.silent = std::max(now - last_heard, Duration::zero());
  }
  return member;
}

Places::Places(const CoreConfig& config) {
  for (const Role role : {Role::kChief, Role::kWorker, Role::kServer, Role::kEvaluator}) {
    for (const ExpectedRole& expected : config.roles) {
      if (expected.role == role) standby_ += expected.standby;
      for (int i = 0; expected.role == role && i < expected.count; ++i) {
        slots_.emplace_back();
        slots_.back().role = role;
        slots_.back().index = i;
        slots_.back().incarnation = role == Role::kEvaluator ? 0 : config.attempt;
      }
    }
    if (role != Role::kEvaluator) members_ = slots_.size();
  }
}

int Places::set_workers(int workers, int standby, std::int64_t attempt) {
  int there = 0;
  for (Slot& slot : members()) {
    if (slot.role != Role::kWorker || slot.successor) continue;
    slot.surplus = slot.index >= workers;
    there = std::max(there, slot.index + 1);
  }
  for (int index = there; index < workers; ++index) {
    Slot more{.role = Role::kWorker, .index = index, .incarnation = attempt};
    const std::size_t at = successor() == nullptr ? members_ : members_ - 1;
    slots_.insert(slots_.begin() + static_cast<std::ptrdiff_t>(at), std::move(more));
    ++members_;
  }
  standby_ = standby;
  return there;
}

Slot* Places::slot_of(StreamId stream) {
  const auto it = std::find_if(slots_.begin(), slots_.end(),
                               [&](const Slot& s) { return s.attached() && s.stream == stream; });
  return it == slots_.end() ? nullptr : &*it;
}

Slot* Places::slot_of(int role, std::int64_t index) {
  const auto it = std::find_if(slots_.begin(), slots_.end(), [&](const Slot& s) {
    return static_cast<int>(s.role) == role && s.index == index;
  });
  return it == slots_.end() ? nullptr : &*it;
}

const Slot* Places::other_known_as(const std::string& member_id, const Slot& slot) const {
  const auto it = std::ranges::find_if(slots_, [&](const Slot& s) {
    return &s != &slot && s.hello && s.hello->member_id() == member_id && (s.attached() || s.rank >= 0);
  });
  return it == slots_.end() ? nullptr : &*it;
}

Slot* Places::successor() {
  return members_ > 0 && slots_[members_ - 1].successor ? &slots_[members_ - 1] : nullptr;
}

Slot& Places::predecessor() {
  const Slot& successor = slots_[members_ - 1];
  PL_CHECK(successor.successor, "a successor has a predecessor");
  return *slot_of(static_cast<int>(successor.role), successor.index);
}

bool Places::is_to_hand_over(const Slot& slot) const {
  const Slot* const next = members_ > 0 ? &slots_[members_ - 1] : nullptr;
  return next != nullptr && next->successor && &slot != next && slot.role == next->role &&
         slot.index == next->index;
}

Slot* Places::slot_for(int role, std::int64_t index, std::int64_t incarnation) {
  Slot* const next = successor();
  const bool is_next = next != nullptr && static_cast<int>(next->role) == role && next->index == index &&
                       incarnation >= next->incarnation;
  return is_next ? next : slot_of(role, index);
}

void Places::add_successor(const Incarnation& to) {
  Slot slot{.role = to.role, .index = to.index, .incarnation = to.number};
  slot.successor = true;
  slots_.insert(slots_.begin() + static_cast<std::ptrdiff_t>(members_), std::move(slot));
  ++members_;
}

Slot& Places::hand_over() {
  Slot& place = predecessor();
  const bool surplus = place.surplus;
  place = std::move(slots_[members_ - 1]);
  place.successor = false;
  place.surplus = surplus;
  place.lost = !place.attached();
  remove_last_member();
  return place;
}

Slot* Places::leader() {
  const auto it = std::ranges::find(slots_, 0, &Slot::rank);
  return it == slots_.end() ? nullptr : &*it;
}

bool Places::someone_attached() const {
  return std::any_of(slots_.begin(), slots_.end(), [](const Slot& s) { return s.attached(); });
}

bool Places::someone_finished() const {
  return std::ranges::any_of(members(), [](const Slot& s) { return s.left && s.finished && s.trains(); });
}

int Places::attached_trainers() const {
  return static_cast<int>(std::ranges::count_if(
      slots_, [](const Slot& s) { return s.trains() && s.attached() && !s.successor; }));
}

int Places::trainers_left() const {
  return static_cast<int>(std::ranges::count_if(slots_, &Slot::counts));
}

int Places::most_trainers() const {
  const auto places =
      std::ranges::count_if(slots_, [](const Slot& s) { return s.trains() && !s.surplus && !s.successor; });
  return static_cast<int>(places) - standby_;
}

std::vector<int> Places::choose(std::vector<RingMember> there, int most) {
  const Slot* const next = successor();
  if (next == nullptr) return choose_ring(std::move(there), most);
  const int last = number(*next), first = number(predecessor());
  const auto without = [&](int one) {
    std::vector<RingMember> others = there;
    std::erase_if(others, [one](const RingMember& each) { return each.number == one; });
    return choose_ring(std::move(others), most);
  };
  // The last member that holds what was trained stays.
  const auto holds = [&](const std::vector<int>& ring) {
    return std::ranges::any_of(there, [&](const RingMember& each) {
      return each.in_view && slots_[static_cast<std::size_t>(each.number)].may_hold() &&
             std::ranges::find(ring, each.number) != ring.end();
    });
  };
  std::vector<int> handed_over = without(first), as_it_is = without(last);
  const bool smaller = handed_over.size() < as_it_is.size();
  return smaller || (holds(as_it_is) && !holds(handed_over)) ? as_it_is : handed_over;
}

// The next view has them, and the present one has not.
std::vector<Slot*> Places::wanted_newcomers() {
  std::vector<RingMember> there;
  for (const Slot& slot : members()) {
    const bool in_view = slot.attached() && slot.rank >= 0;
    if (in_view || slot.waits_to_join()) there.push_back({number(slot), slot.role == Role::kChief, in_view});
  }
  std::vector<Slot*> wanted;
  for (const int each : choose(std::move(there), most_trainers())) {
    Slot& slot = slots_[static_cast<std::size_t>(each)];
    if (slot.rank < 0) wanted.push_back(&slot);
  }
  return wanted;
}

std::vector<Slot*> Places::candidates(Gathering gathering, bool begun, bool all_newcomers) {
  std::uint64_t held = 0;  // the newest view of an earlier coordinator
  bool one_is_ranked = false;
  for (const Slot& slot : members()) {
    if (!slot.attached()) continue;
    held = std::max<std::uint64_t>(held, slot.hello->held_generation());
    one_is_ranked |= slot.rank >= 0;
  }
  std::vector<RingMember> there;
  for (const Slot& slot : members()) {
    if (!slot.attached() || slot.surplus) continue;
    if (begun && !slot.viewed && !(all_newcomers ? slot.is_ready() : slot.joins())) continue;
    const bool holds_newest = slot.hello->held_generation() == held;
    if (gathering == Gathering::kAdopts && !holds_newest) continue;
    const bool trained_last = one_is_ranked ? slot.rank >= 0 : holds_newest;
    const bool in_view = slot.viewed && trained_last && (!all_newcomers || slot.may_hold());
    there.push_back({number(slot), slot.role == Role::kChief, in_view, slot.holds || slot.viewed});
  }
  const int most = gathering == Gathering::kAdopts ? kMaxMembers : most_trainers();
  std::vector<Slot*> chosen;
  for (const int each : choose(std::move(there), most))
    chosen.push_back(&slots_[static_cast<std::size_t>(each)]);
  return chosen;
}

Places::Gathering Places::gathered_ring() const {
  std::uint64_t held = 0;
  std::size_t size = 0, here = 0, finished = 0;
  for (const Slot& slot : members()) {
    if (slot.finished_before) ++finished;
    if (!slot.attached() || slot.hello->held_generation() < held) continue;
    if (slot.hello->held_generation() > held) here = 0;
    held = slot.hello->held_generation();
    size = slot.hello->held_size();
    ++here;
  }
  if (held == 0) return Gathering::kOver;
  const auto holds = [&](const Slot& slot) {
    return slot.attached() && slot.hello->held_generation() == held;
  };
  const auto one_says = [&](Slot::Held what) {
    return std::ranges::any_of(members(), [&](const Slot& s) { return holds(s) && s.held == what; });
  };
  const bool complete = here + finished == size;
  const bool others_may_come =
      std::ranges::any_of(members(), [](const Slot& s) { return !s.attached() && !s.gone(); });
  if (!complete) return others_may_come ? Gathering::kWaits : Gathering::kOver;
  if (one_says(Slot::Held::kWaits) || held > kMostCount) return Gathering::kOver;
  return one_says(Slot::Held::kUntold) ? Gathering::kWaits : Gathering::kAdopts;
}

std::uint64_t Places::common_view() const {
  const std::uint64_t held = members().front().hello->held_generation();
  const bool all = std::all_of(members().begin(), members().end(),
                               [&](const Slot& s) { return s.gone() || s.hello->held_generation() == held; });
  return all && held <= kMostCount ? held : 0;
}

}  // namespace paceline::coordinator

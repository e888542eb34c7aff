#include "controller/coordinator/core_watch.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "controller/coordinator/core_silence.h"

namespace paceline::coordinator {

using Seen = api::ObservationKind;

namespace {
constexpr Duration kMayBeStuck = std::chrono::seconds(1);  // a few heartbeats
}

Duration Watch::patience_with(const Slot& slot, TimePoint now, bool forming) const {
  if (forming || !slot.gaps.is_known()) return config_.most_silence;
  std::vector<Duration> largest;
  for (const Slot& other : places_.members()) {
    // A stream that broke is a sign of the network, too, as long as nobody knows more.
    const bool late = other.attached() || (other.evidence && other.evidence->lapsed);
    if (late && &other != &slot) largest.push_back(std::max(other.gaps.largest(), now - other.last_heard));
  }
  if (largest.empty()) largest.push_back(slot.gaps.largest());
  return silence_limit(config_.heartbeat_timeout, config_.most_silence, std::move(largest));
}

std::vector<Sighting> Watch::silent(TimePoint now, bool forming) const {
  std::vector<Sighting> sightings;
  for (const Slot& slot : places_.members()) {
    if (!slot.attached() || now - slot.last_heard <= config_.heartbeat_timeout) continue;
    const Duration patience = patience_with(slot, now, forming);
    if (now - slot.last_heard <= patience) continue;
    sightings.push_back({places_.number(slot), {Seen::kSilent, format_duration(patience)}, slot.last_heard});
  }
  return sightings;
}

std::vector<Sighting> Watch::late(TimePoint now, Generation generation) const {
  std::vector<const Slot*> late;
  for (const Slot& slot : places_.members()) {
    if (slot.attached() && slot.rank >= 0 && !slot.drained && now > drained_by(slot)) late.push_back(&slot);
  }
  // A member in the exchange waits for one that is not.
  const auto waits = [](const Slot* slot) { return slot->part == Part::kExchange; };
  if (!std::ranges::all_of(late, waits)) std::erase_if(late, waits);
  std::vector<Sighting> sightings;
  for (const Slot* slot : late)
    sightings.push_back({places_.number(*slot), {Seen::kKeepsView, std::to_string(generation.value)}, now});
  return sightings;
}

// A step under way is finished first, and before it what the members evaluate and rank 0 saves.
TimePoint Watch::drained_by(const Slot& slot) const {
  constexpr double kSteps = 4, kNsPerMs = 1e6, kLongest = 1e9;
  const Duration steps(
      static_cast<std::int64_t>(kSteps * kNsPerMs * std::min(slot.telemetry.step_ms, kLongest)));
  const TimePoint begin = std::max(drain_since_, std::min(busy_at_, drain_since_ + config_.save_timeout));
  return begin + config_.stop_timeout + std::max(steps, kHangFactor * slot.pace.longest());
}

// Servers tell by themselves who is late. A member that was not heard of late may be in another part by now.
std::vector<AtWork> Watch::at_work(TimePoint now) const {
  std::vector<AtWork> members;
  for (const Slot& slot : places_.members()) {
    if (!slot.trains() || !slot.attached() || slot.rank < 0) continue;
    const bool heard = now - slot.last_heard <= config_.heartbeat_timeout;
    members.push_back({places_.number(slot), slot.step, heard ? slot.part : Part::kNone, slot.in_part,
                       slot.behind, slot.pace});
  }
  return members;
}

std::vector<Sighting> Watch::hung(TimePoint now) {
  const Duration timeout = std::chrono::milliseconds(config_.training.exchange().timeout_ms());
  const Hung found = find_hung(at_work(now), least_hang(timeout));
  std::vector<Sighting> sightings;
  for (const int each : found.hung) {
    const Slot& slot = places_.slots()[static_cast<std::size_t>(each)];
    sightings.push_back({each, {Seen::kTakesNoStep, hang_text(slot, found.waiting)}, now - slot.in_part});
  }
  find_save_that_hangs(sightings);
  return sightings;
}

bool Watch::may_be_stuck(const Slot& slot, TimePoint now) const {
  if (now - slot.last_heard > kMayBeStuck) return true;
  const Hung found = find_hung(at_work(now), kMayBeStuck);
  return std::ranges::find(found.hung, places_.number(slot)) != found.hung.end();
}

// The storage may let nobody save: the next rank 0 is not named for it (core_hang.h, Saves).
void Watch::find_save_that_hangs(std::vector<Sighting>& sightings) {
  const auto saver = std::ranges::find(places_.members(), 0, &Slot::rank);
  if (saver == places_.members().end() || !saver->saves_since || !saves_.bound()) return;
  const Duration saving = saver->last_heard - *saver->saves_since;
  if (saving <= *saves_.bound()) return;
  std::vector<int> waiting;
  for (const Slot& slot : places_.members()) {
    if (slot.attached() && slot.rank > 0 && slot.part == Part::kExchange)
      waiting.push_back(places_.number(slot));
  }
  if (waiting.empty()) return;
  const std::string text = str_cat("a checkpoint for ", format_duration(saving), ", where one took ",
                                   format_duration(*saves_.longest()), " at most, while ", names_of(waiting));
  sightings.push_back({places_.number(*saver), {Seen::kTakesNoStep, text}, *saver->saves_since});
  saves_.one_hangs();
}

// With the verb; of many the first.
std::string Watch::names_of(std::span<const int> numbers) const {
  constexpr std::size_t kMostNamed = 8;
  std::string names;
  for (std::size_t i = 0; i < std::min(numbers.size(), kMostNamed); ++i) {
    const char* const glue = i == 0 ? "" : i + 1 == numbers.size() ? " and " : ", ";
    names += str_cat(glue, places_.slots()[static_cast<std::size_t>(numbers[i])].name());
  }
  if (numbers.size() > kMostNamed) names += str_cat(" and ", numbers.size() - kMostNamed, " more");
  return str_cat(names, numbers.size() == 1 ? " waits for it" : " wait for it");
}

std::string Watch::hang_text(const Slot& slot, std::span<const int> waiting) const {
  return str_cat(part_name(slot.part), " for ", format_duration(slot.in_part),
                 ", where its own part of a step took ", format_duration(slot.pace.last()), " last and ",
                 format_duration(slot.pace.longest()), " at most",
                 waiting.empty() ? "" : str_cat(", while ", names_of(waiting)));
}

// A ring of enough members misses nobody: the planner replaces members, and they come in time.
std::vector<Sighting> Watch::missing(TimePoint now, TimePoint form_since) const {
  if (now - form_since < config_.form_timeout) return {};
  const bool ring = !config_.training.has_parameter_server();
  if (ring && config_.elastic && places_.attached_trainers() >= config_.min_trainers) return {};
  std::vector<int> missing;
  std::string names;
  for (const Slot& slot : places_.members()) {
    if (slot.attached() || slot.gone()) continue;
    missing.push_back(places_.number(slot));
    names += str_cat(names.empty() ? "" : ", ", slot.name());
  }
  std::vector<Sighting> sightings;
  const std::string detail = str_cat(format_duration(config_.form_timeout), "; missing: ", names);
  for (const int each : missing) sightings.push_back({each, {Seen::kNotJoined, detail}, form_since});
  return sightings;
}

}  // namespace paceline::coordinator

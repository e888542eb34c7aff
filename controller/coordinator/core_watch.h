#pragma once

// Members that are silent, late, stuck or missing, for CoordinatorCore's own files: from when a member was
// last heard, and what its heartbeats said, to observations. It draws no conclusion. Pure.

#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "controller/api/fault.h"
#include "controller/coordinator/core.h"
#include "controller/coordinator/core_hang.h"
#include "controller/coordinator/core_places.h"

namespace paceline::coordinator {

struct Sighting {
  int slot = 0;
  api::Observation seen;
  TimePoint since;
};

class Watch {
 public:
  // Both outlive it.
  Watch(const CoreConfig& config, const Places& places) : config_(config), places_(places) {}

  // --- what it hears
  void drain_begins(TimePoint now) { drain_since_ = now; }
  void busy(TimePoint now) { busy_at_ = now; }                 // a member of the view evaluates or saves
  void saved(Duration stall) { saves_.add(stall); }            // rank 0's checkpoint took so long
  void pause(Duration duration) { drain_since_ += duration; }  // the coordinator itself was away

  // --- what it sees; `forming`: there is no view
  // For how long a member may be silent (core_silence.h).
  Duration patience_with(const Slot& slot, TimePoint now, bool forming) const;
  std::vector<Sighting> silent(TimePoint now, bool forming) const;
  // In a drain: those that keep the view of this generation for too long.
  std::vector<Sighting> late(TimePoint now, Generation generation) const;
  TimePoint drained_by(const Slot& slot) const;
  // In a running view of a ring: those that take no step any more (core_hang.h). A heartbeat asks, since
  // without one nothing new is known.
  std::vector<Sighting> hung(TimePoint now);
  // In a ring that is asked to stop: whether this member may be frozen or hang already, though it is too soon
  // to say so. Another one saves then what all hold.
  bool may_be_stuck(const Slot& slot, TimePoint now) const;
  // The members without whom there will be no view, where one is formed since `form_since`.
  std::vector<Sighting> missing(TimePoint now, TimePoint form_since) const;

 private:
  std::vector<AtWork> at_work(TimePoint now) const;
  void find_save_that_hangs(std::vector<Sighting>& sightings);
  std::string names_of(std::span<const int> numbers) const;
  std::string hang_text(const Slot& slot, std::span<const int> waiting) const;

  const CoreConfig& config_;
  const Places& places_;
  Saves saves_;
  TimePoint drain_since_{}, busy_at_{};
};

}  // namespace paceline::coordinator

#pragma once

// The core of a job whose members run programs of their own (CoreConfig::listens): it hears of their steps,
// finds stragglers, and decides nothing. A member that has told of no step is waited for by nobody, and
// neither a stream that ends nor silence is evidence of anything: the pods' ends tell how the job goes. The
// job is Running from the beginning to the end. Pure.
//
// The view is made up of those who tell of steps, by rank. It is another one when somebody begins to tell,
// when another member takes a place, and when somebody has told of nothing for kQuiet and is kFarBehind steps
// behind.

#include "base/clock.h"
#include "controller/coordinator/core.h"
#include "controller/coordinator/core_places.h"
#include "controller/coordinator/core_progress.h"
#include "controller/coordinator/core_stragglers.h"

namespace paceline::coordinator {

class Listener {
 public:
  static constexpr Step kFarBehind = 256;
  static constexpr Duration kQuiet = std::chrono::seconds(10);

  // REQUIRES: validate(config) is OK.
  Listener(CoreConfig config, TimePoint now);

  Effects step(const Input& input, TimePoint now);
  Report report(TimePoint now) const;

 private:
  void on(const Attached& in);
  void on(const Received& in);
  void on(const StreamEnded& in);
  template <typename Other>
  void on(const Other&) {}
  void on_heartbeat(Slot& slot, const v1::Heartbeat& heartbeat);
  void count_steps(Slot& slot, const v1::Heartbeat& heartbeat);
  void welcome(const Slot& slot);
  void refuse(StreamId stream, const std::string& reason);
  void leave(Slot& slot);
  void drop_those_behind(Step newest);
  void form_view();
  void note_stragglers();
  bool leads(const Slot& slot) const;  // of those who tell it has the lowest rank: the job's progress is its

  const CoreConfig config_;
  Places places_;
  JobProgress progress_;
  Stragglers stragglers_{true};
  Generation generation_;
  TimePoint began_, now_;
  Effects effects_;  // of the step under way
};

}  // namespace paceline::coordinator

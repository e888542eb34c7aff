#pragma once

// Members of a ring that take no step any more, while their process lives and their heartbeats come: the
// training thread is stuck in a data read, in code of the user's, in a call of the GPU. Pure.
//
// A heartbeat says in which part of which step the training thread is, and since how long by the member's own
// clock; no clock is compared with another one. A member hangs when it is in a part that is its own (input,
// compute, update) for longer than the bound, while another one of the view waits for it in the exchange of
// the same step for longer than the bound. Then others that are in such a part of that step hang, too, from
// half the bound on: the next view would wait for them. A member that has not come into the view hangs when
// it is in its own part of an earlier view's step for longer than the bound: nothing of that step is waited
// for any more.
//
// So nobody hangs in a step that is slow for all, or in an evaluation; and who waits never does. More members
// that hang than wait have a cause in common, such as a storage that is away: starting them anew would not
// help, and nobody is named.
//
// For the only member of a view nobody waits: it hangs, in this view's step or in an earlier one's, beyond
// kAloneFactor times the bound. Rank 0 may hang in a checkpoint, while others wait for the exchange behind
// it: Saves knows for how long such a one takes.
//
// The bound is learnt from the job's own steps: kHangFactor times the longest that any member of the view was
// last seen to take for its own parts, and at least least_hang() of the exchange's time limit: whoever lets
// members wait for longer means it, and before that limit ends the step the culprit is known.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"

namespace paceline::coordinator {

// Longer than what ends by itself as a rule: a pause of the machine, a disk that spins up, a name server that
// is asked again.
inline constexpr Duration kLeastHang = std::chrono::seconds(10);
constexpr Duration least_hang(Duration exchange_timeout) {
  return std::max(kLeastHang, exchange_timeout * 2 / 3);
}
// A step may take a few times as long as the longest of late: another process shares the processors, or a
// file is in no cache. It counts where a step takes more than two seconds.
inline constexpr int kHangFactor = 5;
// A member that is alone holds nobody up, and the job may lose what it holds.
inline constexpr int kAloneFactor = 3;
// A file server that fails over takes a minute and a half.
inline constexpr Duration kLeastSaveHang = std::chrono::minutes(2);
// Until a member has taken so many it does not hang: the first ones of a view warm up.
inline constexpr int kFewSteps = 3;
// A Pace remembers what comes every so many steps: a data read that is slow once in a hundred batches.
inline constexpr int kPaceSteps = 256;

enum class Part : std::uint8_t { kNone, kInput, kCompute, kExchange, kUpdate };
const char* part_name(Part part);

// How long a member takes for its own parts of a step.
class Pace {
 public:
  void add(Duration own);
  // It took steps that nobody here has heard of.
  void took_steps() { steps_ = std::max<std::int64_t>(steps_, kFewSteps); }
  // They were of the view that goes on.
  void took_steps_in_view() {
    took_steps();
    in_view_ = steps_;
  }
  // A new view: what was learnt stays.
  void new_view() { in_view_ = 0; }
  bool is_known() const { return steps_ >= kFewSteps; }
  bool is_known_in_view() const { return in_view_ >= kFewSteps; }
  // The longest of the last kPaceSteps steps at least, and of twice as many at most.
  Duration longest() const;
  Duration last() const { return last_; }

 private:
  Duration block_{}, block_before_{};  // the longest of up to kPaceSteps steps, and of as many before them
  Duration last_{};
  int in_block_ = 0;
  std::int64_t steps_ = 0, in_view_ = 0;
};

// How long rank 0's checkpoints take.
class Saves {
 public:
  void add(Duration stall) { longest_ = std::max(longest_.value_or(Duration::zero()), stall); }
  // A checkpoint hangs, and none has ended well since: what the next rank 0 does there may take as long, and
  // has the storage as its cause.
  void one_hangs() { longest_.reset(); }
  std::optional<Duration> longest() const { return longest_; }
  // A checkpoint that takes longer hangs; nothing: none does.
  std::optional<Duration> bound() const {
    if (!longest_) return std::nullopt;
    return std::max(kLeastSaveHang, kHangFactor * *longest_);
  }

 private:
  std::optional<Duration> longest_;
};

// A member that trains in the view, by its newest heartbeat.
struct AtWork {
  int slot = 0;
  Step step = 0;
  Part part = Part::kNone;
  Duration in_part{};
  bool behind = false;  // it tells of an earlier view yet
  Pace pace;
};

struct Hung {
  std::vector<int> hung, waiting;  // slots, ascending; none hang: both are empty; one alone: nobody waits
};

// `least`: by least_hang().
Duration hang_bound(std::span<const AtWork> members, Duration least);
Hung find_hung(std::span<const AtWork> members, Duration least);

}  // namespace paceline::coordinator

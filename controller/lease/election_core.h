#pragma once

// Leader election over a Lease, as client-go's tools/leaderelection does it, without clock, randomness or
// I/O. Ask next(), do what it says, tell the outcome by on_read() or on_write(), ask again. One thread at a
// time; `now` is a local clock that never goes back, and goes on while the machine is suspended (client-go's
// stands still then, and who wakes up goes on as the leader until its next call).
//
// Other replicas' clocks are never compared with ours: a lease is held for as long as its duration after the
// moment at which *we* saw it change. A leader gives up `renew_deadline` after the moment at which it *began*
// the last renewal that worked. So there is one leader at most, as long as
//   renew_deadline * (1 + x) < lease_duration * (1 - x)
// for clocks whose speeds differ from true time by the part x: 20 % with the defaults. Writes carry the
// version that was read: of two replicas that want the same lease one is refused.
//
// Somebody may delete the lease, or take its holder's name out, while the leader leads on. Who has seen it
// before waits for its duration, and ours at least, from the moment at which it saw it so, unless it was
// given back (release()); the leader makes it again with its next renewal. A replica that never saw it (it
// has just begun, or the lease was made and deleted between two of its looks) can't know of a leader and
// makes it at once: that leader learns of it by its next renewal, reads at once, and leads no more.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "base/clock.h"
#include "controller/lease/lease_record.h"

namespace paceline::lease {

inline constexpr Duration kRenewDeadline = std::chrono::seconds(10);

struct ElectionConfig {
  std::string identity;  // of this process, unique for all time
  std::string address;   // LeaseRecord::address
  Duration lease_duration = std::chrono::seconds(15);
  Duration renew_deadline = kRenewDeadline;
  Duration retry_period = std::chrono::seconds(2);
};
inline constexpr double kJitterFactor = 1.2;  // of those who wait for the lease: 1 to 2.2 times the period

// Empty, or what is wrong: durations must be positive, whole seconds, and each well below the one before it.
std::string config_error(const ElectionConfig& config);

struct Seen {
  LeaseRecord record;
  std::string version;  // for a write that must find it unchanged
};

class ElectionCore {
 public:
  struct Read {};
  struct Write {
    LeaseRecord record;
    std::string version;  // empty: create it
  };
  struct Wait {
    Duration time{};
  };
  struct Lost {
    std::string reason;
  };
  using Action = std::variant<Read, Write, Wait, Lost>;

  // REQUIRES: config_error(config) is empty.
  explicit ElectionCore(ElectionConfig config) : config_(std::move(config)) {}

  // `random` in [0, 1). After Lost there is nothing but Lost.
  Action next(TimePoint now, WallTime wall, double random);

  // Nothing: there is no lease.
  void on_read(std::optional<Seen> seen, TimePoint now);
  // What stands there after our write.
  void on_written(Seen seen, TimePoint now);
  // Somebody was faster: a leader looks at once who that is.
  void on_conflict();
  // Neither read nor written, or not known.
  void on_error(std::string error);

  // May this replica act as the leader at this moment?
  bool leads(TimePoint now) const { return leads_until_ && now < *leads_until_; }
  // The moment at which a leader must have given up; nothing: it is none.
  std::optional<TimePoint> leads_until() const { return leads_until_; }
  // Who holds the lease, as far as seen; empty: nobody.
  const std::string& holder() const { return holder_; }
  // Its address; empty: not known.
  std::string holder_address() const { return seen_ ? seen_->record.address : ""; }
  // What to write on exit, so that the next one needs not wait. Nothing where we don't hold it.
  std::optional<Write> release(TimePoint now, WallTime wall) const;

 private:
  bool free(TimePoint now) const;
  Write make_write(WallTime wall) const;
  void see(std::optional<Seen> seen, TimePoint now);

  ElectionConfig config_;
  bool must_read_ = true;
  bool pause_ = false;  // the last try is over: wait before the next
  std::optional<Seen> seen_;
  bool conflict_ = false;                // the last write met one, and nothing was read since
  std::optional<TimePoint> changed_at_;  // when we saw `seen_` change
  Duration owed_{};                      // to another one, from then on
  std::string holder_, error_;
  TimePoint write_began_{};
  std::optional<TimePoint> leads_until_;
  bool lost_ = false;
};

}  // namespace paceline::lease

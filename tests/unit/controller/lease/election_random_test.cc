// Several replicas with clocks of different speed over one lease, in simulated time: calls are delayed, lost
// before or after they took effect; replicas stand still, die and come back; somebody deletes the lease, but
// never where a replica has not seen it since it began and since the last deletion. At no moment do two of
// them believe that they lead; when the faults end, one leads soon.

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <queue>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "base/rng.h"
#include "base/text.h"
#include "controller/lease/election_core.h"

namespace paceline::lease {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr double kClockError = 0.19;  // below the promised 20 %
constexpr int kReplicas = 4;
constexpr Duration kFaultyTime = seconds(600), kCalmTime = seconds(120);

// The API server's object.
struct Server {
  std::optional<Seen> stored;
  std::uint64_t version = 0;
  absl::StatusOr<Seen> write(const ElectionCore::Write& write) {
    if (!write.version.empty() && !stored) return absl::NotFoundError("gone");
    if (write.version.empty() ? stored.has_value() : !stored || stored->version != write.version) {
      return absl::AbortedError("conflict");
    }
    stored = Seen{write.record, std::to_string(++version)};
    return *stored;
  }
};

struct Replica {
  std::optional<ElectionCore> core;
  double rate = 1;
  Duration offset{};
  std::uint64_t life = 0;  // events of an earlier one are void
  bool saw = false;        // the lease, in this life and since it was last deleted
  TimePoint local(Duration t) const {
    return TimePoint(offset + std::chrono::duration_cast<Duration>(t * rate));
  }
  Duration real(Duration local) const { return std::chrono::duration_cast<Duration>(local / rate); }
};

struct Event {
  Duration at{};
  std::uint64_t order = 0;
  std::function<void()> run;
  bool operator>(const Event& other) const { return std::tie(at, order) > std::tie(other.at, other.order); }
};

class Simulation {
 public:
  explicit Simulation(std::uint64_t seed) : rng_(seed, 0) {
    for (int i = 0; i < kReplicas; ++i) {
      replicas_[i].rate = 1 + kClockError * (2 * static_cast<double>(rng_.uniform()) - 1);
      replicas_[i].offset = seconds(1 + rng_.below(100'000));
      after(milliseconds(rng_.below(3000)), [this, i] { start(i); });
    }
    after(seconds(20), [this] { try_to_delete(); });
  }

  void run_until(Duration end) {
    while (!events_.empty() && events_.top().at <= end) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.at;
      event.run();
      check();
    }
    now_ = end;
    check();
  }
  void calm() { faults_ = false; }
  int leaders() const {
    int count = 0;
    for (const Replica& r : replicas_) count += r.core && r.core->leads(r.local(now_)) ? 1 : 0;
    return count;
  }
  int terms() const { return terms_; }
  int deletions() const { return deletions_; }

 private:
  bool chance(double p) { return faults_ && static_cast<double>(rng_.uniform()) < p; }
  void after(Duration wait, std::function<void()> run) {
    events_.push({now_ + wait, ++order_, std::move(run)});
  }
  Duration latency() {
    if (chance(0.1)) return milliseconds(rng_.below(20'000));
    return milliseconds(1 + rng_.below(50));
  }
  void try_to_delete() {
    if (!faults_) return;
    after(milliseconds(rng_.below(20'000)), [this] { try_to_delete(); });
    if (!server_.stored) return;
    for (const Replica& r : replicas_) {
      if (r.core && !r.saw) return;
    }
    server_.stored.reset();
    ++deletions_;
    for (Replica& r : replicas_) r.saw = false;
  }
  void start(int i) {
    bool any = false;
    for (const Replica& r : replicas_) any = any || r.core;
    if (any && deletions_ > 0 && !server_.stored) {
      return after(milliseconds(100), [this, i] { start(i); });
    }
    ++replicas_[i].life;
    replicas_[i].saw = false;
    replicas_[i].core.emplace(ElectionConfig{.identity = str_cat("r", i, "-", replicas_[i].life)});
    go(i, replicas_[i].life);
  }
  void die(int i) {
    ++replicas_[i].life;
    replicas_[i].core.reset();
    after(milliseconds(rng_.below(20'000)), [this, i] { start(i); });
  }
  void go(int i, std::uint64_t life) {
    Replica& r = replicas_[i];
    if (r.life != life) return;
    if (chance(0.01)) return die(i);
    if (chance(0.02)) {  // it stands still
      after(milliseconds(rng_.below(40'000)), [this, i, life] { go(i, life); });
      return;
    }
    if (chance(0.005)) {  // it ends in order
      if (const auto release = r.core->release(r.local(now_), {})) {
        r.core.reset();
        ++r.life;
        after(latency(), [this, release] { (void)server_.write(*release); });
        after(milliseconds(rng_.below(20'000)), [this, i] { start(i); });
        return;
      }
    }
    const auto action = r.core->next(r.local(now_), {}, static_cast<double>(rng_.uniform()));
    if (std::holds_alternative<ElectionCore::Lost>(action)) return die(i);
    if (const auto* wait = std::get_if<ElectionCore::Wait>(&action)) {
      after(r.real(wait->time), [this, i, life] { go(i, life); });
    } else if (std::holds_alternative<ElectionCore::Read>(action)) {
      after(latency(), [this, i, life] {
        answer(i, life,
               [this, i, deletions = deletions_, seen = server_.stored](ElectionCore& core, TimePoint now) {
                 core.on_read(seen, now);
                 if (seen && deletions == deletions_) replicas_[i].saw = true;
               });
      });
    } else {
      call_write(i, life, std::get<ElectionCore::Write>(action));
    }
  }
  void call_write(int i, std::uint64_t life, ElectionCore::Write write) {
    if (chance(0.1)) return fail(i, life);  // lost on its way
    after(latency(), [this, i, life, write = std::move(write)] {
      const absl::StatusOr<Seen> seen = server_.write(write);
      if (chance(0.1)) return fail(i, life);  // done, but the answer is lost
      answer(i, life, [this, i, deletions = deletions_, seen](ElectionCore& core, TimePoint now) {
        if (absl::IsNotFound(seen.status())) return core.on_read(std::nullopt, now);
        if (!seen.ok()) return core.on_conflict();
        const bool led = core.leads(now);
        core.on_written(*seen, now);
        if (deletions == deletions_) replicas_[i].saw = true;
        if (!led && core.leads(now)) ++terms_;
      });
    });
  }
  void answer(int i, std::uint64_t life, std::function<void(ElectionCore&, TimePoint)> tell) {
    after(latency(), [this, i, life, tell = std::move(tell)] {
      Replica& r = replicas_[i];
      if (r.life != life) return;
      tell(*r.core, r.local(now_));
      go(i, life);
    });
  }
  void fail(int i, std::uint64_t life) {
    after(latency(), [this, i, life] {
      if (replicas_[i].life != life) return;
      replicas_[i].core->on_error("broken");
      go(i, life);
    });
  }
  void check() { ASSERT_LE(leaders(), 1) << "at " << format_duration(now_); }

  Rng rng_;
  bool faults_ = true;
  Duration now_{};
  std::uint64_t order_ = 0;
  int terms_ = 0, deletions_ = 0;
  Server server_;
  Replica replicas_[kReplicas];
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

TEST(ElectionRandomTest, NeverTwoLeadersAndAlwaysOneInTheEnd) {
  int terms = 0, deletions = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(str_cat("seed ", seed));
    Simulation simulation(seed);
    simulation.run_until(kFaultyTime);
    simulation.calm();
    simulation.run_until(kFaultyTime + kCalmTime);
    EXPECT_EQ(simulation.leaders(), 1);
    terms += simulation.terms();
    deletions += simulation.deletions();
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(terms, 150 * 5) << "the lease must change hands often, or this shows nothing";
  EXPECT_GT(deletions, 150 * 5);
}

}  // namespace
}  // namespace paceline::lease

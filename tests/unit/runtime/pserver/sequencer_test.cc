#include "runtime/pserver/sequencer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/text.h"
#include "runtime/collective/fault.h"

namespace paceline::pserver {
namespace {

// What the log says, in a line per entry.
class Log {
 public:
  Log(int workers, int servers, v1::ParameterServerSpec mode, Step steps = 2)
      : workers_(workers), servers_(servers), sequencer_(options()) {
    mode.set_workers(workers);
    mode.set_servers(servers);
    if (mode.gradients_per_step() == 0) mode.set_gradients_per_step(workers);
    if (mode.units_per_step() == 0) mode.set_units_per_step(workers);
    PolicyStart start;
    start.total_steps = steps;
    auto policy = make_policy(mode, start);
    EXPECT_TRUE(policy.ok()) << policy.status();
    sequencer_.begin(*std::move(policy), start);
    for (int s = 0; s < servers; ++s) sequencer_.ready(s);
  }
  Sequencer& operator*() { return sequencer_; }
  Sequencer* operator->() { return &sequencer_; }

  void commit(int worker, Unit unit, CommitMessage message = {1, 1, {}}) {
    EXPECT_TRUE(sequencer_.committed(worker, unit, message).ok());
    for (int s = servers_ - 1; s >= 0; --s) EXPECT_TRUE(sequencer_.held(worker, unit, s).ok());
  }
  std::string text() {
    std::string all;
    for (const LogStep& step : sequencer_.take()) {
      const LogEntry& e = step.entry;
      if (e.kind == LogEntry::Kind::kUpdate) {
        all += str_cat("update ", e.version, ":");
        for (const Contributor& each : e.contributors) {
          all += str_cat(" ", each.worker, each.aside ? "a" : "", each.last ? "" : "-");
        }
      } else if (e.kind == LogEntry::Kind::kSnapshot) {
        all += str_cat("snapshot of ", step.snapshot.version, ", step ", step.snapshot.step);
      } else {
        all +=
            str_cat("turn ", e.worker, step.turn.finished ? " finished" : str_cat(" unit ", step.turn.unit),
                    " at ", step.turn.version, e.keeps ? " keeps" : "", step.turn.dropped ? " dropped" : "");
        last_turn_ = step.turn;
        if (!step.turn.finished) given_.emplace_back(e.worker, step.turn.unit);
      }
      all += "\n";
    }
    return all;
  }
  const TurnResult& last_turn() const { return last_turn_; }
  // Worker and unit of the turns in the texts since the last call.
  std::vector<std::pair<int, Unit>> take_given() { return std::exchange(given_, {}); }

 private:
  SequencerOptions options() const {
    SequencerOptions options{workers_, servers_, {}};
    options.optimizer.set_learning_rate(0.5);
    return options;
  }
  int workers_, servers_;
  Sequencer sequencer_;
  TurnResult last_turn_;
  std::vector<std::pair<int, Unit>> given_;
};

v1::ParameterServerSpec mode(v1::ParameterServerSpec::Synchronization synchronization) {
  v1::ParameterServerSpec spec;
  spec.set_synchronization(synchronization);
  return spec;
}

TEST(Sequencer, SynchronousSteps) {
  Log log(2, 2, mode(v1::ParameterServerSpec::SYNCHRONOUS));
  log->joined(1);
  log->joined(0);
  EXPECT_EQ(log.text(), "turn 1 unit 1 at 0\nturn 0 unit 0 at 0\n");
  log.commit(1, 1, {3, 8, {}});
  EXPECT_EQ(log.text(), "");
  EXPECT_EQ(log->queue(), 1);
  log.commit(0, 0, {2, 8, {}});
  EXPECT_EQ(log.text(), "update 1: 0 1\nturn 0 unit 2 at 1\nturn 1 unit 3 at 1\n");
  EXPECT_EQ(log->queue(), 0);
  EXPECT_EQ(log.last_turn().loss_sum, 5);
  EXPECT_EQ(log.last_turn().samples, 16);
  EXPECT_EQ(log.last_turn().gradients, 2);
  EXPECT_EQ(log.last_turn().staleness, 0);
  EXPECT_EQ(log.last_turn().learning_rate, 0.5);
  EXPECT_EQ(log.last_turn().step, 1);
  log.commit(0, 2);
  log.commit(1, 3);
  EXPECT_EQ(log.text(), "update 2: 0 1\nturn 0 finished at 2\nturn 1 finished at 2\n");
}

TEST(Sequencer, AGradientCountsOnceAllServersHoldIt) {
  Log log(1, 3, mode(v1::ParameterServerSpec::SYNCHRONOUS));
  log->joined(0);
  (void)log.text();
  EXPECT_TRUE(log->held(0, 0, 2).ok());
  EXPECT_TRUE(log->committed(0, 0, {}).ok());
  EXPECT_TRUE(log->held(0, 0, 0).ok());
  EXPECT_EQ(log.text(), "");
  EXPECT_EQ(log->waits_for(0), 2) << "server 1 is rank 2";
  EXPECT_FALSE(log->held(0, 0, 2).ok()) << "twice";
  EXPECT_FALSE(log->held(0, 1, 1).ok()) << "another unit";
  EXPECT_FALSE(log->committed(0, 0, {}).ok()) << "twice";
  EXPECT_TRUE(log->held(0, 0, 1).ok());
  EXPECT_EQ(log.text(), "update 1: 0\nturn 0 unit 1 at 1\n");
}

// What a server or a worker says of a gradient, in any order and some of it again, now or much later: what is
// said again is refused, and the log is that of a training in which nothing was.
TEST(Sequencer, RepeatedReportCountsOnce) {
  struct Word {
    int worker;
    Unit unit;
    int server;  // -1: the worker's own
    bool operator==(const Word&) const = default;
  };
  const auto say = [](Log& to, const Word& word) {
    return word.server < 0 ? to->committed(word.worker, word.unit, {1, 1, {}})
                           : to->held(word.worker, word.unit, word.server);
  };
  std::int64_t refused = 0, refused_within_a_turn = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(str_cat("seed ", seed));
    Rng rng(seed, 0);
    const int workers = static_cast<int>(1 + rng.below(4)), servers = static_cast<int>(1 + rng.below(3));
    v1::ParameterServerSpec spec = mode(static_cast<v1::ParameterServerSpec::Synchronization>(rng.below(3)));
    if (spec.synchronization() == v1::ParameterServerSpec::SYNCHRONOUS) {
      spec.set_gradients_per_step(
          static_cast<std::int64_t>(1 + rng.below(static_cast<std::uint64_t>(workers))));
      if (rng.below(2) == 0) spec.set_units_per_step(spec.gradients_per_step());  // else samples are dropped
    }
    spec.set_staleness(static_cast<std::int64_t>(rng.below(3)));
    Log log(workers, servers, spec, 6), plain(workers, servers, spec, 6);
    for (int w = 0; w < workers; ++w) {
      log->joined(w);
      plain->joined(w);
    }
    std::vector<Word> to_say, said;
    const auto compare = [&] {
      EXPECT_EQ(log.text(), plain.text());
      for (const auto& [worker, unit] : log.take_given()) {
        for (int server = -1; server < servers; ++server) to_say.push_back({worker, unit, server});
      }
    };
    compare();
    while (!to_say.empty() && !::testing::Test::HasFailure()) {
      if (!said.empty() && rng.below(2) == 0) {
        const Word again = said[said.size() - 1 - rng.below(std::min<std::size_t>(said.size(), 12))];
        // A unit that was dropped is given out again: that is no second word.
        if (std::find(to_say.begin(), to_say.end(), again) != to_say.end()) continue;
        EXPECT_EQ(say(log, again).code(), absl::StatusCode::kInvalidArgument);
        EXPECT_EQ(log.text(), "") << "what is refused does nothing";
        ++refused;
        refused_within_a_turn += std::any_of(to_say.begin(), to_say.end(), [&](const Word& word) {
          return word.worker == again.worker && word.unit == again.unit;
        });
        continue;
      }
      const auto next = to_say.begin() + static_cast<std::ptrdiff_t>(rng.below(to_say.size()));
      const Word word = *next;
      to_say.erase(next);
      EXPECT_TRUE(say(log, word).ok());
      EXPECT_TRUE(say(plain, word).ok());
      said.push_back(word);
      compare();
    }
    EXPECT_TRUE(log->finished());
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(refused_within_a_turn, 1000) << "before the gradient is whole";
}

TEST(Sequencer, UnfinishedGradientOfALeaverDoesNotCount) {
  Log log(2, 2, mode(v1::ParameterServerSpec::ASYNCHRONOUS));
  log->joined(0);
  log->joined(1);
  (void)log.text();
  EXPECT_TRUE(log->committed(1, 1, {}).ok());
  EXPECT_TRUE(log->held(1, 1, 0).ok());
  log->left(1);
  EXPECT_TRUE(log->held(1, 1, 1).ok()) << "the other server's word crossed the news";
  EXPECT_EQ(log.text(), "");
  log->left(1);
  log.commit(0, 0);
  EXPECT_EQ(log.text().substr(0, 12), "update 1: 0\n");
}

TEST(Sequencer, AsynchronousStalenessAndSums) {
  Log log(2, 1, mode(v1::ParameterServerSpec::ASYNCHRONOUS), 4);
  log->joined(0);
  log->joined(1);
  (void)log.text();
  log.commit(0, 0, {1, 1, {}});
  (void)log.text();
  log.commit(0, log.last_turn().unit, {2, 1, {}});
  (void)log.text();
  EXPECT_EQ(log.last_turn().updates, 1);
  log.commit(1, 1, {4, 1, {}});
  (void)log.text();
  EXPECT_EQ(log.last_turn().staleness, 2);
  EXPECT_EQ(log.last_turn().updates, 3);
  EXPECT_EQ(log.last_turn().loss_sum, 7);
}

TEST(Sequencer, ALateGradientIsDropped) {
  v1::ParameterServerSpec backup = mode(v1::ParameterServerSpec::SYNCHRONOUS);
  backup.set_gradients_per_step(2);
  backup.set_units_per_step(2);
  Log log(3, 1, backup, 5);
  for (int w = 0; w < 3; ++w) log->joined(w);
  EXPECT_EQ(log.text(), "turn 0 unit 0 at 0\nturn 1 unit 1 at 0\nturn 2 unit 4 at 0\n");
  log.commit(0, 0);
  log.commit(1, 1);
  EXPECT_EQ(log.text(), "update 1: 0 1\nturn 0 unit 2 at 1\nturn 1 unit 3 at 1\n");
  log.commit(2, 4, {100, 8, {}});
  EXPECT_EQ(log.text(), "turn 2 unit 6 at 1 dropped\n") << "it goes on with the present version";
  EXPECT_EQ(log.last_turn().loss_sum, 2) << "the update's, to which it came too late";
  log.commit(1, 3);
  log.commit(2, 6);
  EXPECT_EQ(log.text().substr(0, 14), "update 2: 1 2\n");
  EXPECT_EQ(log.last_turn().loss_sum, 2);
}

TEST(Sequencer, WishesStayAndTheTargetEndsIt) {
  Log log(2, 1, mode(v1::ParameterServerSpec::ASYNCHRONOUS), 50);
  log->joined(0);
  log->joined(1);
  (void)log.text();
  log.commit(1, 1, {1, 1, {.stop = true, .save = true}});
  (void)log.text();
  EXPECT_TRUE(log.last_turn().agreed.stop);
  EXPECT_FALSE(log.last_turn().agreed.save) << "only worker 0 saves";
  log.commit(0, 0, {1, 1, {.save = true}});
  (void)log.text();
  EXPECT_TRUE(log.last_turn().agreed.stop);
  EXPECT_TRUE(log.last_turn().agreed.save);
  EXPECT_TRUE(log->wished(0, {.target_reached = true}).ok());
  EXPECT_EQ(log.text(), "") << "both compute";
  const Unit unit = log.last_turn().unit;
  log.commit(0, unit);
  EXPECT_EQ(log.text(), "turn 0 finished at 2 dropped\n");
  EXPECT_TRUE(log.last_turn().agreed.target_reached);
}

TEST(Sequencer, NamesWhoIsLate) {
  Log log(3, 2, mode(v1::ParameterServerSpec::SYNCHRONOUS));
  EXPECT_EQ(log->waits_for(1), 0) << "who has not joined";
  for (int w = 0; w < 3; ++w) log->joined(w);
  (void)log.text();
  log.commit(0, 0);
  log.commit(1, 1);
  EXPECT_EQ(log->waits_for(0), 2);
  Sequencer nothing({.workers = 2, .servers = 2, .optimizer = {}});
  EXPECT_EQ(nothing.waits_for(1), 0);
  EXPECT_EQ(nothing.waits_for(0), 2) << "the first server that is not ready";
  EXPECT_EQ(nothing.snapshot().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(Sequencer, SnapshotsAreEntries) {
  Log log(1, 1, mode(v1::ParameterServerSpec::SYNCHRONOUS), 5);
  log->joined(0);
  (void)log.text();
  log.commit(0, 0);
  EXPECT_TRUE(log->snapshot().ok());
  EXPECT_EQ(log.text(), "update 1: 0\nturn 0 unit 1 at 1\nsnapshot of 1, step 1\n");
}

}  // namespace
}  // namespace paceline::pserver

// All ranks of every schedule, interpreted in memory over bounded queues.

#include "runtime/collective/schedule.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "runtime/collective/plan.h"

namespace paceline::collective {
namespace {

// An element's value: which ranks it holds, and how it was combined. Combining a rank twice is an error of
// the schedule.
struct Combined {
  std::multiset<int> ranks;
  std::string tree;
};

using Symbol = std::shared_ptr<const Combined>;  // each message is a copy of many

Symbol join(const Symbol& a, const Symbol& b) {
  Combined sum = *a;
  sum.ranks.insert(b->ranks.begin(), b->ranks.end());
  sum.tree = "(" + a->tree + "+" + b->tree + ")";
  return std::make_shared<Combined>(std::move(sum));
}

using Array = std::vector<Symbol>;

// The oracle runs a rank's steps one after the other: a round ends when its send was queued and its message
// was received.
class Interpreter {
 public:
  Interpreter(std::vector<Schedule> schedules, std::size_t count, std::size_t queue_bound)
      : schedules_(std::move(schedules)), bound_(queue_bound), states_(schedules_.size()) {
    for (std::size_t r = 0; r < states_.size(); ++r) {
      for (std::size_t i = 0; i < count; ++i)
        states_[r].data.push_back(
            std::make_shared<Combined>(Combined{{static_cast<int>(r)}, std::to_string(r)}));
    }
  }

  // False on deadlock.
  bool run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t r = 0; r < states_.size(); ++r) {
        while (advance(static_cast<int>(r))) moved = true;
      }
    }
    for (std::size_t r = 0; r < states_.size(); ++r) {
      if (states_[r].step != schedules_[r].steps.size()) return false;
    }
    for (const auto& [link, queue] : queues_) {
      if (!queue.empty()) return false;  // a send without its receive
    }
    return true;
  }

  const Array& data(int r) const { return states_[static_cast<std::size_t>(r)].data; }
  std::size_t sent(int r) const { return states_[static_cast<std::size_t>(r)].sent; }

 private:
  struct State {
    Array data;
    std::map<int, std::vector<Symbol>> staged;
    std::size_t step = 0;
    bool send_done = false, receive_done = false;
    std::size_t sent = 0;
    Array outgoing;
  };

  bool advance(int r) {
    State& state = states_[static_cast<std::size_t>(r)];
    const std::vector<Step>& steps = schedules_[static_cast<std::size_t>(r)].steps;
    if (state.step == steps.size()) return false;
    const Step& step = steps[state.step];
    bool moved = false;
    if (!state.send_done) {
      auto& queue = queues_[{r, step.send_to}];
      if (step.send_to < 0) {
        state.send_done = true;
      } else if (queue.size() < bound_) {
        queue.emplace_back(state.data.begin() + static_cast<std::ptrdiff_t>(step.send.begin),
                           state.data.begin() + static_cast<std::ptrdiff_t>(step.send.end));
        state.sent += step.send.size();
        state.send_done = moved = true;
      }
    }
    if (state.send_done && !state.receive_done && receive(r, step)) state.receive_done = moved = true;
    if (state.send_done && state.receive_done) {
      ++state.step;
      state.send_done = state.receive_done = false;
      return true;
    }
    return moved;
  }

  bool receive(int r, const Step& step) {
    State& state = states_[static_cast<std::size_t>(r)];
    if (step.action == Action::kFold) {
      fold(r, step);
      return true;
    }
    if (step.receive_from < 0) return true;
    auto& queue = queues_[{step.receive_from, r}];
    if (queue.empty()) return false;
    const Array message = queue.front();
    queue.pop_front();
    EXPECT_EQ(message.size(), step.receive.size());
    for (std::size_t i = 0; i < message.size(); ++i) {
      Symbol& own = state.data[step.receive.begin + i];
      if (step.action == Action::kCopy) own = message[i];
      if (step.action == Action::kReduce)
        own = step.receive_from < r ? join(message[i], own) : join(own, message[i]);
      if (step.action == Action::kStage) state.staged[step.receive_from].push_back(message[i]);
    }
    return true;
  }

  void fold(int r, const Step& step) {
    State& state = states_[static_cast<std::size_t>(r)];
    const Array own = state.data;
    for (std::size_t i = 0; i < step.receive.size(); ++i) {
      Symbol sum;
      for (int from = 0; from < static_cast<int>(states_.size()); ++from) {
        const Symbol& next = from == r ? own[step.receive.begin + i] : state.staged[from].at(i);
        sum = sum != nullptr ? join(sum, next) : next;
      }
      state.data[step.receive.begin + i] = sum;
    }
    state.staged.clear();
  }

  std::vector<Schedule> schedules_;
  std::size_t bound_;
  std::vector<State> states_;
  std::map<std::pair<int, int>, std::deque<Array>> queues_;
};

constexpr Method kMethods[] = {Method::kRing, Method::kRecursiveDoubling, Method::kHalvingDoubling,
                               Method::kDirectBlocks, Method::kDirectWhole};

std::vector<std::size_t> sizes(int world) {
  const auto n = static_cast<std::size_t>(world);
  return {0, 1, n - 1, n, n + 1, 53, 8 * n + 3};
}

void expect_complete(const Array& data, int world, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    ASSERT_EQ(data[i]->ranks.size(), static_cast<std::size_t>(world))
        << "element " << i << ": " << data[i]->tree;
    for (int r = 0; r < world; ++r)
      ASSERT_EQ(data[i]->ranks.count(r), 1u) << "element " << i << ": " << data[i]->tree;
  }
}

bool power_of_two(int n) {
  return (n & (n - 1)) == 0;
}

class Schedules : public ::testing::TestWithParam<int> {};

TEST_P(Schedules, AllReduceCombinesEachRankOnceInOneTree) {
  const int world = GetParam();
  for (Method method : kMethods) {
    for (std::size_t count : sizes(world)) {
      for (std::size_t piece : {kNoPieces, std::size_t{3}}) {
        SCOPED_TRACE(std::string(method_name(method)) + " count " + std::to_string(count) + " piece " +
                     std::to_string(piece));
        std::vector<Schedule> schedules;
        for (int r = 0; r < world; ++r)
          schedules.push_back(all_reduce_schedule(method, r, world, count, piece));
        Interpreter interpreter(schedules, count, 1);
        ASSERT_TRUE(interpreter.run()) << "deadlock, or a message nobody received";
        std::size_t total = 0;
        for (int r = 0; r < world; ++r) {
          expect_complete(interpreter.data(r), world, 0, count);
          for (std::size_t i = 0; i < count; ++i)
            ASSERT_EQ(interpreter.data(r)[i]->tree, interpreter.data(0)[i]->tree);
          total += interpreter.sent(r);
        }
        const std::size_t optimum = 2 * static_cast<std::size_t>(world - 1) * count;
        if (method == Method::kRing || method == Method::kDirectBlocks ||
            (method == Method::kHalvingDoubling && power_of_two(world))) {
          EXPECT_EQ(total, optimum);
        }
      }
    }
  }
}

TEST_P(Schedules, DirectFoldsInRankOrder) {
  const int world = GetParam();
  std::string expected = "0";
  for (int r = 1; r < world; ++r) expected = "(" + expected + "+" + std::to_string(r) + ")";
  for (Method method : {Method::kDirectBlocks, Method::kDirectWhole}) {
    std::vector<Schedule> schedules;
    for (int r = 0; r < world; ++r) schedules.push_back(all_reduce_schedule(method, r, world, 40, 2));
    Interpreter interpreter(schedules, 40, 1);
    ASSERT_TRUE(interpreter.run());
    for (const Symbol& symbol : interpreter.data(0)) ASSERT_EQ(symbol->tree, expected);
  }
}

TEST_P(Schedules, ReduceScatterGatherBroadcastBarrier) {
  const int world = GetParam();
  for (std::size_t count : sizes(world)) {
    for (bool direct : {false, true}) {
      std::vector<Schedule> scatter, gather;
      for (int r = 0; r < world; ++r) {
        scatter.push_back(reduce_scatter_schedule(direct, r, world, count, 3));
        gather.push_back(all_gather_schedule(direct, r, world, count));
      }
      Interpreter scattered(scatter, count, 1), gathered(gather, count, 1);
      ASSERT_TRUE(scattered.run());
      ASSERT_TRUE(gathered.run());
      for (int r = 0; r < world; ++r) {
        expect_complete(scattered.data(r), world, block_begin(count, world, r),
                        block_begin(count, world, r + 1));
        for (int b = 0; b < world; ++b) {
          for (std::size_t i = block_begin(count, world, b); i < block_begin(count, world, b + 1); ++i) {
            ASSERT_EQ(gathered.data(r)[i]->tree, std::to_string(b));
          }
        }
      }
    }
    for (int root = 0; root < world; ++root) {
      std::vector<Schedule> broadcast;
      for (int r = 0; r < world; ++r) broadcast.push_back(broadcast_schedule(r, world, count, root));
      Interpreter interpreter(broadcast, count, 1);
      ASSERT_TRUE(interpreter.run());
      for (int r = 0; r < world; ++r) {
        for (const Symbol& symbol : interpreter.data(r)) ASSERT_EQ(symbol->tree, std::to_string(root));
      }
    }
  }
}

// Who knows of whom after a barrier's rounds: everybody of everybody.
TEST_P(Schedules, BarrierReachesEverybody) {
  const int world = GetParam();
  std::vector<std::set<int>> known(static_cast<std::size_t>(world));
  for (int r = 0; r < world; ++r) known[static_cast<std::size_t>(r)] = {r};
  const std::size_t rounds = barrier_schedule(0, world).steps.size();
  for (std::size_t k = 0; k < rounds; ++k) {
    auto next = known;
    for (int r = 0; r < world; ++r) {
      const Step step = barrier_schedule(r, world).steps[k];
      const auto& from = known[static_cast<std::size_t>(step.receive_from)];
      ASSERT_EQ(barrier_schedule(step.receive_from, world).steps[k].send_to, r);
      next[static_cast<std::size_t>(r)].insert(from.begin(), from.end());
    }
    known = next;
  }
  for (const auto& set : known) EXPECT_EQ(set.size(), static_cast<std::size_t>(world));
}

INSTANTIATE_TEST_SUITE_P(Worlds, Schedules, ::testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 16));

TEST(Partners, CoverEverySchedule) {
  for (int world : {33, 48, 64}) {
    for (int r = 0; r < world; ++r) {
      const std::vector<int> partners = partners_of(r, world);
      for (Method method : {Method::kRing, Method::kRecursiveDoubling, Method::kHalvingDoubling}) {
        for (const Step& step : all_reduce_schedule(method, r, world, 100).steps) {
          for (int peer : {step.send_to, step.receive_from}) {
            ASSERT_TRUE(peer < 0 || std::count(partners.begin(), partners.end(), peer) == 1)
                << method_name(method);
          }
        }
      }
      for (int p : partners) {
        const std::vector<int> theirs = partners_of(p, world);
        ASSERT_EQ(std::count(theirs.begin(), theirs.end(), r), 1) << "links have two ends";
      }
    }
  }
}

TEST(Plan, BarrierRoundsWaitForEachOther) {
  const Plan plan = make_plan(barrier_schedule(0, 8));
  EXPECT_EQ(plan.send_after, (std::vector<int>{-1, 0, 1}));
}

TEST(Plan, RecursiveDoublingWritesOnlyWhatWasSent) {
  const Plan plan = make_plan(all_reduce_schedule(Method::kRecursiveDoubling, 0, 4, 10));
  EXPECT_EQ(plan.send_after, (std::vector<int>{-1, 0}));
  EXPECT_EQ(plan.write_after, (std::vector<int>{0, 1}));
}

}  // namespace
}  // namespace paceline::collective

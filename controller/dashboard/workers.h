#pragma once

// A few threads that do what a server's own thread must not wait for. Bounded: kMostWaiting tasks wait.
// Tasks may have a lane: that of whoever they are for. Lanes take turns, and none has more than half of the
// threads, or of the tasks that wait, so that those of one keep nobody else's waiting for long. Thread-safe.
// Destruction ends the tasks that wait without doing them, and waits for those under way.

#include <algorithm>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/guarded.h"

namespace paceline::dashboard {

class Workers {
 public:
  using Task = std::function<void(const std::stop_token& stop)>;
  static constexpr std::size_t kMostWaiting = 256;

  explicit Workers(int threads) : most_of_lane_((threads + 1) / 2) {
    for (int i = 0; i < threads; ++i)
      threads_.emplace_back([this](const std::stop_token& stop) { run(stop); });
  }
  ~Workers() {
    for (std::jthread& thread : threads_) thread.request_stop();
    (void)lanes_.lock();  // wakes them
  }

  // False: too many wait. `whose`: the lane; empty: nobody's, without a bound of its own.
  bool post(Task task, const std::string& whose = "") {
    auto lanes = lanes_.lock();
    std::size_t waiting = 0;
    for (const Lane& lane : *lanes) waiting += lane.waiting.size();
    auto lane = std::ranges::find(*lanes, whose, &Lane::whose);
    const std::size_t of_lane = lane == lanes->end() || whose.empty() ? 0 : lane->waiting.size();
    if (waiting >= kMostWaiting || of_lane >= kMostWaiting / 2) return false;
    if (lane == lanes->end()) lane = lanes->insert(lane, Lane{.whose = whose});
    lane->waiting.push_back(std::move(task));
    return true;
  }

 private:
  struct Lane {
    std::string whose;
    std::deque<Task> waiting = {};
    int under_way = 0;
  };
  using Lanes = std::list<Lane>;  // of those with tasks; the one whose turn was last is the last

  bool may_go_on(const Lane& lane) const {
    return !lane.waiting.empty() && (lane.whose.empty() || lane.under_way < most_of_lane_);
  }

  void run(const std::stop_token& stop) {
    const auto goes_on = [this](const Lane& lane) { return may_go_on(lane); };
    while (!stop.stop_requested()) {
      Task task;
      Lanes::iterator lane;
      {
        auto lanes = lanes_.lock_when(
            [&](const Lanes& all) { return std::ranges::any_of(all, goes_on) || stop.stop_requested(); },
            std::chrono::seconds(10));
        lane = std::ranges::find_if(*lanes, goes_on);
        if (lane == lanes->end() || stop.stop_requested()) continue;
        task = std::move(lane->waiting.front());
        lane->waiting.pop_front();
        ++lane->under_way;
        lanes->splice(lanes->end(), *lanes, lane);
      }
      task(stop);
      task = nullptr;
      auto lanes = lanes_.lock();
      if (--lane->under_way == 0 && lane->waiting.empty()) lanes->erase(lane);
    }
  }

  const int most_of_lane_;  // threads
  Guarded<Lanes> lanes_;
  std::vector<std::jthread> threads_;
};

}  // namespace paceline::dashboard

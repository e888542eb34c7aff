#pragma once

// A few threads that do what a server's own thread must not wait for. Bounded: kMostWaiting tasks wait.
// Thread-safe. Destruction ends the tasks that wait without doing them, and waits for those under way.

#include <cstddef>
#include <deque>
#include <functional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "base/guarded.h"

namespace paceline::dashboard {

class Workers {
 public:
  using Task = std::function<void(const std::stop_token& stop)>;
  static constexpr std::size_t kMostWaiting = 256;

  explicit Workers(int threads) {
    for (int i = 0; i < threads; ++i)
      threads_.emplace_back([this](const std::stop_token& stop) { run(stop); });
  }
  ~Workers() {
    for (std::jthread& thread : threads_) thread.request_stop();
    (void)tasks_.lock();  // wakes them
  }

  // False: too many wait.
  bool post(Task task) {
    auto tasks = tasks_.lock();
    if (tasks->size() >= kMostWaiting) return false;
    tasks->push_back(std::move(task));
    return true;
  }

 private:
  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      Task task;
      {
        auto tasks =
            tasks_.lock_when([&](const auto& waiting) { return !waiting.empty() || stop.stop_requested(); },
                             std::chrono::seconds(10));
        if (tasks->empty() || stop.stop_requested()) continue;
        task = std::move(tasks->front());
        tasks->pop_front();
      }
      task(stop);
    }
  }

  Guarded<std::deque<Task>> tasks_;
  std::vector<std::jthread> threads_;
};

}  // namespace paceline::dashboard

#pragma once

// A bounded set of threads for work that mostly waits: creating pods. Thread-safe; callers' batches share the
// threads.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace paceline::reconcile {

class Parallel {
 public:
  // With no threads, callers do all by themselves.
  explicit Parallel(int threads);
  ~Parallel();
  Parallel(const Parallel&) = delete;
  Parallel& operator=(const Parallel&) = delete;

  // Calls work(0) ... work(count - 1), some at the same time, the caller's thread helping; returns when all
  // have returned.
  void run(std::size_t count, const std::function<void(std::size_t)>& work);

 private:
  struct Batch;
  // Does one piece of the oldest batch that has some. False: there is none.
  bool do_one(std::unique_lock<std::mutex>& lock, Batch* only);

  std::mutex mutex_;
  std::condition_variable_any more_;
  std::condition_variable done_;
  std::deque<Batch*> batches_;  // with pieces left
  std::vector<std::jthread> threads_;
};

// As Kubernetes' controllers create pods: one, then twice as many with every batch that went well, at most
// `largest`, in order. `create` says whether to go on; after a batch in which one didn't, no other begins.
// Returns how many were called.
std::size_t slow_start(Parallel& parallel, std::size_t count, std::size_t largest,
                       const std::function<bool(std::size_t)>& create);

}  // namespace paceline::reconcile

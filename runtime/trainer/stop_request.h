#pragma once

// Somebody asks this member to stop (SIGTERM, a test). Thread-safe.
//
// request() is a wish: the members agree on a step after which all of them stop. expire() is the end of
// patience: whatever the training thread waits for ends at once. What it saves meanwhile is not interrupted:
// whoever would end the process asks saving() first.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "base/guarded.h"

namespace paceline::trainer {

class StopRequest {
 public:
  void request() { requested_.store(true, std::memory_order_relaxed); }
  bool requested() const { return requested_.load(std::memory_order_relaxed); }

  void expire() {
    request();
    expired_.store(true, std::memory_order_release);
    std::shared_ptr<const Hook> hook;
    {
      auto hooks = hooks_.lock();
      hook = hooks->hook;
      ++hooks->running;
    }
    if (hook != nullptr) (*hook)();
    --hooks_.lock()->running;
  }
  bool expired() const { return expired_.load(std::memory_order_acquire); }

  // While one lives, a checkpoint or the model is being written.
  class Saving {
   public:
    explicit Saving(StopRequest& request) : request_(request) { ++request_.saving_; }
    ~Saving() { --request_.saving_; }
    Saving(const Saving&) = delete;
    Saving& operator=(const Saving&) = delete;

   private:
    StopRequest& request_;
  };
  bool saving() const { return saving_.load() > 0; }
  // Some more of it was written (progress_file_store.h), or has come to be written; counted, so that one that
  // goes on is known.
  void moved() { moves_.fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t moves() const { return moves_.load(std::memory_order_relaxed); }

  // Called by expire(), in its thread, perhaps while this returns; at once where it has expired. When this
  // returns the hook that was there before runs no more: so not from a hook.
  using Hook = std::function<void()>;
  void on_expire(Hook hook) {
    auto shared = hook == nullptr ? nullptr : std::make_shared<const Hook>(std::move(hook));
    {
      auto hooks = hooks_.lock_when([](const Hooks& h) { return h.running == 0; }, Duration::max());
      hooks->hook = shared;
    }
    if (expired() && shared != nullptr) (*shared)();
  }

 private:
  struct Hooks {
    std::shared_ptr<const std::function<void()>> hook;
    int running = 0;
  };
  std::atomic<bool> requested_{false};
  std::atomic<bool> expired_{false};
  std::atomic<int> saving_{0};
  std::atomic<std::uint64_t> moves_{0};
  Guarded<Hooks> hooks_;
};

}  // namespace paceline::trainer

#pragma once

// Sees a call of NVIDIA's libraries that does not return, which nobody else can tell where no other member
// waits for this process: its heartbeats go on.
//
// Idea: a call has one of a few places while it is under way, which it takes by one exchange of an atomic: no
// lock, no clock, nothing allocated. A thread looks at the places once a second. What it finds in the same
// call at more looks than are allowed is stuck: looks are counted, and no time is read, so that a process
// that was stopped in a call has not been in it for that. Questions whether a GPU is done yet are short
// calls, each a new one.

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/guarded.h"
#include "runtime/cuda/polling.h"

namespace paceline::cuda {

// Calls under way. Any thread, but for look(). Where more threads are in calls than there are places, the
// last to come are not seen.
class CallPlaces {
 private:
  struct alignas(64) Place {
    std::atomic<const char*> call{nullptr};  // null: nobody's
    std::atomic<std::uint64_t> ended{0};     // calls that had it
  };

 public:
  static constexpr std::size_t kPlaces = 16;

  // As long as it lives its thread is in the call. `name` outlives the places.
  class Call {
   public:
    Call(CallPlaces& places, const char* name) : place_(places.take(name)) {}
    ~Call() {
      if (place_ == nullptr) return;
      // Before the place is another's, so that who sees the next call sees that it is another one.
      place_->ended.store(place_->ended.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      place_->call.store(nullptr, std::memory_order_release);
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    Place* const place_;
  };

  // A call that was under way at this look and the `allowed` ones before it, or null. It is told of again
  // after as many more. One thread.
  const char* look(int allowed);

 private:
  Place* take(const char* name) {
    for (Place& place : places_) {
      const char* nobodys = nullptr;
      if (place.call.load(std::memory_order_relaxed) == nullptr &&
          place.call.compare_exchange_strong(nobodys, name, std::memory_order_acquire,
                                             std::memory_order_relaxed))
        return &place;
    }
    return nullptr;
  }

  std::array<Place, kPlaces> places_;
  struct Seen {
    std::uint64_t ended = 0;
    int looks = 0;  // that found it in one call
  };
  std::array<Seen, kPlaces> seen_;  // look()'s
};

struct CallLimits {
  Duration every = std::chrono::seconds(1);  // a look
  int looks = static_cast<int>(kLongestWork / std::chrono::seconds(1));
};

// The thread that looks, from construction to the end, which waits for it.
class CallWatch {
 public:
  // Hears, on that thread, the name of a call that is stuck; again and again as long as it is.
  using OnStuck = std::function<void(const std::string& call)>;
  explicit CallWatch(OnStuck on_stuck, const CallLimits& limits = {});
  ~CallWatch();
  CallWatch(const CallWatch&) = delete;
  CallWatch& operator=(const CallWatch&) = delete;

  CallPlaces& places() { return places_; }

 private:
  void watch();

  CallPlaces places_;
  const OnStuck on_stuck_;
  const CallLimits limits_;
  Guarded<bool> stopped_{false};
  std::jthread thread_;  // last: it uses the others
};

// A function of a library, called as a plain pointer to it; where there are places, which outlive it, each
// call has one.
template <typename Function>
class WatchedCall;
template <typename Result, typename... Parameters>
class WatchedCall<Result (*)(Parameters...)> {
 public:
  using Function = Result (*)(Parameters...);
  WatchedCall() = default;
  WatchedCall(Function function, const char* name, CallPlaces* places)
      : function_(function), name_(name), places_(places) {}

  Result operator()(Parameters... parameters) const {
    if (places_ == nullptr) return function_(parameters...);
    const CallPlaces::Call call(*places_, name_);
    return function_(parameters...);
  }

 private:
  Function function_ = nullptr;
  const char* name_ = nullptr;
  CallPlaces* places_ = nullptr;
};

}  // namespace paceline::cuda
